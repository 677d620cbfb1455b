"""CASE and COALESCE.

The rule: a value is evaluated only on the rows that need it, so a cast or a division that fails on other rows is not an
error. As in Spark, a null condition is not true.

    CASE a WHEN b THEN x ELSE y END     CASE WHEN a = b THEN x ELSE y END

Source: Spark's CaseWhen, Coalesce; TypeCoercion.CaseWhenCoercion for the type of the result.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar
from mica.expressions.compare import Datum
from mica.expressions.tree import Call, Compare, Expr, Literal, Op
from mica.schema.types import VOID

#: The bound forms. CASE: conditions and values alternate, the ELSE value is last. COALESCE: the values.
CASE, COALESCE = "case", "coalesce"

#: Evaluates an expression on the rows of a mask; None means all rows.
Evaluate = Callable[[Expr, "pa.Array | None"], Datum]


def nothing(at: int) -> Literal:
    """NULL."""
    return Literal(None, VOID, at=at)


def case(branches: list[tuple[Expr, Expr]], otherwise: Expr | None, at: int, of: Expr | None = None) -> Call:
    """Builds CASE from its WHEN branches; `of` is the value that each condition is compared with."""
    parts: list[Expr] = []
    for condition, value in branches:
        parts += [condition if of is None else Compare(Op.EQ, of, condition, at=condition.at), value]
    return Call(CASE, (*parts, otherwise or nothing(at)), at=at)


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
