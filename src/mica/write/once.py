"""Writes that happen once: a write may carry the id of its application and the version of its batch.

The rule: the version is committed with the rows. If the table has that version of the application, or a later one, the
write is a repetition: it writes nothing and says so. Of two equal writes at the same time one commits, and the other
finds that out from its conflict.

Source: PROTOCOL.md, "Transaction Identifiers"; delta-spark's `txnAppId` and `txnVersion`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mica.errors import ConflictError, UserError
from mica.log.snapshot import Snapshot
from mica.moment import one_moment
from mica.storage import Storage
from mica.write.commit import Commit
from mica.write.ingested import PREFIX
from mica.write.target import load_if_any

#: Application id and version.
Txn = tuple[str, int]

Result = TypeVar("Result")


def checked(txn: Txn | None) -> Txn | None:
    """The id and version of a call. Errors: INVALID_ARGUMENT."""
    if txn is None:
        return None
    app, version = txn
    if not app or app.startswith(PREFIX):
        raise UserError.bad_value("txn", txn, f"an application id that is not empty and does not begin with {PREFIX}")
    if not 0 <= int(version) < 1 << 63:  # a LONG (PROTOCOL.md, "Transaction Identifiers")
        raise UserError.bad_value("the version of txn", version, "a number from 0 to 2^63 - 1")
    return app, int(version)


def repeats(snapshot: Snapshot | None, txn: Txn | None) -> bool:
    """Whether the table has this version of the application, or a later one."""
    if snapshot is None or txn is None:
        return False
    known = snapshot.app_transactions.get(txn[0])
    return known is not None and known >= txn[1]


def once(storage: Storage, snapshot: Snapshot | None, txn: Txn | None, write: Callable[[], Commit]) -> Commit:
    """Runs the write, unless it is a repetition."""
    return once_or(storage, snapshot, txn, write, _repeated)


@one_moment()
def once_or(
    storage: Storage,
    snapshot: Snapshot | None,
    txn: Txn | None,
    write: Callable[[], Result],
    repeated: Callable[[Snapshot], Result],
) -> Result:
    """Runs the write; a repetition is what `repeated` makes of the version that has it."""
    if txn is None:
        return write()
    if repeats(snapshot, txn):
        assert snapshot is not None
        return repeated(snapshot)
    try:
        return write()
    except ConflictError:
        latest = load_if_any(storage)
        if latest is None or not repeats(latest, txn):
            raise
        return repeated(latest)


def _repeated(snapshot: Snapshot) -> Commit:
    return Commit(snapshot.version, 0, 0, snapshot=snapshot, repeated=True)
