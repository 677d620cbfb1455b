"""Parses calls: functions, and those with words of their own between the arguments.

The rule: a spelling becomes the call that it means, so that nothing behind the parser knows of it.

    CAST(x AS type) TRY_CAST(x AS type)      variant_get(v, 'path'[, 'type'])      struct(x [[AS] name], …)
    EXTRACT(unit FROM x)                     date_part('unit', x): `year(x)` and its kin
    POSITION(x IN y)                         locate(x, y)
    TRIM([BOTH | LEADING | TRAILING] [x] FROM y)
    SUBSTRING(x FROM y [FOR z])              OVERLAY(x PLACING y FROM z [FOR n])
    DATEADD(unit, n, x)                      TIMESTAMPADD, DATE_ADD: x + n * INTERVAL 1 unit, of a time
    DATEDIFF(unit, x, y)                     TIMESTAMPDIFF, DATE_DIFF: whole units from x to y

Source: Spark's SqlBaseParser.g4: primaryExpression.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mica import late
from mica.collation.names import named
from mica.errors import UserError
from mica.expressions import interval_literals, lookup, spellings
from mica.expressions.moments import MOMENTS
from mica.expressions.parse_paths import PathParser
from mica.expressions.spellings import LATE, SPELLINGS
from mica.expressions.tokens import syntax_error
from mica.expressions.tree import Call, Cast, Collate, Column, Expr, Literal, Path
from mica.schema.ddl import parse_column_type, parse_type
from mica.schema.types import STRING, DataType
from mica.variant.path import VariantPath

_TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_ADDS, _DIFFERENCES = ("TIMESTAMPADD", "DATEADD", "DATE_ADD"), ("TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF")


def cast_type(text: str) -> DataType:
    """A type of values: fields are the keys of a Variant, of which two may differ only in case; of CHAR and VARCHAR no
    cast keeps the length."""
    return parse_column_type(text, exact_names=True)[0]


class CallParser(PathParser):
    """Reads calls; the subclass that knows all expressions reads the arguments."""

    def disjunction(self) -> Expr:
        """Reads an expression."""
        raise NotImplementedError

    def comparison(self) -> Expr:
        """Reads an expression without AND, OR, NOT, IN and LIKE."""
        raise NotImplementedError

    def values(self, *, may_be_none: bool = False) -> tuple[Expr, ...]:
        """Reads expressions in brackets."""
        self.expect("(")
        if may_be_none and self.accept(")"):
            return ()
        if self.word() in ("SELECT", "WITH", "FROM"):
            self.unsupported("a subquery")
        values = [self.disjunction()]
        while self.accept(","):
            values.append(self.disjunction())
        self.expect(")")
        return tuple(values)

    def places(self) -> tuple[Expr, ...]:
        """Reads a text and places in it: `(s, 1, 2)`, `(s FROM 1 FOR 2)`."""
        self.expect("(")
        values = [self.disjunction()]
        values += [self.disjunction() for word in ("FROM", "FOR") if self.accept(",") or self.accept(word)]
        self.expect(")")
        return tuple(values)

    def call(self, word: str, at: int) -> Expr:
        """Reads a call, at the name of the function."""
        self.at += 1
        name = word.lower()
        if name in ("cast", "try_cast"):
            return self.cast(at, strict=name == "cast")
        if name in ("variant_get", "try_variant_get"):
            return self.variant_get(at, strict=name == "variant_get")
        if name == "struct":
            return self.struct(at)
        if name in ("substring", "substr"):
            return Call("substring", self.places(), at=at)
        if (form := self.form(word, at)) is not None:
            return form
        if name in SPELLINGS:
            return self.spelling(name, at)
        if name in MOMENTS:
            self.expect("(")
            self.expect(")")
            return Call(name, (), at=at)
        name = lookup.ALIASES.get(name, name)
        if name in lookup.FUNCTIONS:
            function = lookup.FUNCTIONS[name]
            values = self.values(may_be_none=function.optional == len(function.parameters))
            return Call(name, values, late=name in LATE, at=at)
        if word in ("IN", "AND", "OR", "NOT"):
            self.at -= 1
            self.fail("a value is expected")
        raise self.unknown(word.lower(), at)

    def cast(self, at: int, *, strict: bool) -> Expr:
        """Reads `(x AS TYPE)`."""
        self.expect("(")
        value = self.disjunction()
        self.expect("AS")
        type_ = self.type(cast_type)
        found: Expr = Cast(value, type_, strict, at=at)
        if type_ == STRING and self.accept("COLLATE"):  # as strong as a column's
            found = Collate(found, self.collation(at), explicit=False, at=at)
        self.expect(")")
        return found

    def variant_get(self, at: int, *, strict: bool) -> Expr:
        """Reads `(v, '$.a')` and `(v, '$.a', 'TYPE')`."""
        self.expect("(")
        value = self.disjunction()
        self.expect(",")
        found: Expr = Path(value, self.read_string(VariantPath.parse), at=at)
        if self.accept(","):
            found = Cast(found, self.read_string(partial(parse_type, exact_names=True)), strict, at=at)
        self.expect(")")
        return found

    def spelling(self, name: str, at: int) -> Expr:
        """Reads the arguments of a function that is another spelling of an expression."""
        counts, make = SPELLINGS[name]
        values = self.values(may_be_none=0 in counts)
        if len(values) not in counts:
            wanted = f"at least {counts[0]}" if len(counts) > 1 else f"{counts[0]}"
            raise syntax_error(self.text, at, f"{name} takes {wanted} arguments, not {len(values)}")
        try:
            found = make(at, *values)
        except ValueError as e:
            raise syntax_error(self.text, at, str(e)) from e
        return replace(found, late=True) if name in LATE and isinstance(found, Call) else found

    def form(self, word: str, at: int) -> Expr | None:
        """Reads a call with words between its arguments; None if there are none."""
        if word in ("TRIM", "OVERLAY", "POSITION", "EXTRACT"):
            start = self.at
            self.expect("(")
            found: Expr | None = getattr(self, word.lower())(at)
            if found is None:
                self.at = start
                return None
            self.expect(")")
            return found
        if word in (*_ADDS, *_DIFFERENCES) and self.mark(2) == "," and self.word(1) in spellings.UNITS:
            start, unit = self.at, Literal(self.word(1).lower(), STRING, at=at)
            self.at += 3
            first = self.disjunction()
            if not self.accept(","):  # of two arguments, where the first is a column called so
                self.at = start
                return None
            second = self.disjunction()
            self.expect(")")
            return Call("timestampadd" if word in _ADDS else "timestampdiff", (unit, first, second), at=at)
        return None

    def extract(self, at: int) -> Expr:
        """Reads `unit FROM x`."""
        place, unit = self.token.at, self.identifier()
        self.expect("FROM")
        try:
            return spellings.part_of(at, unit, self.comparison())
        except ValueError as e:
            raise syntax_error(self.text, place, str(e), code="UNSUPPORTED_EXPRESSION") from e

    def position(self, at: int) -> Expr | None:
        """Reads `x IN y`."""
        sought = self.comparison()
        return Call("locate", (sought, self.comparison()), at=at) if self.accept("IN") else None

    def trim(self, at: int) -> Expr | None:
        """Reads `BOTH x FROM y`, any of them but y left out."""
        name = _TRIMS.get(self.word()) if self.mark(1) in ("", "(") else None
        if name is not None:
            self.at += 1
        taken = None if self.word() == "FROM" else self.comparison()
        if not self.accept("FROM"):
            return None
        given = self.comparison()
        return Call(name or "trim", (given,) if taken is None else (given, taken), at=at)

    def overlay(self, at: int) -> Expr | None:
        """Reads `x PLACING y FROM z FOR n`."""
        parts = [self.comparison()]
        if not self.accept("PLACING"):
            return None
        parts.append(self.comparison())
        self.expect("FROM")
        parts.append(self.comparison())
        if self.accept("FOR"):
            parts.append(self.comparison())
        return Call("overlay", tuple(parts), at=at)

    def unknown(self, function: str, at: int) -> UserError:
        """The error for a function that is not known here: Spark may have it, or it is misspelt."""
        known = [*lookup.FUNCTIONS, *lookup.ALIASES, *SPELLINGS, *MOMENTS]
        near = late.difflib.get_close_matches(function, known, 1, 0.75)
        hint = f"Is {near[0]} meant?" if near else None
        return syntax_error(self.text, at, f"mica has no function {function}", hint, "UNSUPPORTED_EXPRESSION")

    def struct(self, at: int) -> Expr:
        """Reads the fields of a struct: a name with or without AS, that of a column, or the place."""
        self.expect("(")
        parts: list[Expr] = []
        while not parts or self.accept(","):
            value = self.disjunction()
            own = value.names[-1] if isinstance(value, Column) else f"col{len(parts) // 2 + 1}"
            named = self.accept("AS") or self.mark() not in (",", ")")
            name = self.identifier() if named else own
            parts += [Literal(name, STRING, at=value.at), value]
        self.expect(")")
        return Call("named_struct", tuple(parts), at=at)

    def collation(self, at: int) -> str:
        """The identifier of a collation by its name. An unknown name is told with its place in the text."""
        try:
            return str(named(self))
        except UserError as e:
            if e.code != "UNKNOWN_COLLATION":
                raise
            raise syntax_error(self.text, at, e.message, e.hint, e.code) from None

    def interval(self, at: int) -> Literal:
        """Reads what follows INTERVAL: a text, numbers with units, or a text with two units."""
        parts: list[tuple[str, str]] = []
        try:
            while True:
                sign = self.mark() if self.mark() in ("+", "-") else ""
                if parts and sign and interval_literals.unit_of(self.word(2)) is None:
                    return interval_literals.of_units(parts, at)  # an operator
                self.at += len(sign)
                if self.at_string:
                    number = sign + self.string()
                elif self.token.kind == "number":
                    number, self.at = sign + self.token.text, self.at + 1
                elif parts and not sign:
                    return interval_literals.of_units(parts, at)
                else:
                    self.fail("a number or a text is expected")
                if interval_literals.unit_of(self.word()) is None:
                    if parts or sign:
                        self.fail("a unit of time is expected")
                    return interval_literals.of_text(number, at)
                parts.append((number, self.word()))
                self.at += 1
                if self.accept("TO"):
                    if len(parts) > 1 or interval_literals.unit_of(self.word()) is None:
                        self.fail("a unit of time is expected")
                    self.at += 1
                    return interval_literals.from_to(*parts[0], self.tokens[self.at - 1].text, at)
        except UserError:
            raise  # it has its place
        except ValueError as e:
            raise syntax_error(self.text, at, str(e)) from e
