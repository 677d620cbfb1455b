"""Parts of dates and times beyond those of `times`, dates from their parts, and what lies between two times.

The rule: weeks are those of ISO 8601, they begin on Monday; a DAYOFWEEK counts from Sunday. Times are taken at their
local clock in the session's time zone.

Source: Spark's datetimeExpressions.scala; DateTimeUtils: getNextDateForDayOfWeek, monthsBetween, timestampDiff,
convertTz; java.time.LocalDateTime.until.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.errors import UserError
from mica.expressions.coerce import TIMES, is_exact, is_real
from mica.expressions.compare import Datum
from mica.expressions.intervals import DAY, clock_of, int64_of, of_local, offsets
from mica.expressions.pairs import as_arrays, tried_by_rows
from mica.expressions.plain_values import Made
from mica.expressions.signatures import RISES, Asked, Function, Signature
from mica.expressions.times import calendar, from_unit
from mica.schema.arrow import to_arrow_type
from mica.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGRALS,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    decimal,
)
from mica.variant import kernel

_SECOND, _MONTH_OF_SECONDS = 1_000_000, 31 * 86_400
_DAYS, _MONTHS, _YEARS = (f"datetime64[{unit}]" for unit in "DMY")
_MOST = 2**63 - 1
#: Java's last year.
_LAST_YEAR = 999_999_999
_DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: The names of next_day, whole, of three letters, or of two.
_WEEKDAYS = {
    name[:size]: at
    for at, name in enumerate("MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY".split())
    for size in (2, 3, len(name))
}
#: Months of a unit, and microseconds.
_OF_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_OF_MICROS = {
    "microsecond": 1, "millisecond": 1_000, "second": _SECOND, "minute": 60 * _SECOND, "hour": 3_600 * _SECOND,
    "day": DAY, "dayofyear": DAY, "week": 7 * DAY,
}  # fmt: skip


def _of_days(part: Callable[[Any], Any]) -> Callable[[pa.Array], pa.Array]:
    """The function that gives an INT for each of the days since the epoch."""

    def found(values: pa.Array) -> pa.Array:
        return arrow_array(part(_days(values)).astype(np.int32), mask=to_numpy(pc.is_null(values)))

    return found


def _days(values: pa.Array) -> Any:
    return to_numpy(pc.fill_null(values.cast(pa.int32()), 0)).astype(np.int64)


def _named(names: tuple[str, ...], part: Callable[[Any], Any]) -> Callable[[pa.Array], pa.Array]:
    take = _of_days(part)
    return lambda values: arrow_array(names, pa.string()).take(take(values))


def _month(days: Any) -> Any:
    """The months since the epoch."""
    return days.astype(_DAYS).astype(_MONTHS).astype(np.int64)


def _first(months: Any) -> Any:
    """The first days of months."""
    return months.astype(_MONTHS).astype(_DAYS).astype(np.int64)


def _weekday(days: Any) -> Any:
    return np.mod(days + 3, 7)


def _thursday(days: Any) -> Any:
    """The Thursday of the week, whose year is the week's."""
    return days - _weekday(days) + 3


def _week(days: Any) -> Any:
    middle = _thursday(days).astype(_DAYS)
    return (middle - middle.astype(_YEARS).astype(_DAYS)).astype(np.int64) // 7 + 1


def _year_of_week(days: Any) -> Any:
    return _thursday(days).astype(_DAYS).astype(_YEARS).astype(np.int64) + 1970


def _last_day(values: pa.Array) -> pa.Array:
    return _of_days(lambda days: _first(_month(days) + 1) - 1)(values).cast(pa.date32())


def second(values: pa.Array) -> pa.Array:
    """The seconds of local times with their fraction: a decimal(8,6)."""
    micros = np.mod(int64_of(values), 60 * _SECOND)
    held = np.stack([micros, np.zeros_like(micros)], axis=1)
    null = arrow_array(micros, mask=to_numpy(pc.is_null(values))).buffers()[0]
    return pa.Array.from_buffers(pa.decimal128(8, 6), len(values), [null, pa.py_buffer(np.ascontiguousarray(held))])


def _as_days(days: Any, null: Any) -> Made:
    failed = ~null & ((days < -(2**31)) | (days >= 2**31))
    made = arrow_array(np.where(failed, 0, days).astype(np.int32), mask=null | failed).cast(pa.date32())
    return made, arrow_array(failed) if failed.any() else None


