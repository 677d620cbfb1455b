"""Checks Parquet files and tables: every rule of the format, and every bound against the rows.

The rule: a check changes nothing, trusts nothing and does not stop at the first violation. Files are checked on
threads, each as a stream of batches; the number of listed violations is limited per kind and file.
Source: Parquet "VariantEncoding" and "VariantShredding"; Delta RFC "Variant Shredding", "Statistics".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from mica import compute as pc
from mica.arguments import COUNT, OPTIONS, SESSION, TABLE_OR_FILES, takes
from mica.arrays import batch_of, no_rows, one_array, scalar
from mica.checking.bounds_hold import compare
from mica.checking.collated import compared
from mica.checking.collated import spelled as collated_spelled
from mica.checking.columns_fit import unfit
from mica.checking.foreign_vacuum import not_for_a_foreign_vacuum
from mica.checking.log_files import empty_commits, unread_checkpoints
from mica.checking.report import TOTALS, VIOLATIONS, Report
from mica.checking.statistics import Bounds, Found, Statistics, spelled
from mica.engines import local
from mica.errors import CorruptDataError, StorageError, UserError
from mica.log.clustering import cluster_by
from mica.log.deletion_vectors import deleted_rows
from mica.log.domains import CLUSTERING_DOMAIN
from mica.log.opened import Opened, snapshot_of
from mica.log.paths import LOG, file_keys
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.scan.find import find
from mica.stats.columns import all_variants
from mica.storage import Storage
from mica.storage.options import ALLOW_EXTERNAL
from mica.tasks.ahead import at_once
from mica.tasks.parts import FilePart, parts_of
from mica.variant import kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What keeps the rows of a file from being read.
_UNREAD = ("unreadable", "missing_file", "deletion_vector")

#: The default number of listed violations per kind and file.
LIMIT = 100


@takes(path=TABLE_OR_FILES, version=COUNT, limit=COUNT, storage_options=OPTIONS, spark=SESSION)
def check(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Opened,
    *,
    version: int | None = None,
    limit: int = LIMIT,
    storage_options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Checks Parquet files (a path, a pattern, a directory, a list) or a table, and returns a report.

    For a table, all files of the version are checked, and each bound in its log is compared with the rows. Collated
    bounds need the comparator of `spark`; without it a note says that they were not checked. `limit` is the number
    of listed violations per kind and file; all are counted. Errors: NOT_FOUND, TABLE_NOT_FOUND, IO,
    INVALID_ARGUMENT for a `version` of files; defects in a file's bytes are violations, not errors.
    """
    snapshot = snapshot_of(path, storage_options, version=version)
    if snapshot is not None:
        return check_table(snapshot, limit, spark)
    if version is not None:
        raise UserError("INVALID_ARGUMENT", "Parquet files do not have versions", hint="Name a table.")
    assert not isinstance(path, Opened)
    files = find(path, storage_options, whatever_counts=True)
    # The caller names these files explicitly, so they may be anywhere.
    anywhere = {**(storage_options or {}), ALLOW_EXTERNAL: "true"}
    names = [(place.path(entry.path), entry.size) for place, entry in files]
    storage = Storage.open(os.path.dirname(names[0][0]) or ".", anywhere)  # noqa: PTH120 - may be a URI
    report = _run([_Work(storage, FilePart(name, size)) for name, size in names], limit)
    if isinstance(path, (str, os.PathLike)):
        folder = Storage.open(os.fspath(path), storage_options)
        if all(name.startswith(f"{folder}/") for name, _ in names):
            return report.with_more([], [f"{folder} has no {LOG}: its Parquet files were checked, and no table"])
    return report


def check_table(snapshot: Snapshot, limit: int = LIMIT, spark: SparkSession | None = None) -> Report:
    """Checks a version of a table, like `check`."""
    works = list(_of_table(snapshot))
    report = _run(works, limit)
    by_name = {work.name: work for work in works}
    unread = {t["file"] for t in report.totals.to_pylist() if t["kind"] in _UNREAD}
    collated = compared(snapshot, spark, unread)
    found = [batch for name, told in collated.found.items() for batch in _listed(told, by_name[name], limit)]
    of_log = chain(_clustering(snapshot), _named_twice(snapshot), unread_checkpoints(snapshot))
    found += _listed(of_log, _Work(snapshot.storage, FilePart(LOG, None)), limit)
    notes = [*collated.notes, *not_for_a_foreign_vacuum(snapshot), *empty_commits(snapshot)]
    return report.with_more(found, notes)


def check_files(snapshot: Snapshot, paths: Sequence[str], statistics: Sequence[str | None]) -> Report:
    """Checks files of a table that are not committed yet; `paths` are decoded, `statistics` are the planned ones."""
    variants = _variants(snapshot)
    works = []
    for path, text in zip(paths, statistics, strict=True):
        said = Statistics(snapshot.schema, snapshot.partition_columns, text, snapshot.mapping == "id")
        works.append(_Work(snapshot.storage, FilePart(path, None), said, variants))
    return _run(works, LIMIT)


def _run(works: Sequence[_Work], limit: int) -> Report:
    empty = Report(len(works), no_rows(VIOLATIONS), no_rows(TOTALS))
    if not works:
        return empty
    files = max(local.threads(), at_once(works[0].storage, [work.file for work in works]))
    return empty.with_more(local.shown(partial(_check_file, limit), works, parallelism=files))


