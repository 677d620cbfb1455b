"""Takes CASE, COALESCE and booleans as values apart, so that bounds are asked of what they choose from.

The rule: the predicate stays true for the same rows. For a predicate P

    P(CASE WHEN c THEN x ELSE y END) → c AND P(x) OR (NOT c OR c IS NULL) AND P(y)
    P(COALESCE(x, y))                → x IS NOT NULL AND P(x) OR x IS NULL AND P(y)
    COALESCE(x, y) IS NULL           → x IS NULL AND y IS NULL
    p = TRUE, p <=> TRUE             → p            p = FALSE, p <=> FALSE → NOT p   p is a predicate

where what P is applied to may stand at any depth. Comparisons by a collation stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mica.expressions.bind import type_of
from mica.expressions.conditionals import CASE, COALESCE
from mica.expressions.rewrite import push_not, rebuilt
from mica.expressions.tree import And, Call, Cast, Compare, Expr, In, IsNull, Literal, Not, Op, Or
from mica.schema.types import BOOLEAN, VOID

#: More alternatives than these are left as they are.
_MOST = 32
#: The nodes of predicates, which have no bounds as values.
PREDICATES = (And, Or, Not, Compare, In, IsNull)


def spread(expr: Expr, most: int = _MOST) -> Expr:
    """The same predicate, and like it without NOT; `expr` comes from `rewrite.push_not`. What takes more than `most`
    alternatives stays as it is."""
    match expr:
        case And(parts) | Or(parts):
            return replace(expr, parts=tuple(spread(part, most) for part in parts))
        case Compare(op, left, Literal(bool(value))) if isinstance(left, PREDICATES):
            return _as_value(op, left, value, most)
        case IsNull(Call(name, args), negated) if name == COALESCE:
            found = tuple(spread(IsNull(arg, negated), most) for arg in args)
            return Or(found) if negated else And(found)
        case Compare() | In() | IsNull() if getattr(expr, "collation", None) is None:
            chosen = _choice(expr)
            ways = [] if chosen is None else list(_alternatives(chosen))
            if chosen is None or len(ways) > most:
                return expr
            each = most // len(ways)
            return Or(tuple(_joined(conditions, _with(expr, chosen, value), each) for conditions, value in ways))
    return expr


def _joined(conditions: list[Expr], then: Expr, most: int) -> Expr:
    return And((*(spread(one, most) for one in conditions), spread(then, most)))


def _as_value(op: Op, predicate: Expr, value: bool, most: int) -> Expr:
    match op:
        case Op.EQ | Op.SAFE_EQ:
            return spread(push_not(predicate, not value), most)
        case Op.NE:
            return spread(push_not(predicate, value), most)
        case Op.DISTINCT:
            return Or((spread(push_not(predicate, value), most), spread(IsNull(predicate), most)))
    return Compare(op, predicate, Literal(value, BOOLEAN))


def _choice(expr: Expr) -> Call | None:
    """The first CASE or COALESCE in it."""
    if isinstance(expr, Call) and expr.name in (CASE, COALESCE):
        return expr
    inner = (child for child in expr.children if not isinstance(child, Literal))  # of a list of thousands
    return next((found for child in inner if (found := _choice(child)) is not None), None)


def _alternatives(chosen: Call) -> Iterator[tuple[list[Expr], Expr]]:
    """What it may be, each with the predicates that are true then."""
    passed: list[Expr] = []
    if chosen.name == CASE:
        for condition, value in zip(chosen.args[:-1:2], chosen.args[1::2], strict=True):
            yield [*passed, push_not(condition)], value
            passed.append(Or((push_not(condition, True), IsNull(condition))))
        yield passed, chosen.args[-1]
        return
    for value in chosen.args[:-1]:
        yield [*passed, IsNull(value, negated=True)], value
        passed.append(IsNull(value))
    yield passed, chosen.args[-1]


def _with(expr: Expr, chosen: Expr, value: Expr) -> Expr:
    type_ = type_of(chosen)
    if type_of(value) != type_:
        value = Literal(None, type_) if type_of(value) == VOID else Cast(value, type_)
    return rebuilt(expr, lambda node: value if node is chosen else None)
