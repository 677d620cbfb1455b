"""Puts the values of parameters (`:name`, `?`) into the text of a statement, as literals.

The rule: a text means the same with its parameters as with literals in their places. After an operand `:name` is a path
into a Variant (`v:name`); in strings and comments it means nothing.

Source: Spark SQL reference, "Parameter markers".
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from mica import late
from mica.errors import UserError
from mica.schema.interval_types import TIMES, interval
from mica.schema.lexical import QUOTED_NAME, QUOTED_STRING, RAW_STRING, REST, SKIPPED
from mica.schema.literals import show
from mica.schema.types import DATE, STRING, TIMESTAMP, VOID

_PART = late.pattern(
    rf"""(?P<space>\s+ | {SKIPPED})
      | (?P<operand>{RAW_STRING} | {QUOTED_STRING} | {QUOTED_NAME} | [)\]])
      | (?P<word>\w+)
      | :[ \t]*(?P<name>[A-Za-z_]\w*)
      | (?P<mark>:: | {REST} | .)""",
    re.VERBOSE | re.DOTALL,
)
#: The words that an expression may follow. After another word a colon begins a path.
_BEFORE_VALUES = frozenset({
    "AND", "BETWEEN", "BY", "CASE", "DISTINCT", "DIV", "ELSE", "ESCAPE", "FROM", "HAVING", "ILIKE", "IN", "LIKE",
    "LIMIT", "NOT", "OF", "OFFSET", "ON", "OR", "RETAIN", "RLIKE", "SELECT", "THEN", "VALUES", "WHEN", "WHERE",
})  # fmt: skip
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SCALARS = "a value with a literal: None, bool, int, float, Decimal, str, bytes, date, datetime, timedelta, list, dict"


class Sql(str):
    """A value that is SQL already."""

    __slots__ = ()


def bound(text: str, args: Any) -> str:
    """The text with literals; `args` as for `spark.sql`. Errors: INVALID_ARGUMENT for a parameter without a value, and
    for a value without a literal."""
    named = args if isinstance(args, Mapping) else {}
    places = iter(() if isinstance(args, Mapping) else args)
    found, operand, keyword = [], False, False
    for part in _PART.finditer(text):
        given = part[0]
        if part["space"] is None:
            # A keyword may be the name of a Variant, too: then the path stays.
            if part["name"] is not None and (part["name"] in named if keyword else not operand):
                given = _named(part["name"], named)
            elif part["mark"] == "?" and not operand:
                given = _next(places)
            keyword = part["word"] is not None and part["word"].upper() in _BEFORE_VALUES
            operand = part["mark"] in (None, "?") and not keyword
        found.append(given)
    return "".join(found)


def has_places(text: str) -> bool:
    """Whether a text has parameters without names: `?`."""
    return any(part["mark"] == "?" for part in _PART.finditer(text))


def _named(name: str, args: Mapping[str, Any]) -> str:
    if name not in args:
        raise UserError(
            "INVALID_ARGUMENT",
            f"the text has a parameter :{name}, and args has no value for it",
            hint=f"args has: {', '.join(map(str, args)) or 'none with a name'}.",
        )
    return _literal(f"args[{name!r}]", args[name])


def _next(values: Iterator[Any]) -> str:
    try:
        return _literal("a value of args", next(values))
    except StopIteration:
        raise UserError(
            "INVALID_ARGUMENT", "the text has more parameters ? than args has values", hint="Give a list of all values."
        ) from None


def _literal(name: str, value: Any) -> str:
    """The value as Spark's literal; naive times are in Python's zone, as in PySpark."""
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case Sql():
            return value
        case None:
            return show(value, VOID)
        case str():
            return show(value, STRING).replace("${", r"$\{")  # Spark puts no variable's value into a parameter
        case bool():
            return show(value, STRING)
        case bytes() | bytearray():
            return show(bytes(value), STRING)
        case int() | Decimal() if math.isfinite(value):
            text = f"{value:f}BD" if isinstance(value, Decimal) else str(value)
            return f"({text})" if text[0] == "-" else text  # two signs in a row begin a comment
        case float():
            return f"({value!r}D)" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case dt.datetime():
            return show((value.astimezone(dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1), TIMESTAMP)
        case dt.date():
            return show(value.toordinal() - _EPOCH.toordinal(), DATE)
        case dt.timedelta():
            return show(value // dt.timedelta(microseconds=1), interval(TIMES))
        case list() | tuple():
            return f"array({', '.join(_literal(name, one) for one in value)})"
        case dict():
            return f"map({', '.join(_literal(name, one) for pair in value.items() for one in pair)})"
    raise UserError.bad_value(name, value, _SCALARS)
