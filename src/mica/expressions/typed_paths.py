"""Typed paths: paths of Variants declared as columns, for readers that know no Variant.

The rule: a declaration is DDL, and a column without `AS` is the field of its name in the table's only Variant. A value
that is not of the declared type is null, as with a schema over JSON: a dashboard does not fail over one odd row.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.cursor import Cursor
from mica.records import dataclass
from mica.schema.ddl import type_to_ddl
from mica.schema.spelling import quote_if_needed, spelled
from mica.schema.types import VARIANT, DataType, StructType
from mica.variant.path import VariantPath


@dataclass(frozen=True)
class TypedPath:
    """A declared column: its name, its type, and its path (`v:a.b`), which is None for the field of its name."""

    name: str
    type: DataType
    path: str | None

    @property
    def ddl(self) -> str:
        """The declaration."""
        return f"{quote_if_needed(self.name)} {type_to_ddl(self.type)}" + (f" AS {self.path}" if self.path else "")

    @property
    def column(self) -> str:
        """The Variant that the path is of."""
        assert self.path is not None
        return Cursor(self.path).identifier()

    @property
    def expression(self) -> str:
        """Its value over the table."""
        return f"try_cast({self.path} AS {type_to_ddl(self.type)})"

    def of(self, schema: StructType) -> TypedPath:
        """With its path in a table of these columns. Errors: INVALID_EXPRESSION without a path, if the table has more
        or less than one Variant."""
        if self.path is not None:
            return self
        variants = [f.name for f in schema.fields if f.type == VARIANT]
        if len(variants) != 1:
            Cursor(self.ddl).fail(f"the table has {len(variants)} VARIANT columns: `AS column:path` is expected")
        return TypedPath(self.name, self.type, f"{quote_if_needed(variants[0])}:{VariantPath((self.name,))}")


def parse(text: str, schema: StructType, shown: Sequence[str] | None = None) -> list[TypedPath]:
    """`time_us BIGINT, collection STRING AS v:commit.collection` over the table's columns. `shown` are the columns that
    stand beside the paths: without it all that no path is of.

    Errors: INVALID_EXPRESSION with the place; DUPLICATE_COLUMN for a name that is there already.
    """
    found = [one.of(schema) for one in _declared(text)]
    taken = _taken(found, schema, shown)
    for one in found:
        if one.name.lower() in taken:
            raise UserError(
                "DUPLICATE_COLUMN",
                f"the typed path {one.name!r} has the name of another column",
                hint="Give it another name: `other_name TYPE AS v:path`.",
                column=one.name,
            )
        taken.add(one.name.lower())
    return found


def check(text: str, schema: StructType) -> None:
    """Raises UserError, as `parse` or with UNKNOWN_COLUMN, if the table cannot have these paths."""
    for one in parse(text, schema):
        bind_value(one.expression, schema)


def of_table(text: str, schema: StructType, shown: Sequence[str] | None = None) -> list[TypedPath]:
    """As `parse`, for a table's property, which may be older than its columns: without paths of columns that are gone,
    and a column of the table stands for a path of its name. Errors: INVALID_EXPRESSION for a text that cannot be read.
    """
    found = dict[str, TypedPath]()
    for one in _declared(text):
        with contextlib.suppress(UserError):
            whole = one.of(schema)
            bind_value(whole.expression, schema)
            found.setdefault(one.name.lower(), whole)
    while taken := _taken(found.values(), schema, shown) & set(found):
        for name in taken:
            del found[name]  # and the column that it was of is shown
    return list(found.values())


def without_column(text: str, path: Sequence[str], name: str | None) -> str:
    """Its paths of a column or field have the new name, or (None) are left out. Errors: INVALID_EXPRESSION."""
    found = []
    for one in _declared(text):
        cursor = Cursor(one.path or "")
        names = [cursor.identifier()] if one.path else []
        while names and len(names) < len(path) and cursor.accept("."):
            names.append(cursor.identifier())
        if one.path is None or [n.lower() for n in names] != [n.lower() for n in path]:
            found.append(one.ddl)
        elif name is not None:
            renamed = spelled((*names[:-1], name))
            found.append(TypedPath(one.name, one.type, renamed + one.path[cursor.token.at :]).ddl)
    return ", ".join(found)


def _taken(found: Iterable[TypedPath], schema: StructType, shown: Sequence[str] | None) -> set[str]:
    """The names of columns that stand beside the paths, in lower case."""
    if shown is not None:
        return {name.lower() for name in shown}
    return {name.lower() for name in schema.names} - {one.column.lower() for one in found}


def _declared(text: str) -> Iterator[TypedPath]:
    """The declarations as they stand there."""
    cursor = Cursor(text)
    while cursor.token.kind != "end":
        name, type_ = cursor.identifier(), cursor.type()
        yield TypedPath(name, type_, _path(cursor, text) if cursor.accept("AS") else None)
        if cursor.token.kind != "end":
            cursor.expect(",")


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
