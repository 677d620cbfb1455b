"""Binds comparisons: chooses the type and the collation in which two values are compared.

The rule: values of one class are compared, by the collation that Spark would choose; what Spark rejects is rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mica.collation.identifier import parse as identifier
from mica.collation.names import BINARY, is_binary
from mica.errors import UserError
from mica.expressions.bind_casts import CastBinder
from mica.expressions.bind_leaves import needs_cast
from mica.expressions.bound_expr import type_of
from mica.expressions.coerce import (
    alike,
    boolean_equality,
    common_type,
    common_type_of_list,
    holds,
    is_exact,
    is_ordered,
    is_real,
    tightest_type,
)
from mica.expressions.collations import PLAIN, Held, Strength, common_of, spelled, stripped
from mica.expressions.tree import (
    Call,
    Cast,
    Collate,
    Compare,
    Expr,
    In,
    LeafRef,
    Literal,
    Not,
    Op,
    Or,
    to_sql,
    walk,
)
from mica.schema.collations import Way, strings, walk_collated, ways_to_strings
from mica.schema.ddl import type_to_ddl
from mica.schema.types import (
    BOOLEAN,
    INTEGER,
    INTEGRALS,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    Primitive,
    StructType,
    contains,
    decimal,
)

#: What takes a part out of a nested value.
TAKES = ("[]", ".", "element_at", "try_element_at", "get")


class ComparisonBinder(CastBinder):
    """Binds what is true or false, and COLLATE."""

    def operand(self, expr: Expr) -> Expr:
        """Binds an operand of AND, OR and NOT. With ANSI a text is cast, as Spark does with no other condition."""
        bound = stripped(self.bind(expr))
        if self.ansi and type_of(bound) == STRING:
            return self.cast_to(bound, BOOLEAN, expr.at)
        return self.true_or_false(expr, bound)

    def boolean(self, expr: Expr) -> Expr:
        """Binds an expression that must be BOOLEAN; NULL is allowed."""
        return self.true_or_false(expr, self.bind(expr))

    def true_or_false(self, expr: Expr, bound: Expr) -> Expr:
        """Errors: TYPE_MISMATCH for what is not BOOLEAN."""
        if type_of(bound) not in (BOOLEAN, VOID):
            what = f"{to_sql(expr)} is {type_to_ddl(type_of(bound))} where a BOOLEAN is needed"
            raise self.error("TYPE_MISMATCH", what, expr.at, needs_cast(type_of(bound)))
        return Literal(None, BOOLEAN, at=expr.at) if type_of(bound) == VOID else bound

    def compare(self, expr: Compare) -> Expr:
        """Binds a comparison: both sides in their common type, with one collation."""
        sides = self.side(expr.left), self.side(expr.right)
        left, right = map(stripped, self.with_blanks(sides) if expr.pads else sides)
        types = type_of(left), type_of(right)
        if all(isinstance(t, Primitive) for t in types):
            written = written_as(expr.left, *types), written_as(expr.right, types[1], types[0])
            common = common_type(*written, ansi=self.ansi)
        else:
            common = tightest_type(*types, ansi=self.ansi)
        if common is None and not self.ansi and expr.op in (Op.EQ, Op.NE, Op.SAFE_EQ, Op.DISTINCT):
            left, right = _zero_or_one(left, right)
            common = boolean_equality(type_of(left), type_of(right))
        self.check_comparable(expr, common, type_of(left), type_of(right))
        collation = self.common_collation(expr, common, sides)
        left, right = self.to_common(left, common), self.to_common(right, common)
        return Compare(expr.op, left, right, collation=collation, at=expr.at)

    def is_in(self, expr: In) -> Expr:
        """Binds IN and NOT IN; with values that are not constants they become comparisons."""
        sides = [v if isinstance(v, Literal) else self.side(v) for v in (expr.child, *expr.values)]
        if not expr.values:  # of none, no value is null either
            return Literal(expr.negated, BOOLEAN, at=expr.at)
        child, *values = map(stripped, self.with_blanks(sides) if isinstance(sides[0], LeafRef) else sides)
        types = [type_of(child), *map(type_of, values)]
        common = common_type_of_list([types[0] if alike(t, types[0]) else t for t in types], ansi=self.ansi)
        self.check_comparable(expr, common, types[0], next((t for t in types[1:] if t != types[0]), types[0]))
        collation = self.common_collation(expr, common, sides)
        child = self.to_common(child, common)
        values = [self.to_common(v, common) for v in values]
        if isinstance(common, Primitive) and all(isinstance(v, Literal) for v in values):
            return In(child, tuple(values), expr.negated, collation=collation, at=expr.at)
        parts = tuple(Compare(Op.EQ, child, v, collation=collation, at=expr.at) for v in values)
        either: Expr = parts[0] if len(parts) == 1 else Or(parts, at=expr.at)
        return Not(either, at=expr.at) if expr.negated else either

    def to_common(self, bound: Expr, common: DataType | None) -> Expr:
        """Casts a side to the common type; integers and decimals are compared by value."""
        assert common is not None
        if is_exact(common) and is_exact(type_of(bound)) and holds(common, type_of(bound)):
            return bound  # integers and decimals are compared by value
        if type_of(bound) == VOID:
            return Literal(None, common, at=bound.at)
        return self.cast_to(bound, common, bound.at)

    def check_comparable(self, expr: Expr, common: DataType | None, left: DataType, right: DataType) -> None:
        """Errors: TYPE_MISMATCH, UNSUPPORTED_EXPRESSION for types that cannot be compared."""
        nested = not isinstance(common, Primitive)
        if common is None or VARIANT in (left, right) or (nested and not is_ordered(common)):
            what = f"{type_to_ddl(left)} and {type_to_ddl(right)} cannot be compared"
            hint = needs_cast(VARIANT) if VARIANT in (left, right) else "Cast one of them."
            if common is not None and nested:
                hint = "Maps and Variants have no order, here and in Spark: compare what is in them."
            raise self.error("TYPE_MISMATCH", what, expr.at, hint)
        if not is_ordered(common):
            raise self.error("UNSUPPORTED_EXPRESSION", f"{type_to_ddl(common)} cannot be compared here yet", expr.at)

    # --- collations

    def collate(self, expr: Collate) -> Expr:
        """Binds a string with a collation that the text gives it."""
        child = stripped(self.bind(expr.child))
        if type_of(child) == VOID:
            child = Literal(None, STRING, at=expr.at)
        if type_of(child) != STRING:
            what = f"{to_sql(expr.child)} is {type_to_ddl(type_of(child))}; only a STRING has a collation"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        return Collate(child, expr.collation, expr.explicit, at=expr.at)

    def common_collation(self, expr: Expr, common: DataType | None, sides: Iterable[Expr]) -> str | None:
        """Returns the collation by which the sides are compared; None: by their bytes."""
        if common is not None and not isinstance(common, Primitive):
            return self.nested_collation(expr, sides)
        if common != STRING:
            return None
        try:
            return common_of(map(self.held, sides), to_sql(expr))
        except UserError as e:
            raise self.error(e.code, e.message, expr.at, e.hint) from None

    def held(self, side: Expr) -> Held:
        """Returns a side's collation; a value cast to a string for the comparison has none of its own."""
        match side:
            case Collate(_, name, explicit):
                return Strength.EXPLICIT if explicit else Strength.IMPLICIT, identifier(name)
            case Cast(child, type_) if type_of(child) == type_ == STRING:
                return Strength.IMPLICIT, BINARY
            case LeafRef(index, type_) if type_ == STRING and self.leaves[index].path is None:
                return Strength.IMPLICIT, self.of_column(self.leaves[index].column).get("", BINARY)
            case Call(name, args, type_) if type_ == STRING:
                parts = [self.strings_in(stripped(a)) for a in args]
                every = self.places(side)[()] if name in TAKES else set[Held]().union(*parts)
                return max(every, key=lambda held: held[0], default=PLAIN)
        return PLAIN

    def nested_collation(self, expr: Expr, sides: Iterable[Expr]) -> str | None:
        """Returns the one collation of all strings in nested values; constants take that of the other sides."""
        every = [self.strings_in(side) for side in sides]
        chosen = {name for held in every for strength, name in held if strength > Strength.DEFAULT}
        if all(map(is_binary, chosen)):
            return None
        # Where no side has a collation in all its parts, constants may face each other.
        if len(chosen) == 1 and any(held and Strength.DEFAULT not in dict(held) for held in every):
            return spelled(chosen.pop(), to_sql(expr))
        what = f"{to_sql(expr)} compares values with strings of several collations, which cannot be done here yet"
        raise self.error("UNSUPPORTED_EXPRESSION", what, expr.at, "Compare their parts.")

    def strings_in(self, side: Expr) -> set[Held]:
        """Returns the collations of a string, or of the strings in a nested value."""
        return {held for found in self.places(side).values() for held in found}

    def places(self, side: Expr) -> dict[Way, set[Held]]:
        """Returns the strings in a value, by the way to each: the collation that it has, or those of which it may have
        any."""
        ways = [*ways_to_strings(type_of(side))]
        match side:
            case LeafRef(index) if self.leaves[index].path is None and type_of(side) != STRING:
                column = StructType((self.fields[self.leaves[index].column],))
                found = {one.column[1:]: one.identifier for one in walk_collated(column)}
                return {way: {(Strength.IMPLICIT, found.get(way, BINARY))} for way in ways}
            case Cast(child) if type_of(side) != STRING and contains(type_of(child), STRING):
                return {way: {*self.strings_in(child), (Strength.IMPLICIT, BINARY)} for way in ways}
            case Call(name, (whole, part)) if name in TAKES:
                every = self.places(stripped(whole))
                return {way: every[_way_before(type_of(whole), part, way)] for way in ways}
            case Call(args=args) if type_of(side) != STRING:
                return {way: {held for a in args for held in self.strings_in(stripped(a))} for way in ways}
        return {way: {self.held(side)} for way in ways}

    def kept_collations(self, bound: Expr) -> tuple[tuple[str, str], ...]:
        """Returns the collations that a value keeps as an output column of the scan."""
        if not isinstance(bound, Call):
            return super().kept_collations(bound)
        places = self.places(bound)
        found = [(way, places[tuple(way.split(".")[1:])]) for way in strings(type_of(bound), "")]
        return tuple((way, str(name)) for way, held in found for _, name in held if not is_binary(name))

    # --- CHAR columns

    def side(self, expr: Expr) -> Expr:
        """Binds a side of a comparison."""
        bound = self.bind(expr)
        if isinstance(bound, Literal) and any(isinstance(one, Call) and one.late for one in walk(expr)):
            return replace(bound, padded=False)
        return bound

    def with_blanks(self, sides: Sequence[Expr]) -> Sequence[Expr]:
        """The sides of a comparison as Spark pads them: a CHAR column beside constants, and CHAR columns alone, are as
        long as the longest of them. Beside anything else, a NULL too, nothing is padded.

        Source: Spark's ApplyCharTypePadding.
        """
        lengths = [self.length(side) for side in sides]
        columns = sum(isinstance(side, LeafRef) for side in sides)
        if not self.pads or columns not in (1, len(sides)):
            return sides
        known = [n for n in lengths if n is not None]
        if len(known) < len(lengths):
            return sides
        own = [n if self.blanks or not isinstance(s, LeafRef) else None for s, n in zip(sides, known, strict=True)]
        return [_blanks(s, n, max(known)) for s, n in zip(sides, own, strict=True)]

    def length(self, side: Expr) -> int | None:
        """The number of code points in a constant or in a CHAR column; None for anything else."""
        match side:
            case LeafRef(index) if self.leaves[index].path is None:
                return self.chars.get(self.leaves[index].column)
            case Literal(str(value), type_, padded=True) if type_ == STRING:
                return len(value)
            case Collate(Literal() as constant, name) if is_binary(identifier(name)):
                return self.length(constant)  # by another collation, Spark casts the column and pads nothing
        return None


