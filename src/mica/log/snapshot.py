"""A version of a table: its schema, its properties and its files, immutable.

The rule: a snapshot never changes and reads only what is requested. Opening reads names and sizes; statistics
and tags are fetched for the requested files. Reader features are checked when the files are requested, so the metadata
of an unsupported table can still be shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import to_numpy
from mica.cached import cached_property
from mica.errors import CorruptDataError, MicaError, StorageError, UserError
from mica.log import applications, features, row_tracking
from mica.log.actions import Metadata, Protocol
from mica.log.column_mapping import mode_of, read_schema
from mica.log.commit_info import commit_info, in_commit_timestamp
from mica.log.file_columns import gathered, providers_of, stats_in_shares, stats_of, tags_of
from mica.log.fingerprint import Fingerprint, fingerprint_in, fingerprint_of, stands
from mica.log.folders import no_table
from mica.log.listing import Checkpoint, Listing, LogFile, ReplacedCheckpointError, list_log
from mica.log.paths import LAST_CHECKPOINT, LogName, commit_name, readable_name
from mica.log.realigned import realigned
from mica.log.replay import FILES, Commits, State, apply, parse_commits, partition_keys
from mica.log.segment import Segment, choose_segment
from mica.properties import Mode
from mica.records import dataclass
from mica.schema.types import VARIANT, Primitive, StructType
from mica.stats.read import Share, Texts
from mica.storage import Entry, Storage

if TYPE_CHECKING:
    from mica.log.time_travel import Timestamp

#: How often a version is read again because its checkpoint is replaced again and again.
_ATTEMPTS = 5
#: After so many commits a version that was followed is read from a newer checkpoint: what it holds of files that are
#: gone, the lines of their adds and removes, goes with no commit. A read costs less than the ten checkpoints meanwhile.
_FOLLOWED = 100
_REALIGNING = threading.Lock()
T = TypeVar("T")


@dataclass(frozen=True)
class _Followed:
    """A version's content and the commits after it, which only add files."""

    before: State
    commits: tuple[bytes, ...]


