"""Patterns of dates and times, as Spark prints and reads them.

The rule: a pattern is cut into letters and texts; letters that mean the same everywhere are supported, the others are
refused by name. Times are printed and read in the session's time zone, as whole arrays. A text is read only if all of
it fits the pattern and it is a date that exists.

| letters | printed | read |
|---|---|---|
| yyyy, yy | the year, of four digits and more, or its last two | the same; two are of 2000 to 2099 |
| MM, dd, HH, hh, mm, ss | two digits | two digits |
| M, d, H, h, m, s | without zeros | up to 19 digits, not beside other digits |
| S to SSSSSSSSS | the fraction, cut | up to so many digits |
| MMM, MMMM, EEE, EEEE | English names of months, of weekdays | of months, in any case |
| a | AM or PM | with h or hh |
| XXX | refused | an offset: +01:00, Z |
| D, DDD | the day of the year | refused |

Source: Spark's datetime patterns; java.time's DateTimeFormatterBuilder (strict); Iso8601TimestampFormatter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions.casts import cast_array
from mica.expressions.intervals import DAY, clock_of, int64_of, micros_of, of_local, offsets, towards_us
from mica.expressions.plain_values import Made
from mica.expressions.times import calendar, years_of
from mica.expressions.tokens import OnlySparkError
from mica.records import dataclass
from mica.schema.arrow import to_arrow_type
from mica.schema.types import DATE, TIMESTAMP

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_TOKEN = re.compile(r"''|'((?:[^']|'')*)'|([A-Za-z])\2*|([^A-Za-z'\[\]{}#]+)")
#: The days on both sides of the epoch that have times.
_MOST_DAYS = 2**63 // DAY + 1


@dataclass(frozen=True)
class TimePattern:
    """The parts of a pattern: letters, such as `MM`, and texts, marked by True."""

    parts: tuple[tuple[str, bool], ...]
    text: str

    @classmethod
    @lru_cache(maxsize=256)
    def read(cls, text: str) -> TimePattern:
        """Raises OnlySparkError for what the pattern has beside letters and texts."""
        parts: list[tuple[str, bool]] = []
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise OnlySparkError(f"the date pattern {text!r} cannot be used here: {text[at]!r}")
            quoted = "'" if match[0] == "''" else match[1]
            plain = match[3] if quoted is None else quoted.replace("''", "'") if match[0] != "''" else "'"
            parts.append((match[0], False) if match[2] else (plain, True))
            at = match.end()
        return cls(tuple(parts), text)

    def refuse(self, letters: str) -> OnlySparkError:
        """The error for letters that are not supported."""
        return OnlySparkError(f"{letters!r} of the date pattern {self.text!r} cannot be used here")


# --- printed ---------------------------------------------------------------------------------------------------------


def check_printed(pattern: str) -> None:
    """Raises OnlySparkError for letters that are not printed here."""
    read = TimePattern.read(pattern)
    for letters, is_text in read.parts:
        if not is_text and letters not in _PRINTED:
            raise read.refuse(letters)


#: What texts are ordered by as their times are, in this order, and the years of four digits: microseconds.
_DESCENDING = ("yyyy", "MM", "dd", "HH", "mm", "ss")
FOUR_DIGITS = (-62_135_596_800 * _SECOND, 253_402_300_800 * _SECOND - 1)


def keeps_order(pattern: str) -> bool:
    """Whether times of `FOUR_DIGITS` are printed in their order: from the year on, and each part as wide as ever."""
    letters = tuple(letters for letters, is_text in TimePattern.read(pattern).parts if not is_text)
    return letters != () and letters == _DESCENDING[: len(letters)]


def date_format(values: pa.Array, pattern: pa.Scalar, *, timezone: str) -> pa.Array:
    """Prints timestamps."""
    instants, null = int64_of(values), to_numpy(pc.is_null(values))
    day, within = clock_of(instants, offsets(instants, timezone))
    date = arrow_array(day.astype(np.int32), mask=null).cast(pa.date32())
    clock = arrow_array(within, mask=null).cast(pa.time64("us"))
    parts = [
        scalar(letters) if is_text else _PRINTED[letters](date if letters[0] in _OF_DATES else clock)
        for letters, is_text in TimePattern.read(pattern.as_py()).parts
    ]
    if not any(isinstance(p, pa.Array) for p in parts):
        text = "".join(p.as_py() for p in parts)
        return pc.if_else(pc.is_valid(values), text, scalar(None, pa.string()))
    return pc.binary_join_element_wise(*parts, "")


def from_unixtime(seconds: pa.Array, pattern: pa.Scalar | None = None, *, timezone: str) -> pa.Array:
    """Prints seconds since the epoch, by default as `yyyy-MM-dd HH:mm:ss`."""
    with np.errstate(over="ignore"):
        micros = int64_of(seconds) * _SECOND  # wraps around, as in Java
    times = arrow_array(micros, pa.int64(), mask=to_numpy(pc.is_null(seconds))).cast(to_arrow_type(TIMESTAMP))
    return date_format(times, _or_default(pattern), timezone=timezone)


_DEFAULT = "yyyy-MM-dd HH:mm:ss"


def _or_default(pattern: pa.Scalar | None) -> pa.Scalar:
    return scalar(_DEFAULT) if pattern is None else pattern


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), width, "0")


def _number(take: Callable[[pa.Array], pa.Array], width: int) -> Callable[[pa.Array], pa.Array]:
    return lambda clock: _padded(take(clock), width)


def _year(date: pa.Array) -> pa.Array:
    years = years_of(date)
    sign = pc.if_else(pc.less(years, 0), "-", pc.if_else(pc.greater(years, 9999), "+", ""))
    return pc.binary_join_element_wise(sign, _padded(pc.abs(years), 4), "")


def _fraction(count: int) -> Callable[[pa.Array], pa.Array]:
    def found(clock: pa.Array) -> pa.Array:
        micros = arrow_array(int64_of(clock) % _SECOND, mask=to_numpy(pc.is_null(clock)))
        return pc.utf8_slice_codeunits(pc.utf8_rpad(_padded(micros, 6), 9, "0"), 0, count)

    return found


def _name(names: list[str], take: Callable[[pa.Array], pa.Array], size: int | None) -> Callable[[pa.Array], pa.Array]:
    known = [n[:size] for n in names]
    return lambda date: arrow_array(known).take(take(date))


def _half(clock: pa.Array) -> pa.Array:
    return pc.if_else(pc.less(pc.hour(clock), 12), "AM", "PM")


def _of_half(clock: pa.Array) -> pa.Array:
    hours = pc.hour(clock)
    return pc.if_else(pc.equal(hours, 0), 12, pc.if_else(pc.greater(hours, 12), pc.subtract(hours, 12), hours))


def _month_at(date: pa.Array) -> pa.Array:
    return pc.subtract(calendar("month")(date), 1)


#: What is printed of a date; all other letters are of the time of day.
_OF_DATES = "yMdED"


_TAKEN: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "M": calendar("month"), "d": calendar("day"), "H": pc.hour, "h": _of_half, "m": pc.minute, "s": pc.second,
}  # fmt: skip
_PRINTED: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    "yyyy": _year,
    "yy": lambda date: pc.utf8_slice_codeunits(_padded(pc.abs(years_of(date)), 4), -2),
    **{letter: _number(take, 1) for letter, take in _TAKEN.items()},
    **{letter * 2: _number(take, 2) for letter, take in _TAKEN.items()},
    **{"S" * n: _fraction(n) for n in range(1, 10)},
    "MMM": _name(_MONTHS, _month_at, 3),
    "MMMM": _name(_MONTHS, _month_at, None),
    **{"E" * n: _name(_DAYS, pc.day_of_week, 3) for n in (1, 2, 3)},
    "EEEE": _name(_DAYS, pc.day_of_week, None),
    "a": _half,
    "D": _number(calendar("day_of_year"), 1),
    "DDD": _number(calendar("day_of_year"), 3),
}

# --- read ------------------------------------------------------------------------------------------------------------

_READ: Mapping[str, str] = {
    "yyyy": r"[0-9]{4}|-[0-9]{4,10}|\+[0-9]{5,10}", "yy": "[0-9]{2}", "a": "[aA][mM]|[pP][mM]",
    **dict.fromkeys("MdHhms", "[0-9]{1,18}"), **{letter * 2: "[0-9]{2}" for letter in "MdHhms"},
    **{"S" * n: f"[0-9]{{1,{n}}}" for n in range(1, 10)}, "XXX": r"[zZ]|[+-][0-9]{2}:[0-9]{2}",
    "MMM": "|".join(f"(?i:{m[:3]})" for m in _MONTHS), "MMMM": "|".join(f"(?i:{m})" for m in _MONTHS),
}  # fmt: skip
#: Of the parts of a time, each needs those before it.
_ORDER = "Hmss"


@lru_cache(maxsize=256)
def _reading(pattern: str) -> str:
    """The pattern for RE2, with one group a letter. Raises OnlySparkError for letters that are not read here."""
    read = TimePattern.read(pattern)
    found, before = "", ""
    seen: set[str] = set()
    for letters, is_text in read.parts:
        if is_text:
            found += "".join(_literal(c) for c in letters)
            before = ""
            continue
        letter = letters[0]
        digits = (letter in "yMdHhmsS" and len(letters) < 3) or letters == "yyyy" or letter == "S"
        variable = digits and (len(letters) == 1 or letter == "S")
        beside = bool(before) and digits and (variable or before == "variable")
        if letters not in _READ or letter in seen or beside:
            raise read.refuse(letters)
        seen.add(letter)
        before = "variable" if variable else "fixed" if digits else ""
        found += f"(?P<{letter}>{_READ[letters]})"
    hours = "H" in seen or seen >= {"h", "a"}
    complete = hours or not seen & set("mss")
    if not complete or ("s" in seen and "m" not in seen) or ("S" in seen and "s" not in seen):
        raise OnlySparkError(f"the date pattern {pattern!r}, whose time has a gap, cannot be used here")
    if seen & {"h", "a"} and not ({"h", "a"} <= seen and "H" not in seen):
        raise OnlySparkError(f"the date pattern {pattern!r} needs hh and a, or HH")
    return rf"\A{found}\z"


def _literal(c: str) -> str:
    if c.isascii() and c.isalpha():
        return f"[{c.lower()}{c.upper()}]"
    if not c.isascii() and c.lower() != c.upper():
        raise OnlySparkError(f"the letter {c!r} in a date pattern cannot be used here")
    return f"\\x{{{ord(c):x}}}"


def check_read(pattern: str) -> None:
    """Raises OnlySparkError for letters that are not read here."""
    _reading(pattern)


def to_timestamp(texts: pa.Array, pattern: pa.Scalar, *, timezone: str) -> Made:
    """Reads timestamps."""
    found = pc.extract_regex(texts, _reading(pattern.as_py()))
    valid = to_numpy(pc.is_valid(found))
    parts = {f.name: found.field(f.name) for f in found.type}
    day, within, right = _local(parts, valid)
    nearer = towards_us(day, 1)
    local = np.where(right, (day + nearer) * DAY + within, 0)
    if "X" in parts:
        ahead, known = _offset(parts["X"])
        right &= known
        day, within = np.divmod(local - ahead, DAY)
    else:
        day, within = np.divmod(of_local(local, timezone), DAY)
    micros, beyond = micros_of(day - nearer, within)
    right &= ~beyond
    made = arrow_array(np.where(right, micros, 0), pa.int64(), mask=~right).cast(to_arrow_type(TIMESTAMP))
    failed = to_numpy(pc.is_valid(texts)) & ~right
    return made, arrow_array(failed) if failed.any() else None


def to_date(texts: pa.Array, pattern: pa.Scalar, *, timezone: str) -> Made:
    """Reads dates."""
    times, failed = to_timestamp(texts, pattern, timezone=timezone)
    return cast_array(times, TIMESTAMP, DATE, timezone, ansi=True)[0], failed


def unix_timestamp(values: pa.Array, pattern: pa.Scalar | None = None, *, timezone: str) -> Made:
    """Seconds since the epoch of timestamps or texts, without their fraction: before the epoch that rounds up."""
    if pa.types.is_string(values.type):
        times, failed = to_timestamp(values, _or_default(pattern), timezone=timezone)
    else:
        times, failed = values, None
    micros = int64_of(times)
    seconds = micros // _SECOND + ((micros < 0) & (micros % _SECOND != 0))
    return arrow_array(seconds, mask=to_numpy(pc.is_null(times))), failed


def _local(parts: Mapping[str, pa.Array], valid: Any) -> tuple[Any, Any, Any]:
    """Local days and microseconds of the day, and where they are of a date and time that exist."""

    def number(letter: str, default: int) -> Any:
        if letter not in parts:
            return np.full(len(valid), default)
        texts = pc.if_else(arrow_array(valid), parts[letter], str(default))
        return to_numpy(pc.replace_substring(texts, "+", "").cast(pa.int64()))

    year, right = number("y", 1970), valid
    if "y" in parts:
        right = right & ~to_numpy(pc.fill_null(pc.match_substring_regex(parts["y"], r"\A-0+\z"), False))
        short = to_numpy(pc.fill_null(pc.equal(pc.utf8_length(parts["y"]), 2), False))
        year = np.where(short & valid, year + 2000, year)
    month, day = _month(parts, valid, number), number("d", 1)
    hour, minute, second = number("H", 0), number("m", 0), number("s", 0)
    right = right & (month >= 1) & (month <= 12)
    if "h" in parts:
        of_half = number("h", 12)
        right &= (of_half >= 1) & (of_half <= 12)
        later = to_numpy(pc.fill_null(pc.equal(pc.ascii_lower(parts["a"]), "pm"), False))
        hour = np.mod(of_half, 12) + 12 * later
    months = np.where(right, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - first
    right &= (day >= 1) & (day <= length) & (hour < 24) & (minute < 60) & (second < 60)
    days = first + day - 1
    right &= np.abs(days) <= _MOST_DAYS
    micros = hour * _HOUR + minute * _MINUTE + second * _SECOND
    if "S" in parts:
        texts = pc.if_else(arrow_array(valid), parts["S"], "0")
        micros = micros + to_numpy(pc.utf8_slice_codeunits(pc.utf8_rpad(texts, 6, "0"), 0, 6).cast(pa.int64()))
    return np.where(right, days, 0), micros, right


def _month(parts: Mapping[str, pa.Array], valid: Any, number: Callable[[str, int], Any]) -> Any:
    if "M" not in parts:
        return number("M", 1)
    texts = pc.if_else(arrow_array(valid), parts["M"], "1")
    if pc.all(pc.match_substring_regex(texts, r"\A[0-9]+\z")).as_py() is not False:
        return number("M", 1)
    # Of all letters, as the pattern ignores case: ſ is an S.
    known = arrow_array([m[:3].upper() for m in _MONTHS])
    at = pc.index_in(pc.utf8_slice_codeunits(pc.utf8_upper(texts), 0, 3), known)
    return to_numpy(pc.fill_null(at, -1)).astype(np.int64) + 1


def _offset(texts: pa.Array) -> tuple[Any, Any]:
    """Microseconds east of UTC, and where they are an offset: up to 18 hours."""
    full = pc.if_else(pc.fill_null(pc.equal(pc.utf8_length(texts), 6), False), texts, "+00:00")
    hours = to_numpy(pc.utf8_slice_codeunits(full, 1, 3).cast(pa.int64()))
    minutes = to_numpy(pc.utf8_slice_codeunits(full, 4, 6).cast(pa.int64()))
    sign = np.where(to_numpy(pc.starts_with(full, "-")), -1, 1)
    size = hours * _HOUR + minutes * _MINUTE
    return sign * size, (minutes < 60) & (size <= 18 * _HOUR)
