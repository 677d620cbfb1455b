"""Binds names: which values a file must supply, and in which types.

The rule: every leaf has a source and a type. Names are matched case-insensitively, as in Spark, and take the schema's
spelling; keys inside a Variant are exact.
"""

from __future__ import annotations

from mica.collation.identifier import Identifier
from mica.collation.identifier import parse as identifier
from mica.collation.names import is_binary
from mica.errors import UserError
from mica.expressions.bound_expr import Leaf, type_of
from mica.expressions.tree import Call, Cast, Collate, Column, Expr, LeafRef, Literal, Path, to_sql
from mica.schema.char import char_length, declared, inside, is_padded
from mica.schema.collations import of_field
from mica.schema.ddl import type_to_ddl
from mica.schema.types import STRING, VARIANT, ArrayType, DataType, MapType, StructField, StructType
from mica.variant.path import Step, VariantPath


class LeafBinder:
    """Binds names and paths; the subclass that knows all expressions binds their children."""

    def __init__(
        self,
        schema: StructType,
        ansi: bool,
        timezone: str,
        partition_columns: tuple[str, ...],
        text: str | None,
        *,
        pads: bool = True,
        blanks: bool = True,
    ) -> None:
        self.schema, self.ansi, self.timezone, self.text = schema, ansi, timezone, text
        self.pads, self.blanks = pads, blanks
        self.partition_columns = {name.lower() for name in partition_columns}
        self.leaves: list[Leaf] = []
        #: The field of each named column, the declared types with a CHAR in them, and the n of each CHAR(n) itself.
        self.fields: dict[tuple[str, ...], StructField] = {}
        self.declared: dict[tuple[str, ...], str] = {}
        self.chars: dict[tuple[str, ...], int] = {}

    def bind(self, expr: Expr) -> Expr:
        """Binds the expression and everything in it: here a column."""
        if isinstance(expr, Column):
            return self.leaf(self.column(expr), None, None, strict=True, at=expr.at)
        raise TypeError(f"{expr!r} is not an expression")

    # --- leaves

    def column(self, expr: Column) -> tuple[str, ...]:
        """Returns the names as the schema spells them."""
        here, found, outer = self.schema, [], ""
        for i, name in enumerate(expr.names):
            f = here.find(name)
            if f is None:
                asked = ".".join(expr.names)
                known = ", ".join(here.names[:20])
                raise self.error("UNKNOWN_COLUMN", f"there is no column {asked!r}", expr.at, f"There are: {known}.")
            found.append(f.name)
            self.fields[tuple(found)] = f
            own = declared(f)
            outer = own or inside(outer, f.name)
            if is_padded(outer):
                self.declared[tuple(found)] = outer
                if (length := char_length(own)) is not None:
                    self.chars[tuple(found)] = length
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
        """Returns what a path leads into, and its steps; a path of a path is one path. A cast to VARIANT of what is one
        changes nothing."""
        child, steps = expr.child, expr.path.steps
        while True:
            inner = child
            while isinstance(inner, Cast) and inner.type == VARIANT:
                inner = inner.child
            if not isinstance(inner, Path):
                return child if self.variant_column(inner) is None else inner, steps
            child, steps = inner.child, (*inner.path.steps, *steps)

    def variant_column(self, expr: Expr) -> tuple[str, ...] | None:
        """The names of a VARIANT column; None for anything else."""
        if not isinstance(expr, Column) or self.schema.find(expr.names[0]) is None or parts_of(expr, self.schema):
            return None
        column = self.column(expr)
        return column if self.type_at(column) == VARIANT else None

    def in_column(self, expr: Path) -> bool:
        """Whether a path leads into a column; otherwise into the Variant that a function returns."""
        return isinstance(self.root(expr)[0], Column | Literal)

    def path_of_value(self, expr: Path) -> Expr:
        """Binds a path into the Variant that a function returns."""
        child, steps = self.root(expr)
        bound = self.bind(child)
        if type_of(bound) != VARIANT:
            what = f"{to_sql(child)} is {type_to_ddl(type_of(bound))}, a path requires a VARIANT"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        if isinstance(bound, Literal):  # NULL
            return bound
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
        padded = self.declared.get(column, "") if self.blanks else ""
        leaf = Leaf(column, path, own, strict, partition, padded=padded)
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        text = leaf.name if path is None or own == VARIANT else _cast_text(leaf)
        return LeafRef(self.leaves.index(leaf), own, text, at=at)

    def of_column(self, column: tuple[str, ...]) -> dict[str, Identifier]:
        """Returns the collations of a column: the path to each string → identifier."""
        f = self.fields[column]
        return {place[len(f.name) :]: found for place, found in of_field(f).items()}

    def kept_collations(self, bound: Expr) -> tuple[tuple[str, str], ...]:
        """Returns the collations that a value keeps as an output column of the scan."""
        match bound:
            case Collate(_, name) if not is_binary(identifier(name)):
                return (("", name),)
            case LeafRef(index) if self.leaves[index].path is None:
                return tuple((way, str(found)) for way, found in self.of_column(self.leaves[index].column).items())
        return ()

    def error(
        self, code: str, what: str, at: int, hint: str | None = None, *, condition: str | None = None
    ) -> UserError:
        """An error that points to its position in the text, if there is one."""
        if self.text is None:
            return UserError(code, what, hint=hint, condition=condition)
        from mica.expressions.tokens import syntax_error

        return syntax_error(self.text, at, what, hint, code, condition=condition)


def parts_of(expr: Column, schema: StructType) -> Expr | None:
    """What names mean that lead into a map or an array (`m.key`, `a.field`); None for those of fields of structs."""
    here: DataType | None = schema
    for i, name in enumerate(expr.names):
        if isinstance(here, MapType | ArrayType):
            found: Expr = Column(expr.names[:i], at=expr.at)
            for inner in expr.names[i:]:
                found = Call(".", (found, Literal(inner, STRING, at=expr.at)), at=expr.at)
            return found
        f = here.find(name) if isinstance(here, StructType) else None
        here = None if f is None else f.type
    return None


def _cast_text(leaf: Leaf) -> str:
    ddl = type_to_ddl(leaf.type).lower()
    return f"{leaf.name}::{ddl}" if leaf.strict else f"try_cast({leaf.name} AS {ddl})"


def needs_cast(type_: DataType) -> str | None:
    """The hint for a Variant where another type is needed."""
    return "Cast the path to a type, as in v:a::bigint = 1." if type_ == VARIANT else None
