"""A folder of JSON files that grows, into a table, batch by batch.

The rule: each file once. The commit of a batch records its files (`ingested`), so a run that is killed anywhere goes on
where the table stands. Files are taken in the order in which they came.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.arguments import COUNT, OPTIONS, PATH, SECONDS, SESSION, SIZE, takes
from mica.errors import ConflictError, CorruptDataError, StorageError, UserError
from mica.log.snapshot import Snapshot
from mica.scan.find import is_data
from mica.schema.types import variant_columns
from mica.stats.columns import physical_names
from mica.storage import Storage, patterns
from mica.tasks.ingest import Split
from mica.variant import kernel
from mica.variant.shredding import typed_paths
from mica.write.ingest import Ingest, IngestReport
from mica.write.ingest_options import IngestOptions, refuse_unknown, size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How many footers say what a batch has, and how many notes a batch gets.
LOOKED_AT, NOTED = 4, 8

#: What a stream can be told: its own options, and those of an ingest that it does not set itself.
OPTIONS_OF_STREAMS = (
    "spark", "interval", "max_files", "max_bytes",
    *(one.name for one in fields(IngestOptions) if one.name not in ("mode", "idempotent")),
)  # fmt: skip

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

    `source` is a folder with all that is below it, or a pattern; names that begin with `_` or `.` are left out, and so
    is the table. Files must appear whole: write them under a name that is left out, and rename them. Each batch is one
    commit of at most `max_files` files and about `max_bytes` bytes, the oldest files first. Without `interval` the
    iterator ends when nothing is left; with it, it looks again after so many seconds, until it is closed.

    Each file is ingested once, however often this is killed and started again: the commit records the files. Of several
    that run at once, one gets a batch, and the others the next. `options` are those of `ingest_json`, but for `mode`,
    `idempotent` and `txn`; `properties={"delta.autoOptimize.autoCompact": "true"}` joins small files on the way.

    A report's `notes` name paths that are new in a batch and those whose type changed (drift).

    Errors: those of `ingest_json`; INPUT_CHANGED for a file that changed after it was ingested.
    """
    for name in ("mode", "idempotent", "txn"):
        if name in options:
            raise UserError.bad_value(name, options[name], "no option of stream_json: each file is ingested once")
    refuse_unknown("stream_json", options, OPTIONS_OF_STREAMS)
    if max_files < 1:
        raise UserError.bad_value("max_files", max_files, "1 or more")
    engine = engines.of(spark)
    ansi, timezone = engine.settings(options.pop("ansi", True), options.pop("timezone", "UTC"))
    kept = {"idempotent": True, "storage_options": storage_options, "ansi": ansi, "timezone": timezone}
    job = Ingest(engine, IngestOptions.of(options | kept), Storage.open(table, storage_options))
    return _batches(os.fspath(source), job, interval, max_files, size_of(max_bytes, "max_bytes"))


def _real(folder: str) -> str:
    """The folder without links: the table and the source may be named through different ones."""
    return os.path.realpath(folder) if folder.startswith("/") else folder


#: Conflicts after which the files that are left are taken: each is another writer's success.
_ANOTHER_WRITER = frozenset("CONCURRENT_TRANSACTION CONCURRENT_DOMAIN METADATA_CHANGED PROTOCOL_CHANGED".split())


def _batches(
    place: str, job: Ingest, interval: float | None, max_files: int, max_bytes: int | None
) -> Iterator[IngestReport]:
    known = None if job.snapshot is None else _types(job.snapshot, LOOKED_AT)
    arrived = _arrivals(place, job)
    while True:
        fresh = sorted(job.unread(arrived()), key=lambda file: (file.modified, file.name))
        if not fresh:
            if interval is None:
                return
            time.sleep(interval)
            job.refresh()
        while fresh:
            batch, fresh = _head(fresh, max_files, max_bytes)
            job.refresh()  # what others did meanwhile is no conflict
            try:
                report = job.run(batch)
            except ConflictError as error:
                if error.code not in _ANOTHER_WRITER:
                    raise
                job.refresh()
                break  # another stream took some of the files, or the table has other columns now: looked at again
            if not report.input_files:
                break  # or all of them
            assert job.committed is not None
            found = _types(job.committed, min(report.files, LOOKED_AT))
            if known is not None:
                report.notes.extend(drift(known, found))
            known = {**(known or {}), **found}
            yield report