@dataclass(frozen=True)
class Snapshot:
    """One version of a table. `timestamp` is in ms since the epoch (in-commit if the table has that feature)."""

    storage: Storage
    version: int
    timestamp: int
    protocol: Protocol
    metadata: Metadata
    _held: State | _Followed = field(repr=False)
    segment: Segment = field(repr=False)
    fingerprint: Fingerprint = field(repr=False)

    @property
    def state(self) -> State:
        """The content of the version. Commits of this process are parsed when it is asked for, all in one go."""
        held = self._held
        if isinstance(held, _Followed):
            keys, name = partition_keys(self.metadata, self.protocol), _names(self.storage, self.segment.deltas)
            held = apply(held.before, parse_commits(held.commits, keys, name))
            object.__setattr__(self, "_held", held)
        return held

    def with_state(self, state: State) -> Snapshot:
        """Returns the same version with this content."""
        return replace(self, _held=state)

    @property
    def _settled(self) -> State:
        """All of the content but the files."""
        return self._held.before if isinstance(self._held, _Followed) else self._held

    @property
    def domains(self) -> Mapping[str, str]:
        """Domain metadata: domain → configuration text, including unknown domains."""
        return self._settled.domains

    @property
    def app_transactions(self) -> Mapping[str, int]:
        """Application transactions that are not expired: appId → last version."""
        kept = applications.unexpired(self._settled.transactions, self.properties, int(time.time() * 1000))
        return {app: version for app, (version, _) in kept.items()}

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties as written in the log."""
        return self.metadata.configuration

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns by their logical names."""
        return self.metadata.partition_columns

    @cached_property
    def schema(self) -> StructType:
        """The table's schema; under column mapping the fields' metadata hold the physical names. Errors:
        INVALID_SCHEMA_JSON."""
        try:
            return read_schema(self.metadata.schema_string, self.mapping)
        except CorruptDataError as e:
            message = f"{self.storage}, version {self.version}: {e.message}"
            hint = e.hint or "Restore the table's metadata, or read an older version."
            raise CorruptDataError(e.code, message, hint=hint, **e.context) from None

    @cached_property
    def mapping(self) -> Mode:
        """The column mapping mode."""
        return mode_of(self.protocol, self.metadata)

    @cached_property
    def files(self) -> pa.Table:
        """The files (`replay.FILES`): path as in the log (a URI), partition values, size, time, deletion vector.
        Errors: those of `check_readable`."""
        self.check_readable()
        found = self.state.files.select(FILES.names)
        if found.num_rows and pc.min(found["size"]).as_py() < 0:
            bad = found.filter(pc.less(found["size"], 0)).slice(0, 1).to_pylist()[0]
            raise CorruptDataError(
                "CORRUPT_LOG",
                f"the log of {self.storage} has the size {bad['size']} for {bad['path']}",
                hint="Restore the log, or take the file out of the table.",
                path=bad["path"],
                version=self.version,
            )
        return found

    def check_readable(self) -> None:
        """Raises `UnsupportedTableError` if the table needs a reader feature or a change of types that mica does not
        support, `CorruptDataError` as `check_partition_columns`."""
        features.check_read(self.protocol, str(self.storage))
        self.check_partition_columns()
        if features.supports(self.protocol, "typeWidening"):
            from mica.log import type_changes

            type_changes.check(self.schema, str(self.storage))

    def check_partition_columns(self) -> None:
        """Raises if the schema does not have a partition column in exactly its spelling, or of a plain type."""
        for name in self.partition_columns:
            if name not in self.schema.names:
                found = self.schema.find(name)
                other = "has no such column" if found is None else f"spells it {found.name!r}"
                raise CorruptDataError(
                    "CORRUPT_LOG",
                    f"{self.storage} is partitioned by {name!r}, but its schema {other}",
                    hint="Restore the table's metadata, or an older version.",
                    column=name,
                    version=self.version,
                )
            kind = self.schema.field(name).type
            if kind == VARIANT or not isinstance(kind, Primitive):
                raise CorruptDataError(
                    "CORRUPT_LOG",
                    f"{self.storage} is partitioned by {name!r}, which is not of a plain type",
                    hint="Restore the table's metadata, or an older version.",
                    column=name,
                    version=self.version,
                )

    def stats(self, indices: Sequence[int] | np.ndarray | pa.Array | None = None) -> pa.Array:
        """Returns the statistics of the files (all, or those at `indices`) as JSON strings; null for a file without.
        If a checkpoint holds only `stats_parsed`, the JSON is made from it."""
        return self._gather(indices, pa.string(), stats_of)

    def stats_shares(self, indices: Sequence[int] | np.ndarray | pa.Array | None = None) -> Iterator[Share]:
        """Yields the statistics of the files (all, or those at `indices`) some files at a time, with places in
        `indices`. Of a checkpoint only what is yielded is in memory."""
        wanted = self._wanted(indices)
        done = np.zeros(self.state.files.num_rows if wanted is None else len(wanted), bool)
        try:
            for places, texts in stats_in_shares(self.state, wanted):
                done[places] = True
                yield places, partial(self._surely, places if wanted is None else wanted[places], texts)
        except ReplacedCheckpointError:
            rest = np.flatnonzero(~done)
            yield rest, partial(list, [self.stats(rest if wanted is None else wanted[rest])])

    def _surely(self, indices: np.ndarray, texts: Texts) -> Iterator[pa.Array]:
        """The texts of these files; those that a replaced checkpoint no longer has are read again."""
        done = 0
        try:
            for some in texts():
                yield some
                done += len(some)
        except ReplacedCheckpointError:
            yield self.stats(indices[done:])

    def tags(self, indices: Sequence[int] | np.ndarray | pa.Array | None = None) -> pa.Array:
        """Returns the tags of the files as map<string, string>."""
        kind = pa.map_(pa.string(), pa.string())
        return self._gather(indices, kind, partial(tags_of, kind=kind))

    def file_ids(self, indices: Sequence[int] | np.ndarray | pa.Array | None = None) -> pa.Array:
        """Returns the row ids of the files as structs (`row_tracking.FILE_IDS`); null where rows are not tracked."""
        if not row_tracking.is_supported(self.protocol):
            return pa.nulls(self.files.num_rows if indices is None else len(indices), row_tracking.FILE_IDS)
        return self._gather(indices, row_tracking.FILE_IDS, row_tracking.ids_of)

    def clustering_providers(self, indices: Sequence[int] | np.ndarray | pa.Array | None = None) -> pa.Array:
        """Returns who clustered each file (PROTOCOL.md, "Clustered Table"); null if nobody did."""
        if not features.supports(self.protocol, "clustering"):
            return pa.nulls(self.state.files.num_rows if indices is None else len(indices), pa.string())
        return self._gather(indices, pa.string(), providers_of)

    def _wanted(self, indices: Sequence[int] | np.ndarray | pa.Array | None) -> np.ndarray | None:
        if indices is None:
            return None
        return to_numpy(indices) if isinstance(indices, pa.Array) else np.asarray(indices, np.int64)

    def _gather(
        self,
        indices: Sequence[int] | np.ndarray | pa.Array | None,
        kind: pa.DataType,
        read: Callable[[Any, np.ndarray], pa.Array],
    ) -> pa.Array:
        """Collects a column from the files' sources, in the order of the files."""
        wanted = self._wanted(indices)
        return self.consistently(lambda state: gathered(state, wanted, kind, read))

    def consistently(self, read: Callable[[State], T]) -> T:
        """Returns what `read` reads from the sources of the content. If another writer replaced a checkpoint in which
        they are, the version is read again, its files in the order that they have here. Errors: CORRUPT_CHECKPOINT if
        there is none that has the same files; VERSION_EXPIRED if the log was cleaned up."""
        for _ in range(_ATTEMPTS):
            state = self.state
            try:
                return read(state)
            except ReplacedCheckpointError as error:
                last = error
                self._realign(state, error)
        raise last

    def _realign(self, state: State, error: ReplacedCheckpointError) -> None:
        """Reads the version again, for all threads that found a checkpoint of `state` replaced."""
        with _REALIGNING:
            if self.state is not state:
                return
            found = realigned(state, _again(self.storage, self.version, error))
            if found is None:
                raise error
            object.__setattr__(self, "_held", found)

    def locate(self, path: str) -> tuple[Storage, str]:
        """Returns the location of a file of the log: a storage and a relative name. `path` is as in `files`."""
        return self.storage.locate(readable_name(path))

    def stands(self) -> bool:
        """Whether the table still has this version; False if the table was recreated."""
        return stands(self.storage, self.fingerprint)

    def followed(self, data: bytes, *, only_adds: bool) -> Snapshot:
        """Returns the next version, whose commit `data` this process wrote. `only_adds` says that it adds files and
        does nothing else: then it is parsed when somebody asks for the files."""
        delta = _delta(self.version + 1, self.storage.stat(commit_name(self.version + 1)))
        segment = Segment(self.version + 1, self.segment.checkpoint, (*self.segment.deltas, delta))
        if not only_adds:
            return _extended(self.storage, self.state, segment, [delta], [data])
        held = self._held if isinstance(self._held, _Followed) else _Followed(self._held, ())
        held = replace(held, commits=(*held.commits, data))
        return replace(
            self, version=segment.version, timestamp=delta.entry.modified, _held=held, segment=segment,
            fingerprint=fingerprint_of(delta.entry.path, data),
        )  # fmt: skip

    def refresh(self, version: int | None = None, *, known_to_stand: bool = False) -> Snapshot:
        """Returns the latest version (or `version`), reading only new commits; a recreated table is read
        in full.
        """
        if (version is not None and version < self.version) or not (known_to_stand or self.stands()):
            return load(self.storage, version)
        listing = list_log(self.storage, self.version + 1)
        target = max(self.version, listing.latest) if version is None else version
        if target == self.version:
            return self
        wanted = range(self.version + 1, target + 1)
        if not all(number in listing.commits for number in wanted):
            # A concurrent cleanup, or a gap: reading the whole log decides.
            return load(self.storage, version)
        deltas = tuple(_delta(number, listing.commits[number]) for number in wanted)
        segment = Segment(target, self.segment.checkpoint, self.segment.deltas + deltas)
        found = _extended(self.storage, self.state, segment, deltas, _commits(self.storage, deltas))
        # Whoever follows commit by commit lists no checkpoint that comes after its commit: the pointer tells.
        passed = len(segment.deltas) // _FOLLOWED > len(self.segment.deltas) // _FOLLOWED
        return found.renewed(last_checkpoint(self.storage)) if passed else found

    def renewed(self, checkpoint: int | None) -> Snapshot:
        """The same version, read from a checkpoint if it was followed for long; `checkpoint` is the last one's version,
        if there is one. What cannot be read stays as it is."""
        ours = -1 if self.segment.checkpoint is None else self.segment.checkpoint.version
        if len(self.segment.deltas) < _FOLLOWED or checkpoint is None or not ours < checkpoint <= self.version:
            return self
        try:
            found = load(self.storage, self.version)
        except MicaError:
            return self
        return found if found.fingerprint == self.fingerprint else self  # the table may be another one meanwhile


