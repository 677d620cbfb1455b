"""An expression meets a schema: names become leaves, texts become constants, implicit casts become casts.

The rule: after binding nothing is open. Every leaf has a place and a type, every comparison compares values of one
class, and what Spark would refuse to analyse is refused here, with the place in the text.

Names are found without regard to case, as in Spark, and take the schema's spelling; keys inside a Variant are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mica.collation.identifier import Identifier
from mica.collation.identifier import parse as identifier
from mica.collation.names import BINARY, is_binary
from mica.errors import UserError
from mica.expressions import arithmetic, calls, casts
from mica.expressions.bound_expr import BoundExpr, Leaf, type_of
from mica.expressions.coerce import TIMES, boolean_equality, common_type, common_type_of_list, holds, is_exact, is_real
from mica.expressions.collations import PLAIN, Held, Strength, common_of, searches, stripped
from mica.expressions.functions import FUNCTIONS, pattern_of
from mica.expressions.parse import parse
from mica.expressions.tokens import syntax_error
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
    Op,
    Or,
    Path,
    Text,
    to_sql,
)
from mica.schema.collations import of_field
from mica.schema.ddl import type_to_ddl
from mica.schema.types import BINARY as BYTES
from mica.schema.types import (
    BOOLEAN,
    DOUBLE,
    INTEGRALS,
    STRING,
    VARIANT,
    VOID,
    DataType,
    Primitive,
    StructField,
    StructType,
    decimal,
)
from mica.variant import kernel
from mica.variant.path import VariantPath

__all__ = ["BoundExpr", "Leaf", "bind", "bind_columns", "bind_value", "type_of"]

#: The key of a field's metadata that says what a string column was declared as.
CHAR_VARCHAR = "__CHAR_VARCHAR_TYPE_STRING"


def bind(
    expr: Expr | str,
    schema: StructType,
    *,
    ansi: bool = True,
    timezone: str = "UTC",
    partition_columns: Iterable[str] = (),
) -> BoundExpr:
    """A predicate. Errors: UNKNOWN_COLUMN, TYPE_MISMATCH, INVALID_CAST, UNKNOWN_TIME_ZONE, NOT_A_PREDICATE."""
    bound = bind_value(expr, schema, ansi=ansi, timezone=timezone, partition_columns=partition_columns)
    if bound.type not in (BOOLEAN, VOID):
        raise UserError(
            "NOT_A_PREDICATE",
            f"the predicate {_shown(expr)} is {type_to_ddl(bound.type)}, not BOOLEAN",
            hint=_needs_cast(bound.type),
        )
    return bound


def bind_value(
    expr: Expr | str,
    schema: StructType,
    *,
    ansi: bool = True,
    timezone: str = "UTC",
    partition_columns: Iterable[str] = (),
) -> BoundExpr:
    """Any expression: `v:did::string`, `s.x`, `v`. The result's `type` is that of its values."""
    kernel.fixed_offset(timezone)  # a zone that does not exist is an error now, not on a worker
    text = expr if isinstance(expr, str) else None
    binder = _Binder(schema, ansi, timezone, tuple(partition_columns), text)
    bound = binder.bind(parse(expr) if isinstance(expr, str) else expr)
    kept = binder.kept_collations(bound)
    return BoundExpr(stripped(bound), type_of(bound), tuple(binder.leaves), ansi, timezone, kept)


def bind_columns(
    columns: dict[str, str] | Iterable[str] | None, schema: StructType, **options: Any
) -> dict[str, BoundExpr] | None:
    """The output columns of a scan: a mapping of names to texts, a list of column names, or None for all."""
    if columns is None:
        return None
    if isinstance(columns, str):
        raise UserError.bad_value("columns", columns, "a list of names or a mapping of names to expressions")
    if isinstance(columns, dict):
        return {name: bind_value(text, schema, **options) for name, text in columns.items()}
    # A name is no text: `end` is one.
    return {name: bind_value(Column((schema.field(name).name,)), schema, **options) for name in columns}


