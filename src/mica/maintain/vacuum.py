"""Vacuum: deletes data files that no retained version uses.

The rule: a file is kept if the newest version uses it, if a version within the retention uses it, or if it is younger
than the retention, since its writer may be about to commit it. All other data files are deleted, including leftovers of
killed writers. Names that begin with `_` or `.` are not data, except change files, which are kept if they are young or
if a commit within the retention names them, and records of ingested files, which are kept if they are young or if a
version names them that the log still has: it may be restored. Of the log only sidecars go that no checkpoint names
(`log/cleanup`). Partial files under hidden names, which killed writers left in any directory, are deleted too
(`Storage.sweep`); they are not files of the table, so they are not counted.

A `lite` vacuum deletes of all these only what the log says was removed: leftovers of killed writers stay.

Source: PROTOCOL.md, "Add File and Remove File" (tombstones), "VACUUM Protocol Check"; retention as in delta-spark.
"""

from __future__ import annotations

import logging
import os
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from datetime import timedelta
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa

from mica import compute as pc
from mica import properties, threads
from mica.arrays import arrow_array, batch_of, no_rows, one_array
from mica.errors import ConflictError, MicaError, StorageError, UserError
from mica.log import features
from mica.log.cleanup import unnamed_sidecars
from mica.log.deletion_vectors import file_of
from mica.log.feed import change_files_since
from mica.log.feed_columns import DIRECTORY as CHANGES
from mica.log.listing import list_log
from mica.log.paths import ABSOLUTE, SIDECARS, canonical_keys, is_text
from mica.log.replay import REMOVES, parse_commits, partition_keys
from mica.log.snapshot import Snapshot
from mica.log.tombstones import tombstones
from mica.log.transaction import Transaction
from mica.records import dataclass
from mica.storage import Entry, Storage, split_scheme
from mica.wording import counted, sized
from mica.write.ingested import FOLDER as RECORDS
from mica.write.ingested import named

_LOG = logging.getLogger("mica")

#: Attempts to record the end of a vacuum while other writers change the schema or the protocol.
_MAX_ENDS = 100

_HOUR = 3_600_000
_RETENTIONS = "a number of hours, a text such as '7 days', or a timedelta"
_CHANGES = f"{CHANGES}/"

Retention = float | str | timedelta


@dataclass(frozen=True)
class Vacuum:
    """The files that a vacuum deleted, or with `dry_run` would delete. `deleted` has one row per file: path relative to
    the table, size (bytes), modification_time (ms since the epoch).
    """

    table: str
    version: int
    dry_run: bool
    retention_hours: float
    files: int
    bytes: int
    seconds: float
    deleted: pa.Table = field(repr=False, compare=False)
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """As plain values; `deleted` are the paths."""
        names = ("table", "version", "dry_run", "retention_hours", "files", "bytes", "seconds")
        return {name: getattr(self, name) for name in names} | {"deleted": self.deleted.column("path").to_pylist()}

    def __str__(self) -> str:
        verb = "would be deleted" if self.dry_run else "deleted"
        return f"{self.table}: {counted(self.files, 'file')} {verb}, {sized(self.bytes)} ({self.seconds:.1f} s)"


DELETED = pa.schema([("path", pa.string()), ("size", pa.int64()), ("modification_time", pa.int64())])


def vacuum(
    snapshot: Snapshot,
    retention: Retention | None = None,
    *,
    dry_run: bool = False,
    enforce_retention: bool = True,
    lite: bool = False,
    clock: Callable[[], float] = time.time,
) -> Vacuum:
    """Deletes the files that no version within `retention` uses; see `Table.vacuum`."""
    began = time.monotonic()
    table = str(snapshot.storage)
    features.check_write(snapshot.protocol, snapshot.metadata, table)
    kept = properties.DELETED_FILE_RETENTION.of(snapshot.properties)
    wanted = kept if retention is None else millis(retention)
    if enforce_retention and wanted < kept:
        _refuse_short(table, wanted, kept)
    now = int(clock() * 1000)
    oldest = now - wanted
    needed = needed_files(snapshot, oldest)
    entries = list(snapshot.storage.list(links=False))
    unused = _unused_files(snapshot, entries, needed, oldest)
    if lite:
        removed = set(_removed_files(snapshot).to_pylist()) if unused else set[str]()
        unused = [entry for entry in unused if entry.path in removed]
    else:
        unused += _unnamed_sidecars(snapshot, entries, now)
        unused += _unnamed_records(snapshot, entries, oldest)
    deleted = pa.Table.from_batches([batch_of([entry_row(entry) for entry in unused], DELETED)])
    last = snapshot
    if not dry_run:
        settings = {"retentionCheckEnabled": enforce_retention, "defaultRetentionMillis": kept}
        settings |= {} if retention is None else {"specifiedRetentionMillis": wanted}
        partial_files = [entry.path for entry in entries if entry.path.endswith(".tmp") and not lite]
        deleted, last = _delete(snapshot, deleted, partial_files, oldest, settings)
    took = time.monotonic() - began
    return Vacuum(table, last.version, dry_run, wanted / _HOUR, deleted.num_rows, _size(deleted), took, deleted, last)


