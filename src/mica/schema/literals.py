"""Constants: how their texts are read, and how they are shown.

The rule: a text that Spark would not read as the type is no constant of it. Dates are days and timestamps microseconds
since the epoch as plain ints, so that every year of Spark's calendar can be said; instants without a zone in their text
take the one that is given.

Source: Spark's SparkDateTimeUtils.stringToDate and parseTimestampString.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mica.errors import UserError
from mica.schema.types import DATE, TIMESTAMP, DataType, Primitive

_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.DOTALL | re.ASCII)
_TIMESTAMP = re.compile(
    r"""([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})
        (?:[ T](?:(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?\s*(.*))?)?)?)?""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.ASCII)

_DAY = 86_400_000_000
_CONTROL = "".join(map(chr, range(33)))  # what Spark trims: white space and ISO control characters


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any year. ValueError for a day that is none."""
    # The calendar repeats after 400 years of 146,097 days: Python's own dates then serve every year.
    cycles, within = divmod(year, 400)
    return dt.date(within + 400, month, day).toordinal() - 719_163 + (cycles - 1) * 146_097


def civil_from_days(days: int) -> tuple[int, int, int]:
    """(year, month, day), the inverse of `days_from_civil`."""
    cycles, within = divmod(days + 719_162, 146_097)
    date = dt.date.fromordinal(within + 1)
    return date.year + 400 * cycles, date.month, date.day


def parse_date(text: str) -> int | None:
    """Days since the epoch, or None where Spark reads no date: `2020`, `2020-5`, `2020-05-01`, `2020-05-01T…`."""
    match = _DATE.fullmatch(text.strip(_CONTROL))
    if match is None:
        return None
    try:
        year = int(match[2]) * (-1 if match[1] == "-" else 1)
        days = days_from_civil(year, int(match[3] or 1), int(match[4] or 1))
    except ValueError:
        return None
    return days if -(2**31) <= days < 2**31 else None


def parse_timestamp(text: str, zone: str) -> int | None:
    """Microseconds since the epoch; a text without a zone is in `zone`. None where Spark reads no timestamp."""
    found = _parse_timestamp(text)
    if found is None:
        return None
    micros, own = found
    try:
        return local_to_utc(micros, own or zone)
    except UserError:
        return None


def parse_timestamp_ntz(text: str) -> int | None:
    """Microseconds since the epoch on the wall clock; a zone in the text is left aside, as Spark does."""
    found = _parse_timestamp(text)
    return None if found is None else found[0]


def parse_time(text: str, type_: DataType, zone: str) -> int | None:
    """A DATE, TIMESTAMP or TIMESTAMP_NTZ written as `DATE '…'`: besides the above `epoch`, as in Spark."""
    if text.strip().lower() == "epoch":
        return 0
    if type_ == DATE:
        return parse_date(text)
    return parse_timestamp(text, zone) if type_ == TIMESTAMP else parse_timestamp_ntz(text)


def _parse_timestamp(text: str) -> tuple[int, str] | None:
    match = _TIMESTAMP.fullmatch(text.strip(_CONTROL))
    if match is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        days = days_from_civil(int(year) * (-1 if sign == "-" else 1), int(month or 1), int(day or 1))
    except ValueError:
        return None
    h, m, s = int(hour or 0), int(minute or 0), int(second or 0)
    if h > 23 or m > 59 or s > 59:
        return None
    micros = int((fraction or "")[:6].ljust(6, "0"))  # digits beyond the sixth are cut
    return days * _DAY + (h * 3600 + m * 60 + s) * 1_000_000 + micros, zone or ""


def zone_offset(zone: str) -> int | None:
    """Seconds east of UTC of a fixed zone (`Z`, `+02:00`, `UTC`), None for a region."""
    if zone in ("Z", "UTC", "GMT", "UT", "Etc/UTC", "+00:00"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if match is None:
        return None
    hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    if hours > 18 or minutes > 59 or seconds > 59:
        raise unknown_zone(zone)
    return (hours * 3600 + minutes * 60 + seconds) * (-1 if match[1] == "-" else 1)


def local_to_utc(micros: int, zone: str) -> int:
    """Wall clock to instant. In a gap clocks go forward, in an overlap the first one counts, as in Java."""
    fixed = zone_offset(zone)
    if fixed is None:
        fixed = _offset_at(micros, zone, local=True)
    return micros - fixed * 1_000_000


def utc_to_local(micros: int, zone: str) -> int:
    """The instant as the wall clock of a zone shows it."""
    fixed = zone_offset(zone)
    if fixed is None:
        fixed = _offset_at(micros, zone, local=False)
    return micros + fixed * 1_000_000


def _offset_at(micros: int, zone: str, *, local: bool) -> int:
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as e:
        raise unknown_zone(zone) from e
    # Years beyond Python's take the offset of the nearest one: rules there are the first or the last known.
    clamped = min(max(micros, -62_135_500_000_000_000), 253_402_200_000_000_000)
    moment = dt.datetime(1970, 1, 1, tzinfo=info if local else dt.UTC)
    if local:
        moment = (moment.replace(tzinfo=None) + dt.timedelta(microseconds=clamped)).replace(tzinfo=info, fold=0)
    else:
        moment = (moment + dt.timedelta(microseconds=clamped)).astimezone(info)
    offset = moment.utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def unknown_zone(zone: str) -> UserError:
    """The error for a time zone that does not exist."""
    return UserError("UNKNOWN_TIME_ZONE", f"there is no time zone {zone!r}", hint="Give an IANA name or an offset.")


def show(value: Any, type_: DataType) -> str:
    """The constant as SQL, in UTC."""
    name = type_.name if isinstance(type_, Primitive) else ""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
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
        case _:
            return str(value)


def show_date(days: int) -> str:
    """`2020-05-01`."""
    year, month, day = civil_from_days(days)
    sign, year = ("-", -year) if year < 0 else ("", year)
    return f"{sign}{year:04}-{month:02}-{day:02}"


def show_timestamp(micros: int, *, all_digits: bool = False) -> str:
    """`2020-05-01 10:00:00` with the digits of the fraction that are needed, or with all six."""
    days, rest = divmod(micros, _DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{show_date(days)} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if all_digits:
        return f"{text}.{fraction:06}"
    return text + (f".{fraction:06}".rstrip("0") if fraction else "")
