"""A table's history: one row per commit, newest first, from the commitInfo of each.

The rule: history shows what the log holds; a commit without commitInfo is a row of nulls with its version and time
(PROTOCOL.md "Commit Provenance Information").
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica.arrays import batch_of
from mica.log.actions import as_text, whole
from mica.log.commit_info import commit_info
from mica.log.listing import list_log
from mica.log.time_travel import commit_times
from mica.storage import Entry, Storage

if TYPE_CHECKING:
    from mica.log.snapshot import Snapshot

_TEXTS = pa.map_(pa.string(), pa.string())
HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("operation", pa.string()),
        ("operation_parameters", _TEXTS),
        ("operation_metrics", _TEXTS),
        ("engine_info", pa.string()),
        ("is_blind_append", pa.bool_()),
        ("read_version", pa.int64()),
        ("isolation_level", pa.string()),
        ("user", pa.string()),
        ("user_metadata", pa.string()),
        ("txn_id", pa.string()),
    ]
)


def history(storage: Storage, *, limit: int | None = None, opened: Snapshot | None = None) -> pa.Table:
    """Returns the commits whose files still exist, newest first, at most `limit`, as `HISTORY`; `opened` is a version
    that may be the newest."""
    return pa.Table.from_batches([batch_of(_rows(storage, limit, opened), HISTORY)])


def commits(storage: Storage, *, limit: int | None = None, opened: Snapshot | None = None) -> list[dict[str, Any]]:
    """The same as values of Python, for which pyarrow imports no pandas."""
    return [{**row, "timestamp": _instant(row["timestamp"])} for row in _rows(storage, limit, opened)]


def _rows(storage: Storage, limit: int | None, opened: Snapshot | None) -> list[dict[str, Any]]:
    """The commits, with milliseconds since 1970 as their times."""
    listing = list_log(storage)
    if listing.latest >= 0 and not listing.commits:
        return []

    @cache
    def read(entry: Entry) -> Mapping[str, Any]:
        return commit_info(storage, entry.path, entry.size)

    newest = sorted(listing.commits, reverse=True)[:limit]
    storage.each(read, [listing.commits[version] for version in newest])
    versions, time = commit_times(storage, listing, read, opened)
    wanted = range(0 if limit is None else max(0, len(versions) - limit), len(versions))
    return [_row(versions[at], time(at), read(listing.commits[versions[at]])) for at in wanted][::-1]


def _row(version: int, time: int, info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": version,
        "timestamp": time,
        "operation": _text(info.get("operation")),
        "operation_parameters": _map(info.get("operationParameters")),
        "operation_metrics": _map(info.get("operationMetrics")),
        "engine_info": _text(info.get("engineInfo")),
        "is_blind_append": info.get("isBlindAppend") if isinstance(info.get("isBlindAppend"), bool) else None,
        "read_version": whole(info.get("readVersion")),
        "isolation_level": _text(info.get("isolationLevel")),
        "user": _text(info.get("userName")),
        "user_metadata": _text(info.get("userMetadata")),
        "txn_id": _text(info.get("txnId")),
    }


def _instant(time: int) -> Any:
    found = np.datetime64(time, "ms").item() if -(2**53) < time < 2**53 else None
    return found.replace(tzinfo=UTC) if isinstance(found, datetime) else found  # a number if it is no year of Python's


def _map(value: Any) -> list[tuple[str, str | None]] | None:
    return [(key, _text(inner)) for key, inner in value.items()] if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return None if value is None else as_text(value)
