"""CASE, COALESCE and the functions defined by them.

The rule: a value is evaluated only on the rows that need it, so a cast or a division that fails on other rows is not an
error. As in Spark, a null condition is not true.

    CASE a WHEN b THEN x ELSE y END     CASE WHEN a = b THEN x ELSE y END
    if(a, x, y)                         CASE WHEN a THEN x ELSE y END
    nullif(a, b)                        CASE WHEN a = b THEN NULL ELSE a END
    nvl(a, b), ifnull(a, b)             coalesce(a, b)
    nvl2(a, x, y)                       CASE WHEN a IS NOT NULL THEN x ELSE y END
    mod(a, b)                           a % b
    pmod(a, b)                          the operator of that name
    date(a), bigint(a), string(a), …    CAST(a AS DATE), …

Source: Spark's CaseWhen, Coalesce; TypeCoercion.CaseWhenCoercion for the type of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar
from mica.expressions.compare import Datum
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
    VOID,
    DataType,
    decimal,
)  # fmt: skip

#: The bound forms. CASE: conditions and values alternate, the ELSE value is last. COALESCE: the values.
CASE, COALESCE = "case", "coalesce"

#: Evaluates an expression on the rows of a mask; None means all rows.
Evaluate = Callable[[Expr, "pa.Array | None"], Datum]


def _nothing(at: int) -> Literal:
    return Literal(None, VOID, at=at)


def case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None, at: int, of: Expr | None = None) -> Call:
    """Builds CASE from its WHEN branches; `of` is the value that each condition is compared with."""
    parts: list[Expr] = []
    for condition, value in branches:
        parts += [condition if of is None else Compare(Op.EQ, of, condition, at=condition.at), value]
    return Call(CASE, (*parts, otherwise or _nothing(at)), at=at)


def _if(at: int, condition: Expr, value: Expr, otherwise: Expr) -> Call:
    return case([(condition, value)], otherwise, at)


def _nullif(at: int, value: Expr, other: Expr) -> Call:
    return case([(Compare(Op.EQ, value, other, pads=False, at=at), _nothing(at))], value, at)


def _nvl2(at: int, value: Expr, there: Expr, missing: Expr) -> Call:
    return case([(IsNull(value, True, at=at), there)], missing, at)


def _coalesce(at: int, *values: Expr) -> Call:
    return Call(COALESCE, values, at=at)


def _cast(at: int, value: Expr, type_: DataType) -> Cast:
    return Cast(value, type_, at=at)


#: Types that are functions too; decimal(a) is of the default precision.
_TYPES = (BOOLEAN, BYTE, SHORT, INTEGER, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, BINARY, STRING, decimal(10, 0))

#: Functions that are rewritten: the number of arguments, and what builds the result.
SPELLINGS: Mapping[str, tuple[range, Callable[..., Expr]]] = {
    "mod": (range(2, 3), lambda at, left, right: Call("%", (left, right), at=at)),
    "pmod": (range(2, 3), lambda at, left, right: Call("pmod", (left, right), at=at)),
    "coalesce": (range(1, 1000), _coalesce),
    "nvl": (range(2, 3), _coalesce),
    "ifnull": (range(2, 3), _coalesce),
    "if": (range(3, 4), _if),
    "nullif": (range(2, 3), _nullif),
    "nvl2": (range(3, 4), _nvl2),
    **{type_to_ddl(type_).partition("(")[0].lower(): (range(1, 2), partial(_cast, type_=type_)) for type_ in _TYPES},
}


def evaluate_case(parts: tuple[Expr, ...], asked: pa.Array | None, count: int, evaluate: Evaluate) -> Datum:
    """Returns the values of a bound CASE for `count` rows."""
    open_rows = pa.repeat(scalar(True), count) if asked is None else asked
    taken: list[tuple[pa.Array, Datum]] = []
    for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
        holds = evaluate(condition, open_rows)
        holds = pa.repeat(holds, count) if isinstance(holds, pa.Scalar) else holds
        here = pc.and_(pc.fill_null(holds, False), open_rows)
        taken.append((here, evaluate(value, here)))
        open_rows = pc.and_not(open_rows, here)
    found = evaluate(parts[-1], open_rows)
    for here, value in reversed(taken):
        found = pc.if_else(here, value, found)
    return found


def evaluate_coalesce(parts: tuple[Expr, ...], asked: pa.Array | None, count: int, evaluate: Evaluate) -> Datum:
    """Returns the first non-null value of a bound COALESCE for each row."""
    open_rows = pa.repeat(scalar(True), count) if asked is None else asked
    found = evaluate(parts[0], asked)
    for part in parts[1:]:
        missing = pc.is_null(found)
        missing = pa.repeat(missing, count) if isinstance(missing, pa.Scalar) else missing
        open_rows = pc.and_(open_rows, missing)
        found = pc.if_else(missing, evaluate(part, open_rows), found)
    return found
