"""Binds an expression to a schema: resolves names to leaves and texts to constants, and makes implicit casts explicit.

The rule: a bound expression is complete. Every leaf has a source and a type, every comparison compares values of one
class, and whatever Spark's analyzer rejects is rejected here, with its position in the text.

Names are matched case-insensitively, as in Spark, and take the schema's spelling; keys inside a Variant are exact.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mica.cached import cached_property
from mica.errors import UserError
from mica.expressions import lookup, set_field
from mica.expressions.bind_calls import CallBinder
from mica.expressions.bind_leaves import needs_cast
from mica.expressions.bound_expr import BoundExpr, Leaf, type_of
from mica.expressions.collations import stripped
from mica.expressions.moments import MOMENTS, moment
from mica.expressions.parse import parse
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
    to_sql,
)
from mica.schema.ddl import type_to_ddl
from mica.schema.hidden import field_named
from mica.schema.interval_types import OF_MONTHS
from mica.schema.types import (
    BOOLEAN,
    VARIANT,
    VOID,
    StructType,
    contains,
    loosened,
)
from mica.variant import kernel
from mica.variant.path import VariantPath

__all__ = ["BoundExpr", "Leaf", "bind", "bind_columns", "bind_value", "type_of"]


def bind(
    expr: Expr | str,
    schema: StructType,
    *,
    ansi: bool = True,
    timezone: str = "UTC",
    partition_columns: Iterable[str] = (),
) -> BoundExpr:
    """Binds a predicate. Errors: UNKNOWN_COLUMN, TYPE_MISMATCH, INVALID_CAST, UNKNOWN_TIME_ZONE, NOT_A_PREDICATE."""
    bound = bind_value(expr, schema, ansi=ansi, timezone=timezone, partition_columns=partition_columns)
    if bound.type not in (BOOLEAN, VOID):
        raise UserError(
            "NOT_A_PREDICATE",
            f"the predicate {_shown(expr)} is {type_to_ddl(bound.type)}, not BOOLEAN",
            hint=needs_cast(bound.type),
        )
    return bound


def bind_value(
    expr: Expr | str,
    schema: StructType,
    *,
    ansi: bool = True,
    timezone: str = "UTC",
    partition_columns: Iterable[str] = (),
    text: str | None = None,
) -> BoundExpr:
    """Binds any expression: `v:did::string`, `s.x`, `v`. The result's `type` is the type of its values. `text` is the
    text of an expression that was parsed before, for errors.
    """
    kernel.fixed_offset(timezone)  # report an unknown time zone now, not on a worker
    text = expr if isinstance(expr, str) else text
    binder = _Binder(schema, ansi, timezone, tuple(partition_columns), text)
    bound = binder.bind(parse(expr) if isinstance(expr, str) else expr)
    kept = binder.kept_collations(bound)
    return BoundExpr(stripped(bound), type_of(bound), tuple(binder.leaves), ansi, timezone, kept)


def bind_columns(
    columns: dict[str, str] | Iterable[str] | None, schema: StructType, **options: Any
) -> dict[str, BoundExpr] | None:
    """Binds the output columns of a scan: a mapping of names to texts, a list of column names, or None for all. A
    hidden column is called by its last name, as in Spark.
    """
    if columns is None:
        return None
    if isinstance(columns, str):
        raise UserError.bad_value("columns", columns, "a list of names or a mapping of names to expressions")
    if isinstance(columns, dict):
        return {name: _as_column(bind_value(text, schema, **options), text) for name, text in columns.items()}
    found: dict[str, BoundExpr] = {}
    for name in columns:
        # A name is not parsed as an expression: a column may be called `end`.
        hidden = field_named(schema, name)
        output = name if hidden is None else hidden[-1]
        if output in found:
            raise UserError("DUPLICATE_COLUMN", f"two columns would be called {output!r}", column=name)
        found[output] = bind_value(Column(hidden or (schema.field(name).name,)), schema, **options)
    return found


def _as_column(bound: BoundExpr, text: str) -> BoundExpr:
    if any(contains(bound.type, months) for months in OF_MONTHS):
        raise UserError(
            "UNSUPPORTED_EXPRESSION",
            f"{text!r} is {type_to_ddl(bound.type)}, for which Arrow has no type that can be returned",
            hint="Cast it to STRING, or to INT to get the months.",
        )
    match bound.expr, bound.leaves:
        case Call("to_json", (LeafRef(),)), (leaf,):  # the kernel writes the text, with no Variant in between
            return replace(bound, leaves=(replace(leaf, path=leaf.path or VariantPath(), json=True),))
    return bound


class _Binder(CallBinder):
    def bind(self, expr: Expr) -> Expr:
        match expr:
            case Literal() | LeafRef():
                return expr
            case Text():
                return self.text_literal(expr)
            case Column((name,)) if name.lower() in MOMENTS and self.schema.find(name) is None:
                return self.moment(Call(name.lower(), (), at=expr.at))
            case Column():
                return self.leaf(self.column(expr), None, None, strict=True, at=expr.at)
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
                return Not(self.boolean(child), at=expr.at)
            case And(parts):
                return And(tuple(self.boolean(p) for p in parts), at=expr.at)
            case Or(parts):
                return Or(tuple(self.boolean(p) for p in parts), at=expr.at)
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
            case Call(name) if name in lookup.FUNCTIONS:
                return self.function(expr)
            case Call():
                return self.arithmetic(expr)
        raise TypeError(f"{expr!r} is not an expression")

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

    @cached_property
    def now(self) -> int:
        """The moment of binding, in microseconds since the epoch."""
        return time.time_ns() // 1000


def _shown(expr: Expr | str) -> str:
    return repr(expr) if isinstance(expr, str) else to_sql(expr)