def _arrivals(place: str, job: Ingest) -> Callable[[], list[Split]]:
    """What lists the files of the folder, without those of the table and the lines that are set aside, which may be
    in it."""
    options, own = job.options, [job.storage]
    if options.quarantine is not None:
        own.append(Storage.open(options.quarantine, options.storage_options))
    real = cache(_real)
    folders = tuple(real(str(storage).rstrip("/")) + "/" for storage in own)

    def arrived() -> list[Split]:
        files = _files(place, options.storage_options, options.format)
        return [file for file in files if not f"{real(file.name.rpartition('/')[0])}/".startswith(folders)]

    return arrived


def _files(place: str, storage_options: Mapping[str, str] | None, format_: str) -> list[Split]:
    """The files of a folder or pattern. Errors: NOT_FOUND for a folder that is not there, which in a store is an empty
    one; NOT_A_FILE for a file."""
    if patterns.is_pattern(place, storage_options):
        found = patterns.matching(place, storage_options)
    else:
        folder = Storage.open(place, storage_options)
        if folder.local_path is not None and not os.path.isdir(folder.local_path):  # noqa: PTH112 - one question
            raise _no_folder(folder, is_file=os.path.exists(folder.local_path))  # noqa: PTH110 - as above
        found = [(folder, entry) for entry in folder.list()]
        if not found and folder.local_path is None and folder.exists(""):
            raise _no_folder(folder, is_file=True)
    return [
        Split(at, entry.path, entry.size, modified=entry.modified, format=format_)
        for at, entry in found
        if is_data(entry.path)
    ]


def _no_folder(folder: Storage, *, is_file: bool) -> StorageError:
    return StorageError(
        "NOT_A_FILE" if is_file else "NOT_FOUND",
        f"{folder} is {'a file, not a folder' if is_file else 'not there'}",
        hint="Name the folder that the files arrive in, or a pattern of them.",
        path=str(folder),
    )


def _head(files: list[Split], max_files: int, max_bytes: int | None) -> tuple[list[Split], list[Split]]:
    """The first files, at least one, and the others."""
    count = max_files
    if max_bytes is not None:
        sums = itertools.accumulate(file.size for file in files[:max_files])
        count = max(1, sum(size <= max_bytes for size in sums))
    return files[:count], files[count:]


def drift(known: Types, found: Types) -> list[str]:
    """What is new in `found`, in words."""
    notes = [
        f"{path} is new: {kind}" if path not in known else f"{path} was {known[path]} and is {kind}"
        for path, kind in sorted(found.items())
        if known.get(path) != kind
    ]
    more = len(notes) - NOTED
    return notes if more <= 0 else [*notes[:NOTED], f"{more} more paths are new or have another type"]


def _types(snapshot: Snapshot, newest: int) -> Types:
    """The shredded types in the newest files, by path."""
    physical = {at: physical_names(snapshot.schema, at) for at in variant_columns(snapshot.schema)}
    found: Types = {}
    for file in snapshot.files.slice(max(0, snapshot.files.num_rows - newest)).select(["path", "size"]).to_pylist():
        try:
            reader = kernel.open_file(*snapshot.locate(file["path"]), file["size"], variants=list(physical.values()))
            trees = {at: reader.tree(names) for at, names in physical.items()}
        except (CorruptDataError, StorageError):
            continue  # it was compacted meanwhile
        for at, tree in trees.items():
            if tree is not None:
                found |= {f"{'.'.join(at)}{path}": kind for path, kind in typed_paths(tree[0])}
    return found