def next_day(values: pa.Array, name: pa.Scalar, ansi: bool) -> Made:
    """The first day of that name after a date. A name that is none fails with ANSI."""
    wanted, null = _WEEKDAYS.get(name.as_py().upper()), to_numpy(pc.is_null(values))
    if wanted is None:
        return pa.nulls(len(values), pa.date32()), arrow_array(~null) if ansi and not null.all() else None
    # Spark counts in 32 bits, which wrap around near the ends of dates, and takes remainders as Java does.
    days = _days(values).astype(np.int32)
    with np.errstate(over="ignore"):
        left = np.fmod(np.fmod(np.int32((wanted + 4) % 7 - 1) - days, np.int32(7)) + np.int32(7), np.int32(7))
        return arrow_array(days + np.int32(1) + left, mask=null).cast(pa.date32()), None


def make_date(year: Datum, month: Datum, day: Datum, ansi: bool) -> Made:
    """The date of a year, month and day. What is none fails with ANSI."""
    parts = as_arrays(year, month, day)
    null = to_numpy(pc.or_(pc.or_(pc.is_null(parts[0]), pc.is_null(parts[1])), pc.is_null(parts[2])))
    years, months, days = (int64_of(part) for part in parts)
    near = (np.abs(years) <= _LAST_YEAR) & (months >= 1) & (months <= 12)
    start = np.where(near, (years - 1970) * 12 + months - 1, 0)
    wrong = ~near | (days < 1) | (days > _first(start + 1) - _first(start))
    made, failed = _as_days(_first(start) + days - 1, null | wrong)
    failing = wrong & ~null & ansi
    if failed is not None:  # a day that a DATE does not hold, without ANSI too
        failing |= to_numpy(failed)
    return made, arrow_array(failing) if failing.any() else None


def unix_date(values: pa.Array) -> pa.Array:
    """The days since the epoch."""
    return values.cast(pa.int32())


def from_unix_date(values: pa.Array) -> pa.Array:
    """The date of so many days since the epoch."""
    return values.cast(pa.date32())


def _of_date_itself(asked: Asked) -> Signature | None:
    return ((DATE,), INTEGER) if asked.types[0] in (DATE, VOID) else None


def _of_seconds(asked: Asked) -> Signature | None:
    own = asked.types[0]
    if own in (*INTEGRALS, VOID):
        return (LONG,), TIMESTAMP
    return ((DOUBLE if is_real(own) else own,), TIMESTAMP) if is_real(own) or is_exact(own) else None


def timestamp_seconds(values: pa.Array) -> Made:
    """The time of so many seconds since the epoch; NULL for NaN and what is infinite."""
    if pa.types.is_integer(values.type):
        return from_unit(_SECOND)(values)
    if pa.types.is_decimal(values.type):

        def one(value: Decimal) -> int | None:
            micros = value.scaleb(6)
            return int(micros) if micros == micros.to_integral_value() and -(2**63) <= micros < 2**63 else None

        return tried_by_rows(TIMESTAMP, one, values)
    seconds = to_numpy(pc.fill_null(values, 0.0))
    null = to_numpy(pc.is_null(values)) | ~np.isfinite(seconds)
    with np.errstate(invalid="ignore", over="ignore"):
        micros = np.where(null, 0.0, seconds) * 1e6
        found = np.where(np.abs(micros) < 2.0**63, micros, 0.0).astype(np.int64)
    found = np.where(micros >= 2.0**63, 2**63 - 1, np.where(micros < -(2.0**63), -(2**63), found))
    return arrow_array(found, pa.int64(), mask=null).cast(to_arrow_type(TIMESTAMP)), None


def _of_two_times(asked: Asked) -> Signature | None:
    """Two times, and maybe a boolean."""
    fits = all(t in (STRING, VOID, *TIMES) for t in asked.types[:2])
    if not fits or any(t not in (BOOLEAN, VOID) for t in asked.types[2:]):
        return None
    return (TIMESTAMP, TIMESTAMP, *[BOOLEAN] * (len(asked.types) - 2)), DOUBLE


