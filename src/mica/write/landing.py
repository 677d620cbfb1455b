"""A folder of JSON files that grows, into a table, batch by batch.

The rule: each file once. The commit of a batch records its files (`inputs.unread`), so a run that is killed anywhere
goes on where the table stands, and needs no state of its own. Files are taken in the order in which they came.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mica.arguments import COUNT, OPTIONS, PATH, SECONDS, SESSION, SIZE, takes
from mica.errors import CorruptDataError, StorageError, UserError
from mica.log import feed
from mica.log.paths import LOG, decode_path
from mica.log.segment import read_listing
from mica.log.snapshot import Snapshot
from mica.schema.types import VARIANT, walk
from mica.stats.columns import physical_names
from mica.storage import Storage, patterns
from mica.tasks.ingest import Split
from mica.variant import kernel
from mica.variant.shredding import typed_paths
from mica.write import inputs
from mica.write.ingest import IngestReport, ingest_json
from mica.write.ingest_options import size_of
from mica.write.target import load_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Files whose footers tell what a batch has, and notes of a batch.
LOOKED_AT, NOTED = 4, 8

#: Shredded types by path (`v:a.b`).
Types = dict[str, str]


@takes(source=PATH, table=PATH, spark=SESSION, interval=SECONDS, max_files=COUNT, max_bytes=SIZE,
       storage_options=OPTIONS)  # fmt: skip
def stream_json(
    source: str | os.PathLike[str],
    table: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    interval: float | None = None,
    max_files: int = 1000,
    max_bytes: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[IngestReport]:
    """Ingests the files of a folder, those that come later too, and yields the report of each batch.

        for report in mica.stream_json("landing/", "events", interval=10, on_error="quarantine"):
            print(report)

    `source` is a folder with all that is below it, or a pattern; names that begin with `_` or `.` are left out. Files
    must appear whole: write them under such a name, and rename them. Each batch is one commit of at most `max_files`
    files and about `max_bytes` bytes, the oldest files first. Without `interval` the iterator ends when nothing is
    left; with it, it looks again after so many seconds, until it is closed.

    Each file is ingested once, however often this is killed and started again: the commit records the files. Of several
    that run at once, one gets a batch, and the others the next. `options` are those of `ingest_json`, but for `mode`,
    `idempotent` and `txn`; `properties={"delta.autoOptimize.autoCompact": "true"}` joins small files on the way.

    A report's `notes` name paths that are new in a batch and those whose type changed (drift).

    Errors: those of `ingest_json`; INPUT_CHANGED for a file that changed after it was ingested.
    """
    for name in ("mode", "idempotent", "txn"):
        if name in options:
            raise UserError.bad_value(name, options[name], "no option of stream_json: each file is ingested once")
    place = os.fspath(source)
    limits = (max(max_files, 1), size_of(max_bytes))
    return _batches(place, os.fspath(table), spark, interval, limits, storage_options, options)


def _batches(
    place: str,
    table: str,
    spark: SparkSession | None,
    interval: float | None,
    limits: tuple[int, int | None],
    storage_options: Mapping[str, str] | None,
    options: Mapping[str, Any],
) -> Iterator[IngestReport]:
    storage = Storage.open(table, storage_options)
    snapshot = load_if_any(storage)
    known: Types | None = None if snapshot is None else _types(snapshot, _newest(snapshot))
    while True:
        done = {} if snapshot is None else snapshot.app_transactions
        fresh, _ = inputs.unread(_files(place, storage_options, options.get("format", "auto")), done)
        batch = _head(sorted(fresh, key=lambda file: (file.modified, file.name)), *limits)
        if batch:
            names = [file.name for file in batch]
            report = ingest_json(names, table, spark=spark, idempotent=True, storage_options=storage_options, **options)
            snapshot = load_if_any(storage)
            found = {} if snapshot is None else _types(snapshot, _added(snapshot, report.version))
            if known is not None:
                report.notes.extend(drift(known, found))
            known = {**(known or {}), **found}
            yield report
        elif interval is None:
            return
        else:
            time.sleep(interval)
            snapshot = load_if_any(storage)


def _files(place: str, storage_options: Mapping[str, str] | None, format_: str) -> list[Split]:
    """The files of a folder or pattern. Errors: NOT_FOUND for a folder that is not there; NOT_A_FILE for a file."""
    if patterns.is_pattern(place, storage_options):
        found = patterns.matching(place, storage_options)
    else:
        folder = Storage.open(place, storage_options)
        if folder.local_path is not None and not os.path.isdir(folder.local_path):  # noqa: PTH112 - one question
            is_file = os.path.exists(folder.local_path)  # noqa: PTH110 - as above
            raise StorageError(
                "NOT_A_FILE" if is_file else "NOT_FOUND",
                f"{folder} is {'a file, not a folder' if is_file else 'not there'}",
                hint="Name the folder that the files arrive in, or a pattern of them.",
                path=str(folder),
            )
        found = [(folder, entry) for entry in folder.list()]
    return [
        Split(at, entry.path, entry.size, modified=entry.modified, format=format_)
        for at, entry in found
        if not any(part.startswith(("_", ".")) for part in entry.path.split("/"))
    ]


def _head(files: list[Split], max_files: int, max_bytes: int | None) -> list[Split]:
    """The first files, at least one."""
    files = files[:max_files]
    if max_bytes is None:
        return files
    sums = itertools.accumulate(file.size for file in files)
    return [
        file for number, (file, size) in enumerate(zip(files, sums, strict=True)) if size <= max_bytes or not number
    ]


def drift(known: Types, found: Types) -> list[str]:
    """What is new in `found`, in words."""
    notes = [
        f"{path} is new: {kind}" if path not in known else f"{path} was {known[path]} and is {kind}"
        for path, kind in sorted(found.items())
        if known.get(path) != kind
    ]
    more = len(notes) - NOTED
    return notes if more <= 0 else [*notes[:NOTED], f"{more} more paths are new or have another type"]


def _newest(snapshot: Snapshot) -> list[str]:
    return [str(path) for path in snapshot.files.column("path").slice(max(0, snapshot.files.num_rows - LOOKED_AT))]


def _added(snapshot: Snapshot, version: int) -> list[str]:
    """Some of the files that a version added."""
    listing = read_listing(snapshot.storage.list(LOG, recursive=False))
    if version not in listing.commits:
        return []
    files = feed.appended_files(snapshot, listing, version, skip_changes=True)
    return [str(path) for path in files.column("path").slice(0, LOOKED_AT)]


def _types(snapshot: Snapshot, paths: list[str]) -> Types:
    """The shredded types in some files, by path."""
    columns = [at for at, f in walk(snapshot.schema) if f.type == VARIANT]
    physical = {at: physical_names(snapshot.schema, at) for at in columns}
    found: Types = {}
    for path in paths:
        try:
            reader = kernel.open_file(*snapshot.storage.locate(decode_path(path)), variants=list(physical.values()))
            trees = {at: reader.tree(names) for at, names in physical.items()}
        except (CorruptDataError, StorageError):
            continue  # it was compacted meanwhile
        for at, tree in trees.items():
            if tree is not None:
                found |= {f"{'.'.join(at)}{path}": kind for path, kind in typed_paths(tree[0])}
    return found
