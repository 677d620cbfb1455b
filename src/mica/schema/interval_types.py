"""Interval types: differences of times, which expressions have and no column of a table.

The rule: an interval counts months (`interval year to month`) or microseconds (`interval day to second`), never both.
Its units say how it is printed and what a cast to fewer of them keeps; they are in its name, which is Spark's.

Source: Spark's DayTimeIntervalType, YearMonthIntervalType; IntervalUtils.toDayTimeIntervalString.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping

import pyarrow as pa

from mica.schema.types import DataType, Primitive

MONTHS, TIMES = ("year", "month"), ("day", "hour", "minute", "second")
#: What one unit counts: months or microseconds.
COUNTS: Mapping[str, int] = {
    "year": 12, "month": 1, "day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000,
}  # fmt: skip


def interval(units: Collection[str]) -> Primitive:
    """The type with all units between the greatest and the least of these."""
    kind = MONTHS if set(units) <= set(MONTHS) else TIMES
    places = sorted(map(kind.index, units))
    return _NAMED[kind[places[0] : places[-1] + 1]]


def units_of(type_: DataType) -> tuple[str, ...]:
    """The units of an interval type, the greatest first; none of another type."""
    return _UNITS.get(type_, ())


def is_interval(type_: DataType) -> bool:
    """Whether it is an interval type."""
    return type_ in _UNITS


def of_months(type_: DataType) -> bool:
    """Whether it is an interval of months."""
    return units_of(type_)[:1] in (("year",), ("month",))


def wider(left: DataType, right: DataType) -> DataType | None:
    """The interval type with the units of both; None for a month beside a day."""
    return interval({*units_of(left), *units_of(right)}) if of_months(left) == of_months(right) else None


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type of an interval's values. Arrow computes with no interval of months: these are numbers."""
    return pa.int32() if of_months(type_) else pa.duration("us")


def show(value: int, type_: DataType) -> str:
    """The interval as SQL: `INTERVAL '1 02:03:04.5' DAY TO SECOND`."""
    units = units_of(type_)
    rest, shown = abs(value), ""
    for unit in units:
        count, rest = divmod(rest, COUNTS[unit])
        between = "" if not shown else {"month": "-", "hour": " "}.get(unit, ":")
        # Of times the units after the days have two digits, as on a clock.
        shown += between + (f"{count:02}" if unit in TIMES[1:] else f"{count}")
    if units[-1] == "second" and rest:
        shown += f".{rest:06}".rstrip("0")
    named = units[0] if len(units) == 1 else f"{units[0]} to {units[-1]}"
    return f"INTERVAL '{'-' * (value < 0)}{shown}' {named.upper()}"


_NAMED: Mapping[tuple[str, ...], Primitive] = {
    kind[first : last + 1]: Primitive(
        f"interval {kind[first]}" if first == last else f"interval {kind[first]} to {kind[last]}"
    )
    for kind in (MONTHS, TIMES)
    for first, last in itertools.combinations_with_replacement(range(len(kind)), 2)
}
_UNITS: Mapping[DataType, tuple[str, ...]] = {type_: units for units, type_ in _NAMED.items()}

OF_MONTHS = tuple(type_ for type_ in _NAMED.values() if of_months(type_))
DAY, DAY_TO_SECOND, YEAR_TO_MONTH = interval(["day"]), interval(TIMES), interval(MONTHS)
