"""Typed paths: paths of Variants declared as columns, for readers that know no Variant.

The rule: a declaration is DDL, and a column without `AS` is the field of its name in the table's only Variant. A value
that is not of the declared type is null, as with a schema over JSON: a dashboard does not fail over one odd row.
"""

from __future__ import annotations

from mica.errors import UserError
from mica.expressions.cursor import Cursor
from mica.records import dataclass
from mica.schema.ddl import quote_if_needed, type_to_ddl
from mica.schema.types import VARIANT, DataType, StructType
from mica.variant.path import VariantPath


@dataclass(frozen=True)
class TypedPath:
    """A declared column: its name, its type, the expression of its value, and the Variant that it comes from."""

    name: str
    type: DataType
    expression: str
    column: str


def parse(text: str, schema: StructType) -> list[TypedPath]:
    """`time_us BIGINT, collection STRING AS v:commit.collection` over the table's columns.

    Errors: INVALID_EXPRESSION with the place; DUPLICATE_COLUMN for a name that is there already.
    """
    cursor, found = Cursor(text), list[TypedPath]()
    taken = {name.lower() for name in schema.names if schema.field(name).type != VARIANT}
    while cursor.token.kind != "end":
        name, type_ = cursor.identifier(), cursor.type()
        path = _path(cursor, text) if cursor.accept("AS") else _field(name, schema, cursor)
        if name.lower() in taken:
            raise UserError(
                "DUPLICATE_COLUMN",
                f"the typed path {name!r} has the name of another column",
                hint="Give it another name: `other_name TYPE AS v:path`.",
                column=name,
            )
        taken.add(name.lower())
        column = Cursor(path).identifier()
        found.append(TypedPath(name, type_, f"try_cast({path} AS {type_to_ddl(type_)})", column))
        if cursor.token.kind != "end":
            cursor.expect(",")
    return found


def _path(cursor: Cursor, text: str) -> str:
    """The text up to the next comma outside of brackets."""
    start, depth = cursor.token.at, 0
    while cursor.token.kind != "end" and not (depth == 0 and cursor.mark() == ","):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(cursor.mark(), 0)
        cursor.at += 1
    path = text[start : cursor.token.at].strip()
    if not path:
        cursor.fail("a path is expected")
    return path


def _field(name: str, schema: StructType, cursor: Cursor) -> str:
    variants = [f.name for f in schema.fields if f.type == VARIANT]
    if len(variants) != 1:
        cursor.fail(f"the table has {len(variants)} VARIANT columns: `AS column:path` is expected")
    return f"{quote_if_needed(variants[0])}:{VariantPath((name,))}"
