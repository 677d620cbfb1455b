"""Binds what an expression consists of, whatever it is.

The rule: each kind of expression is bound by one method, most of which the classes below inherit.
"""

from __future__ import annotations

from mica.expressions import lookup, set_field
from mica.expressions.bind_calls import CallBinder
from mica.expressions.bind_leaves import parts_of
from mica.expressions.bound_expr import type_of
from mica.expressions.collations import stripped
from mica.expressions.moments import MOMENTS, is_moment, moment
from mica.expressions.tree import (
    And,
    Call,
    Cast,
    Collate,
    Column,
    Compare,
    Expr,
    In,
    IsNull,
    LeafRef,
    Literal,
    Not,
    Or,
    Path,
    Text,
)
from mica.schema.types import VARIANT, VOID, StructType, loosened


class Binder(CallBinder):
    """Binds every expression."""

    def bind(self, expr: Expr) -> Expr:
        """Binds the expression and everything in it."""
        match expr:
            case Literal() | LeafRef():
                return expr
            case Text():
                return self.text_literal(expr)
            case Column((name,)) if is_moment(expr, self.schema):
                return self.moment(Call(name.lower(), (), at=expr.at))
            case Column() if (inner := parts_of(expr, self.schema)) is not None:
                return self.bind(inner)
            case Path() if not self.in_column(expr):
                return self.path_of_value(expr)
            case Path():
                column, path = self.path(expr)
                return self.leaf(column, path, VARIANT, strict=True, at=expr.at)
            case Cast():
                return self.cast(expr)
            case Collate():
                return self.collate(expr)
            case Not(child):
                return Not(self.operand(child), at=expr.at)
            case And(parts):
                return And(tuple(map(self.operand, parts)), at=expr.at)
            case Or(parts):
                return Or(tuple(map(self.operand, parts)), at=expr.at)
            case IsNull(child, negated):
                return IsNull(stripped(self.bind(child)), negated, at=expr.at)
            case Compare():
                return self.compare(expr)
            case In():
                return self.is_in(expr)
            case Call("case" | "coalesce"):
                return self.conditional(expr)
            case Call(set_field.NAME):
                return self.set_field(expr)
            case Call(name, ()) if name in MOMENTS:
                return self.moment(expr)
            case Call("timestampadd", (Literal(str(unit)), count, time)):
                return self.plus_units(expr, unit, count, time)
            case Call(name) if name in lookup.FUNCTIONS:
                return self.function(expr)
            case Call():
                return self.arithmetic(expr)
        return super().bind(expr)

    def set_field(self, expr: Call) -> Call:
        """Binds the assignment of a field, whose value has the field's type already."""
        struct, name, value = (stripped(self.bind(a)) for a in expr.args)
        own = type_of(struct)
        assert isinstance(own, StructType)
        assert isinstance(name, Literal)
        wanted = own.field(name.value).type
        value = Literal(None, wanted) if type_of(value) == VOID else value
        assert loosened(type_of(value)) == loosened(wanted)
        return Call(set_field.NAME, (struct, name, value), own, at=expr.at)

    def moment(self, expr: Call) -> Literal:
        """The moment of binding, the same wherever a bound expression uses it."""
        value, type_ = moment(expr.name, self.now, self.timezone)
        return Literal(value, type_, at=expr.at)