def _refuse_short(table: str, wanted: int, kept: int) -> NoReturn:
    raise UserError(
        "RETENTION_TOO_SHORT",
        f"{table} keeps removed files for {_hours(kept)} (delta.deletedFileRetentionDuration), but the retention is"
        f" {_hours(wanted)}",
        hint="Readers of older versions and writers that have not committed yet would lose files. If there are "
        "none, pass enforce_retention=False; in SQL, set spark.databricks.delta.retentionDurationCheck.enabled to "
        "false.",
    )


def _unused_files(snapshot: Snapshot, entries: Iterable[Entry], needed: pa.Array, oldest: int) -> list[Entry]:
    """The data files and change files that are older than the retention and not needed."""
    found = [entry for entry in _data_files(entries, snapshot.partition_columns) if entry.modified < oldest]
    if any(entry.path.startswith(_CHANGES) for entry in found):
        needed = pa.concat_arrays([needed, _below(snapshot.storage, change_files_since(snapshot, oldest))])
    paths = arrow_array([entry.path for entry in found], pa.string())
    gone = pc.invert(pc.is_in(paths, value_set=needed)).to_pylist()
    return [entry for entry, left in zip(found, gone, strict=True) if left]


def _delete(
    snapshot: Snapshot, deleted: pa.Table, partial_files: Sequence[str], oldest: int, settings: dict[str, Any]
) -> tuple[pa.Table, Snapshot]:
    """Deletes the files between two commits. Returns those that were deleted, and the version after it."""
    storage = snapshot.storage
    metrics = {"numFilesToDelete": deleted.num_rows, "sizeOfDataToDelete": _size(deleted)}
    last = _if_there_is_room(snapshot, partial(_recorded, snapshot, "VACUUM START", settings, metrics))
    if last.version > snapshot.version + 1:
        # A version that was restored meanwhile has its files again.
        again = pc.is_in(deleted.column("path"), value_set=needed_files(last, oldest))
        deleted = deleted.filter(pc.invert(again))
    storage.delete_all(deleted.column("path").to_pylist())
    for directory in sorted({path.rpartition("/")[0] for path in partial_files}):
        storage.sweep(directory)
    return deleted, _if_there_is_room(last, partial(_ended, last, {"numDeletedFiles": deleted.num_rows}))


def _size(deleted: pa.Table) -> int:
    return pc.sum(deleted.column("size")).as_py() or 0


def entry_row(entry: Entry) -> dict[str, Any]:
    """A listed file as a row of `DELETED`."""
    return {"path": entry.path, "size": entry.size, "modification_time": entry.modified}


def millis(retention: Retention) -> int:
    """A retention in ms: hours, `7 days`, or a timedelta."""
    if isinstance(retention, timedelta):
        found = int(retention.total_seconds() * 1000)
    elif isinstance(retention, str):
        try:
            found = properties.DELETED_FILE_RETENTION.values.parse(retention)
        except ValueError:
            raise UserError.bad_value("retention", retention, _RETENTIONS) from None
    elif type(retention) in (int, float) and 0 <= retention < 1e9:
        found = int(retention * _HOUR)
    else:
        raise UserError.bad_value("retention", retention, _RETENTIONS)
    if found < 0:
        raise UserError.bad_value("retention", retention, "0 or more")
    return found


def _hours(duration: int) -> str:
    return f"{duration / _HOUR:g} hours"


