"""INTERVAL literals.

The rule: an interval holds months, or days and what is shorter, never both, as in Spark. Its type has the units that
are written, and those between them; weeks are days, and parts of seconds are seconds.

Source: Spark's visitInterval, constructMultiUnitsIntervalLiteral, IntervalUtils.stringToInterval.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from mica.expressions.tree import Literal
from mica.schema.interval_types import COUNTS, MONTHS, TIMES, interval, units_of
from mica.schema.types import DataType

#: Unit → the unit of the type, and how many months or microseconds it is.
_UNITS: Mapping[str, tuple[str, int]] = {
    **{unit: (unit, COUNTS[unit]) for unit in (*MONTHS, *TIMES)},
    "week": ("day", 7 * COUNTS["day"]), "millisecond": ("second", 1_000), "microsecond": ("second", 1),
}  # fmt: skip
#: The texts of `INTERVAL '…' a TO b`, by the units.
FROM_TO: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("year", "month"): (r"(\d+)-(\d+)", ("year", "month")),
    ("day", "hour"): (r"(\d{1,9}) (\d{1,2})", ("day", "hour")),
    ("day", "minute"): (r"(\d{1,9}) (\d{1,2}):(\d{1,2})", ("day", "hour", "minute")),
    ("day", "second"): (r"(\d{1,9}) (\d{1,2}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)", ("day", "hour", "minute", "second")),
    ("hour", "minute"): (r"(\d{1,10}):(\d{1,2})", ("hour", "minute")),
    ("hour", "second"): (r"(\d{1,10}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)", ("hour", "minute", "second")),
    ("minute", "second"): (r"(\d{1,12}):(\d{1,2}(?:\.\d{1,9})?)", ("minute", "second")),
}
#: The number of a cast to one unit.
_NUMBERS = {
    "day": r"(\d{1,9})", "hour": r"(\d{1,10})", "minute": r"(\d{1,12})", "second": r"(\d{1,13}(?:\.\d{1,9})?)",
}  # fmt: skip
#: What a part that is not the first may be at most.
MOST = {"month": 11, "hour": 23, "minute": 59, "second": 59}


def unit_of(word: str) -> str | None:
    """Returns the unit that a word names: `DAYS` is `day`."""
    name = word.lower()
    return name if name in _UNITS else name[:-1] if name.endswith("s") and name[:-1] in _UNITS else None


def of_units(parts: Iterable[tuple[str, str]], at: int) -> Literal:
    """Builds `INTERVAL 1 DAY 2 HOURS` from numbers and units. Raises ValueError with the reason if it is none."""
    counts: dict[bool, int] = {}
    units: set[str] = set()
    for number, word in parts:
        name = unit_of(word)
        if name is None:
            raise ValueError(f"{word} is not a unit of time")
        unit, count = _UNITS[name]
        units.add(unit)
        if re.fullmatch(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)\s*", number, re.ASCII) is None:
            raise ValueError(f"{number!r} is not a number of {name}s")
        value = Decimal(number.strip())
        if value != value.to_integral_value() and name != "second":
            raise ValueError(f"only seconds have a fraction, not {number} {name}s")
        counts[unit in MONTHS] = counts.get(unit in MONTHS, 0) + int(value * count)
    if len(counts) > 1:
        raise ValueError("months and shorter units are not mixed in one interval")
    [(of_months, total)] = counts.items()
    limit = 2**31 if of_months else 2**63
    if not -limit <= total < limit:
        raise ValueError("the interval is too long")
    return Literal(total, interval(units), at=at)


def of_text(text: str, at: int) -> Literal:
    """Builds `INTERVAL '1 day 2 hours'`."""
    words = re.sub(r"(?<!\S)([+-])\s+", r"\1", text).split()  # blanks may follow a sign
    if words and words[0].lower() == "interval":
        words = words[1:]
    if not words or len(words) % 2:
        raise ValueError(f"{text!r} is not a list of numbers and units")
    return of_units(zip(words[::2], words[1::2], strict=True), at)


def from_to(text: str, first: str, last: str, at: int) -> Literal:
    """Builds `INTERVAL '1 02:03' DAY TO MINUTE`."""
    known = FROM_TO.get((unit_of(first) or "", unit_of(last) or ""))
    if known is None:
        raise ValueError(f"there is no interval {first} TO {last}")
    match = re.fullmatch(rf"\s*([+-]?)\s*{known[0]}\s*", text)
    if match is None:
        raise ValueError(f"{text!r} is not an interval {first} TO {last}")
    numbers = match.groups()[1:]
    for number, unit in list(zip(numbers, known[1], strict=True))[1:]:
        if int(Decimal(number)) > MOST[unit]:
            raise ValueError(f"{number} {unit}s are too many in {text!r}")
    sign = "-" if match[1] == "-" else ""
    return of_units(((sign + number, unit) for number, unit in zip(numbers, known[1], strict=True)), at)


def of_cast(text: str, type_: DataType) -> int | None:
    """The months or microseconds of a text that is cast: `1 02:03`, or the whole literal with the type's own units."""
    units = units_of(type_)
    key = (units[0], units[-1])
    body = FROM_TO[key][0] if len(units) > 1 else _NUMBERS.get(units[0], r"(\d+)")
    names = units[0] if len(units) == 1 else rf"{units[0]}\s+TO\s+{units[-1]}"
    literal = re.fullmatch(rf"(?is)INTERVAL\s+([+|-]?)'(.*)'\s+{names}", text)
    negative = literal is not None and literal[1] == "-"
    match = re.fullmatch(rf"([+|-]?){body}", text if literal is None else literal[2], re.ASCII)
    if match is None:
        return None
    numbers = [Decimal(number) for number in match.groups()[1:]]
    if any(int(number) > MOST[unit] for number, unit in list(zip(numbers, units, strict=True))[1:]):
        return None
    total = sum(int(number * COUNTS[unit]) for number, unit in zip(numbers, units, strict=True))
    total = -total if negative != (match[1] == "-") else total
    limit = 2**31 if units[0] in MONTHS else 2**63
    return total if -limit <= total < limit else None
