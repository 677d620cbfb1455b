"""Dates and timestamps as the statistics spell them.

The rule: the JSON has years 1 to 9999 in four digits and milliseconds. A value that does not fit has no text, and an
unreadable text has no value. Values are days and microseconds since the epoch.

Source: Delta protocol, "Per-file Statistics": timestamps are truncated to milliseconds.
"""

from __future__ import annotations

import datetime as dt
import re

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 — the epoch on a clock without a zone
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)


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


def read_date(text: str) -> int | None:
    """Days since the epoch."""
    match = _DATE.match(text)
    try:
        return None if match is None else (dt.date(*map(int, match.groups())) - _EPOCH.date()).days
    except ValueError:
        return None


def read_timestamp(text: str) -> tuple[int, bool] | None:
    """Returns microseconds since the epoch, and whether the text has a zone (then UTC, otherwise local time)."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = dt.datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0))  # noqa: DTZ001
    except ValueError:
        return None
    micros = (moment - _EPOCH) // dt.timedelta(microseconds=1) + int((fraction or "0")[:6].ljust(6, "0"))
    if zone and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        micros -= sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60) * 1_000_000
    return micros, zone is not None
