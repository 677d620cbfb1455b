"""Application transactions: which batch of which application a table has, for writes that must not happen twice.

The rule: a write of an application is repeated if the table has a version of it that is not smaller. Entries older than
`delta.setTransactionRetentionDuration` are forgotten, as in delta-spark; without the property all are kept, and those
that say which files were ingested always: without them the same files would be ingested again.

Source: PROTOCOL.md, "Transaction Identifiers".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.errors import CorruptDataError
from mica.properties import TRANSACTION_RETENTION

#: How the names of entries begin that say which files were ingested (`write/ingested.py`).
INGESTED = "mica.ingest:"

#: appId → version, lastUpdated in ms since the epoch.
Applications = Mapping[str, tuple[int, int | None]]


def unexpired(found: Applications, configuration: Mapping[str, str], now: int) -> Applications:
    """The entries that the table still keeps at `now` (ms); with a retention an entry without a time is expired.

    Errors: CORRUPT_LOG for a time that is no number, where there is a retention."""
    retention = TRANSACTION_RETENTION.of(configuration)
    if retention is None:
        return found
    return {
        app: (version, at)
        for app, (version, at) in found.items()
        if app.startswith(INGESTED) or _is_after(at, now - retention)
    }


def _is_after(at: Any, oldest: int) -> bool:
    if not isinstance(at, int | None):
        raise CorruptDataError("CORRUPT_LOG", f"an action has the txn.lastUpdated {at!r}", hint="Restore the log.")
    return at is not None and at > oldest
