"""Restore: commits the content of an older version as the newest one.

The rule: no data is read or rewritten. The commit adds the files that only the older version has, removes those that
only the newest has, and sets schema, properties, clustering and collations of the older version. Other domains stay.
Identity columns go on where they are. The protocol is never lowered, since versions in between may need it. If files of
the older version are missing, nothing is committed.

Source: PROTOCOL.md, "Action Reconciliation"; operation and metrics as in delta-spark's RESTORE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import NDArray, arrow_array, one_array, to_numpy
from mica.errors import StorageError
from mica.log import added, features, row_tracking
from mica.log.actions import Metadata
from mica.log.domains import OF_CONTENT
from mica.log.missing_files import missing
from mica.log.paths import file_keys
from mica.log.snapshot import Snapshot, load
from mica.log.time_travel import Timestamp
from mica.log.transaction import Transaction
from mica.records import dataclass
from mica.wording import counted
from mica.write.ingested import Ingested, forgotten
from mica.write.once import Txn, once_or
from mica.write.rules import never_again

#: Properties of the log itself: they are not restored.
_STAY = (
    properties.ICT_VERSION.name, properties.ICT_TIMESTAMP.name, properties.IN_COMMIT_TIMESTAMPS.name,
    properties.CHECKPOINT_PROTECTION.name,
)  # fmt: skip


@dataclass(frozen=True)
class Restore:
    """The result of a restore: the new version, the restored version, files and bytes. Where nothing was restored
    (`repeated`), a time counts as the newest version.
    """

    table: str
    version: int
    restored_version: int
    restored_files: int
    removed_files: int
    restored_bytes: int
    removed_bytes: int
    snapshot: Snapshot = field(repr=False, compare=False)
    #: Whether nothing was restored, because the table has this version of the application (`txn`) already.
    repeated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "snapshot"}

    def __str__(self) -> str:
        if self.repeated:
            return f"{self.table}, version {self.version}: done before"
        return (
            f"{self.table}, version {self.version}, has the content of version {self.restored_version}: "
            f"{counted(self.restored_files, 'file')} restored, {self.removed_files:,} removed"
        )


def restore(newest: Snapshot, version: int | None, timestamp: Timestamp | None, txn: Txn | None = None) -> Restore:
    """Commits the content of an older version on top of `newest`; see `Table.restore`."""

    def repeated(found: Snapshot) -> Restore:
        # What a repetition would restore may be gone meanwhile, so a time is not resolved.
        at = found.version if version is None else version
        return Restore(str(found.storage), found.version, at, 0, 0, 0, 0, found, repeated=True)

    def write() -> Restore:
        return _restore(newest, load(newest.storage, version, timestamp), txn)

    return once_or(newest.storage, newest, txn, write, repeated)


def _restore(newest: Snapshot, older: Snapshot, txn: Txn | None) -> Restore:
    table = str(newest.storage)
    features.check_write(newest.protocol, newest.metadata, table)
    if older.version == newest.version and txn is None:
        return Restore(table, newest.version, older.version, 0, 0, 0, 0, newest)  # as delta-spark: nothing to commit
    mine, theirs = _keys(newest.files), _keys(older.files)
    back = np.flatnonzero(to_numpy(pc.invert(pc.is_in(theirs, value_set=mine))))
    then = to_numpy(pc.fill_null(pc.index_in(mine, value_set=theirs), -1))
    gone, kept_files = np.flatnonzero(then < 0), np.flatnonzero(then >= 0)
    _refuse_missing(older, back)
    Ingested(older.storage).move(older)  # without the record of its input files none could be ingested any more
    restored, removed = (int(pc.sum(s.files.column("size").take(arrow_array(at))).as_py() or 0)
                         for s, at in ((older, back), (newest, gone)))  # fmt: skip
    left = newest.files.num_rows - len(gone) + len(back)
    size = int(pc.sum(newest.files.column("size")).as_py() or 0) - removed + restored
    transaction = Transaction(
        newest, "RESTORE", {"version": older.version, "timestamp": None},
        metrics={
            "numRestoredFiles": len(back), "numRemovedFiles": len(gone), "restoredFilesSize": restored,
            "removedFilesSize": removed, "numOfFilesAfterRestore": left, "tableSizeAfterRestore": size,
        },
    )  # fmt: skip
    transaction.read()
    transaction.remove_files(gone)
    transaction.add_files(added.again(older, back))
    lost = kept_files[_other_ids(newest, kept_files, older, then[kept_files])]
    if len(lost):
        rows = added.rows(added.again(older, then[lost]))
        transaction.update_files(lost, [{**row, "data_change": False} for row in rows])
    transaction.update_protocol(features.upgraded(newest.protocol, features.names(older.protocol)))
    metadata = _metadata(newest, older)
    if metadata != newest.metadata:
        transaction.update_metadata(metadata)
    for domain in OF_CONTENT:
        transaction.watch(domain)
        if newest.domains.get(domain) != older.domains.get(domain):
            transaction.set_domain(domain, older.domains.get(domain))
    # Input files whose rows are removed may be ingested again.
    again = forgotten(newest.app_transactions, older.app_transactions)

    def still_there(base: Snapshot | None) -> Mapping[str, int]:
        if base is not None and base.version > newest.version:
            _refuse_missing(older, back)  # another writer was first: if it is a vacuum, it may have deleted them
        return {}

    transaction.set_application_transactions({**again, **dict([txn] if txn is not None else ())}, still_there)
    done = transaction.commit()
    return Restore(table, done.version, older.version, len(back), len(gone), restored, removed, done.snapshot)


def _metadata(newest: Snapshot, older: Snapshot) -> Metadata:
    """The metadata of the older version, with what must not be set back as the newest has it."""
    kept = {n: newest.properties[n] for n in _STAY if n in newest.properties}
    last = max(properties.MAX_COLUMN_ID.of(version.properties) for version in (older, newest))
    if last:
        kept[properties.MAX_COLUMN_ID.name] = str(last)  # an id that a column ever had is given to no other
    own = {n: v for n, v in older.properties.items() if n not in _STAY}
    return never_again(replace(older.metadata, configuration={**own, **kept}), newest.metadata)


def _other_ids(newest: Snapshot, now: np.ndarray, older: Snapshot, then: np.ndarray) -> NDArray[np.bool_]:
    """Which of the files lost the ids of their rows since: the table stopped tracking them, or gave them anew."""
    if not row_tracking.is_supported(older.protocol):
        return np.zeros(len(now), np.bool_)
    had, has = (pc.struct_field(of.file_ids(at), "base_row_id") for of, at in ((older, then), (newest, now)))
    return to_numpy(pc.fill_null(pc.not_equal(had, has), pc.and_(had.is_valid(), has.is_null())))


def _keys(files: pa.Table) -> pa.Array:
    return file_keys(one_array(files.column("path")), one_array(files.column("deletion_vector")))


def _refuse_missing(older: Snapshot, back: np.ndarray) -> None:
    """Refuses a version whose files were vacuumed."""
    found = missing(older, older.files.take(arrow_array(back)))
    gone = [file.data if file.is_data_missing else file.vector for file in found]
    if gone:
        raise StorageError(
            "NOT_FOUND",
            f"version {older.version} of {older.storage} cannot be restored: {len(gone):,} of its files are "
            f"missing, such as {gone[0]}",
            hint="They were vacuumed. Restore a newer version, or put the files back.",
            path=gone[0],
            version=older.version,
        )
