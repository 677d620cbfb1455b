"""Binds functions and arithmetic: casts their arguments to the types that Spark would choose.

The rule: a call whose arguments are constants is evaluated to a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mica.collation.identifier import Identifier
from mica.collation.names import is_binary
from mica.errors import UserError
from mica.expressions import arithmetic, calls, interval_literals, intervals, lookup, plain_values
from mica.expressions.bind_comparisons import TAKES, ComparisonBinder, written_as
from mica.expressions.bind_leaves import needs_cast
from mica.expressions.bound_expr import type_of
from mica.expressions.coerce import TIMES, common_type_of_list, is_argument, is_exact, is_number
from mica.expressions.collations import Strength, is_blind, searches, stripped
from mica.expressions.conditionals import CASE
from mica.expressions.nested import taken
from mica.expressions.room import named
from mica.expressions.signatures import Asked, Function, Resolve
from mica.expressions.spellings import WITHIN_DAYS
from mica.expressions.tokens import OnlySparkError
from mica.expressions.tree import (
    Call,
    Cast,
    Collate,
    Expr,
    Literal,
    Path,
    to_sql,
)
from mica.expressions.variants import PATHS, ROOTLESS
from mica.schema.ddl import type_to_ddl
from mica.schema.interval_types import is_interval
from mica.schema.types import BINARY as BYTES
from mica.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    INTEGRALS,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    MapType,
    Primitive,
)
from mica.variant.path import VariantPath

#: What Spark makes an INT of days without a cast that is written: nothing that would lose a part of it.
_DAYS = (BYTE, SHORT, INTEGER, STRING, VOID)

#: What has another meaning for bytes, if no other text is given.
_BYTEWISE = ("substring", "rpad", "lpad", "overlay", "replace")

#: Of what is no text, and of one without a pattern, these are no more than its cast.
_CASTS = ("to_date", "try_to_date", "to_timestamp", "try_to_timestamp")


class CallBinder(ComparisonBinder):
    """Binds functions and arithmetic."""

    # --- functions and arithmetic

    def function(self, expr: Call) -> Expr:
        """Binds a call of a function in the table, with its arguments cast to its types."""
        function = lookup.FUNCTIONS[expr.name]
        parameters = function.parameters
        if function.repeats:
            parameters += parameters[-1:] * (len(expr.args) - len(parameters))
        most, least = len(parameters), len(function.parameters) - function.optional
        if not least <= len(expr.args) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            what = f"{expr.name} takes {wanted} argument{'s' * (most > 1)}, not {len(expr.args)}"
            raise self.error("INVALID_EXPRESSION", what, expr.at)
        if function.resolve is not None:
            return self.resolved(expr, function, function.resolve)
        sides = [self.argument(a, type_, exact=function.exact) for a, type_ in zip(expr.args, parameters, strict=False)]
        collation = self.searched_by(expr, sides) if function.compares else None
        args = [stripped(a) for a in sides]
        self.check_types(expr, args, parameters)
        binary = function.binary and all(type_of(a) == BYTES for a in args)
        if not binary:
            types = enumerate(zip(args, parameters, strict=False))
            args = [self.cast_argument(self.with_time(a, t), t, anything=i in function.anything) for i, (a, t) in types]
        self.check_constants(expr, function, args)
        if not function.compares:
            self.refuse_collated(expr, sides)
        result = BYTES if binary and function.result == STRING else function.result
        call = Call(expr.name, tuple(args), result, collation=collation, at=expr.at)
        return self.collated(self.folded(call) if collation is None else call, sides)

    def resolved(self, expr: Call, function: Function, resolve: Resolve) -> Expr:
        """Binds a function whose types follow from its arguments."""
        sides = [self.bind(a) for a in expr.args]
        args = [stripped(a) for a in sides]
        types = [type_of(a) for a in args]
        found = resolve(Asked(tuple(types), tuple(map(_constant, args)), self.ansi))
        if found is None:
            what = f"{expr.name} of {' and '.join(map(type_to_ddl, types))} cannot be used here"
            raise self.error("TYPE_MISMATCH", what, expr.at, needs_cast(VARIANT) if VARIANT in types else None)
        self.refuse_collated(expr, sides)
        parameters, result = found
        if not args:
            return Literal((), result, at=expr.at)
        ansi, pairs = self.ansi and not function.lenient, zip(args, parameters, strict=True)
        args = [a if type_of(a) == t else self.cast_argument(a, t, ansi=ansi) for a, t in pairs]
        if not isinstance(result, Primitive):  # a string in it keeps that it has no collation
            args = [Cast(a, STRING, at=a.at) if isinstance(s, Collate) else a for a, s in zip(args, sides, strict=True)]
        self.check_constants(expr, function, args)
        if expr.name in _CASTS and type_of(args[0]) == result:
            return args[0]
        part = taken(call := Call(expr.name, tuple(args), result, at=expr.at))
        return part if part is not call else self.collated(self.folded(call), sides)

    def check_types(self, call: Call, args: Sequence[Expr], parameters: Sequence[DataType]) -> None:
        """Raises for argument types that Spark rejects or that only Spark supports."""
        function, (first, *others) = lookup.FUNCTIONS[call.name], map(type_of, args)
        for a, wanted in zip(args, parameters, strict=False):
            if not is_argument(type_of(a), wanted):
                what = f"{call.name} takes {type_to_ddl(wanted)}, not {type_to_ddl(type_of(a))}"
                raise self.error("TYPE_MISMATCH", what, a.at)
        bytewise = call.name in _BYTEWISE and STRING not in others[1:]
        if bytewise and first == BYTES:
            what = f"{call.name} of a binary value cannot be used here yet"
            raise self.error("UNSUPPORTED_EXPRESSION", what, call.at)
        if function.exact and first not in (*INTEGRALS, VOID) and function.parameters == (LONG,):
            raise self.error("TYPE_MISMATCH", f"{call.name} requires an integer, got {type_to_ddl(first)}", call.at)
        if function.exact and first not in (TIMESTAMP, VOID) and function.parameters == (TIMESTAMP,):
            raise self.error("TYPE_MISMATCH", f"{call.name} requires a TIMESTAMP, got {type_to_ddl(first)}", call.at)

        if function.exact and first not in (STRING, VOID) and function.parameters == (STRING,):
            hint = "Cast it: v:a::string." if first == VARIANT else None
            what = f"{call.name} requires a STRING, got {type_to_ddl(first)}"
            raise self.error("TYPE_MISMATCH", what, call.at, hint)

        if call.name in ("date_add", "date_sub") and len(args) > 1 and type_of(args[1]) not in _DAYS:
            what = f"{call.name} takes an INT of days, not {type_to_ddl(type_of(args[1]))}"
            raise self.error("TYPE_MISMATCH", what, args[1].at)

    def check_constants(self, call: Call, function: Function, args: Sequence[Expr]) -> None:
        """Checks the arguments that must be constants, one by one and together."""
        for i, given in enumerate(args):
            if i in function.constants:
                self.check_constant(call, given)
        given_null = any(
            isinstance(a, Literal) and a.value is None for i, a in enumerate(args) if i in function.constants
        )
        if function.check is None or given_null:
            return
        try:
            function.check(*map(_constant, args))
        except OnlySparkError as e:
            hint = "Run the query on Spark: Scan.to_df() without it, and then Spark's own function."
            raise self.error("UNSUPPORTED_EXPRESSION", str(e), call.at, hint) from e
        except ValueError as e:
            raise self.error("INVALID_EXPRESSION", str(e), call.at) from e

    def check_constant(self, call: Call, given: Expr) -> None:
        """Checks what must be a constant: the character after ESCAPE, positions and sizes."""
        if call.name == "like":
            if not isinstance(given, Literal) or given.value is None or len(given.value) != 1:
                raise self.error("INVALID_EXPRESSION", "one character in quotes is expected", given.at)
        elif call.name in PATHS and isinstance(given, Literal) and isinstance(given.value, str):
            self.check_path(call, given)
        elif not isinstance(given, Literal):
            what = f"{call.name} with {to_sql(given)}, which is not a constant, cannot be used here yet"
            raise self.error("UNSUPPORTED_EXPRESSION", what, given.at)

    def check_path(self, call: Call, given: Literal) -> None:
        """Errors: INVALID_PATH for a text that is not a path, and for the root where it cannot be meant."""
        try:
            steps = VariantPath.parse(given.value).steps
        except UserError as e:
            raise self.error(e.code, e.message, given.at, e.hint) from None
        if not steps and call.name in ROOTLESS:
            raise self.error("INVALID_PATH", f"the root $ is not a path for {call.name}", given.at)

    def conditional(self, expr: Call) -> Expr:
        """Binds CASE or COALESCE: its values get their common type."""
        cases = expr.name == CASE
        conditions = [self.boolean(a) for a in expr.args[:-1:2]] if cases else []
        sides = [self.bind(a) for a in ((*expr.args[1::2], expr.args[-1]) if cases else expr.args)]
        values = [stripped(a) for a in sides]
        common = common_type_of_list(map(type_of, values), ansi=self.ansi)
        if common is None:
            shown = " and ".join(dict.fromkeys(type_to_ddl(type_of(a)) for a in values))
            hint = "Cast them to one type."
            raise self.error("TYPE_MISMATCH", f"the values of {_word(expr)} are {shown}", expr.at, hint)
        self.refuse_collated(expr, sides)
        values = [self.cast_argument(a, common) for a in values]
        parts = values
        if cases:
            parts = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair] + values[-1:]
        return self.collated(_chosen(Call(expr.name, tuple(parts), common, at=expr.at)), sides)

    def collated(self, made: Expr, sides: Sequence[Expr]) -> Expr:
        """Gives a string the collation of the strings that it was made from, if one of them has another than its own
        column's: those are no part of what is evaluated."""
        if type_of(made) != STRING or not any(isinstance(side, Collate) for side in sides):
            return made
        strings = (self.held(side) for side in sides if type_of(side) == STRING)
        strength, name = max(strings, key=lambda held: held[0])
        return Collate(made, str(name), explicit=strength == Strength.EXPLICIT, at=made.at)

    def refuse_collated(self, expr: Call, sides: Sequence[Expr]) -> None:
        """Raises for a function that makes a string from collated ones: the result would lose the collation. What is
        taken out of an array or a struct keeps theirs, if all its strings have the same.
        """
        explicit = [side for side in sides if isinstance(side, Collate) and side.explicit]
        for side in sides:
            if explicit and type_of(side) == STRING and side not in explicit:
                continue  # theirs wins
            self.refuse_names(expr, self.looked_into(expr, side), text=type_of(side) == STRING)
        held = {held for side in sides if type_of(side) == STRING for held in self.strings_in(side)}
        strongest = max((strength for strength, _ in held), default=Strength.DEFAULT)
        names = {name for strength, name in held if strength == strongest}
        if len(names) > 1:  # the result may have any of them
            self.refuse_names(expr, names, text=True)

    def refuse_names(self, expr: Call, names: set[Identifier], *, text: bool) -> None:
        """Refuses a function if one of these collations is not binary."""
        if not all(map(is_binary, names)):
            what = f"{_word(expr)} of strings of the collation {max(names, key=str)} cannot be used here yet"
            hint = "To use their bytes, write COLLATE UTF8_BINARY after them."
            raise self.error("UNSUPPORTED_EXPRESSION", what, expr.at, hint if text else None)

    def looked_into(self, expr: Call, side: Expr) -> set[Identifier]:
        """The collations by which a function would compare a side, or that its result would lose."""
        own, places = type_of(stripped(side)), self.places(side)
        names = {name for held in places.values() for _, name in held}
        if expr.name in TAKES and own != STRING:
            # A key is found by its bytes; what is taken has the collation of its place, if that has one alone. Of a
            # field of all structs in an array Spark forgets it, but not in the type.
            if any(len(held) > 1 for held in places.values()) or (expr.name == "." and isinstance(own, ArrayType)):
                return names
            keys = [held for way, held in places.items() if way[:1] == ("key",)] if isinstance(own, MapType) else []
            return {name for held in keys for _, name in held}
        elements = expr.name in lookup.FUNCTIONS and lookup.FUNCTIONS[expr.name].elements
        if own == STRING and all(is_blind(expr, name) for name in names):
            return set()
        return names if own == STRING or elements else set()

    def argument(self, expr: Expr, wanted: DataType, *, exact: bool = False) -> Expr:
        """Binds an argument. A Variant gets a cast to another type in its leaf, as if the cast were written."""
        if wanted == STRING and exact:
            return self.bind(expr)
        is_path = isinstance(expr, Path) or self.variant_column(expr) is not None
        return self.bind(Cast(expr, wanted, self.ansi, at=expr.at) if is_path and wanted != VARIANT else expr)

    def cast_argument(self, bound: Expr, wanted: DataType, *, anything: bool = False, ansi: bool | None = None) -> Expr:
        """Casts an argument to the type that the function accepts; `anything` that can be a VARIANT becomes one. `ansi`
        as in `cast_to`."""
        if wanted == VARIANT and not anything and type_of(bound) not in (VARIANT, VOID):
            what = f"{to_sql(bound)} is {type_to_ddl(type_of(bound))} where a VARIANT is needed"
            raise self.error("TYPE_MISMATCH", what, bound.at)
        if wanted == TIMESTAMP_NTZ and type_of(bound) == STRING:
            # Spark's hour, minute and second read a text as a TIMESTAMP: a zone in it counts.
            bound = self.cast_to(bound, TIMESTAMP, bound.at)
        if type_of(bound) == VOID:
            return Literal(None, wanted, at=bound.at)
        return self.cast_to(bound, wanted, bound.at, ansi=ansi)

    def with_time(self, bound: Expr, wanted: DataType) -> Expr:
        """A date as the time that hour, minute and second take it for: the first of its day, which is not midnight
        where a clock change skips that."""
        return self.cast_to(bound, TIMESTAMP, bound.at) if (type_of(bound), wanted) == (DATE, TIMESTAMP_NTZ) else bound

    def arithmetic(self, expr: Call) -> Expr:
        """Binds an operator of arithmetic by the rules of `arithmetic`."""
        args = [stripped(self.bind(a)) for a in expr.args]
        if expr.name in arithmetic.TRIED and any(
            type_of(a) in (STRING, *TIMES) or is_interval(type_of(a)) for a in args
        ):
            # In Spark it hides every error inside of them.
            raise self.error(
                "UNSUPPORTED_EXPRESSION", f"{expr.name} of texts or times cannot be used here yet", expr.at
            )
        timed = self.of_times(expr, args)
        if timed is not None:
            return timed
        if len(args) == 1:
            own = DOUBLE if type_of(args[0]) in (STRING, VOID) else type_of(args[0])
            found: tuple[DataType, ...] | None = (own, own) if is_number(own) else None
        else:
            left, right = (type_of(a) for a in args)
            texts = (arithmetic.without_text(*pair, ansi=self.ansi) for pair in ((left, right), (right, left)))
            args = [self.cast_to(a, t, a.at) for a, t in zip(args, texts, strict=True)]
            left, right = (type_of(a) for a in args)
            digits = (written_as(expr.args[0], left, right), written_as(expr.args[1], right, left))
            found = arithmetic.signature(arithmetic.TRIED.get(expr.name, expr.name), *digits, ansi=self.ansi)
        if found is None:
            shown = " and ".join(type_to_ddl(type_of(a)) for a in args)
            hint = needs_cast(VARIANT) if VARIANT in map(type_of, args) else None
            if expr.name in ("+", "-") and any(type_of(a) in TIMES for a in args):
                hint = "Add an INTERVAL."
            raise self.error("TYPE_MISMATCH", f"there is no {_word(expr)} for {shown}", expr.at, hint)
        *types, result = found
        args = [a if _fits(type_of(a), t) else self.cast_to(a, t, a.at) for a, t in zip(args, types, strict=True)]
        args = [Literal(None, t, at=a.at) if type_of(a) == VOID else a for a, t in zip(args, types, strict=True)]
        if expr.name == "positive":
            return args[0]
        return self.folded(Call(expr.name, tuple(args), result, at=expr.at))

    def of_times(self, expr: Call, args: Sequence[Expr]) -> Expr | None:
        """Binds an operator of which one side is a time or an interval (see `intervals`); None for what it is not."""
        types = [type_of(a) for a in args]
        if len(args) == 1:
            if not is_interval(types[0]):
                return None
            return args[0] if expr.name == "positive" else self.folded(Call("negate", (args[0],), types[0], at=expr.at))
        found = intervals.signature(expr.name, types[0], types[1], ansi=self.ansi)
        if found is None:
            return self.plus_days(expr, args) if DATE in types and expr.name in ("+", "-") else None
        *wanted, result = found
        args = [self.cast_argument(a, t) for a, t in zip(args, wanted, strict=True)]
        if is_interval(wanted[0]) and wanted[1] in TIMES:
            args.reverse()  # Spark evaluates the time first
        if result != STRING:
            return self.folded(Call(expr.name, tuple(args), result, at=expr.at))
        return self.cast_to(self.folded(Call(expr.name, tuple(args), TIMESTAMP, at=expr.at)), STRING, expr.at)

    def plus_days(self, expr: Call, args: Sequence[Expr]) -> Expr | None:
        """Binds `date + days`, `days + date` and `date - days`."""
        dates = [type_of(a) == DATE for a in args]
        date, days = (args[1], args[0]) if dates[1] else (args[0], args[1])
        if is_interval(type_of(days)) or type_of(days) in TIMES:
            return None
        if type_of(days) not in _DAYS[:3] or (expr.name == "-" and dates[1]):
            what = f"there is no {_word(expr)} for {' and '.join(type_to_ddl(type_of(a)) for a in args)}"
            raise self.error("TYPE_MISMATCH", what, expr.at, "Days are an INT.")
        days = self.cast_to(days, INTEGER, days.at)
        name = "date_sub" if expr.name == "-" else "date_add"
        return self.folded(Call(name, (date, days), DATE, at=expr.at))

    def plus_units(self, expr: Call, unit: str, count: Expr, time: Expr) -> Expr:
        """Binds DATEADD: a time and so many intervals of one unit; a date or a text is a TIMESTAMP first. A day goes
        from clock to clock; hours and less are the same everywhere."""
        own, number = (type_of(stripped(self.bind(one))) for one in (time, count))
        if own not in (*TIMES, STRING, VOID) or number not in (*INTEGRALS, VOID):
            what = f"timestampadd of {type_to_ddl(number)} and {type_to_ddl(own)} cannot be used here"
            raise self.error("TYPE_MISMATCH", what, expr.at)
        if own not in (TIMESTAMP, TIMESTAMP_NTZ):
            time = Cast(time, TIMESTAMP, at=time.at)
        if unit in WITHIN_DAYS:
            return self.function(replace(expr, args=(expr.args[0], count, time)))
        times, word = {"quarter": ("3", "month"), "dayofyear": ("1", "day")}.get(unit, ("1", unit))
        length = interval_literals.of_units([(times, word)], expr.at)
        return self.arithmetic(Call("+", (time, Call("*", (length, count), at=expr.at)), at=expr.at))

    def folded(self, call: Call) -> Expr:
        """Evaluates a call of constants now; a call that fails stays, and fails on the rows that need it."""
        if call.name == "like":
            self.check_pattern(call)
        of_null = call.name in lookup.FUNCTIONS and lookup.FUNCTIONS[call.name].of_null
        if not of_null and any(isinstance(a, Literal) and a.value is None for a in call.args):
            return Literal(None, type_of(call), at=call.at)
        nested = not isinstance(call.type, Primitive) or call.type == VARIANT
        if nested or VARIANT in map(type_of, call.args) or not all(isinstance(a, Literal) for a in call.args):
            return call
        constants = [plain_values.from_values([a.value], a.type) for a in call.args if isinstance(a, Literal)]
        args = [constants[0], *(c[0] for c in constants[1:])]
        types = [type_of(a) for a in call.args]
        with named():
            found, failed = calls.apply(call, args, types, ansi=self.ansi, timezone=self.timezone)
        if failed is not None:
            return call
        return Literal(plain_values.to_values(found, type_of(call))[0], type_of(call), at=call.at)

    def check_pattern(self, call: Call) -> None:
        """Errors: INVALID_EXPRESSION for a constant that is not a valid LIKE pattern."""
        try:
            lookup.pattern_of(call)
        except ValueError as e:
            raise self.error("INVALID_EXPRESSION", str(e), call.args[1].at) from e

    def searched_by(self, expr: Call, sides: Iterable[Expr]) -> str | None:
        """Returns the collation by which a function compares strings."""
        collation = self.common_collation(expr, STRING, sides)
        if collation is not None and not searches(expr.name, collation):
            what = f"{_word(expr)} does not support the collation {collation}, here and in Spark"
            hint = "To compare bytes, write COLLATE UTF8_BINARY after the column."
            raise self.error("UNSUPPORTED_EXPRESSION", what, expr.at, hint)
        return collation


def _constant(expr: Expr) -> Any:
    """The value of a constant, None for anything else."""
    return expr.value if isinstance(expr, Literal) else None


def _chosen(call: Call) -> Expr:
    """What CASE or COALESCE of constants alone gives; the call if anything in it is none."""
    constants = [a for a in call.args if isinstance(a, Literal)]
    if len(constants) < len(call.args):
        return call
    *rest, last = constants
    if call.name == CASE:
        return next((value for when, value in zip(rest[::2], rest[1::2], strict=True) if when.value), last)
    return next((a for a in rest if a.value is not None), last)


def _fits(type_: DataType, wanted: DataType) -> bool:
    """Whether no cast is needed: integers and decimals are computed by value."""
    return type_ == wanted or (is_exact(type_) and is_exact(wanted))


def _word(call: Call) -> str:
    return "minus" if call.name == "negate" else "plus" if call.name == "positive" else call.name