def _again(storage: Storage, version: int, error: ReplacedCheckpointError) -> State:
    try:
        return load(storage, version).state
    except MicaError as why:
        if why.code != "VERSION_EXPIRED":
            raise error from None
        raise UserError(
            "VERSION_EXPIRED",
            f"version {version} of {storage}, which was opened, can no longer be read: its log was cleaned up",
            hint="refresh() moves the table to its newest version.",
            version=version,
        ) from None


def exists(storage: Storage) -> bool:
    """Whether `load` would find a table: decided by the names in its log; nothing is read."""
    listing = list_log(storage)
    return bool(listing.commits or listing.checkpoints)


def load(storage: Storage, version: int | None = None, timestamp: Timestamp | None = None) -> Snapshot:
    """Opens a table: its latest version, a version, or the version that was current at a time."""
    if timestamp is not None:
        from mica.log import time_travel

        if version is not None:
            raise time_travel.both_given()
        listing = list_log(storage)
        version = time_travel.version_at(storage, listing, timestamp)
    else:
        listing = _listing_of(storage, version)
    skip: set[str] = set()
    replaced = 0
    while True:
        if listing.latest < 0:
            raise no_table(storage)
        segment = choose_segment(listing, version, str(storage), frozenset(skip))
        try:
            state = State() if segment.checkpoint is None else _read_checkpoint(storage, segment.checkpoint)
        except (CorruptDataError, StorageError) as error:
            if isinstance(error, ReplacedCheckpointError) and replaced < _ATTEMPTS:
                replaced += 1  # while it was read: there is another one now, or none
                listing = list_log(storage)
                continue
            # An unreadable checkpoint is harmless if an older one or the commits give the same state.
            if segment.checkpoint is None or not _can_replace(storage, segment, skip):
                raise error
            skip |= {entry.path for entry in segment.checkpoint.entries}
            listing = list_log(storage)
            continue
        last = listing.commits.get(segment.version, segment.last_entry)
        return _extended(storage, state, segment, segment.deltas, _commits(storage, segment.deltas), last)