@dataclass(frozen=True)
class _Work:
    """A file to check, with its entry in a table's log."""

    #: The location of the table, or one from which every file can be named.
    storage: Storage
    file: FilePart
    statistics: Statistics | None = None
    variants: tuple[tuple[str, ...], ...] = ()

    @property
    def name(self) -> str:
        """The file's name in the report."""
        return self.file.path


def _of_table(snapshot: Snapshot) -> Iterator[_Work]:
    """The files of a version."""
    variants = _variants(snapshot)
    for part, text in zip(parts_of(snapshot.files, of_log=True), snapshot.stats().to_pylist(), strict=True):
        said = Statistics(snapshot.schema, snapshot.partition_columns, text, snapshot.mapping == "id")
        yield _Work(snapshot.storage, part, said, variants)


def _clustering(snapshot: Snapshot) -> Iterator[Found]:
    """Yields a domain that names no columns of the table: neither mica nor delta-spark can optimize the table then."""
    try:
        cluster_by(snapshot)
    except CorruptDataError as e:
        yield {"kind": "clustering", "path": CLUSTERING_DOMAIN, "found": e.message}


def _named_twice(snapshot: Snapshot) -> Iterator[Found]:
    """Yields files that a checkpoint has more than once, against PROTOCOL.md, "Action Reconciliation": mica reads their
    rows as often, delta-spark once."""
    paths, vectors = (one_array(snapshot.files.column(name)) for name in ("path", "deletion_vector"))
    counted = pc.value_counts(file_keys(paths, vectors))
    for twice in counted.filter(pc.greater(pc.struct_field(counted, "counts"), 1)).to_pylist():
        name = twice["values"].partition("\n")[0]
        yield {"kind": "named_twice", "path": name, "found": f"{twice['counts']} times in a checkpoint"}


def _variants(snapshot: Snapshot) -> tuple[tuple[str, ...], ...]:
    """Returns the Variants by their names in files: files of old writers do not have the annotation."""
    return tuple(all_variants(snapshot.schema))


#: What a file is called that the log names and that cannot be opened, by the code of the error.
_NOWHERE = {
    "NOT_FOUND": "missing_file", "INVALID_NAME": "unreadable", "EXTERNAL_PATH": "unreadable",
    "FILE_TOO_SHORT": "unreadable",
}  # fmt: skip


def _check_file(limit: int, work: _Work) -> Iterator[pa.RecordBatch]:
    """Yields violations as batches, and their totals."""
    try:
        # A table's files have the standard layout, even if a struct in them looks like the early one.
        early = work.statistics is None
        place, rel = work.storage.locate(work.name)
        reader = kernel.open_file(place, rel, work.file.size, variants=work.variants, early=early)
        checked = reader.check(limit=limit)
        for batch in checked:
            if batch.num_rows:
                yield _with_file(batch, work.name, VIOLATIONS)
        totals = _with_file(checked.totals(), work.name, TOTALS)
        if totals.num_rows:
            yield totals
    except CorruptDataError as e:
        # A file without a readable footer, or a file that the log names and that does not exist.
        yield from _listed(
            [{"kind": "unreadable", "path": e.context.get("path") or "", "found": e.message}], work, limit
        )
    except (StorageError, UserError) as e:
        if e.code not in _NOWHERE:
            raise
        yield from _listed([{"kind": _NOWHERE[e.code], "path": "", "found": e.message}], work, limit)
    else:
        if work.statistics is not None:
            yield from _listed(_of_log(work, work.statistics, reader), work, limit)


def _of_log(work: _Work, statistics: Statistics, reader: kernel.FileReader) -> Iterator[Found]:
    """Yields what is in the log and does not match the file."""
    actual, size, vector = _size(work.storage, work.name), work.file.size, work.file.deletion_vector
    if size is not None and size != actual:
        # Readers locate the footer by the size: they reject the file, or read beyond its end.
        yield {"kind": "file_size", "path": "size", "found": f"{size} bytes in the log, {actual} in the file"}
    wanted: list[Bounds] = []
    yield from spelled(statistics, reader, wanted)
    yield from collated_spelled(statistics)
    yield from unfit(statistics, reader, work.file)
    try:
        deleted = None if vector is None else deleted_rows(work.storage, vector, most=reader.num_rows, cached=False)
    except (CorruptDataError, StorageError) as e:
        if isinstance(e, StorageError) and e.code not in ("NOT_FOUND", "FILE_TOO_SHORT"):
            raise
        yield {"kind": "deletion_vector", "path": "", "found": e.message}
        return
    yield from compare(wanted, reader, deleted)


def _size(storage: Storage, name: str) -> int:
    place, rel = storage.locate(name)
    return place.size(rel)


def _listed(found: Iterable[Found], work: _Work, limit: int) -> Iterator[pa.RecordBatch]:
    counts: dict[tuple[str, int | None], int] = {}
    rows = []
    for one in found:
        key = (one["kind"], one.get("rule"))
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= limit:
            rows.append({**one, "file": work.name})
    if counts:
        yield batch_of(rows, VIOLATIONS)
        totals = [{"kind": kind, "rule": rule, "count": n, "file": work.name} for (kind, rule), n in counts.items()]
        yield batch_of(totals, TOTALS)


def _with_file(batch: pa.RecordBatch, name: str, schema: pa.Schema) -> pa.RecordBatch:
    names = pa.repeat(scalar(name, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, names], schema=schema)