def months_between(end: Datum, start: Datum, rounds: pa.Scalar | None = None, *, timezone: str) -> pa.Array:
    """Months from one time to another, of 31 days where they are not whole ones; to eight digits by default."""
    ends, starts = as_arrays(end, start)
    null = to_numpy(pc.or_(pc.is_null(ends), pc.is_null(starts)))
    (month, day, left, seconds), (other, first, rest, begun) = (_placed(v, timezone) for v in (ends, starts))
    months = (month - other).astype(np.float64)
    more = (day - first) * 86_400 + seconds - begun
    found = months + more / float(_MONTH_OF_SECONDS)
    if rounds is None or rounds.as_py():
        found = np.floor(found * 1e8 + 0.5) / 1e8
    whole = (day == first) | ((left == 0) & (rest == 0))
    return arrow_array(np.where(whole, months, found), mask=null)


def _placed(values: pa.Array, timezone: str) -> tuple[Any, Any, Any, Any]:
    """The month of times, the day of the month, the days left in it, and the seconds since the day's first instant."""
    instants = int64_of(values)
    days, _ = clock_of(instants, offsets(instants, timezone))
    month = _month(days)
    seconds = (instants - of_local(days * DAY, timezone)) / _SECOND
    return month, days - _first(month) + 1, _first(month + 1) - 1 - days, np.trunc(seconds).astype(np.int64)


def check_zone(_values: None, zone: str) -> None:
    """Raises ValueError for a zone that is none."""
    try:
        kernel.fixed_offset(zone)
    except UserError as e:
        raise ValueError(e.message) from e


def _of_time_and_zone(asked: Asked) -> Signature | None:
    own, zone = asked.types
    return ((TIMESTAMP, STRING), TIMESTAMP) if own in (STRING, VOID, *TIMES) and zone in (STRING, VOID) else None


def from_utc(values: pa.Array, zone: pa.Scalar) -> pa.Array:
    """The clock that a zone shows at a time, as a time of UTC."""
    instants = int64_of(values)
    return _timed(instants + offsets(instants, zone.as_py()), values)


def to_utc(values: pa.Array, zone: pa.Scalar) -> pa.Array:
    """The time at which a zone shows the clock that UTC has at a time."""
    return _timed(of_local(int64_of(values), zone.as_py()), values)


def _timed(micros: Any, values: pa.Array) -> pa.Array:
    return arrow_array(micros, pa.int64(), mask=to_numpy(pc.is_null(values))).cast(values.type)


def _of_unit_and_times(asked: Asked) -> Signature | None:
    fits = all(t in (STRING, VOID, *TIMES) for t in asked.types[1:])
    return ((STRING, TIMESTAMP, TIMESTAMP), LONG) if fits else None


