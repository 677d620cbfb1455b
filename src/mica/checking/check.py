"""Checking Parquet files and tables: every rule of the format that the bytes break, and every bound that does not hold.

The rule: a check changes nothing, trusts nothing and does not stop at the first violation. Files are checked on
threads, each as a stream of batches; what is listed is bounded per kind and file.

Source: Parquet "VariantEncoding" and "VariantShredding"; Delta RFC "Variant Shredding", "Statistics".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.checking.bounds_hold import compare
from mica.checking.collated import compared
from mica.checking.collated import spelled as collated_spelled
from mica.checking.report import TOTALS, VIOLATIONS, Report
from mica.checking.statistics import Bounds, Found, Statistics, spelled
from mica.checking.zones import late_times
from mica.engines import local
from mica.errors import CorruptDataError, StorageError, UserError
from mica.log.deletion_vectors import deleted_rows
from mica.log.opened import Opened, snapshot_of
from mica.log.paths import decode_path
from mica.log.snapshot import Snapshot
from mica.scan.find import find
from mica.schema.types import VARIANT, walk
from mica.stats.columns import physical_names
from mica.storage import Storage
from mica.variant import kernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Violations of a kind and file that are listed without being asked for another number.
LIMIT = 100


def check(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Opened,
    *,
    version: int | None = None,
    limit: int = LIMIT,
    storage_options: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> Report:
    """Lists what is wrong with Parquet files (a path, a pattern, a directory, a list), or with a table.

    Of a table all files of the version are checked, and each bound in its log is held against the rows; collated ones
    by the comparator of `spark`, where the report does not note that they were not judged. `limit` bounds
    the violations that are listed per kind and file; all are counted. Errors: NOT_FOUND, TABLE_NOT_FOUND, IO; whatever
    is wrong with a file's bytes is a violation and no error.
    """
    if type(limit) is not int or limit < 0:
        raise UserError.bad_value("limit", limit, "a number from 0 on")
    snapshot = snapshot_of(path, storage_options, version=version)
    if snapshot is not None:
        return check_table(snapshot, limit, spark)
    if version is not None:
        raise UserError("INVALID_ARGUMENT", "Parquet files have no versions", hint="Name a table.")
    assert not isinstance(path, Opened)
    files = find(path, storage_options, whatever_counts=True)
    return _run([_File(place, entry.path, place.path(entry.path), entry.size) for place, entry in files], limit)


def check_table(snapshot: Snapshot, limit: int = LIMIT, spark: SparkSession | None = None) -> Report:
    """The same of a version of a table."""
    works = list(_of_table(snapshot))
    report = _run(works, limit)
    by_name = {work.name: work for work in works}
    unread = {t["file"] for t in report.totals.to_pylist() if t["kind"] in ("unreadable", "missing_file")}
    collated = compared(snapshot, spark, unread)
    found = [batch for name, told in collated.found.items() for batch in _listed(told, by_name[name], limit)]
    return report.with_more(found, [*collated.notes, *late_times(snapshot)])


def check_files(snapshot: Snapshot, paths: Sequence[str], statistics: Sequence[str | None]) -> Report:
    """Checks files of a table that no version names yet; `paths` are decoded, `statistics` are to be theirs."""
    variants = _variants(snapshot)
    works = []
    for path, text in zip(paths, statistics, strict=True):
        said = Statistics(snapshot.schema, snapshot.partition_columns, text, snapshot.mapping == "id")
        works.append(_File(snapshot.storage, path, path, statistics=said, variants=variants))
    return _run(works, LIMIT)


def _run(works: Sequence[_File], limit: int) -> Report:
    empty = Report(len(works), VIOLATIONS.empty_table(), TOTALS.empty_table())
    return empty.with_more(local.run(partial(_check_file, limit), works))


@dataclass(frozen=True)
class _File:
    """A file to be checked, with what a table's log says of it."""

    storage: Storage
    rel: str
    name: str
    size: int | None = None
    statistics: Statistics | None = None
    variants: tuple[tuple[str, ...], ...] = ()
    table: Storage | None = None
    deletion_vector: Mapping[str, Any] | None = None