def needed_files(snapshot: Snapshot, oldest: int) -> pa.Array:
    """The relative paths of files that are in use by this version or by a version that was the newest at `oldest` (ms)
    or later. Checkpoints may lack tombstones since then, if the table kept removed files for a shorter time when they
    were written: the commits since are read too.
    """
    storage, files = snapshot.storage, snapshot.files
    gone, removed = tombstones(snapshot), _removed_since(snapshot, oldest)
    # Files without a time are kept: another writer may have omitted it.
    times = pc.fill_null(pc.struct_field(gone, "deletionTimestamp"), oldest)
    young = pc.filter(gone, pc.greater_equal(times, oldest))
    return _with_vectors(
        storage,
        (files.column("path"), files.column("deletion_vector")),
        (pc.struct_field(young, "path"), pc.struct_field(young, "deletionVector")),
        (removed.column("path"), removed.column("deletion_vector")),
    )


def _removed_files(snapshot: Snapshot) -> pa.Array:
    """The relative paths of all files that the log says were removed, as far back as it goes, of their deletion vectors
    and of change files."""
    storage, gone, removed = snapshot.storage, tombstones(snapshot), _removed_since(snapshot, 0)
    files = _with_vectors(
        storage,
        (pc.struct_field(gone, "path"), pc.struct_field(gone, "deletionVector")),
        (removed.column("path"), removed.column("deletion_vector")),
    )
    return pa.concat_arrays([files, _below(storage, change_files_since(snapshot, 0))])


def _with_vectors(storage: Storage, *named: tuple[pa.ChunkedArray | pa.Array, pa.ChunkedArray | pa.Array]) -> pa.Array:
    """Files as relative paths, and the files of their deletion vectors."""
    parts = [arrow_array([], pa.string())]
    for paths, vectors in named:
        keys = canonical_keys(one_array(paths))
        with_vector = pc.drop_null(one_array(vectors))
        holders = {(v["storageType"], v["pathOrInlineDv"]): v for v in with_vector.to_pylist()}
        others = [file for v in holders.values() if (file := file_of(storage, v)) is not None]
        parts.append(_below(storage, pa.concat_arrays([keys, arrow_array(others, pa.string())])))
    return pa.concat_arrays(parts)


def _removed_since(snapshot: Snapshot, oldest: int) -> pa.Table:
    """The files that commits since `oldest` (ms) removed, read from the commits themselves."""
    storage = snapshot.storage
    listing = list_log(storage)
    keys = partition_keys(snapshot.metadata, snapshot.protocol)
    names = [entry.path for _, entry in sorted(listing.commits.items()) if entry.modified >= oldest]

    def removes(name: str) -> pa.Table:
        data = storage.read(name)
        if b'"remove"' not in data:
            return no_rows(REMOVES)
        return parse_commits([data], keys, storage.path(name)).removes

    found = [table.select(["path", "deletion_vector"]) for table in threads.each(removes, names)]
    return pa.concat_tables([no_rows(REMOVES).select(["path", "deletion_vector"]), *found])


#: A path with a directory without a name, or that is the one that it is in, or the one above.
_ODD = r"(^|/)\.{0,2}/"


def _below(storage: Storage, keys: pa.Array) -> pa.Array:
    """The files as relative paths, as in a listing; absolute paths outside of the table are left out."""
    absolute = pc.match_substring_regex(keys, ABSOLUTE)
    inside = [name for key in pc.filter(keys, absolute).to_pylist() for name in _inside(storage, key)]
    keys = pc.filter(keys, pc.invert(absolute))
    # A disk has one file for `a//b`, `a/./b` and `a/b`; where they are several, all of them stay.
    odd = pc.filter(keys, pc.match_substring_regex(keys, _ODD)).to_pylist()
    names = [*inside, *map(posixpath.normpath, odd), *_behind_links(storage, keys.to_pylist())]
    return pa.concat_arrays([keys, arrow_array(names, pa.string())])


