"""Evaluates a bound call over whole arrays.

The rule: functions and arithmetic have one interface: arrays in; out, an array and a mask of the rows that have no
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from mica.expressions import arithmetic, intervals, lcase_search, lookup
from mica.expressions.compare import Datum
from mica.expressions.tree import Call, to_sql
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.types import DataType

#: Functions that give null without ANSI where they fail with it.
_NULL_WITHOUT_ANSI = ("to_date", "to_timestamp", "unix_timestamp")

_NO_PATTERN = "the text does not have the pattern"
_TOO_EARLY = "the result is before the first date"
_PLACE = "Use try_{} to get NULL there, or filter those rows out first."
#: Functions with failures of their own: code, reason and hint.
_FAILURES: Mapping[str, tuple[str, str, str]] = {
    "like": (
        "INVALID_EXPRESSION",
        "the pattern is not valid: its escape character is the last, or before another than _, % and itself",
        "Double the escape character where it stands for itself, or filter those rows out first.",
    ),
    "element_at": ("INVALID_ARRAY_INDEX", "the array has no element there", "Compare with size(…) first."),
    "slice": ("INVALID_ARRAY_INDEX", "a slice begins at 1 or -1 and has no negative length", "Filter those rows out."),
    "try_element_at": ("INVALID_ARRAY_INDEX", "elements are counted from 1, or -1 at the end", "Do not ask for 0."),
    "elt": ("INVALID_ARRAY_INDEX", "there is no value of that number", "Filter those rows out first."),
    "split_part": ("INVALID_ARRAY_INDEX", "parts are counted from 1, or from -1 at the end", "Do not ask for 0."),
    "next_day": ("INVALID_CAST", "there is no day of the week of that name", "Use MON, TUESDAY, …."),
    "make_date": ("INVALID_CAST", "there is no such day", "Filter those rows out first."),
    "unbase64": ("INVALID_CAST", "the text is not Base64", "Filter those rows out first."),
    "decode": ("INVALID_CAST", "the bytes are not of that character set", "Filter those rows out first."),
    "bit_get": ("INVALID_ARRAY_INDEX", "the value has no bit there", "Bits are counted from 0 at the right."),
    "[]": ("INVALID_ARRAY_INDEX", "the array has no element there", "Compare with size(…) first; 0 is the first one."),
    "to_date": ("INVALID_CAST", _NO_PATTERN, "Use try_to_date to get NULL for such texts."),
    "to_timestamp": ("INVALID_CAST", _NO_PATTERN, "Use try_to_timestamp to get NULL for such texts."),
    "unix_timestamp": ("INVALID_CAST", _NO_PATTERN, "Use unix_timestamp(try_to_timestamp(…)) to get NULL there."),
    "date_trunc": ("ARITHMETIC_OVERFLOW", _TOO_EARLY, "Filter those rows out first."),
    "trunc": ("ARITHMETIC_OVERFLOW", _TOO_EARLY, "Filter those rows out first."),
    "parse_json": ("INVALID_JSON", "the text is not JSON", "Use try_parse_json to get NULL for such texts."),
    "variant_set": ("PATH_MISMATCH", "the path leads through a value of another type", _PLACE.format("variant_set")),
    "variant_insert": (
        "PATH_MISMATCH",
        "the path leads through a value of another type, or to a field that is there already",
        _PLACE.format("variant_insert"),
    ),
    "variant_array_append": (
        "PATH_MISMATCH", "the path does not lead to an array", _PLACE.format("variant_array_append"),
    ),
}  # fmt: skip


#: Spark's names for them, where the code is that of several.
_CONDITIONS: Mapping[str, str] = {
    "element_at": "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
    "split_part": "INVALID_INDEX_OF_ZERO",
    "make_date": "DATETIME_FIELD_OUT_OF_BOUNDS",
    "next_day": "ILLEGAL_DAY_OF_WEEK",
    "decode": "MALFORMED_CHARACTER_CODING",
    "bit_get": "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
    **dict.fromkeys(("to_date", "to_timestamp", "unix_timestamp"), "CANNOT_PARSE_TIMESTAMP"),
    **dict.fromkeys(("%", "pmod"), "REMAINDER_BY_ZERO"),
}


def apply(
    call: Call, args: Sequence[Datum], types: Sequence[DataType], *, ansi: bool, timezone: str
) -> tuple[pa.Array, pa.Array | None]:
    """Returns the values, null where there is no result, and the mask of rows on which that is an error. The first
    argument is an array.

    Raises ValueError for a constant pattern that is invalid, or too long.
    """
    assert call.type is not None
    if call.collation is not None:
        return lcase_search.search(call, args), None
    if call.name in lookup.FUNCTIONS:
        function = lookup.FUNCTIONS[call.name]
        more: dict[str, Any] = {"ansi": ansi, "types": types, "result": call.type, "timezone": timezone}
        found = function.evaluate(*args, **{name: more[name] for name in function.needs})
        if call.name in _NULL_WITHOUT_ANSI and not ansi:
            return found[0], None
        return found if isinstance(found, tuple) else (found, None)
    if (tried := arithmetic.TRIED.get(call.name)) is not None:
        return arithmetic.calculate(tried, args[0], args[1], (types[0], types[1]), call.type, ansi=True)[0], None
    if any(map(is_interval, (call.type, *types))):
        if call.name == "negate":
            return intervals.negate(args[0], call.type)
        values, failed = intervals.calculate(call.name, args[0], args[1], (types[0], types[1]), call.type, timezone)
        return values, failed if ansi or call.name != "div" else None
    if call.name == "negate":
        values, failed = arithmetic.negate(args[0], call.type, ansi=ansi)
    else:
        values, failed = arithmetic.calculate(call.name, args[0], args[1], (types[0], types[1]), call.type, ansi=ansi)
    return values, failed if ansi else None


def failure(call: Call) -> tuple[str, str, str, str | None]:
    """Returns code, reason, hint and Spark's condition for a row that has no result."""
    assert call.type is not None
    name = call.name.removeprefix("try_")
    condition = _CONDITIONS.get(name)
    known = _FAILURES.get(name)
    if known is not None:
        code, what, hint = known
        return code, f"{to_sql(call)}: {what}", hint, condition
    if name in arithmetic.DIVISIONS:
        what = f"{to_sql(call)} divides by zero or overflows"
        return "DIVIDE_BY_ZERO", what, "Filter those rows out first.", condition
    what = f"{to_sql(call)} overflows {type_to_ddl(call.type)}"
    return "ARITHMETIC_OVERFLOW", what, "Cast to a wider type.", condition
