"""Dates and timestamps as the statistics spell them.

The rule: the JSON has years 1 to 9999 in four digits and milliseconds. A value that does not fit has no text, and an
unreadable text has no value. Values are days and microseconds since the epoch.

Source: Delta protocol, "Per-file Statistics": timestamps are truncated to milliseconds.
"""

from __future__ import annotations

import datetime as dt

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 — the epoch on a clock without a zone
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999


def json_date(days: int) -> str | None:
    """`2020-05-01`."""
    micros = days * 86_400_000_000
    if not _FIRST <= micros <= _LAST:
        return None
    return (_EPOCH + dt.timedelta(days=days)).date().isoformat()


def json_timestamp(micros: int, *, utc: bool) -> str | None:
    """`2020-05-01T10:00:00.123Z`, truncated to milliseconds; without the Z for timestamps without a zone."""
    if not _FIRST <= micros <= _LAST:
        return None
    text = (_EPOCH + dt.timedelta(milliseconds=micros // 1000)).isoformat(timespec="milliseconds")
    return f"{text}Z" if utc else text