def _inside(storage: Storage, key: str) -> list[str]:
    """The names below the table of an absolute path: its own and, if it is a link, that of the file."""
    if storage.local_path is not None:
        # Links are resolved: a file under another name is the same file.
        root, folder = os.path.realpath(storage.local_path), os.path.realpath(Path(key).parent)
        found = (os.path.realpath(key), f"{folder.rstrip('/')}/{Path(key).name}")
        return [full[len(root) + 1 :] for full in found if full.startswith(root.rstrip("/") + "/")]
    # A store has several names, such as abfss://c@account/t and https://account/c/t. Under each of them a file with the
    # path of one of the table's may be this: it stays, though a reader may not follow such a name.
    scheme, rest = split_scheme(key)
    table = split_scheme(storage.path(""))[1].removeprefix("//").partition("/")[2]
    names = [rest.lstrip("/")]
    while scheme is not None and len(names) < 3:
        names.append(names[-1].partition("/")[2].lstrip("/"))
    return [name[len(table) :].lstrip("/") for name in names if name.startswith(f"{table}/") or not table]


def _behind_links(storage: Storage, keys: Iterable[str]) -> Iterator[str]:
    """The files that links in the table lead to: a listing has them under other names than the log."""
    if storage.local_path is None:
        return
    root = os.path.realpath(storage.local_path)

    is_linked = cache(storage.is_behind_link)
    for key in keys:
        full = f"{root}/{key}"
        if is_linked(key.rpartition("/")[0]) or os.path.islink(full):  # noqa: PTH114 - for each file of the table
            yield from _inside(storage, full)


def _data_files(entries: Iterable[Entry], partition_columns: Sequence[str]) -> Iterator[Entry]:
    """The files that may be data. As in delta-spark, a directory `_x=1` of the partition column `_x` is not hidden."""
    partitions = tuple(f"{name}=" for name in partition_columns if name[:1] in ("_", "."))
    hidden = re.compile(r"(?:^|/)[_.]")
    for entry in entries:
        path = entry.path
        if not is_text(path):
            continue
        if hidden.search(path) is not None and not path.startswith(_CHANGES):
            parts = (part for part in path.split("/") if not (partitions and part.startswith(partitions)))
            if any(part[:1] in ("_", ".") for part in parts):
                continue
        yield entry


def _in(entries: Iterable[Entry], folder: str) -> list[Entry]:
    return [entry for entry in entries if entry.path.rpartition("/")[0] == folder]


def _unnamed_sidecars(snapshot: Snapshot, entries: Iterable[Entry], now: int) -> list[Entry]:
    """What checkpoints left that were never finished, or that a cleanup of the log deleted; none if in doubt."""
    found = _in(entries, SIDECARS)
    if not found:
        return []
    listing = list_log(snapshot.storage)
    try:
        return unnamed_sidecars(snapshot.storage, found, chain.from_iterable(listing.checkpoints.values()), now)
    except MicaError:
        return []


def _unnamed_records(snapshot: Snapshot, entries: Iterable[Entry], oldest: int) -> list[Entry]:
    """The old records of ingested files that no version of the log names; none if in doubt."""
    old = [entry for entry in _in(entries, RECORDS) if entry.modified < oldest]
    try:
        needed = named(snapshot) if old else ()
    except MicaError:
        return []
    return [entry for entry in old if entry.path not in needed]


def _ended(snapshot: Snapshot, metrics: dict[str, Any]) -> Snapshot:
    """Records the end of the vacuum. The files are gone already, so another writer's new schema must not fail it. If
    the table was replaced meanwhile, that conflict is raised."""
    for _ in range(_MAX_ENDS):
        try:
            return _recorded(snapshot, "VACUUM END", {"status": "COMPLETED"}, metrics)
        except ConflictError as error:
            if error.code not in ("METADATA_CHANGED", "PROTOCOL_CHANGED"):
                raise
            snapshot = snapshot.refresh()
    return snapshot


def _if_there_is_room(snapshot: Snapshot, record: Callable[[], Snapshot]) -> Snapshot:
    """The version after a record. A full disk is no reason to refuse what makes room on it, and what is deleted is
    deleted: then the log goes without the record."""
    try:
        return record()
    except StorageError as error:
        if error.code != "DISK_FULL":
            raise
        _LOG.warning("a vacuum of %s is not in its log: %s", snapshot.storage, error.message)
        return snapshot


def _recorded(snapshot: Snapshot, operation: str, parameters: dict[str, Any], metrics: dict[str, Any]) -> Snapshot:
    """Commits a record of the vacuum that changes nothing, as delta-spark does."""
    return Transaction(snapshot, operation, parameters, metrics=metrics).commit().snapshot