def _blanks(side: Expr, length: int | None, wanted: int) -> Expr:
    """A text of a length (None: of several) with blanks up to the one that is wanted."""
    if length == wanted:
        return side
    if isinstance(side, Collate):
        return replace(side, child=_blanks(side.child, length, wanted))
    if isinstance(side, Literal):
        return replace(side, value=side.value.ljust(wanted))
    return Call("rpad", (side, Literal(wanted, INTEGER)), STRING, at=side.at)


def _way_before(own: DataType, part: Expr, way: Way) -> Way:
    """The way in an array, a map or a struct to what `way` leads to in the part that is taken out of it."""
    name = part.value if isinstance(part, Literal) and isinstance(part.value, str) else ""
    match own:
        case ArrayType(StructType() as each) if name:
            return "element", each.field(name).name, *way[1:]
        case ArrayType():
            return "element", *way
        case StructType():
            return own.field(name).name, *way
    return "value", *way


def written_as(expr: Expr, type_: DataType, facing: DataType) -> DataType:
    """The type of one side: an integer literal beside a decimal has exactly its own digits (except 1Y, as in Spark)."""
    if isinstance(expr, Literal) and type_ in INTEGRALS[1:] and is_exact(facing) and facing not in INTEGRALS:
        return decimal(len(str(abs(expr.value))), 0)
    return type_


def _zero_or_one(left: Expr, right: Expr) -> tuple[Expr, Expr]:
    """Beside a boolean, a constant 0 or 1 of any numeric type is a boolean."""
    for one, other in ((left, right), (right, left)):
        number = is_exact(type_of(other)) or is_real(type_of(other))  # the value of a date is an int too
        if type_of(one) == BOOLEAN and number and isinstance(other, Literal) and other.value in (0, 1):
            found = Literal(bool(other.value), BOOLEAN, at=other.at)
            return (found if other is left else left), (found if other is right else right)
    return left, right