def timestampdiff(units: pa.Array, start: Datum, end: Datum, *, timezone: str) -> Made:
    """Whole units from one time to another. The unit is a constant, repeated. Microseconds fail beyond 64 bits."""
    _, starts, ends = as_arrays(units, start, end)
    null = to_numpy(pc.or_(pc.is_null(starts), pc.is_null(ends)))
    clocks = []
    for values in (starts, ends):
        instants = int64_of(values)
        clocks.append(clock_of(instants, offsets(instants, timezone)))
    (day, within), (other, later) = clocks
    unit = units[0].as_py() if len(units) else "day"
    # A day that has not gone round does not count, before its month is asked.
    back = ((other < day) & (later > within)).astype(np.int64) - ((other > day) & (later < within))
    other = other + back
    failed = np.zeros(len(units), bool)
    if (micros := _OF_MICROS.get(unit)) is None:
        first, last = (32 * _month(d) + d - _first(_month(d)) + 1 for d in (day, other))
        between, size = last - first, 32 * _OF_MONTHS[unit]
        found = _towards_zero(_towards_zero(between, 32), size // 32)
    elif micros >= DAY:
        found = _towards_zero(other - day, micros // DAY)
    else:
        # Days and what is left go the same way: 64 bits may not hold the microseconds of both.
        days, left = other - day, later - within - back * DAY
        with np.errstate(over="ignore"):
            whole, part = days * (DAY // micros), _towards_zero(left, micros)
            found = whole + part
        failed = ~null & ((np.abs(days) > _MOST // (DAY // micros)) | (((whole ^ found) & (part ^ found)) < 0))
    return arrow_array(found.astype(np.int64), mask=null | failed), arrow_array(failed) if failed.any() else None


def _of_unit_count_and_time(asked: Asked) -> Signature | None:
    own = asked.types[2]
    return ((STRING, LONG, own), own) if own in (TIMESTAMP, TIMESTAMP_NTZ) else None


def timestampadd(units: pa.Array, counts: Datum, times: Datum) -> Made:
    """Times, so many of these units later. Fails beyond the ends of time."""
    _, numbers, values = as_arrays(units, counts, times)
    null = to_numpy(pc.or_(pc.is_null(numbers), pc.is_null(values)))
    size = _OF_MICROS[units[0].as_py()] if len(units) else 1
    more, start = int64_of(numbers), int64_of(values)
    wrong = (more > _MOST // size) | (more < -(2**63 // size))
    more = np.where(wrong, 0, more) * size
    with np.errstate(over="ignore"):
        found = start + more
    failed = ~null & (wrong | (((start ^ found) & (more ^ found)) < 0))
    made = arrow_array(found, pa.int64(), mask=null | failed).cast(values.type)
    return made, arrow_array(failed) if failed.any() else None


def _towards_zero(counts: Any, size: int) -> Any:
    return (counts - np.fmod(counts, size)) // size


def _part(name: str, part: Callable[[Any], Any], *order: int, within: str | None = None) -> dict[str, Function]:
    return {name: Function((DATE,), INTEGER, _of_days(part), order=order, within=within)}


def _text(name: str, names: tuple[str, ...], part: Callable[[Any], Any]) -> dict[str, Function]:
    return {name: Function((DATE,), STRING, _named(names, part))}


def _shifted(evaluate: Callable[..., pa.Array]) -> Function:
    return Function((TIMESTAMP, STRING), TIMESTAMP, evaluate, constants=(1,), resolve=_of_time_and_zone,
                    check=check_zone)  # fmt: skip


def _day_of_year(values: pa.Array) -> pa.Array:
    return calendar("day_of_year")(values).cast(pa.int32())


_DECIMAL: DataType = decimal(8, 6)
FUNCTIONS: Mapping[str, Function] = {
    **_part("quarter", lambda days: np.mod(_month(days), 12) // 3 + 1, RISES, within="Y"),
    **_part("weekday", _weekday),
    **_part("dayofweek", lambda days: np.mod(days + 4, 7) + 1),
    **_part("weekofyear", _week),
    **_part("extract yearofweek", _year_of_week, RISES),
    **_text("dayname", _DAY_NAMES, _weekday),
    **_text("monthname", _MONTH_NAMES, lambda days: np.mod(_month(days), 12)),
    "dayofyear": Function((DATE,), INTEGER, _day_of_year, order=(RISES,), within="Y"),
    "extract second": Function((TIMESTAMP_NTZ,), _DECIMAL, second, order=(RISES,), within="m"),
    # In the last month of all it wraps around.
    "last_day": Function((DATE,), DATE, _last_day, order=(RISES,), domain=(-(2**31), 2**31 - 32)),
    "next_day": Function((DATE, STRING), DATE, next_day, constants=(1,), needs=("ansi",)),
    "make_date": Function((INTEGER, INTEGER, INTEGER), DATE, make_date, needs=("ansi",)),
    "unix_date": Function((DATE,), INTEGER, unix_date, resolve=_of_date_itself, order=(RISES,)),
    "date_from_unix_date": Function((INTEGER,), DATE, from_unix_date, order=(RISES,)),
    "timestamp_seconds": Function((VOID,), TIMESTAMP, timestamp_seconds, resolve=_of_seconds, order=(RISES,)),
    "months_between": Function((VOID, VOID, VOID), DOUBLE, months_between, optional=1, constants=(2,),
                               resolve=_of_two_times, needs=("timezone",)),
    "from_utc_timestamp": _shifted(from_utc),
    "to_utc_timestamp": _shifted(to_utc),
    "timestampadd": Function(
        (STRING, VOID, VOID), TIMESTAMP, timestampadd, constants=(0,), resolve=_of_unit_count_and_time
    ),
    "timestampdiff": Function((STRING, VOID, VOID), LONG, timestampdiff, constants=(0,), resolve=_of_unit_and_times,
                              needs=("timezone",)),
}  # fmt: skip
