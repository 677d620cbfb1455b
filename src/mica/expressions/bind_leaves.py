"""Binds names and casts: which values a file must supply, and in which types.

The rule: every leaf has a source and a type. Names are matched case-insensitively, as in Spark, and take the schema's
spelling; keys inside a Variant are exact.
"""

from __future__ import annotations

from mica.collation.names import BINARY
from mica.errors import UserError
from mica.expressions import casts
from mica.expressions.bound_expr import Leaf, type_of
from mica.expressions.coerce import is_plain
from mica.expressions.collations import stripped
from mica.expressions.tokens import syntax_error
from mica.expressions.tree import (
    Call,
    Cast,
    Collate,
    Column,
    Expr,
    LeafRef,
    Literal,
    Path,
    Text,
    to_sql,
)
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.types import (
    BOOLEAN,
    STRING,
    VARIANT,
    VOID,
    DataType,
    StructField,
    StructType,
)
from mica.variant.path import Step, VariantPath

#: The hint for a cast that Variants do not have.
_VARIANT_CASTS = (
    "A VARIANT is cast to plain types, arrays, structs of nullable fields and maps with keys of type STRING, at any "
    "depth."
)

#: The key in a field's metadata that holds the declared type of a string column.
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"


class LeafBinder:
    """Binds names, paths and casts; the subclass that knows all expressions supplies `bind` for their children."""

    def __init__(
        self, schema: StructType, ansi: bool, timezone: str, partition_columns: tuple[str, ...], text: str | None
    ) -> None:
        self.schema, self.ansi, self.timezone, self.text = schema, ansi, timezone, text
        self.partition_columns = {name.lower() for name in partition_columns}
        self.leaves: list[Leaf] = []
        #: The field of each named column, and the columns whose values are padded before they are compared.
        self.fields: dict[tuple[str, ...], StructField] = {}
        self.padded: dict[tuple[str, ...], str] = {}

    def bind(self, expr: Expr) -> Expr:
        """Binds the expression and everything in it."""
        raise NotImplementedError

    def boolean(self, expr: Expr) -> Expr:
        """Binds an expression that must be BOOLEAN; NULL is allowed."""
        bound = self.bind(expr)
        if type_of(bound) not in (BOOLEAN, VOID):
            what = f"{to_sql(expr)} is {type_to_ddl(type_of(bound))} where a BOOLEAN is needed"
            raise self.error("TYPE_MISMATCH", what, expr.at, needs_cast(type_of(bound)))
        return Literal(None, BOOLEAN, at=expr.at) if type_of(bound) == VOID else bound

    # --- leaves

    def column(self, expr: Column) -> tuple[str, ...]:
        """Returns the names as the schema spells them."""
        here, found = self.schema, []
        for i, name in enumerate(expr.names):
            f = here.find(name)
            if f is None:
                asked = ".".join(expr.names)
                known = ", ".join(here.names[:20])
                raise self.error("UNKNOWN_COLUMN", f"there is no column {asked!r}", expr.at, f"There are: {known}.")
            found.append(f.name)
            self.fields[tuple(found)] = f
            padded = str(f.metadata.get(CHAR_VARCHAR, ""))
            if padded.startswith("char("):  # Spark pads both sides before it compares them
                self.padded[tuple(found)] = padded
            if i + 1 < len(expr.names):
                if not isinstance(f.type, StructType):
                    hint = f"Write {'.'.join(found)}:{expr.names[i + 1]}." if f.type == VARIANT else None
                    what = f"{'.'.join(found)} is {type_to_ddl(f.type)} and has no field {expr.names[i + 1]!r}"
                    raise self.error("TYPE_MISMATCH", what, expr.at, hint)
                here = f.type
        return tuple(found)

    def path(self, expr: Path) -> tuple[tuple[str, ...], VariantPath]:
        """Returns the Variant column of a path and its steps; a path of a path becomes one path."""
        child, steps = self.root(expr)
        if not isinstance(child, Column):
            raise self.error("TYPE_MISMATCH", "a path requires a variant column", expr.at)
        column = self.column(child)
        if self.type_at(column) != VARIANT:
            what = f"{'.'.join(column)} is {type_to_ddl(self.type_at(column))}, a path requires a VARIANT"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        return column, VariantPath(steps)

    def root(self, expr: Path) -> tuple[Expr, tuple[Step, ...]]:
        """Returns what a path leads into, and its steps; a path of a path is one path."""
        child, steps = expr.child, expr.path.steps
        while isinstance(child, Path) or (isinstance(child, Cast) and child.type == VARIANT):
            steps = (*child.path.steps, *steps) if isinstance(child, Path) else steps
            child = child.child
        return child, steps

    def in_column(self, expr: Path) -> bool:
        """Whether a path leads into a column; otherwise into the Variant that a function returns."""
        return isinstance(self.root(expr)[0], Column | Literal)

    def path_of_value(self, expr: Path) -> Call:
        """Binds a path into the Variant that a function returns."""
        child, steps = self.root(expr)
        bound = self.bind(child)
        if type_of(bound) != VARIANT:
            what = f"{to_sql(child)} is {type_to_ddl(type_of(bound))}, a path requires a VARIANT"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        return Call("variant_get", (bound, Literal(VariantPath(steps).spark(), STRING)), VARIANT, at=expr.at)

    def type_at(self, column: tuple[str, ...]) -> DataType:
        """Returns the type of a column or field by its names."""
        here: DataType = self.schema
        for name in column:
            assert isinstance(here, StructType)
            here = here.field(name).type
        return here

    def leaf(
        self, column: tuple[str, ...], path: VariantPath | None, type_: DataType | None, *, strict: bool, at: int
    ) -> LeafRef:
        """Returns the reference to a leaf; equal leaves share one."""
        partition = len(column) == 1 and column[0].lower() in self.partition_columns
        own = self.type_at(column) if type_ is None else type_
        leaf = Leaf(column, path, own, strict, partition)
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        text = leaf.name if path is None or own == VARIANT else _cast_text(leaf)
        return LeafRef(self.leaves.index(leaf), own, text, at=at)

    # --- casts and constants

    def text_literal(self, expr: Text) -> Literal:
        """Turns DATE, TIMESTAMP and TIMESTAMP_NTZ texts into constants."""
        try:
            value = casts.time_value(expr.text, expr.type, self.timezone)
        except casts.CastFailedError:
            what = f"{expr.text!r} is no {type_to_ddl(expr.type)}"
            raise self.error("INVALID_EXPRESSION", what, expr.at) from None
        return Literal(value, expr.type, at=expr.at)

    def cast(self, expr: Cast) -> Expr:
        """Binds a cast; the cast of a path moves into its leaf, because the file supplies the requested type."""
        child = expr.child
        if isinstance(child, Path) and self.in_column(child):
            column, path = self.path(child)
            self.check_variant_cast(expr)
            return self.leaf(column, path, expr.type, strict=expr.strict, at=expr.at)
        if isinstance(child, Column) and self.type_at(column := self.column(child)) == VARIANT and expr.type != VARIANT:
            self.check_variant_cast(expr)
            return self.leaf(column, VariantPath(), expr.type, strict=expr.strict, at=expr.at)
        bound = self.bind(child)
        if expr.type == STRING and type_of(bound) == STRING:
            # A cast to a plain string has the binary collation, as a plain string column has.
            return Collate(stripped(bound), str(BINARY), explicit=False, at=expr.at)
        return self.cast_to(stripped(bound), expr.type, expr.at, tries=not expr.strict, stores=expr.stores)

    def check_variant_cast(self, expr: Cast) -> None:
        """Errors: TYPE_MISMATCH for a type that a VARIANT has no cast to."""
        if not casts.variant_holds(expr.type):
            what = f"there is no cast from VARIANT to {type_to_ddl(expr.type)}"
            raise self.error("TYPE_MISMATCH", what, expr.at, _VARIANT_CASTS)

    def cast_to(self, bound: Expr, target: DataType, at: int, *, tries: bool = False, stores: bool = False) -> Expr:
        """Casts a bound expression. TRY_CAST follows ANSI in any session, with null instead of an error; so does the
        cast of an assignment (`stores`), with an error."""
        ansi = self.ansi or stores
        source, legacy = type_of(bound), not ansi and not tries
        strict = not tries and (ansi or is_interval(source) or is_interval(target))
        if source == target:
            return bound
        if not casts.can_cast(source, target, ansi=not legacy):
            shown = f"from {type_to_ddl(source)} to {type_to_ddl(target)}"
            if VARIANT in (source, target):
                raise self.error("TYPE_MISMATCH", f"there is no cast {shown}", at, _VARIANT_CASTS)
            if all(is_plain(t) for t in (source, target)):
                loose = not legacy and casts.can_cast(source, target, ansi=False)
                raise self.error("TYPE_MISMATCH", f"there is no cast {shown}{' with ANSI' * loose}", at)
            raise self.error("UNSUPPORTED_EXPRESSION", f"a cast {shown} cannot be used here yet", at)
        if isinstance(bound, Literal) and (target != VARIANT or bound.value is None):
            try:
                value = casts.cast_value(bound.value, source, target, self.timezone, ansi=not legacy)
            except casts.CastFailedError:
                if strict:
                    what = f"{to_sql(bound)} cannot be cast to {type_to_ddl(target)}"
                    raise self.error("INVALID_CAST", what, at) from None
                value = None
            return Literal(value, target, at=at)
        return Cast(bound, target, strict, legacy=legacy, at=at)

    def error(self, code: str, what: str, at: int, hint: str | None = None) -> UserError:
        """An error that points to its position in the text, if there is one."""
        if self.text is None:
            return UserError(code, what, hint=hint)
        return syntax_error(self.text, at, what, hint, code)


def _cast_text(leaf: Leaf) -> str:
    ddl = type_to_ddl(leaf.type).lower()
    return f"{leaf.name}::{ddl}" if leaf.strict else f"try_cast({leaf.name} AS {ddl})"


def needs_cast(type_: DataType) -> str | None:
    """The hint for a Variant where another type is needed."""
    return "Cast the path to a type, as in v:a::bigint = 1." if type_ == VARIANT else None
