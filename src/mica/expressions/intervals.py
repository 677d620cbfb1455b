"""INTERVAL literals, and what is added to dates and times.

The rule: an interval is a constant that is added to a date or a time, or subtracted from one. It holds months, or days
and what is shorter, never both, as in Spark. Days and months are those of the local calendar in the session's time
zone, also the whole days of a longer time (48 hours are two days); a local time that a clock change skips moves
forward, one that occurs twice keeps its offset if it can. What is left is exact.

| operand | months | days alone | shorter parts |
|---|---|---|---|
| DATE | DATE | DATE | TIMESTAMP |
| TIMESTAMP, TIMESTAMP_NTZ | the same type | the same type | the same type |

A day that the month does not have becomes its last one. Source: Spark's visitInterval, IntervalUtils.stringToInterval;
DateTimeUtils.timestampAddMonths, timestampAddDayTime, dateAddMonths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica.expressions.casts import cast_array
from mica.expressions.tree import IntervalLiteral
from mica.schema.arrow import to_arrow_type
from mica.schema.types import TIMESTAMP, TIMESTAMP_NTZ

_SECOND, _MINUTE, _HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
#: Unit → months, microseconds.
_UNITS: Mapping[str, tuple[int, int]] = {
    "year": (12, 0), "month": (1, 0), "week": (0, 7 * DAY), "day": (0, DAY), "hour": (0, _HOUR),
    "minute": (0, _MINUTE), "second": (0, _SECOND), "millisecond": (0, 1_000), "microsecond": (0, 1),
}  # fmt: skip
_WHOLE_DAYS = ("day", "week")
#: The texts of `INTERVAL '…' a TO b`, by the units.
_FROM_TO: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("year", "month"): (r"(\d+)-(\d+)", ("year", "month")),
    ("day", "hour"): (r"(\d+) (\d{1,2})", ("day", "hour")),
    ("day", "minute"): (r"(\d+) (\d{1,2}):(\d{1,2})", ("day", "hour", "minute")),
    ("day", "second"): (r"(\d+) (\d{1,2}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)", ("day", "hour", "minute", "second")),
    ("hour", "minute"): (r"(\d+):(\d{1,2})", ("hour", "minute")),
    ("hour", "second"): (r"(\d+):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)", ("hour", "minute", "second")),
    ("minute", "second"): (r"(\d+):(\d{1,2}(?:\.\d{1,9})?)", ("minute", "second")),
}
#: What a part that is not the first may be at most.
_MOST = {"month": 11, "hour": 23, "minute": 59, "second": 59}
_LEAST, _LARGEST = -(2**63), 2**63 - 1


def unit_of(word: str) -> str | None:
    """Returns the unit that a word names: `DAYS` is `day`."""
    name = word.lower()
    return name if name in _UNITS else name[:-1] if name.endswith("s") and name[:-1] in _UNITS else None


def of_units(parts: Iterable[tuple[str, str]], at: int) -> IntervalLiteral:
    """Builds `INTERVAL 1 DAY 2 HOURS` from numbers and units. Raises ValueError with the reason if it is none."""
    months = micros = 0
    units: set[str] = set()
    for number, word in parts:
        unit = unit_of(word)
        if unit is None:
            raise ValueError(f"{word} is not a unit of time")
        units.add(unit)
        try:
            value = Decimal(number.strip())
        except InvalidOperation:
            raise ValueError(f"{number!r} is not a number of {unit}s") from None
        if value != value.to_integral_value() and unit != "second":
            raise ValueError(f"only seconds have a fraction, not {number} {unit}s")
        of_month, of_time = _UNITS[unit]
        months += int(value) * of_month
        micros += int(value * of_time)
    return _checked(months, micros, units, at)


def of_text(text: str, at: int) -> IntervalLiteral:
    """Builds `INTERVAL '1 day 2 hours'`."""
    words = text.split()
    if words and words[0].lower() == "interval":
        words = words[1:]
    if not words or len(words) % 2:
        raise ValueError(f"{text!r} is not a list of numbers and units")
    return of_units(zip(words[::2], words[1::2], strict=True), at)


def from_to(text: str, first: str, last: str, at: int) -> IntervalLiteral:
    """Builds `INTERVAL '1 02:03' DAY TO MINUTE`."""
    known = _FROM_TO.get((unit_of(first) or "", unit_of(last) or ""))
    if known is None:
        raise ValueError(f"there is no interval {first} TO {last}")
    match = re.fullmatch(rf"\s*([+-]?)\s*{known[0]}\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not an interval {first} TO {last}")
    numbers = match.groups()[1:]
    for number, unit in list(zip(numbers, known[1], strict=True))[1:]:
        if int(Decimal(number)) > _MOST[unit]:
            raise ValueError(f"{number} {unit}s are too many in {text!r}")
    sign = "-" if match[1] == "-" else ""
    return of_units(((sign + number, unit) for number, unit in zip(numbers, known[1], strict=True)), at)


def _checked(months: int, micros: int, units: set[str], at: int) -> IntervalLiteral:
    of_months = units <= {"year", "month"}
    if not of_months and units & {"year", "month"}:
        raise ValueError("months and shorter units are not mixed in one interval")
    if not -(2**31) <= months < 2**31 or not _LEAST <= micros <= _LARGEST:
        raise ValueError("the interval is too long")
    return IntervalLiteral(
        months, micros, "month" if of_months else "day" if units <= set(_WHOLE_DAYS) else "time", at=at
    )


# --- evaluation ------------------------------------------------------------------------------------------------------


def add_months(days: Any, months: Any) -> tuple[pa.Array, pa.Array | None]:
    """Adds months to dates; a day beyond the month's end becomes its last."""
    count = len(days) if isinstance(days, pa.Array) else len(months)
    start = days if isinstance(days, pa.Array) else pa.repeat(days, count)
    more = months if isinstance(months, pa.Array) else pa.repeat(months, count)
    valid = np.asarray(pc.and_(pc.is_valid(start), pc.is_valid(more)))
    values = np.asarray(pc.fill_null(start.cast(pa.int32()), 0)).astype(np.int64)
    found = _months_later(values, np.asarray(pc.fill_null(more, 0), np.int64))
    failed = valid & ((found < -(2**31)) | (found >= 2**31))
    made = pa.array(np.where(failed, 0, found).astype(np.int32), mask=~valid | failed).cast(pa.date32())
    return made, pa.array(failed) if failed.any() else None