class _Binder:
    def __init__(
        self, schema: StructType, ansi: bool, timezone: str, partition_columns: tuple[str, ...], text: str | None
    ) -> None:
        self.schema, self.ansi, self.timezone, self.text = schema, ansi, timezone, text
        self.partition_columns = {name.lower() for name in partition_columns}
        self.leaves: list[Leaf] = []
        #: The field of each column that was named, and those whose values are padded before they are compared.
        self.fields: dict[tuple[str, ...], StructField] = {}
        self.padded: dict[tuple[str, ...], str] = {}

    def bind(self, expr: Expr) -> Expr:
        match expr:
            case Literal() | LeafRef():
                return expr
            case Text():
                return self.text_literal(expr)
            case Column():
                return self.leaf(self.column(expr), None, None, strict=True, at=expr.at)
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
            case Call(name) if name in FUNCTIONS:
                return self.function(expr)
            case Call():
                return self.arithmetic(expr)
        raise TypeError(f"{expr!r} is no expression")

    def boolean(self, expr: Expr) -> Expr:
        bound = self.bind(expr)
        if type_of(bound) not in (BOOLEAN, VOID):
            what = f"{to_sql(expr)} is {type_to_ddl(type_of(bound))} where a BOOLEAN is needed"
            raise self.error("TYPE_MISMATCH", what, expr.at, _needs_cast(type_of(bound)))
        return Literal(None, BOOLEAN, at=expr.at) if type_of(bound) == VOID else bound

    # --- leaves

    def column(self, expr: Column) -> tuple[str, ...]:
        """The names as the schema spells them."""
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
            if padded.startswith("char("):  # Spark pads both sides before it compares
                self.padded[tuple(found)] = padded
            if i + 1 < len(expr.names):
                if not isinstance(f.type, StructType):
                    hint = f"Write {'.'.join(found)}:{expr.names[i + 1]}." if f.type == VARIANT else None
                    what = f"{'.'.join(found)} is {type_to_ddl(f.type)}, it has no field {expr.names[i + 1]!r}"
                    raise self.error("TYPE_MISMATCH", what, expr.at, hint)
                here = f.type
        return tuple(found)

    def path(self, expr: Path) -> tuple[tuple[str, ...], VariantPath]:
        child, steps = expr.child, expr.path.steps
        while isinstance(child, Path) or (isinstance(child, Cast) and child.type == VARIANT):
            steps = (*child.path.steps, *steps) if isinstance(child, Path) else steps
            child = child.child
        if not isinstance(child, Column):
            raise self.error("TYPE_MISMATCH", "a path can be taken of a variant column only", expr.at)
        column = self.column(child)
        if self.type_at(column) != VARIANT:
            what = f"{'.'.join(column)} is {type_to_ddl(self.type_at(column))}, a path needs a VARIANT"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        return column, VariantPath(steps)

    def type_at(self, column: tuple[str, ...]) -> DataType:
        here: DataType = self.schema
        for name in column:
            assert isinstance(here, StructType)
            here = here.field(name).type
        return here

    def leaf(
        self, column: tuple[str, ...], path: VariantPath | None, type_: DataType | None, *, strict: bool, at: int
    ) -> LeafRef:
        partition = len(column) == 1 and column[0].lower() in self.partition_columns
        own = self.type_at(column) if type_ is None else type_
        leaf = Leaf(column, path, own, strict, partition)
        if leaf not in self.leaves:
            self.leaves.append(leaf)
        text = leaf.name if path is None or own == VARIANT else _cast_text(leaf)
        return LeafRef(self.leaves.index(leaf), own, text, at=at)

    # --- casts and constants

    def text_literal(self, expr: Text) -> Literal:
        try:
            value = casts.time_value(expr.text, expr.type, self.timezone)
        except casts.CastFailedError:
            what = f"{expr.text!r} is no {type_to_ddl(expr.type)}"
            raise self.error("INVALID_EXPRESSION", what, expr.at) from None
        return Literal(value, expr.type, at=expr.at)

    def cast(self, expr: Cast) -> Expr:
        child = expr.child
        if isinstance(child, Path):
            column, path = self.path(child)
            return self.leaf(column, path, expr.type, strict=expr.strict, at=expr.at)
        if isinstance(child, Column) and self.type_at(column := self.column(child)) == VARIANT and expr.type != VARIANT:
            return self.leaf(column, VariantPath(), expr.type, strict=expr.strict, at=expr.at)
        bound = self.bind(child)
        if expr.type == STRING and type_of(bound) == STRING:
            # A cast to a plain string says "binary", as a column would.
            return Collate(stripped(bound), str(BINARY), explicit=False, at=expr.at)
        return self.cast_to(stripped(bound), expr.type, expr.at, tries=not expr.strict)

    def cast_to(self, bound: Expr, target: DataType, at: int, *, tries: bool = False) -> Expr:
        """TRY_CAST has the rules of ANSI whatever the session has, and null instead of an error."""
        source, legacy = type_of(bound), not self.ansi and not tries
        strict = self.ansi and not tries
        if source == target:
            return bound
        if not casts.can_cast(source, target, ansi=not legacy):
            shown = f"from {type_to_ddl(source)} to {type_to_ddl(target)}"
            if all(isinstance(t, Primitive) and t.known and t != VARIANT for t in (source, target)):
                loose = not legacy and casts.can_cast(source, target, ansi=False)
                raise self.error("TYPE_MISMATCH", f"there is no cast {shown}{' with ANSI' * loose}", at)
            raise self.error("UNSUPPORTED_EXPRESSION", f"a cast {shown} cannot be used here yet", at)
        if isinstance(bound, Literal):
            try:
                value = casts.cast_value(bound.value, source, target, self.timezone, ansi=not legacy)
            except casts.CastFailedError:
                if strict:
                    what = f"{to_sql(bound)} cannot be cast to {type_to_ddl(target)}"
                    raise self.error("INVALID_CAST", what, at) from None
                value = None
            return Literal(value, target, at=at)
        return Cast(bound, target, strict, legacy=legacy, at=at)

    # --- functions and arithmetic

    def function(self, expr: Call) -> Expr:
        function = FUNCTIONS[expr.name]
        most, least = len(function.parameters), len(function.parameters) - function.optional
        if not least <= len(expr.args) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            what = f"{expr.name} takes {wanted} argument{'s' * (most > 1)}, not {len(expr.args)}"
            raise self.error("INVALID_EXPRESSION", what, expr.at)
        args = [self.argument(a, type_) for a, type_ in zip(expr.args, function.parameters, strict=False)]
        collation = self.searched_by(expr, args)
        args = [stripped(a) for a in args]
        if not (function.binary and all(type_of(a) == BYTES for a in args)):
            args = [self.cast_argument(a, t) for a, t in zip(args, function.parameters, strict=False)]
        for constant in args[least:]:
            if not isinstance(constant, Literal) or constant.value is None or len(constant.value) != 1:
                raise self.error("INVALID_EXPRESSION", "one character in quotes is expected", constant.at)
        call = Call(expr.name, tuple(args), function.result, collation=collation, at=expr.at)
        return self.folded(call) if collation is None else call

    def argument(self, expr: Expr, wanted: DataType) -> Expr:
        """A Variant is cast where another type is wanted: in its leaf, as if the cast were written."""
        is_path = isinstance(expr, Path) or (isinstance(expr, Column) and self.type_at(self.column(expr)) == VARIANT)
        return self.bind(Cast(expr, wanted, self.ansi, at=expr.at) if is_path and wanted != VARIANT else expr)

    def cast_argument(self, bound: Expr, wanted: DataType) -> Expr:
        if wanted == VARIANT and type_of(bound) not in (VARIANT, VOID):
            what = f"{to_sql(bound)} is {type_to_ddl(type_of(bound))} where a VARIANT is needed"
            raise self.error("TYPE_MISMATCH", what, bound.at)
        return Literal(None, wanted, at=bound.at) if type_of(bound) == VOID else self.cast_to(bound, wanted, bound.at)

    def arithmetic(self, expr: Call) -> Expr:
        args = [stripped(self.bind(a)) for a in expr.args]
        if len(args) == 1:
            own = DOUBLE if type_of(args[0]) in (STRING, VOID) else type_of(args[0])
            found: tuple[DataType, ...] | None = (own, own) if is_exact(own) or is_real(own) else None
        else:
            left, right = (type_of(a) for a in args)
            texts = (arithmetic.without_text(*pair, ansi=self.ansi) for pair in ((left, right), (right, left)))
            args = [self.cast_to(a, t, a.at) for a, t in zip(args, texts, strict=True)]
            left, right = (type_of(a) for a in args)
            digits = (_written(expr.args[0], left, right), _written(expr.args[1], right, left))
            found = arithmetic.signature(expr.name, *digits, ansi=self.ansi)
        if found is None:
            shown = " and ".join(type_to_ddl(type_of(a)) for a in args)
            hint = _needs_cast(VARIANT) if VARIANT in map(type_of, args) else None
            if expr.name in "+-" and any(type_of(a) in TIMES for a in args):
                raise self.error(
                    "UNSUPPORTED_EXPRESSION", f"{_word(expr)} for {shown} cannot be used here yet", expr.at
                )
            raise self.error("TYPE_MISMATCH", f"there is no {_word(expr)} for {shown}", expr.at, hint)
        *types, result = found
        args = [a if _fits(type_of(a), t) else self.cast_to(a, t, a.at) for a, t in zip(args, types, strict=True)]
        args = [Literal(None, t, at=a.at) if type_of(a) == VOID else a for a, t in zip(args, types, strict=True)]
        if expr.name == "positive":
            return args[0]
        return self.folded(Call(expr.name, tuple(args), result, at=expr.at))

    def folded(self, call: Call) -> Expr:
        """Constants are judged now; what fails is left to fail on the rows that are asked for it."""
        if call.name == "like":
            self.check_pattern(call)
        if not all(isinstance(a, Literal) for a in call.args):
            return call
        constants = [casts.from_values([a.value], a.type) for a in call.args if isinstance(a, Literal)]
        args = [constants[0], *(c[0] for c in constants[1:])]
        found, failed = calls.apply(call, args, [type_of(a) for a in call.args], ansi=self.ansi)
        if failed is not None and self.ansi:
            return call
        return Literal(casts.to_values(found, type_of(call))[0], type_of(call), at=call.at)

    def check_pattern(self, call: Call) -> None:
        try:
            pattern_of(call)
        except ValueError as e:
            raise self.error("INVALID_EXPRESSION", str(e), call.args[1].at) from e

    # --- comparisons

    def compare(self, expr: Compare) -> Expr:
        sides = self.bind(expr.left), self.bind(expr.right)
        left, right = map(stripped, sides)
        self.refuse_padded(left, right)
        types = type_of(left), type_of(right)
        common = common_type(_written(expr.left, *types), _written(expr.right, types[1], types[0]), ansi=self.ansi)
        if common is None and not self.ansi and expr.op in (Op.EQ, Op.NE, Op.SAFE_EQ, Op.DISTINCT):
            left, right = _zero_or_one(left, right)
            common = boolean_equality(type_of(left), type_of(right))
        self.check_comparable(expr, common, type_of(left), type_of(right))
        collation = self.common_collation(expr, common, sides)
        left, right = self.to_common(left, common), self.to_common(right, common)
        return Compare(expr.op, left, right, collation=collation, at=expr.at)

    def is_in(self, expr: In) -> Expr:
        sides = [self.bind(v) for v in (expr.child, *expr.values)]
        child, *values = map(stripped, sides)
        self.refuse_padded(child, *values)
        types = [type_of(child), *map(type_of, values)]
        common = common_type_of_list(types, ansi=self.ansi)
        self.check_comparable(expr, common, types[0], next((t for t in types[1:] if t != types[0]), types[0]))
        collation = self.common_collation(expr, common, sides)
        child = self.to_common(child, common)
        values = [self.to_common(v, common) for v in values]
        if all(isinstance(v, Literal) for v in values):
            return In(child, tuple(values), expr.negated, collation=collation, at=expr.at)
        parts = tuple(Compare(Op.EQ, child, v, collation=collation, at=expr.at) for v in values)
        either: Expr = parts[0] if len(parts) == 1 else Or(parts, at=expr.at)
        return Not(either, at=expr.at) if expr.negated else either

    def to_common(self, bound: Expr, common: DataType | None) -> Expr:
        assert common is not None
        if is_exact(common) and is_exact(type_of(bound)) and holds(common, type_of(bound)):
            return bound  # integers and decimals are compared by value
        if type_of(bound) == VOID:
            return Literal(None, common, at=bound.at)
        return self.cast_to(bound, common, bound.at)

    def check_comparable(self, expr: Expr, common: DataType | None, left: DataType, right: DataType) -> None:
        if common is None or VARIANT in (left, right):
            what = f"{type_to_ddl(left)} and {type_to_ddl(right)} cannot be compared"
            hint = _needs_cast(VARIANT) if VARIANT in (left, right) else "Cast one of them."
            raise self.error("TYPE_MISMATCH", what, expr.at, hint)
        if not isinstance(common, Primitive) or not common.known:
            raise self.error("UNSUPPORTED_EXPRESSION", f"{type_to_ddl(common)} cannot be compared here yet", expr.at)

    # --- collations

    def collate(self, expr: Collate) -> Expr:
        child = stripped(self.bind(expr.child))
        if type_of(child) == VOID:
            child = Literal(None, STRING, at=expr.at)
        if type_of(child) != STRING:
            what = f"{to_sql(expr.child)} is {type_to_ddl(type_of(child))}, only a STRING has a collation"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        return Collate(child, expr.collation, at=expr.at)

    def common_collation(self, expr: Expr, common: DataType | None, sides: Iterable[Expr]) -> str | None:
        if common != STRING:
            return None
        try:
            return common_of(map(self.held, sides), to_sql(expr))
        except UserError as e:
            raise self.error(e.code, e.message, expr.at, e.hint) from None

    def held(self, side: Expr) -> Held:
        """A side's collation; what became a string only to be compared has none of its own."""
        match side:
            case Collate(_, name, explicit):
                return Strength.EXPLICIT if explicit else Strength.IMPLICIT, identifier(name)
            case LeafRef(index, type_) if type_ == STRING and self.leaves[index].path is None:
                return Strength.IMPLICIT, self.of_column(self.leaves[index].column).get("", BINARY)
        return PLAIN

    def of_column(self, column: tuple[str, ...]) -> dict[str, Identifier]:
        """The collations of a column: the way from it → identifier."""
        f = self.fields[column]
        return {place[len(f.name) :]: found for place, found in of_field(f).items()}

    def kept_collations(self, bound: Expr) -> tuple[tuple[str, str], ...]:
        """What a value keeps of its collations when it leaves the scan as a column."""
        match bound:
            case Collate(_, name) if not is_binary(identifier(name)):
                return (("", name),)
            case LeafRef(index) if self.leaves[index].path is None:
                return tuple((way, str(found)) for way, found in self.of_column(self.leaves[index].column).items())
        return ()

    def refuse_padded(self, *sides: Expr) -> None:
        """Padded columns are compared by rules that binary bounds and binary order do not know."""
        for side in sides:
            if isinstance(side, LeafRef) and (name := self.padded.get(self.leaves[side.index].column)) is not None:
                what = f"{side.text} is compared by rules of its own ({name}), which cannot be done here yet"
                raise self.error("UNSUPPORTED_EXPRESSION", what, side.at)

    def searched_by(self, expr: Call, sides: Iterable[Expr]) -> str | None:
        """The collation by which a function compares strings."""
        self.refuse_padded(*map(stripped, sides))
        collation = self.common_collation(expr, STRING, sides)
        if collation is not None and not searches(expr.name, collation):
            what = f"{_word(expr)} cannot be judged by the collation {collation}, by Spark neither or not here yet"
            hint = "To judge the bytes, write COLLATE UTF8_BINARY behind the column."
            raise self.error("UNSUPPORTED_EXPRESSION", what, expr.at, hint)
        return collation

    def error(self, code: str, what: str, at: int, hint: str | None = None) -> UserError:
        if self.text is None:
            return UserError(code, what, hint=hint)
        return syntax_error(self.text, at, what, hint, code)