def first(storage: Storage, data: bytes) -> Snapshot:
    """Returns version 0, whose commit `data` this process wrote."""
    delta = _delta(0, storage.stat(commit_name(0)))
    return _extended(storage, State(), Segment(0, None, (delta,)), [delta], [data])


def _listing_of(storage: Storage, version: int | None) -> Listing:
    """What the log has of a version (None: the latest): from the last checkpoint on where that is known."""
    hint = last_checkpoint(storage)
    start = hint if hint is not None and (version is None or hint <= version) else None
    listing = list_log(storage, start)
    return listing if start is None or start in listing.checkpoints else list_log(storage)  # the hint is wrong


def _read_checkpoint(storage: Storage, checkpoint: Checkpoint) -> State:
    from mica.log.checkpoint import read_checkpoint  # most small tables have none

    return read_checkpoint(storage, checkpoint)


def _can_replace(storage: Storage, segment: Segment, skip: set[str]) -> bool:
    assert segment.checkpoint is not None
    listing = list_log(storage)
    without = frozenset(skip | {entry.path for entry in segment.checkpoint.entries})
    try:
        choose_segment(listing, segment.version, str(storage), without)
    except MicaError:
        return False
    return True


def _delta(version: int, entry: Entry) -> LogFile:
    return LogFile(LogName("commit", version, end=version), entry)


