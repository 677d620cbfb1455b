"""Prints constants as SQL.

The rule: dates are days and timestamps microseconds since the epoch as plain ints, so that every year of Spark's
calendar is possible. The kernel parses their texts, as it does for rows (`expressions/casts.py`).
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from mica.schema import interval_types
from mica.schema.types import DataType, MapType, Primitive

_DAY = 86_400_000_000


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Converts days since 1970-01-01 to (year, month, day) in the proleptic Gregorian calendar, for any year."""
    # The calendar repeats after 400 years of 146,097 days, so Python's dates work for every year.
    cycles, within = divmod(days + 719_162, 146_097)
    date = dt.date.fromordinal(within + 1)
    return date.year + 400 * cycles, date.month, date.day


def show(value: Any, type_: DataType) -> str:
    """Returns the constant as SQL, in UTC."""
    name = type_.name if isinstance(type_, Primitive) else ""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() if interval_types.is_interval(type_):
            return interval_types.show(value, type_)
        case int() if name == "date":
            return f"DATE'{show_date(value)}'"
        case int() if name == "timestamp":
            return f"TIMESTAMP'{show_timestamp(value)}Z'"
        case int() if name == "timestamp_ntz":
            return f"TIMESTAMP_NTZ'{show_timestamp(value)}'"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
            return f"'{escaped}'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case Decimal():
            return f"{value:f}"
        case ():
            return "map()" if isinstance(type_, MapType) else "array()"
        case _:
            return str(value)


def show_date(days: int) -> str:
    """`2020-05-01`."""
    year, month, day = civil_from_days(days)
    sign, year = ("-", -year) if year < 0 else ("", year)
    return f"{sign}{year:04}-{month:02}-{day:02}"


def show_timestamp(micros: int, *, all_digits: bool = False) -> str:
    """`2020-05-01 10:00:00` with as many digits of the fraction as needed, or with all six."""
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{show_date(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if all_digits:
        return f"{text}.{fraction:06}"
    return text + (f".{fraction:06}".rstrip("0") if fraction else "")
