"""Commits an optimistic transaction on top of a snapshot.

The rule: a version's file is created only by put-if-absent, so exactly one of several writers wins the version. The
losers read the winners' commits, check `conflicts`, and try the next version. A put that failed may have succeeded (its
answer was lost), so every commit has its own id (`commitInfo.txnId`), and a writer in doubt reads the file
back.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import arrow_array, no_rows
from mica.errors import ConflictError, CorruptDataError, MicaError, StorageError, UserError
from mica.log import added, conflicts, features, row_tracking
from mica.log.actions import Metadata, Protocol, as_text, format_line
from mica.log.added import Added, changes_data
from mica.log.after_cleanup import newest_for_append
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.cleanup import clean_log
from mica.log.commit_info import commit_info
from mica.log.file_lines import add_line, change_line, remove_line
from mica.log.fingerprint import replaced
from mica.log.paths import LOG, commit_name, file_keys
from mica.log.replay import FILES, STATE_FILES, Commits, parse_commits, partition_keys
from mica.log.snapshot import Snapshot, first
from mica.log.user_metadata import given_user_metadata
from mica.records import dataclass
from mica.storage import AlreadyExistsError, Storage
from mica.variant import kernel

_LOG = logging.getLogger("mica")
_MAX_ATTEMPTS = 10_000  # each one lost means that another writer won: only a broken store gets here
_MAX_REPEATS = 5  # of one request whose answer was lost
_PAUSE = 0.05  # seconds before the first repeat, doubled each time
#: So many commits of winners are held together.
_AT_ONCE = 64
#: What a long holds.
_LAST_TIME = 2**63 - 1


@dataclass(frozen=True)
class Committed:
    """The result of a commit: its version and the snapshot at that version."""

    version: int
    snapshot: Snapshot


@dataclass
class Transaction:
    """Changes to a table (a snapshot) or a new table (a storage), committed atomically.

    `operation`, `parameters` and `metrics` go into the history (`WRITE`, `{"mode": "Append"}`).
    """

    base: Snapshot | Storage
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    _adds: list[Added] = field(default_factory=list, repr=False)
    _changes: list[pa.Table] = field(default_factory=list, repr=False)
    _removed: list[np.ndarray] = field(default_factory=list, repr=False)
    _updated: list[np.ndarray] = field(default_factory=list, repr=False)
    _removes_change_data: bool = True
    _precedes: bool = False
    _reads: list[conflicts.FilePredicate] = field(default_factory=list, repr=False)
    _metadata: Metadata | None = None
    _protocol: Protocol | None = None
    _domains: dict[str, str | None] = field(default_factory=dict)
    _watched: set[str] = field(default_factory=set, repr=False)
    _transactions: dict[str, int] = field(default_factory=dict)
    _following: Callable[[Snapshot | None], Mapping[str, int]] | None = field(default=None, repr=False)
    _committed: bool = False
    _in_doubt: bool = False

    def __post_init__(self) -> None:
        self.id = str(uuid.uuid4())

    @property
    def snapshot(self) -> Snapshot | None:
        """The version that the transaction started from; None for a new table."""
        return self.base if isinstance(self.base, Snapshot) else None

    @property
    def storage(self) -> Storage:
        """The table's location."""
        return self.base.storage if isinstance(self.base, Snapshot) else self.base

    @property
    def certainly_not_written(self) -> bool:
        """Whether no log can name the files of this transaction: it is not committed, and no put with a lost answer
        may still succeed."""
        return not self._committed and not self._in_doubt

    @property
    def rests_on_files(self) -> bool:
        """Whether it read, removes or updates files of the version that it started from: it is more than an append."""
        return bool(self._reads or self._removed or self._updated)

    @property
    def metadata(self) -> Metadata:
        """The metadata after the commit."""
        found = self._metadata or (self.snapshot.metadata if self.snapshot is not None else None)
        if found is None:
            raise UserError("INVALID_ARGUMENT", "a new table needs metadata", hint="Call update_metadata first.")
        return found

    @property
    def protocol(self) -> Protocol:
        """The protocol after the commit."""
        found = self._protocol or (self.snapshot.protocol if self.snapshot is not None else None)
        if found is None:
            raise UserError("INVALID_ARGUMENT", "a new table needs a protocol", hint="Call update_protocol first.")
        return found

    def update_metadata(self, metadata: Metadata) -> None:
        """Replaces schema, partition columns and properties; see `creation.new_table` and `creation.altered`."""
        self._metadata = metadata

    def update_protocol(self, protocol: Protocol) -> None:
        """Replaces the protocol; an equal protocol is no change."""
        if self.snapshot is None or protocol != self.snapshot.protocol:
            self._protocol = protocol

    def set_domain(self, domain: str, configuration: str | None) -> None:
        """Sets (None: removes) the metadata of a domain; the table needs the feature `domainMetadata`."""
        self._domains[domain] = configuration

    def watch(self, domain: str) -> None:
        """Declares that the outcome depends on the metadata of a domain, even if there is none: setting it is a
        conflict."""
        self._watched.add(domain)

    def set_application_transactions(
        self,
        versions: Mapping[str, int],
        following: Callable[[Snapshot | None], Mapping[str, int]] | None = None,
    ) -> None:
        """Records per application id that the batch of that version was written, for exactly-once writes.

        `following` gives further ones for the version that the commit follows (None: it creates the table). It is asked
        again when another writer was first, and raises a ConflictError where that matters."""
        self._transactions.update(versions)
        self._following = following

    def read(self, predicate: conflicts.FilePredicate = conflicts.every_file) -> None:
        """Declares that the outcome depends on the files for which `predicate` is true. An append reads nothing."""
        self._reads.append(predicate)

    def add_files(self, files: Added) -> None:
        """Adds files, as rows of `added.ADDED`."""
        self._adds.append(files)

    def add_changes(self, files: pa.Table) -> None:
        """Adds change files, with the columns `path`, `partition_values` and `size`; they must hold all changes of the
        commit (PROTOCOL.md, "Add CDC File")."""
        self._changes.append(files)

    def update_files(self, indices: Iterable[int] | np.ndarray | pa.Array, files: Added) -> None:
        """Replaces statistics or tags of files, by positions in `snapshot.files` (no change of data). Conflicts with a
        commit that removed one of them, since it would reappear."""
        self._updated.append(np.asarray(_list(indices), np.int64))
        self.add_files(files)

    def remove_files(
        self, indices: Iterable[int] | np.ndarray | pa.Array | None = None, *, data_change: bool = True
    ) -> None:
        """Removes files by their positions in `snapshot.files` (None: all). Conflicts with a commit that removed one of
        them."""
        if self.snapshot is None:
            raise UserError("INVALID_ARGUMENT", "a new table has no files to remove", hint="Open the table first.")
        count = self.snapshot.state.files.num_rows
        wanted = np.arange(count) if indices is None else np.unique(np.asarray(_list(indices), np.int64))
        if len(wanted) and (wanted[0] < 0 or wanted[-1] >= count):
            raise UserError.bad_value("indices", int(wanted[-1]), f"positions from 0 to {count - 1}")
        self._removed.append(wanted)
        self._removes_change_data = self._removes_change_data and data_change

    def commit(self, *, clock: Callable[[], float] = time.time) -> Committed:
        """Writes the commit on top of the newest version without conflicts. Raises `ConflictError`,
        `UnsupportedTableError`, `UserError` (appendOnly, an existing table) or `StorageError`; then nothing was
        written, except with the codes COMMIT_UNKNOWN (may be written) and COMMIT_NOT_READ (is written)."""
        if self._committed:
            raise UserError("INVALID_ARGUMENT", "this transaction is already committed", hint="Start another one.")
        started = clock()
        features.check_write(self.protocol, self.metadata, str(self.storage))
        if self.snapshot is not None:
            features.check_write(self.snapshot.protocol, self.snapshot.metadata, str(self.storage))
        self._check_append_only()
        self._check_domains()
        base = self.snapshot
        tracks = row_tracking.is_supported(self.protocol)
        try:
            body = self._body(int(started * 1000), base)
        except MicaError:
            if base is not None and not base.stands():
                raise replaced(self.storage, base.version) from None  # and the files to remove cannot be read
            raise
        for attempt in range(_MAX_ATTEMPTS):
            if base is not None and not base.stands():
                base = self._after_cleanup(base)
            version = 0 if base is None else base.version + 1
            if base is not self.snapshot and (tracks or self._following is not None):
                body = self._body(int(started * 1000), base)  # the ids of its rows are taken, or its record is
            data = self._head(base, version, int(clock() * 1000)) + body
            if self._put(version, data):
                return self._finish(base, version, data)
            if attempt > 2:
                # Other writers are faster: in lockstep all but one would lose, again and again.
                time.sleep(random.random() * min(0.002 * attempt, 0.1))  # noqa: S311
            base = self._rebase(base)
        raise ConflictError(
            "TOO_MANY_CONFLICTS",
            f"{self.storage}: all {_MAX_ATTEMPTS} attempts to commit lost against other writers",
            hint="Try again later.",
        )

    @property
    def _loses_rows(self) -> bool:
        return self._removes_change_data and any(map(len, self._removed))

    def _check_append_only(self) -> None:
        before = self.snapshot.metadata.configuration if self.snapshot is not None else {}
        if self._loses_rows and properties.APPEND_ONLY.of(before):
            raise UserError(
                "APPEND_ONLY",
                f"{self.storage} accepts only new rows (delta.appendOnly=true), and {self.operation} would remove some",
                hint="Append, or set delta.appendOnly to false first.",
            )

    def _check_domains(self) -> None:
        if self._domains and not features.supports(self.protocol, "domainMetadata"):
            raise UserError(
                "FEATURE_NEEDED",
                f"{self.storage} does not support the table feature domainMetadata, which the domain "
                f"{next(iter(self._domains))!r} needs",
                hint="Upgrade the protocol in the same transaction.",
            )

    def _head(self, base: Snapshot | None, version: int, now: int) -> bytes:
        """The lines that depend on the version: commitInfo (first, as in-commit timestamps need it), metaData."""
        info: dict[str, Any] = {}
        metadata = self._metadata
        if features.in_commit_timestamps(self.metadata):
            # "the greater of the wall clock and one more than the previous commit's"
            stamp = now if base is None else max(now, base.timestamp + 1)
            if stamp > _LAST_TIME:
                message = f"version {version - 1} of {self.storage} is of the last millisecond that a log can name"
                raise CorruptDataError("CORRUPT_LOG", message, hint="Restore the log.", version=version - 1)
            info["inCommitTimestamp"] = stamp
            if metadata is not None and base is not None and not features.in_commit_timestamps(base.metadata):
                metadata = metadata.with_configuration(
                    {properties.ICT_VERSION.name: str(version), properties.ICT_TIMESTAMP.name: str(stamp)}
                )
        blind = bool(self._adds) and not self.rests_on_files
        changes = self._metadata, self._protocol, self._domains, self._transactions, self._loses_rows
        moves = not (any(changes) or any(map(changes_data, self._adds)))
        level = "SnapshotIsolation" if moves else properties.ISOLATION_LEVEL.of(self.metadata.configuration)
        info |= {
            "timestamp": now,
            "operation": self.operation,
            "operationParameters": {
                key: None if value is None else as_text(value) for key, value in self.parameters.items()
            },
            "isolationLevel": level,
            "isBlindAppend": blind,
            "operationMetrics": {key: str(value) for key, value in self.metrics.items()},
            "engineInfo": f"mica/{kernel.version()}",
            "txnId": self.id,
            **given_user_metadata(),
        }
        if row_tracking.is_enabled(self.metadata):
            info["tags"] = {row_tracking.PRESERVED: "true"}
        if self.snapshot is not None:
            info["readVersion"] = self.snapshot.version
        lines = [format_line("commitInfo", info)]
        if self._protocol is not None:
            lines.append(format_line("protocol", self._protocol.action()))
        if metadata is not None:
            lines.append(format_line("metaData", metadata.action()))
        return ("\n".join(lines) + "\n").encode()

    def _body(self, now: int, base: Snapshot | None) -> bytes:
        """Returns the lines that do not depend on the version; those of files do if the table tracks rows."""
        versions = {**self._transactions, **({} if self._following is None else self._following(base))}
        lines = [format_line("txn", {"appId": a, "version": v, "lastUpdated": now}) for a, v in versions.items()]
        for domain, configuration in self._domains.items():
            action = {"domain": domain, "configuration": configuration or "", "removed": configuration is None}
            lines.append(format_line("domainMetadata", action))
        lines += self._remove_lines(now)
        files: Iterable[Mapping[str, Any]] = (file for part in self._adds for file in added.rows(part))
        if row_tracking.is_supported(self.protocol):
            first = row_tracking.highest(None if base is None else base.domains.get(row_tracking.ROW_IDS))
            files, last = row_tracking.numbered(files, first, 0 if base is None else base.version + 1)
            if last > first:
                ids = {"domain": row_tracking.ROW_IDS, "configuration": row_tracking.written(last), "removed": False}
                lines.append(format_line("domainMetadata", ids))
        lines += map(add_line, files)
        lines += [change_line(file) for part in self._changes for file in part.to_pylist(maps_as_pydicts="lossy")]
        return "".join(line + "\n" for line in lines).encode()

    def _remove_lines(self, now: int) -> list[str]:
        indices = self._removed_indices()
        if not len(indices) or self.snapshot is None:
            return []
        tags, ids = self.snapshot.tags(indices), self.snapshot.file_ids(indices).to_pylist()
        rows = pc.take(self.snapshot.state.files, arrow_array(indices)).to_pylist(maps_as_pydicts="lossy")
        return [
            remove_line(
                {**row, **(own or {})}, deletion_timestamp=now, data_change=self._removes_change_data, tags=row_tags
            )
            for row, own, row_tags in zip(rows, ids, tags.to_pylist(maps_as_pydicts="lossy"), strict=True)
        ]

    def _removed_indices(self) -> np.ndarray:
        return np.unique(np.concatenate(self._removed)) if self._removed else np.array([], np.int64)

    def _put(self, version: int, data: bytes) -> bool:
        """Tries to create the version's file; returns whether this transaction now is the version."""
        name = commit_name(version)
        self._in_doubt, lost = True, False
        for repeat in range(_MAX_REPEATS):
            try:
                self.storage.put_if_absent(name, data)
                return True
            except AlreadyExistsError:
                # Possible too if the store repeated our own put after a lost answer.
                mine = self._in_doubt = self._is_mine(name)
                return mine
            except StorageError as error:
                if error.refused and not lost:
                    self._in_doubt = False
                    raise
                if self._is_mine(name):
                    return True
                if error.code != "IO" and not lost:
                    self._in_doubt = False  # rejected, and no earlier try can still arrive
                    raise
                lost, reason = True, error
                time.sleep(_PAUSE * 2**repeat)
            except BaseException:  # Ctrl-C: what a disk has not now will not arrive
                if self.storage.local_path is not None:
                    self._in_doubt = self._is_mine(name)
                raise
        if self.storage.local_path is not None:
            raise reason
        raise self._unknown(f"cannot write {self.storage.path(name)}, which may appear later", reason) from reason

    def _is_mine(self, name: str) -> bool:
        """Whether the commit of that name is this transaction. If that is unknown, it raises: taking our commit for
        another's would repeat it, taking another's for ours would lose it."""
        for repeat in range(_MAX_REPEATS):
            try:
                return commit_info(self.storage, name, self.storage.size(name)).get("txnId") == self.id
            except CorruptDataError:
                return False
            except StorageError as error:
                if error.code == "NOT_FOUND":
                    return False
                reason = error
                time.sleep(_PAUSE * 2**repeat)
        raise self._unknown(f"cannot read {self.storage.path(name)}", reason) from reason

    def _unknown(self, what: str, reason: StorageError) -> StorageError:
        return StorageError(
            "COMMIT_UNKNOWN",
            f"{what}, so it is unknown whether it is this commit (txnId {self.id}): {reason.message}",
            hint="Look for the txnId in the table's history before you repeat the operation.",
        )

    def _rebase(self, base: Snapshot | None) -> Snapshot:
        """Returns the newest version if nothing up to it conflicts with this transaction."""
        if base is None:
            raise ConflictError(
                "TABLE_EXISTS",
                f"another writer created a table at {self.storage} concurrently",
                hint="Open it and append.",
            )
        if not base.stands():
            return self._after_cleanup(base)
        latest = base.refresh(known_to_stand=True)
        if latest.version == base.version:
            raise StorageError(
                "LISTING_BEHIND",
                f"version {base.version + 1} of {self.storage} exists, but the listing does not show it",
                hint="Try again.",
            )
        intent = self._intent()
        excluded = [conflicts.excluded_in(snapshot) for snapshot in (self.snapshot, latest)]
        for version, winner in self._winners(base, latest.version):
            try:
                intent = conflicts.check(intent, winner, version, str(self.storage), *excluded)
            except ConflictError as error:
                if error.code != "CONCURRENT_APPEND" or version == latest.version or not self._is_bounded():
                    raise
                # What it added may be gone again (joined, deleted): only its own version has the bounds of such files.
                then = conflicts.excluded_in(base.refresh(version, known_to_stand=True))
                intent = conflicts.check(intent, winner, version, str(self.storage), excluded[0], then)
        self._precedes = intent.precedes
        return latest

    def _winners(self, base: Snapshot, newest: int) -> Iterator[tuple[int, Commits]]:
        """The commits after a version, of which a store answers for several at once."""
        keys = partition_keys(base.metadata, base.protocol)

        def read(version: int) -> Commits:
            name = commit_name(version)
            return parse_commits([self.storage.read(name)], keys, self.storage.path(name))

        for oldest in range(base.version + 1, newest + 1, _AT_ONCE):
            some = range(oldest, min(oldest + _AT_ONCE, newest + 1))
            yield from zip(some, self.storage.each(read, some), strict=True)

    def _is_bounded(self) -> bool:
        return any(isinstance(one, conflicts.Bounded) for one in self._reads)

    def _after_cleanup(self, base: Snapshot) -> Snapshot:
        """The newest version, if this transaction may follow it without what was committed before."""
        alone = self._metadata is None and self._protocol is None and not (self.rests_on_files or self._domains)
        found = newest_for_append(base, self._transactions, self._watched) if alone else None
        if found is None:
            raise replaced(self.storage, base.version)
        return found

    def _intent(self) -> conflicts.Intent:
        assert self.snapshot is not None
        files = self.snapshot.state.files
        removed = pc.take(files, arrow_array(np.unique(np.concatenate([self._removed_indices(), *self._updated]))))
        paths, vectors = removed["path"].combine_chunks(), removed["deletion_vector"].combine_chunks()
        return conflicts.Intent(
            reads=tuple(self._reads),
            read_files=files.select(FILES.names) if self._reads else no_rows(STATE_FILES),
            removed_keys=file_keys(paths, vectors) if removed.num_rows else arrow_array([], pa.string()),
            applications=frozenset(self._transactions),
            domains=frozenset(self._domains) | self._watched,
            protocol=self.snapshot.protocol if self._protocol is None else None,
            metadata=self.snapshot.metadata if self._metadata is None else None,
            lets_append=properties.ISOLATION_LEVEL.of(self.snapshot.properties) == "WriteSerializable"
            and self._metadata is None
            and self._protocol is None,
            # What removes files changes rows by that, or not at all.
            changes_rows=self._removes_change_data if removed.num_rows else bool(self._adds),
            precedes=self._precedes,
        )

    def _finish(self, base: Snapshot | None, version: int, data: bytes) -> Committed:
        """The commit is done: a later failure must not look as if it were not."""
        self._committed = True
        snapshot = self._reloaded(base, version, data)
        if version and version % properties.CHECKPOINT_INTERVAL.of(snapshot.metadata.configuration) == 0:
            try:
                write_checkpoint(snapshot)
                snapshot = snapshot.renewed(version)
                clean_log(snapshot, now=int(time.time() * 1000))
            except Exception as error:  # noqa: BLE001 - the commit is valid, whatever happens to its checkpoint
                _LOG.warning(
                    "version %d of %s is committed, but its checkpoint is not: %s", version, self.storage, error
                )
            self.storage.sweep(LOG)
        return Committed(version, snapshot)

    def _only_adds(self) -> bool:
        others = (self._changes, self._removed, self._updated, self._domains, self._transactions)
        own = (self._metadata, self._protocol, self._following)
        numbered = row_tracking.is_supported(self.protocol) or features.in_commit_timestamps(self.metadata)
        return not any(others) and own == (None, None, None) and not numbered

    def _reloaded(self, base: Snapshot | None, version: int, data: bytes) -> Snapshot:
        """The version that is committed. A store that fails now must not make anybody commit it again."""
        for repeat in range(_MAX_REPEATS):
            try:
                return first(self.storage, data) if base is None else base.followed(data, only_adds=self._only_adds())
            except StorageError as error:
                reason = error
                if error.code != "IO":
                    break
                time.sleep(_PAUSE * 2**repeat)
        raise StorageError(
            "COMMIT_NOT_READ",
            f"version {version} of {self.storage} is committed, but cannot be read: {reason.message}",
            hint="Do not repeat the operation. Open the table again.",
            version=version,
        ) from reason


def _list(indices: Iterable[int] | np.ndarray | pa.Array) -> Any:
    return indices if isinstance(indices, np.ndarray | pa.Array) else list(indices)