def last_checkpoint(storage: Storage) -> int | None:
    """Returns the version in `_last_checkpoint`; if it is missing or broken, None, and the listing is longer."""
    try:
        value = orjson.loads(storage.read(LAST_CHECKPOINT))
        version = value["version"]
    except (StorageError, orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and version >= 0 else None


def _commits(storage: Storage, deltas: Sequence[LogFile]) -> list[bytes]:
    return read_each(storage, [delta.entry.path for delta in deltas], bytes)


def _extended(
    storage: Storage,
    state: State,
    segment: Segment,
    deltas: Sequence[LogFile],
    chunks: Sequence[bytes],
    last: Entry | None = None,
) -> Snapshot:
    """The version after these commits, of which `chunks` are the contents. `last` is the file that identifies the
    version, if there are none."""
    if deltas:
        keys = [] if state.metadata is None else partition_keys(state.metadata, state.protocol)
        state = apply(state, _parsed(storage, deltas, chunks, keys))
        fingerprint = fingerprint_of(deltas[-1].entry.path, chunks[-1])
    else:
        assert last is not None
        fingerprint = fingerprint_in(storage, last)
    if state.protocol is None or state.metadata is None:
        missing = "protocol" if state.protocol is None else "metaData"
        raise CorruptDataError(
            "CORRUPT_LOG",
            f"the log of {storage} holds no {missing} action up to version {segment.version}",
            hint="Restore the log.",
            version=segment.version,
        )
    timestamp = None
    if features.in_commit_timestamps(state.metadata):
        timestamp = state.in_commit_timestamp if deltas else _own_timestamp(storage, state.metadata, last)
    if timestamp is None:
        # Of a version that a checkpoint covers, the commit has the time: the checkpoint is made later.
        timestamp = (segment.last_entry if deltas or last is None else last).modified
    return Snapshot(storage, segment.version, timestamp, state.protocol, state.metadata, state, segment, fingerprint)


def _parsed(storage: Storage, deltas: Sequence[LogFile], chunks: Sequence[bytes], keys: Iterable[str]) -> Commits:
    """The commits, all in one go. Errors: CORRUPT_LOG, which names the commit, and the version before it."""
    try:
        return parse_commits(chunks, keys, _names(storage, deltas))
    except CorruptDataError:
        for delta, chunk in zip(deltas, chunks, strict=True):
            path = storage.path(delta.entry.path)
            try:
                parse_commits([chunk], keys, path)
            except CorruptDataError as e:
                version = delta.name.version
                hint = _way_around(storage, version) if version else e.hint
                raise CorruptDataError(e.code, e.message, hint=hint, path=path, version=version) from None
        raise


def _way_around(storage: Storage, version: int) -> str:
    """What helps where the commit of a version cannot be read."""
    before, without = version - 1, f"copy the rows of version {version - 1} to another table"
    if not storage.exists(commit_name(version + 1)):
        without = f"move the file away: the table is at version {before} again"
    return f"Restore the file from a copy, or read version {before}. To write without a copy, {without}."


def _own_timestamp(storage: Storage, metadata: Metadata, last: Entry | None) -> int | None:
    """Returns the in-commit timestamp of a version read from a checkpoint, which does not hold it: the commit's own
    while its file exists; otherwise not before the time at which the table enabled the feature.
    """
    assert last is not None
    if last.path.endswith(".json") and ".checkpoint." not in last.path:
        return in_commit_timestamp(commit_info(storage, last.path, last.size))
    return max(last.modified, properties.ICT_TIMESTAMP.of(metadata.configuration) or 0)


def read_each(storage: Storage, names: Sequence[str], made: Callable[[bytes], T]) -> list[T]:
    """What is made of whole files, in their order."""
    return storage.each(lambda name: made(storage.read(name)), names)


def _names(storage: Storage, deltas: Sequence[LogFile]) -> str:
    first, last = deltas[0].entry.path, deltas[-1].entry.path
    return storage.path(first) if first == last else f"{storage.path(first)} to {last.rpartition('/')[2]}"