def _written(expr: Expr, type_: DataType, facing: DataType) -> DataType:
    """The type of one side: an integer as it is written has just its own digits beside a decimal (but a 1Y: Spark)."""
    if isinstance(expr, Literal) and type_ in INTEGRALS[1:] and is_exact(facing) and facing not in INTEGRALS:
        return decimal(len(str(abs(expr.value))), 0)
    return type_


def _zero_or_one(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Beside a boolean a constant 0 or 1 of any type of number is a boolean."""
    for one, other in ((left, right), (right, left)):
        if type_of(one) == BOOLEAN and isinstance(other, Literal) and other.value in (0, 1):
            found = Literal(bool(other.value), BOOLEAN, at=other.at)
            return (found if other is left else left), (found if other is right else right)
    return left, right


def _fits(type_: DataType, wanted: DataType) -> bool:
    """Whether no cast is needed: integers and decimals are calculated by value."""
    return type_ == wanted or (is_exact(type_) and is_exact(wanted))


def _word(call: Call) -> str:
    return "minus" if call.name == "negate" else "plus" if call.name == "positive" else call.name


def _cast_text(leaf: Leaf) -> str:
    ddl = type_to_ddl(leaf.type).lower()
    return f"{leaf.name}::{ddl}" if leaf.strict else f"try_cast({leaf.name} AS {ddl})"


def _needs_cast(type_: DataType) -> str | None:
    return "Say which type the path has, as in v:a::bigint = 1." if type_ == VARIANT else None


def _shown(expr: Expr | str) -> str:
    return repr(expr) if isinstance(expr, str) else to_sql(expr)
