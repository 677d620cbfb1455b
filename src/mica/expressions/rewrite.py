"""A predicate without NOT.

The rule: the rows for which it is true stay the same.

A predicate selects the rows for which it is true; false and null are the same to it. So each node is asked one
question only, whether some row might make it true, and NOT, which would ask the other one, is pushed down to the
leaves first. Under SQL's three-valued logic every step below keeps the answer, null for null:

    NOT (a AND b)  → NOT a OR NOT b         NOT a < b   → a >= b      (NaN has its place in Spark's order)
    NOT (a OR b)   → NOT a AND NOT b        NOT a = b   → a <> b
    NOT NOT a      → a                      NOT a <=> b → a IS DISTINCT FROM b
    NOT a IN (…)   → a NOT IN (…)           NOT a IS NULL → a IS NOT NULL
    a (a boolean)  → a = TRUE               NOT a       → a = FALSE

Skipping asks for it, as a bound can say only that a predicate might be true. Spark's strict casts may fail where
nothing is skipped: skipping may spare an error and never causes one.
"""

from __future__ import annotations

from dataclasses import replace

from mica.expressions.tree import And, Call, Cast, Compare, Expr, In, IsNull, LeafRef, Literal, Not, Op, Or
from mica.schema.types import BOOLEAN


def push_not(expr: Expr, negated: bool = False) -> Expr:
    """An equal predicate without NOT, whose nodes are And, Or, Compare, In, IsNull and constants."""
    match expr:
        case Not(child):
            return push_not(child, not negated)
        case And(parts) | Or(parts):
            pushed = tuple(push_not(p, negated) for p in parts)
            return And(pushed, at=expr.at) if isinstance(expr, And) is not negated else Or(pushed, at=expr.at)
        case Compare(op):
            return replace(expr, op=op.negated) if negated else expr
        case In(negated=was):
            return replace(expr, negated=was is not negated)
        case IsNull(child, was):
            return IsNull(child, was is not negated, at=expr.at)
        case Literal(value, type_):
            return Literal(None if value is None else value is not negated, type_, at=expr.at)
        case LeafRef() | Cast() | Call():
            return Compare(Op.EQ, expr, Literal(not negated, BOOLEAN), at=expr.at)
    raise TypeError(f"{expr!r} is no bound predicate")


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The parts that must all be true, after `push_not`."""
    pushed = push_not(expr)
    if not isinstance(pushed, And):
        return (pushed,)
    return tuple(inner for part in pushed.parts for inner in conjuncts(part))


def leaves_of(expr: Expr) -> frozenset[int]:
    """The indices of the leaves that the expression needs."""
    if isinstance(expr, LeafRef):
        return frozenset((expr.index,))
    return frozenset(i for child in expr.children for i in leaves_of(child))
