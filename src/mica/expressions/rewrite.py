"""Removes NOT from a predicate.

The rule: the predicate stays true for the same rows.

A predicate selects the rows for which it is true; it treats false and null alike. Skipping therefore asks each node
only whether some row might make it true. NOT would ask for false, so it is pushed down to the leaves
first. Under SQL's three-valued logic every step below keeps the result, null for null:

    NOT (a AND b)  → NOT a OR NOT b         NOT a < b   → a >= b      (NaN has its place in Spark's order)
    NOT (a OR b)   → NOT a AND NOT b        NOT a = b   → a <> b
    NOT NOT a      → a                      NOT a <=> b → a IS DISTINCT FROM b
    NOT a IN (…)   → a NOT IN (…)           NOT a IS NULL → a IS NOT NULL
    a (a boolean)  → a = TRUE               NOT a       → a = FALSE

Skipping requires this form, because a bound proves only that a predicate might be true. A strict cast may fail in Spark
on a file that is skipped here: skipping may avoid an error and never causes one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from mica.expressions.tree import And, Call, Cast, Compare, Expr, In, IsNull, LeafRef, Literal, Not, Op, Or
from mica.schema.types import BOOLEAN


def push_not(expr: Expr, negated: bool = False) -> Expr:
    """Returns an equal predicate without NOT, whose nodes are And, Or, Compare, In, IsNull and constants."""
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
    raise TypeError(f"{expr!r} is not a bound predicate")


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """Returns the parts that must all be true, after `push_not`."""
    pushed = push_not(expr)
    if not isinstance(pushed, And):
        return (pushed,)
    return tuple(inner for part in pushed.parts for inner in conjuncts(part))


def leaves_of(expr: Expr) -> frozenset[int]:
    """Returns the indices of the leaves that the expression needs."""
    if isinstance(expr, LeafRef):
        return frozenset((expr.index,))
    return frozenset(i for child in expr.children for i in leaves_of(child))


def rebuilt(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Returns the expression with the nodes for which `change` returns another one; it is not asked about their
    children."""
    found = change(expr)
    if found is not None:
        return found
    updates: dict[str, Any] = {}
    for f in fields(expr):
        value = getattr(expr, f.name)
        if isinstance(value, Expr):
            updates[f.name] = rebuilt(value, change)
        elif isinstance(value, tuple) and value and all(isinstance(one, Expr) for one in value):
            updates[f.name] = tuple(rebuilt(one, change) for one in value)
    return replace(expr, **updates) if updates else expr