def _of_table(snapshot: Snapshot) -> Iterator[_File]:
    """The files of a version."""
    variants = _variants(snapshot)
    files = snapshot.files
    columns = [files.column(name).to_pylist() for name in ("path", "size", "deletion_vector")]
    for path, size, vector, text in zip(*columns, snapshot.stats().to_pylist(), strict=True):
        place, rel = snapshot.locate(path)
        statistics = Statistics(snapshot.schema, snapshot.partition_columns, text, snapshot.mapping == "id")
        yield _File(place, rel, decode_path(path), size, statistics, variants, snapshot.storage, vector)


def _variants(snapshot: Snapshot) -> tuple[tuple[str, ...], ...]:
    """The Variant columns by their names in files: files of old writers lack the annotation."""
    schema = snapshot.schema
    return tuple(physical_names(schema, at) for at, f in walk(schema) if f.type == VARIANT)


def _check_file(limit: int, file: _File) -> Iterator[pa.RecordBatch]:
    """Violations as batches, and how many there were."""
    try:
        # A table's files are of the standard layout, whatever a struct in them looks like.
        early = file.statistics is None
        reader = kernel.open_file(file.storage, file.rel, file.size, variants=file.variants, early=early)
        checked = reader.check(limit=limit)
        for batch in checked:
            if batch.num_rows:
                yield _with_file(batch, file.name, VIOLATIONS)
        totals = _with_file(checked.totals(), file.name, TOTALS)
        if totals.num_rows:
            yield totals
    except CorruptDataError as e:
        # A file without a readable footer, or one that was promised and is not there.
        yield from _listed(
            [{"kind": "unreadable", "path": e.context.get("path") or "", "found": e.message}], file, limit
        )
    except StorageError as e:
        if e.code != "NOT_FOUND":
            raise
        yield from _listed([{"kind": "missing_file", "path": "", "found": e.message}], file, limit)
    else:
        if file.statistics is not None:
            yield from _listed(_of_log(file, file.statistics, reader), file, limit)


def _of_log(file: _File, statistics: Statistics, reader: kernel.FileReader) -> Iterator[Found]:
    """What the log says of the file and does not hold."""
    actual = file.storage.size(file.rel)
    if file.size is not None and file.size != actual:
        # Readers find the footer by it: they refuse the file, or read beyond its end.
        yield {"kind": "file_size", "path": "size", "found": f"{file.size} bytes by the log, {actual} in the file"}
    wanted: list[Bounds] = []
    yield from spelled(statistics, reader, wanted)
    yield from collated_spelled(statistics)
    deleted = None
    if file.deletion_vector is not None and file.table is not None:
        deleted = deleted_rows(file.table, file.deletion_vector)
    yield from compare(wanted, reader, deleted)


def _listed(found: Iterable[Found], file: _File, limit: int) -> Iterator[pa.RecordBatch]:
    counts: dict[tuple[str, int | None], int] = {}
    rows = []
    for one in found:
        key = (one["kind"], one.get("rule"))
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= limit:
            rows.append({**one, "file": file.name})
    if counts:
        yield pa.RecordBatch.from_pylist(rows, VIOLATIONS)
        totals = [{"kind": kind, "rule": rule, "count": n, "file": file.name} for (kind, rule), n in counts.items()]
        yield pa.RecordBatch.from_pylist(totals, TOTALS)


def _with_file(batch: pa.RecordBatch, name: str, schema: pa.Schema) -> pa.RecordBatch:
    names = pa.repeat(pa.scalar(name, pa.string()), batch.num_rows)
    return pa.RecordBatch.from_arrays([*batch.columns, names], schema=schema)
