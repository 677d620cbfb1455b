"""Functions that are spelled as others: what the parser makes of them.

The rule: a call becomes the expression that defines it, in Spark too, so that nothing behind the parser knows of it.

    if(a, x, y)                         CASE WHEN a THEN x ELSE y END
    nullif(a, b)                        CASE WHEN a = b THEN NULL ELSE a END
    nvl(a, b), ifnull(a, b)             coalesce(a, b)
    nvl2(a, x, y)                       CASE WHEN a IS NOT NULL THEN x ELSE y END
    nullifzero(a), zeroifnull(a)        nullif(a, 0), coalesce(a, 0)
    isnull(a), isnotnull(a)             a IS NULL, a IS NOT NULL
    equal_null(a, b)                    a <=> b
    decode(a, b, x, …, y)               CASE WHEN a <=> b THEN x … ELSE y END
    mod(a, b), negative(a), positive(a) a % b, - a, + a
    pmod(a, b)                          the operator of that name
    date(a), bigint(a), string(a), …    CAST(a AS DATE), …
    to_timestamp_ntz(a)                 CAST(a AS TIMESTAMP_NTZ)
    instr(a, b), position(b, a[, n])    locate(b, a[, n])
    left(a, n)                          substring(a, 1, n)
    ltrim(b, a), btrim(a[, b])          trim(LEADING b FROM a), trim(BOTH b FROM a)
    date_part('unit', a)                EXTRACT(unit FROM a)
    regexp_substr(a, b)                 nullif(regexp_extract(a, b, 0), '')
    e(), pi()                           the numbers

Source: Spark's RuntimeReplaceable functions; DatePart.parseExtractField.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from mica.expressions.conditionals import COALESCE, case, nothing
from mica.expressions.tree import Call, Cast, Compare, Expr, IsNull, Literal, Op
from mica.schema.ddl import type_to_ddl
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    decimal,
)

#: The units of DATEADD and DATEDIFF.
UNITS = frozenset("YEAR QUARTER MONTH WEEK DAY DAYOFYEAR HOUR MINUTE SECOND MILLISECOND MICROSECOND".split())

#: Units that have the same length everywhere.
WITHIN_DAYS = ("hour", "minute", "second", "millisecond", "microsecond")

#: The functions that EXTRACT's units mean.
_PARTS: Mapping[str, tuple[str, ...]] = {
    "year": ("YEAR", "Y", "YEARS", "YR", "YRS"), "quarter": ("QUARTER", "QTR"),
    "month": ("MONTH", "MON", "MONS", "MONTHS"), "weekofyear": ("WEEK", "W", "WEEKS"), "day": ("DAY", "D", "DAYS"),
    "dayofweek": ("DAYOFWEEK", "DOW"), "isodow": ("DAYOFWEEK_ISO", "DOW_ISO"), "dayofyear": ("DOY",),
    "hour": ("HOUR", "H", "HOURS", "HR", "HRS"), "minute": ("MINUTE", "M", "MIN", "MINS", "MINUTES"),
    "extract yearofweek": ("YEAROFWEEK",), "extract second": ("SECOND", "S", "SEC", "SECONDS", "SECS"),
}  # fmt: skip
_OF_UNITS: Mapping[str, str] = {unit: name for name, units in _PARTS.items() for unit in units}


def part_of(at: int, unit: str, value: Expr) -> Expr:
    """EXTRACT. Raises ValueError for a unit that is none."""
    name = _OF_UNITS.get(unit.upper())
    if name is None:
        raise ValueError(f"{unit} is no part of a date or time")
    if name != "isodow":
        return Call(name, (value,), at=at)
    return Call("+", (Call("weekday", (value,), at=at), Literal(1, INTEGER, at=at)), at=at)


def _date_part(at: int, unit: Expr, value: Expr) -> Expr:
    if not isinstance(unit, Literal) or not isinstance(unit.value, str):
        raise ValueError("date_part takes a constant text")
    return part_of(at, unit.value, value)


def _if(at: int, condition: Expr, value: Expr, otherwise: Expr) -> Call:
    return case([(condition, value)], otherwise, at)


def _nullif(at: int, value: Expr, other: Expr) -> Call:
    return case([(Compare(Op.EQ, value, other, pads=False, at=at), nothing(at))], value, at)


def _nvl2(at: int, value: Expr, there: Expr, missing: Expr) -> Call:
    return case([(IsNull(value, True, at=at), there)], missing, at)


def _coalesce(at: int, *values: Expr) -> Call:
    return Call(COALESCE, values, at=at)


def _decode(at: int, value: Expr, *others: Expr) -> Call:
    if len(others) == 1:
        return Call("decode", (value, *others), at=at)
    pairs = zip(others[::2], others[1::2], strict=False)
    branches: list[tuple[Expr, Expr]] = [(Compare(Op.SAFE_EQ, value, b, at=at), x) for b, x in pairs]
    # Spark's NULL is a text, with which the values get a common type.
    return case(branches, others[-1] if len(others) % 2 else _cast(at, nothing(at), STRING), at)


def _regexp_substr(at: int, text: Expr, pattern: Expr) -> Expr:
    whole = Call("regexp_extract", (text, pattern, Literal(0, INTEGER, at=at)), at=at)
    return _nullif(at, whole, Literal("", STRING, at=at))


def _cast(at: int, value: Expr, type_: DataType) -> Cast:
    return Cast(value, type_, at=at)


def _tried(at: int, left: Expr, right: Expr, name: str) -> Call:
    return Call(name, (left, right), at=at)


def _trim(name: str) -> Callable[..., Expr]:
    """Spark takes what is trimmed first."""
    return lambda at, *parts: Call(name, parts[::-1], at=at)


def _zero(at: int) -> Literal:
    return Literal(0, INTEGER, at=at)


_TRIED = ("try_add", "try_subtract", "try_multiply", "try_divide", "try_mod")

#: Types that are functions too; decimal(a) is of the default precision.
_TYPES = (BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, BINARY, STRING, decimal(10, 0))

#: Functions that are no constants to Spark when it pads texts beside CHAR columns, whatever their arguments are: what
#: it replaces by others only then, and elt.
LATE = frozenset("btrim decode elt ifnull left nullif nvl nvl2 regexp_substr right split_part".split())

_ONE, _TWO, _THREE = range(1, 2), range(2, 3), range(3, 4)

#: Functions that are rewritten: the number of arguments, and what builds the result.
SPELLINGS: Mapping[str, tuple[range, Callable[..., Expr]]] = {
    "mod": (_TWO, lambda at, left, right: Call("%", (left, right), at=at)),
    "pmod": (_TWO, lambda at, left, right: Call("pmod", (left, right), at=at)),
    **{name: (_TWO, partial(_tried, name=name)) for name in _TRIED},
    "negative": (_ONE, lambda at, value: Call("negate", (value,), at=at)),
    "positive": (_ONE, lambda at, value: Call("positive", (value,), at=at)),
    "coalesce": (range(1, 1000), _coalesce),
    "nvl": (_TWO, _coalesce),
    "ifnull": (_TWO, _coalesce),
    "if": (_THREE, _if),
    "nullif": (_TWO, _nullif),
    "nvl2": (_THREE, _nvl2),
    "nullifzero": (_ONE, lambda at, value: _nullif(at, value, _zero(at))),
    "zeroifnull": (_ONE, lambda at, value: _coalesce(at, value, _zero(at))),
    "isnull": (_ONE, lambda at, value: IsNull(value, at=at)),
    "isnotnull": (_ONE, lambda at, value: IsNull(value, True, at=at)),
    "equal_null": (_TWO, lambda at, left, right: Compare(Op.SAFE_EQ, left, right, at=at)),
    "decode": (range(2, 1000), _decode),
    "instr": (_TWO, lambda at, text, sought: Call("locate", (sought, text), at=at)),
    "position": (range(2, 4), lambda at, *parts: Call("locate", parts, at=at)),
    "left": (_TWO, lambda at, text, size: Call("substring", (text, Literal(1, INTEGER, at=at), size), at=at)),
    "trim": (range(1, 3), _trim("trim")),
    "ltrim": (range(1, 3), _trim("ltrim")),
    "rtrim": (range(1, 3), _trim("rtrim")),
    "btrim": (range(1, 3), lambda at, *parts: Call("trim", parts, at=at)),
    "date_part": (_TWO, _date_part),
    "datepart": (_TWO, _date_part),
    "to_timestamp_ntz": (_ONE, partial(_cast, type_=TIMESTAMP_NTZ)),
    "regexp_substr": (_TWO, _regexp_substr),
    "e": (range(1), lambda at: Literal(math.e, DOUBLE, at=at)),
    "pi": (range(1), lambda at: Literal(math.pi, DOUBLE, at=at)),
    **{type_to_ddl(type_).partition("(")[0].lower(): (_ONE, partial(_cast, type_=type_)) for type_ in _TYPES},
}