def add(values: pa.Array, months: pa.Scalar, micros: pa.Scalar, *, timezone: str) -> tuple[pa.Array, pa.Array | None]:
    """Adds months and microseconds to timestamps, of which the whole days are days of the local calendar."""
    valid = np.asarray(pc.is_valid(values))
    instants = int64_of(values)
    local_only = values.type.tz is None
    clock = instants if local_only else int64_of(local_of(values, timezone))
    by_month, by_time = months.as_py(), micros.as_py()
    days = abs(by_time) // DAY * (1 if by_time >= 0 else -1)
    rest = by_time - days * DAY
    failed = np.zeros(len(values), np.bool_)
    found = instants
    if by_month or days:
        day, within = np.divmod(clock, DAY)
        day = _months_later(day, by_month) if by_month else day + days
        failed |= np.abs(day) > _LARGEST // DAY
        moved, wrong = _sum(np.where(failed, 0, day) * DAY, within)
        failed |= wrong
        found = moved if local_only else resolved(moved, clock - instants, timezone, values.type)
    found, wrong = _sum(found, np.int64(rest))
    failed = (failed | wrong) & valid
    made = pa.array(np.where(failed, 0, found), pa.int64(), mask=~valid | failed).cast(values.type)
    return made, pa.array(failed) if failed.any() else None


def _months_later(days: Any, months: Any) -> Any:
    """Days since the epoch, so many months later."""
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    within = days - month.astype("datetime64[D]").astype(np.int64)
    later = (month.astype(np.int64) + months).astype("datetime64[M]")
    first = later.astype("datetime64[D]").astype(np.int64)
    length = (later + 1).astype("datetime64[D]").astype(np.int64) - first
    return first + np.minimum(within, length - 1)


def resolved(clock: Any, offset: Any, zone: str, type_: pa.DataType) -> Any:
    """The instants of local times: with the given offset where the zone has it then."""
    kept = clock - offset
    as_before = int64_of(local_of(pa.array(kept, pa.int64()).cast(type_), zone)) == clock
    if as_before.all():
        return kept
    ntz = pa.array(clock, pa.int64()).cast(to_arrow_type(TIMESTAMP_NTZ))
    made, _ = cast_array(ntz, TIMESTAMP_NTZ, TIMESTAMP, zone, ansi=True)
    return np.where(as_before, kept, int64_of(made))


def local_of(values: pa.Array, zone: str) -> pa.Array:
    """The local times of timestamps."""
    found, _ = cast_array(values.cast(to_arrow_type(TIMESTAMP)), TIMESTAMP, TIMESTAMP_NTZ, zone, ansi=True)
    return found


def int64_of(values: pa.Array) -> Any:
    """Microseconds or days as numbers, zero where null."""
    return np.asarray(pc.fill_null(values.cast(pa.int64()), 0))


def _sum(left: Any, right: Any) -> tuple[Any, Any]:
    """The sum, and where it overflows."""
    with np.errstate(over="ignore"):
        found = left + right
    return found, ((left ^ found) & (right ^ found)) < 0
