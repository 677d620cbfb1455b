"""Binds an expression to a schema: resolves names to leaves and texts to constants, and makes implicit casts explicit.

The rule: a bound expression is complete. Every leaf has a source and a type, every comparison compares values of one
class, and whatever Spark's analyzer rejects is rejected here, with its position in the text.

Names are matched case-insensitively, as in Spark, and take the schema's spelling; keys inside a Variant are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mica.errors import UserError
from mica.expressions.bind_leaves import LeafBinder, needs_cast, parts_of
from mica.expressions.bound_expr import BoundExpr, Leaf, type_of
from mica.expressions.collations import stripped
from mica.expressions.tree import Call, Column, Expr, LeafRef, to_sql
from mica.schema.ddl import type_to_ddl
from mica.schema.hidden import field_named
from mica.schema.interval_types import OF_MONTHS
from mica.schema.types import BOOLEAN, VOID, StructType, contains
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
    pads: bool = True,
    blanks: bool = True,
) -> BoundExpr:
    """Binds a predicate; without `pads`, texts beside CHAR columns are compared as they are, and without `blanks` these
    columns are read as they are.

    Errors: UNKNOWN_COLUMN, TYPE_MISMATCH, INVALID_CAST, UNKNOWN_TIME_ZONE, NOT_A_PREDICATE.
    """
    options: dict[str, Any] = {"ansi": ansi, "timezone": timezone, "pads": pads, "blanks": blanks}
    bound = bind_value(expr, schema, partition_columns=partition_columns, **options)
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
    pads: bool = True,
    blanks: bool = True,
) -> BoundExpr:
    """Binds any expression: `v:did::string`, `s.x`, `v`. The result's `type` is the type of its values. `text` is the
    text of an expression that was parsed before, for errors.
    """
    kernel.fixed_offset(timezone)  # report an unknown time zone now, not on a worker
    text = expr if isinstance(expr, str) else text
    parsed = _parse(expr) if isinstance(expr, str) else expr
    chosen = _binder(parsed, schema)
    binder = chosen(schema, ansi, timezone, tuple(partition_columns), text, pads=pads, blanks=blanks)
    bound = binder.bind(parsed)
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


def _parse(text: str) -> Expr:
    from mica.expressions.parse import parse

    return parse(text)


def _binder(expr: Expr, schema: StructType) -> type[LeafBinder]:
    """What binds the expression: a plain read only binds columns, and a new process imports no more for it."""
    if isinstance(expr, Column) and schema.find(expr.names[0]) is not None and parts_of(expr, schema) is None:
        return LeafBinder
    from mica.expressions.binder import Binder

    return Binder


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


def _shown(expr: Expr | str) -> str:
    return repr(expr) if isinstance(expr, str) else to_sql(expr)
