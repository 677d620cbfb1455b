"""Dates, times and intervals: `+`, `-`, `*`, `/` and DIV where one side is a time or an interval.

The rule: the difference of two times is an interval of their local times; an interval holds months, or days and what is
shorter, never both. Days and months are those of the local calendar in the session's time zone, also the whole days of
a longer time (48 hours are two days); a local time that a clock change skips moves forward, one that occurs twice keeps
its offset if it can. What is left is exact. A result that does not fit is an error, with ANSI and without.

| left | right | result |
|---|---|---|
| DATE | - DATE | INTERVAL DAY |
| date or time | - time, time - DATE | INTERVAL DAY TO SECOND |
| DATE | + - months, + - days alone | DATE |
| DATE | + - shorter parts | TIMESTAMP |
| TIMESTAMP, TIMESTAMP_NTZ | + - an interval | the same type |
| an interval | + - an interval of its kind | the units of both |
| an interval | * / a number | YEAR TO MONTH, or DAY TO SECOND, half up |
| an interval | DIV an interval of its kind | BIGINT |

A NULL takes the type that the other side asks for. A day that the month does not have becomes its last one. Source:
Spark's BinaryArithmeticWithDatetimeResolver; DateTimeUtils.timestampAddMonths, timestampAddDayTime, dateAddMonths,
subtractTimestamps, subtractDates; MultiplyDTInterval, DivideDTInterval and those of months.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions import arithmetic
from mica.expressions.casts import cast_array
from mica.expressions.coerce import TIMES, is_number, is_real
from mica.expressions.compare import Datum
from mica.expressions.interval_casts import counts_of, of_counts
from mica.expressions.pairs import as_arrays
from mica.expressions.plain_values import Made
from mica.schema.arrow import to_arrow_type
from mica.schema.interval_types import (
    COUNTS,
    DAY_TO_SECOND,
    YEAR_TO_MONTH,
    is_interval,
    of_months,
    wider,
)
from mica.schema.interval_types import DAY as DAYS
from mica.schema.types import DATE, DOUBLE, INTEGRALS, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID, DataType
from mica.variant import kernel

DAY = COUNTS["day"]
_LEAST, _LARGEST = -(2**63), 2**63 - 1
_WIDE = Context(prec=120)
#: The last day whose local times 64 bits hold in every zone, and 400 years of days: then the calendar repeats.
_LAST_DAY, _CYCLE = _LARGEST // DAY - 1, 146_097

#: The types of the two sides, and of the result.
Signature = tuple[DataType, DataType, DataType]


def signature(name: str, left: DataType, right: DataType, *, ansi: bool) -> Signature | None:
    """The types that the sides are cast to, and that of the result; None if no such operator has these types."""
    if name == "+" and VOID in (left, right) and (left in TIMES or right in TIMES):
        left, right = (DAY_TO_SECOND if side == VOID else side for side in (left, right))
    if not is_interval(left) and not is_interval(right):
        return _difference(left, right, ansi=ansi) if name == "-" else None
    if VOID in (left, right) and name not in ("*", "/"):
        left = right = right if left == VOID else left
    if is_interval(left) and is_interval(right):
        common = wider(left, right)
        if common is None or name not in ("+", "-", "div"):
            return None
        return common, common, LONG if name == "div" else common
    if is_interval(left):
        return _with_interval(name, left, right) if name in ("+", "*", "/") else None
    found = _with_interval(name, right, left) if name in ("+", "-", "*") else None
    return None if found is None else (found[1], found[0], found[2])


def _with_interval(name: str, interval: DataType, other: DataType) -> Signature | None:
    """An interval and another type: (the interval's type, that of the other, that of the result)."""
    if name in ("*", "/"):
        number = DOUBLE if other in (STRING, VOID) else other
        full = YEAR_TO_MONTH if of_months(interval) else DAY_TO_SECOND
        return (interval, number, full) if is_number(number) else None
    if other in (TIMESTAMP, TIMESTAMP_NTZ) or (other == DATE and (of_months(interval) or interval == DAYS)):
        return interval, other, other
    if other == DATE:
        return interval, TIMESTAMP, TIMESTAMP
    # A text is cast to a time, and what is found back to a text.
    return (interval, TIMESTAMP, STRING) if other == STRING and not of_months(interval) else None


def _difference(left: DataType, right: DataType, *, ansi: bool) -> Signature | None:
    times = [t for t in (left, right) if t in TIMES]
    if not times or any(t not in (*TIMES, STRING, VOID) for t in (left, right)):
        return None
    # Without ANSI a text is cast to no time, but to the date from which another one is subtracted.
    if STRING in (left, right) and not ansi and (left, right) != (STRING, DATE):
        return None
    # Where one side has no zone, both are local times: one that a clock change skips is not moved.
    common = next((t for t in (TIMESTAMP_NTZ, TIMESTAMP, DATE) if t in times), DATE)
    return common, common, DAYS if common == DATE else DAY_TO_SECOND


# --- evaluation ------------------------------------------------------------------------------------------------------


def calculate(
    name: str, left: Datum, right: Datum, types: tuple[DataType, DataType], result: DataType, timezone: str
) -> Made:
    """Returns the values and the mask of rows that have no result; those rows are null. At least one side is an array;
    `types` are those of `signature`.
    """
    one, another = as_arrays(left, right)
    sides = one, another
    if not any(map(is_interval, types)):
        return _between(*sides, types[0], timezone)
    if all(map(is_interval, types)):
        start, more = (counts_of(side).cast(pa.int64()) for side in sides)
        found, failed = arithmetic.calculate(name, start, more, (LONG, LONG), LONG, ansi=True)
        return (found, failed) if name == "div" else _as_interval(found, failed, result)
    (values, by), (own, other) = (sides, types) if is_interval(types[0]) else (sides[::-1], types[::-1])
    if name in ("*", "/"):
        return _scaled(name, values, by, other, result)
    return _moved(by, values, -1 if name == "-" else 1, own, timezone)


def negate(values: pa.Array, type_: DataType) -> Made:
    """The interval with the other sign; the least one has none."""
    found, failed = arithmetic.negate(counts_of(values).cast(pa.int64()), LONG, ansi=True)
    return _as_interval(found, failed, type_)


def absolute(values: pa.Array, type_: DataType) -> Made:
    """The interval without its sign; the least one has none."""
    counts = counts_of(values)
    made, failed = negate(values, type_)
    below = pc.less(counts, 0)
    return pc.if_else(below, made, values), None if failed is None else pc.and_(failed, pc.fill_null(below, False))


def _as_interval(counts: pa.Array, failed: pa.Array | None, type_: DataType) -> Made:
    """Intervals of 64-bit counts; of months there are only 32 bits."""
    if of_months(type_):
        numbers = to_numpy(pc.fill_null(counts, 0))
        wrong = (numbers < -(2**31)) | (numbers >= 2**31)
        failed = arrow_array(wrong) if failed is None else pc.or_(failed, arrow_array(wrong))
        counts = pc.if_else(failed, scalar(None, pa.int64()), counts)
    made = counts.cast(to_arrow_type(type_))
    return made, failed if failed is not None and failed.true_count else None


def _between(end: pa.Array, start: pa.Array, type_: DataType, timezone: str) -> Made:
    """The time from `start` to `end`, of the local times."""
    valid = to_numpy(pc.and_(pc.is_valid(end), pc.is_valid(start)))
    if type_ == DATE:
        days = int64_of(end.cast(pa.int32())) - int64_of(start.cast(pa.int32()))
        failed = valid & (np.abs(days) > _LARGEST // DAY)
        found = np.where(failed, 0, days) * DAY
    else:
        last, first = int64_of(end), int64_of(start)
        found, failed = _less(last, first)
        if type_ == TIMESTAMP:
            found, wrong = _sum(found, offsets(last, timezone) - offsets(first, timezone))
            failed |= wrong
        failed &= valid
    made = arrow_array(np.where(failed, 0, found), pa.int64(), mask=~valid | failed).cast(pa.duration("us"))
    return made, arrow_array(failed) if failed.any() else None


def _scaled(name: str, values: pa.Array, by: pa.Array, type_: DataType, result: DataType) -> Made:
    """An interval times a number, or divided by it, half up."""
    valid = to_numpy(pc.and_(pc.is_valid(values), pc.is_valid(by)))
    counts = to_numpy(pc.fill_null(counts_of(values).cast(pa.int64()), 0))
    limit = 2**31 if of_months(result) else 2**63
    failed = np.zeros(len(counts), np.bool_)
    if is_real(type_):
        factors = to_numpy(pc.fill_null(by.cast(pa.float64()), 1))
        with np.errstate(all="ignore"):
            exact = counts * factors if name == "*" else counts / factors
            nearest = np.rint(exact)
            nearest = np.where(np.abs(exact - nearest) == 0.5, exact + np.copysign(0.5, exact), nearest)
            failed = ~((nearest >= -float(limit)) & (nearest < float(limit)))
        found = np.where(failed, 0, nearest).astype(np.int64)
    elif type_ in INTEGRALS and name == "*":
        made, wrong = arithmetic.calculate("*", arrow_array(counts), by.cast(pa.int64()), (LONG, LONG), LONG, ansi=True)
        found = to_numpy(pc.fill_null(made, 0))
        failed = np.zeros(len(counts), np.bool_) if wrong is None else to_numpy(wrong)
    else:
        each = [_exactly(name, *pair) for pair in zip(counts.tolist(), by.to_pylist(), strict=True)]
        failed = np.array([one is None or not -limit <= one < limit for one in each], np.bool_)
        found = np.array([0 if wrong else one for one, wrong in zip(each, failed, strict=True)], np.int64)
    failed = valid & (failed | (found < -limit) | (found > limit - 1))
    made = of_counts(np.where(failed, 0, found), valid & ~failed, to_arrow_type(result))
    return made, arrow_array(failed) if failed.any() else None


def _exactly(name: str, count: int, by: Any) -> int | None:
    """One interval scaled by an integer or a decimal; None for a division by zero."""
    if by is None or (name == "/" and not by):
        return None
    found = _WIDE.multiply(Decimal(count), by) if name == "*" else _WIDE.divide(Decimal(count), Decimal(by))
    return int(found.to_integral_value(ROUND_HALF_UP, _WIDE))


def _moved(values: pa.Array, by: pa.Array, sign: int, interval: DataType, timezone: str) -> Made:
    """Dates or times, later by an interval (`sign` -1: earlier)."""
    valid = to_numpy(pc.and_(pc.is_valid(values), pc.is_valid(by)))
    counts = to_numpy(pc.fill_null(counts_of(by), 0)).astype(np.int64)
    failed = (counts == (-(2**31) if of_months(interval) else _LEAST)) & (sign < 0)
    counts = sign * np.where(failed, 0, counts)
    months, days = (counts, 0) if of_months(interval) else (0, (counts - np.fmod(counts, DAY)) // DAY)
    if pa.types.is_date32(values.type):
        start = int64_of(values.cast(pa.int32()))
        found = _months_later(start, months) if of_months(interval) else (start + days).astype(np.int32)
        failed = valid & (failed | (found < -(2**31)) | (found >= 2**31))
        made = arrow_array(np.where(failed, 0, found).astype(np.int32), mask=~valid | failed).cast(pa.date32())
        return made, arrow_array(failed) if failed.any() else None
    instants = int64_of(values)
    found = instants
    if np.any(months) or np.any(days):
        local_only = values.type.tz is None
        ahead = np.zeros_like(instants) if local_only else offsets(instants, timezone)
        if of_months(interval):
            start, _ = clock_of(instants, ahead)
            days = _months_later(start, months) - start
        day, within = np.divmod(instants, DAY)
        found, wrong = micros_of(day + days, within)
        failed |= wrong
        if not local_only:
            found, wrong = resolved(found, ahead, timezone)
            failed |= wrong
    if not of_months(interval):
        found, wrong = _sum(found, np.fmod(counts, DAY))
        failed |= wrong
    failed &= valid
    made = arrow_array(np.where(failed, 0, found), pa.int64(), mask=~valid | failed).cast(values.type)
    return made, arrow_array(failed) if failed.any() else None


def add_months(days: Any, months: Any) -> tuple[pa.Array, pa.Array | None]:
    """Adds months to dates; a day beyond the month's end becomes its last."""
    count = len(days) if isinstance(days, pa.Array) else len(months)
    start = days if isinstance(days, pa.Array) else pa.repeat(days, count)
    more = months if isinstance(months, pa.Array) else pa.repeat(months, count)
    valid = to_numpy(pc.and_(pc.is_valid(start), pc.is_valid(more)))
    values = to_numpy(pc.fill_null(start.cast(pa.int32()), 0)).astype(np.int64)
    found = _months_later(values, np.asarray(to_numpy(pc.fill_null(more, 0)), np.int64))
    failed = valid & ((found < -(2**31)) | (found >= 2**31))
    made = arrow_array(np.where(failed, 0, found).astype(np.int32), mask=~valid | failed).cast(pa.date32())
    return made, arrow_array(failed) if failed.any() else None


def _months_later(days: Any, months: Any) -> Any:
    """Days since the epoch, so many months later."""
    month = days.astype("datetime64[D]").astype("datetime64[M]")
    within = days - month.astype("datetime64[D]").astype(np.int64)
    later = (month.astype(np.int64) + months).astype("datetime64[M]")
    first = later.astype("datetime64[D]").astype(np.int64)
    length = (later + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - first
    return first + np.minimum(within, length - 1)


def resolved(kept: Any, ahead: Any, zone: str) -> tuple[Any, Any]:
    """Instants of the local times that `kept` are where a zone is so far `ahead` of UTC: `kept` where it is, others
    where it is not; and where 64 bits do not hold those."""
    as_before = offsets(kept, zone) == ahead
    if as_before.all():
        return kept, ~as_before
    nearer = towards_us(kept, DAY)
    found, failed = _less(of_local(np.where(as_before, 0, kept + nearer + ahead), zone), nearer)
    return np.where(as_before, kept, found), failed & ~as_before


def offsets(instants: Any, zone: str) -> Any:
    """The microseconds by which a zone's clocks are ahead of UTC."""
    fixed = kernel.fixed_offset(zone)
    if fixed is not None:
        return np.full_like(instants, fixed * 1_000_000)
    near = instants + towards_us(instants, DAY)
    times = arrow_array(near, pa.int64()).cast(to_arrow_type(TIMESTAMP))
    return int64_of(cast_array(times, TIMESTAMP, TIMESTAMP_NTZ, zone, ansi=True)[0]) - near


def of_local(clock: Any, zone: str) -> Any:
    """The instants of local times that are not near the ends of time."""
    times = arrow_array(clock, pa.int64()).cast(to_arrow_type(TIMESTAMP_NTZ))
    return int64_of(cast_array(times, TIMESTAMP_NTZ, TIMESTAMP, zone, ansi=True)[0])


def towards_us(counts: Any, unit: int) -> Any:
    """400 years towards us for times so near the ends of time that 64 bits may not hold them in another zone, 0 for the
    others: the rules of zones are then the same. A day has `unit` of what is counted."""
    late, early = counts > _LAST_DAY * unit, counts < -_LAST_DAY * unit
    return (early.astype(np.int64) - late) * (_CYCLE * unit)


def clock_of(instants: Any, ahead: Any) -> tuple[Any, Any]:
    """The local days of instants, and the microseconds of these days."""
    day, within = np.divmod(instants, DAY)
    more, within = np.divmod(within + ahead, DAY)
    return day + more, within


def micros_of(day: Any, within: Any) -> tuple[Any, Any]:
    """Days and microseconds of a day as microseconds, and where 64 bits do not hold them."""
    early = day < 0  # of the first day they hold only the end
    whole, part = day + early, within - DAY * early
    failed = np.abs(whole) > _LARGEST // DAY
    found, wrong = _sum(np.where(failed, 0, whole) * DAY, part)
    return found, failed | wrong


def int64_of(values: pa.Array) -> Any:
    """Microseconds or days as numbers, zero where null."""
    return to_numpy(pc.fill_null(values.cast(pa.int64()), 0))


def _sum(left: Any, right: Any) -> tuple[Any, Any]:
    """The sum, and where it overflows."""
    with np.errstate(over="ignore"):
        found = left + right
    return found, ((left ^ found) & (right ^ found)) < 0


def _less(left: Any, right: Any) -> tuple[Any, Any]:
    """The difference, and where it overflows."""
    with np.errstate(over="ignore"):
        found = left - right
    return found, ((left ^ right) & (left ^ found)) < 0
