"""Parses the text of a predicate or of a column into an expression.

The rule: what Spark's grammar accepts has the same meaning here, and every token of the text is used. The parser is our
own, so nothing is lost in another library's tree (sqlglot reads `v:a.$type` as the key `type`). SQL that mica cannot
evaluate yet is rejected by name.

    or := and {OR and}        and := not {AND not}        not := [NOT | !] not | test
    test := comparison [[NOT] BETWEEN … | [NOT] IN (…) | [NOT] LIKE comparison [ESCAPE 'c']
                        | [NOT] {RLIKE | REGEXP} comparison | IS [NOT] NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM …]
    comparison := sum {= | == | <> | != | < | <= | !> | > | >= | !< | <=> sum}
    sum := product {+ | - | `||` product}        product := unary {* | / | % | DIV unary}
    unary := {+ | -} postfix
    postfix := primary {:path | .field | [or] | ::type | COLLATE name}
    primary := literal | column | (or) | case | CAST(or AS type) | VARIANT_GET(or, 'path'[, 'type']) | function(or, …)
    literal := … | INTERVAL {number unit} | INTERVAL 'number unit …' | INTERVAL 'text' unit TO unit
    case := CASE [or] WHEN or THEN or {WHEN or THEN or} [ELSE or] END

Source: Spark's SqlBaseParser.g4: booleanExpression, predicate, valueExpression, semiStructuredExtractionPath.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from mica import late
from mica.collation.names import named
from mica.errors import UserError
from mica.expressions import constants, interval_literals, lookup
from mica.expressions.conditionals import SPELLINGS, case
from mica.expressions.moments import MOMENTS
from mica.expressions.parse_paths import PathParser
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
    Literal,
    Not,
    Op,
    Or,
    Path,
    Text,
    depth,
)
from mica.schema.ddl import RESERVED, parse_column_type, parse_type
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
)
from mica.variant.path import VariantPath

_COMPARISONS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<=>": Op.SAFE_EQ}
_COMPARISONS |= {"!>": Op.LE, "!<": Op.GE} | {op.value: op for op in (Op.LT, Op.LE, Op.GT, Op.GE)}

_TYPED_TEXT = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}
_PATTERNS = ("LIKE", "ILIKE", "RLIKE", "REGEXP")

#: Python's stack has a thousand frames by default; a level of parentheses takes eleven of them.
_MAX_DEPTH = 50

#: Depth of a parsed expression: `a + b + c` has three levels. A walk over the expression recurses as deep.
_MAX_LEVELS = 100


def parse(text: str) -> Expr:
    """Parses a predicate or a value: `a = 1 AND v:b.c::string IS NOT NULL`, `v:did::string`.

    Errors: INVALID_EXPRESSION, UNSUPPORTED_EXPRESSION, with the place in the text.
    """
    return _short(text) if len(text) <= _SHORT else _parse(text)


#: Trees do not change: a query binds the same short texts again and again.
_SHORT = 1_000


@lru_cache(maxsize=512)
def _short(text: str) -> Expr:
    return _parse(text)


def _parse(text: str) -> Expr:
    parser = _Parser(text)
    found = parser.whole()
    if depth(found) > _MAX_LEVELS:
        raise syntax_error(text, 0, f"its operators nest deeper than {_MAX_LEVELS} levels", "Split it with AND or OR.")
    return found


def _cast_type(text: str) -> DataType:
    """A type of values: fields are the keys of a Variant, of which two may differ only in case; of CHAR and VARCHAR no
    cast keeps the length."""
    return parse_column_type(text, exact_names=True)[0]


class _Parser(PathParser):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0

    # --- boolean level

    def whole(self) -> Expr:
        found = self.disjunction()
        if self.token.kind != "end":
            self.refuse_known()
            self.fail("an operator or the end is expected")
        return found

    def disjunction(self) -> Expr:
        if self.token.kind in ("number", "string") and self.mark(1) in (",", ")"):
            # A constant of a list, which may be long: it has no operators to be looked for.
            at = self.token.at
            return Literal(self.string(), STRING, at=at) if self.at_string else self.number("", at)
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise syntax_error(self.text, self.token.at, f"it nests deeper than {_MAX_DEPTH} levels")
        at = self.token.at
        parts = [self.conjunction()]
        while self.accept("OR"):
            parts.append(self.conjunction())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Or(tuple(parts), at=at)

    def conjunction(self) -> Expr:
        at = self.token.at
        parts = [self.negation()]
        while self.accept("AND"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else And(tuple(parts), at=at)

    def negation(self) -> Expr:
        at = self.token.at
        count = 0
        while (not self.names_column() and self.accept("NOT")) or self.accept("!"):
            count += 1
        found = self.test()
        for _ in range(count):
            found = Not(found, at=at)
        return found

    def test(self) -> Expr:
        value = self.comparison()
        at = self.token.at
        negated = self.word() == "NOT" and self.word(1) in ("BETWEEN", "IN", *_PATTERNS)
        if negated:
            self.at += 1
        if self.accept("BETWEEN"):
            low = self.comparison()
            self.expect("AND")
            high = self.comparison()
            sides = ((Op.GE, low), (Op.LE, high))
            found: Expr = And(tuple(Compare(op, value, side, pads=False, at=at) for op, side in sides), at=at)
            return Not(found, at=at) if negated else found
        if self.accept("IN"):
            # `(SELECT)` is a query that gave no value (`query/subqueries.py`).
            values = () if self.accept("(", "SELECT", ")") else self.values()
            return In(value, values, negated, at=at)
        if self.word() in ("LIKE", "ILIKE"):
            found = self.like(value, at)
            return Not(found, at=at) if negated else found
        if self.accept("RLIKE") or self.accept("REGEXP"):
            found = Call("rlike", (value, self.comparison()), at=at)
            return Not(found, at=at) if negated else found
        if self.accept("IS"):
            negated = self.accept("NOT")
            return self.is_test(value, at, negated)
        return value

    def like(self, value: Expr, at: int) -> Expr:
        in_lower = self.word() == "ILIKE"
        self.at += 1
        if self.word() in ("ANY", "SOME", "ALL") and self.mark(1) == "(":
            self.unsupported(f"LIKE {self.word()}")
        sides = (value, self.comparison())
        args: list[Expr] = [Call("lower", (side,), at=at) if in_lower else side for side in sides]
        if self.accept("ESCAPE"):
            place = self.token.at
            escape = self.read_string(str)
            if len(escape) != 1:
                raise syntax_error(self.text, place, "one character is expected after ESCAPE")
            args.append(Literal(escape, STRING, at=place))
        return Call("like", tuple(args), at=at)

    def is_test(self, value: Expr, at: int, negated: bool) -> Expr:
        if self.accept("NULL"):
            return IsNull(value, negated, at=at)
        op = Op.DISTINCT if negated else Op.SAFE_EQ
        if self.accept("TRUE"):
            return Compare(op, value, Literal(True, BOOLEAN), at=at)
        if self.accept("FALSE"):
            return Compare(op, value, Literal(False, BOOLEAN), at=at)
        if self.accept("UNKNOWN"):
            # Only a boolean can be unknown; the comparison rejects every other type.
            return Compare(op, value, Literal(None, BOOLEAN), at=at)
        if self.accept("DISTINCT", "FROM"):
            return Compare(Op.SAFE_EQ if negated else Op.DISTINCT, value, self.comparison(), at=at)
        raise self.error("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected")

    def values(self, *, may_be_none: bool = False) -> tuple[Expr, ...]:
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

    # --- values

    def comparison(self) -> Expr:
        left = self.sum()
        while (op := _COMPARISONS.get(self.mark())) is not None:
            at, mark = self.token.at, self.mark()
            self.at += 1
            if mark in ("<", ">") and self.mark() == mark:
                self.unsupported(f"the operator {mark * 2}", at)
            left = Compare(op, left, self.sum(), at=at)
        if self.mark() in ("&", "|", "^"):
            self.unsupported(f"the operator {self.mark()}")
        return left

    def sum(self) -> Expr:
        return self.operators(("+", "-", "||"), self.product)

    def product(self) -> Expr:
        return self.operators(("*", "/", "%", "DIV"), self.unary)

    def operators(self, marks: tuple[str, ...], operand: Callable[[], Expr]) -> Expr:
        """Reads operands with one of the marks between them, from left to right."""
        left = operand()
        while (mark := self.mark() or self.word()) in marks:
            at = self.token.at
            self.at += 1
            left = Call("concat" if mark == "||" else mark.lower(), (left, operand()), at=at)
        return left

    def unary(self) -> Expr:
        """Reads signs and a value; a minus directly before a number belongs to the number."""
        signs = []
        while self.mark() in ("+", "-"):
            signs.append((self.mark(), self.token.at))
            self.at += 1
        if self.token.kind == "number":
            negative = bool(signs) and signs[-1][0] == "-"
            at = signs.pop()[1] if negative else self.token.at
            found = self.postfix(self.number("-" * negative, at))
        else:
            found = self.postfix(self.primary())
        for mark, at in reversed(signs):
            found = Call("negate" if mark == "-" else "positive", (found,), at=at)
        return found

    def postfix(self, value: Expr) -> Expr:
        while True:
            at = self.token.at
            if self.accept("::"):
                value = Cast(value, self.type(_cast_type), at=at)
            elif self.accept(":"):
                value = Path(value, self.path(), at=at)
            elif self.accept("."):
                name = self.identifier()
                if isinstance(value, Column):
                    value = Column((*value.names, name), at=value.at)
                else:
                    value = Call(".", (value, Literal(name, STRING, at=at)), at=at)
            elif self.accept("["):
                value = Call("[]", (value, self.disjunction()), at=at)
                self.expect("]")
            elif self.accept("COLLATE"):
                value = self.collate(value, at)
            else:
                return value

    def collate(self, value: Expr, at: int) -> Expr:
        if isinstance(value, Cast) and self.tokens[self.at - 2].text != ")":
            # Spark reads it as a cast to a type of that name, with separate rules.
            self.unsupported("a cast to a type with a collation (write (x::string) COLLATE …)", at)
        return Collate(value, self.collation(at), at=at)

    def collation(self, at: int) -> str:
        """The identifier of a collation by its name. An unknown name is told with its place in the text."""
        try:
            return str(named(self))
        except UserError as e:
            if e.code != "UNKNOWN_COLLATION":
                raise
            raise syntax_error(self.text, at, e.message, e.hint, e.code) from None

    def primary(self) -> Expr:
        token, word = self.token, self.word()
        at = token.at
        if self.at_string:
            return Literal(self.string(), STRING, at=at)
        if self.accept("("):
            inner = self.disjunction()
            if self.mark() == ",":
                self.unsupported("a row of several values")
            self.expect(")")
            return inner
        if token.kind == "quoted":
            return Column((self.identifier(),), at=at)
        if not word:
            self.refuse_known()
            self.fail("a value is expected")
        following = self.tokens[self.at + 1]
        if following.kind == "string" and (word in _TYPED_TEXT or word in ("X", "STRING")):
            self.at += 1
            return self.typed_text(word, at)
        if following.kind == "mark" and following.text == "(" and word != "CASE":
            return self.call(word, at)
        if self.names_column():
            return Column((self.identifier(),), at=at)
        if word in ("TRUE", "FALSE"):
            self.at += 1
            return Literal(word == "TRUE", BOOLEAN, at=at)
        if word == "NULL":
            self.at += 1
            return Literal(None, VOID, at=at)
        if word == "CASE":
            self.at += 1
            return self.case(at)
        if word == "INTERVAL":
            self.at += 1
            return self.interval(at)
        if word in RESERVED:  # misplaced
            self.refuse_known()
            self.fail("a value is expected")
        return Column((self.identifier(),), at=at)

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

    def case(self, at: int) -> Expr:
        of = None if self.word() == "WHEN" else self.disjunction()
        branches = []
        while self.accept("WHEN"):
            condition = self.disjunction()
            self.expect("THEN")
            branches.append((condition, self.disjunction()))
        if not branches:
            self.fail("WHEN is expected")
        otherwise = self.disjunction() if self.accept("ELSE") else None
        self.expect("END")
        return case(branches, otherwise, at, of)

    def call(self, word: str, at: int) -> Expr:
        self.at += 1
        if word in ("CAST", "TRY_CAST"):
            self.expect("(")
            value = self.disjunction()
            self.expect("AS")
            type_ = self.type(_cast_type)
            found: Expr = Cast(value, type_, word == "CAST", at=at)
            if type_ == STRING and self.accept("COLLATE"):  # as strong as a column's
                found = Collate(found, self.collation(at), explicit=False, at=at)
            self.expect(")")
            return found
        if word in ("VARIANT_GET", "TRY_VARIANT_GET"):
            self.expect("(")
            value = self.disjunction()
            self.expect(",")
            found = Path(value, self.read_string(VariantPath.parse), at=at)
            if self.accept(","):
                found = Cast(
                    found, self.read_string(partial(parse_type, exact_names=True)), word == "VARIANT_GET", at=at
                )
            self.expect(")")
            return found
        name = word.lower()
        if name == "struct":
            return self.struct(at)
        if name in ("substring", "substr"):
            return Call("substring", self.places(), at=at)
        if name in SPELLINGS:
            counts, make = SPELLINGS[name]
            values = self.values()
            if len(values) not in counts:
                wanted = f"at least {counts[0]}" if len(counts) > 1 else f"{counts[0]}"
                raise syntax_error(self.text, at, f"{name} takes {wanted} arguments, not {len(values)}")
            return make(at, *values)
        if name in MOMENTS:
            self.expect("(")
            self.expect(")")
            return Call(name, (), at=at)
        name = lookup.ALIASES.get(name, name)
        if name in lookup.FUNCTIONS:
            if name == "trim" and self.word(1) in ("BOTH", "LEADING", "TRAILING") and not self.mark(2):
                self.unsupported(f"trim with {self.word(1)}", at)
            function = lookup.FUNCTIONS[name]
            values = self.values(may_be_none=function.optional == len(function.parameters))
            if name in ("date_add", "datediff") and len(values) == 3:
                self.unsupported(f"{name} of a unit", at)
            return Call(name, values, at=at)
        if word in ("IN", "AND", "OR", "NOT"):
            self.at -= 1
            self.fail("a value is expected")
        raise self.unknown(word.lower(), at)

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

    # --- constants

    def number(self, sign: str, at: int) -> Literal:
        text = self.token.text
        self.at += 1
        try:
            return constants.number(sign + text, at)
        except ValueError as e:
            raise syntax_error(self.text, at, str(e)) from e

    def typed_text(self, word: str, at: int) -> Expr:
        text = self.string()
        if word == "STRING":  # a value of a query (`query/subqueries.py`): Spark has no such literal
            return Literal(text, STRING, padded=False, at=at)
        if word != "X":
            return Text(_TYPED_TEXT[word], text, at=at)
        try:
            return Literal(constants.binary(text), BINARY, at=at)
        except ValueError as e:
            raise syntax_error(self.text, at, str(e)) from e

    def refuse_known(self) -> None:
        """Reports SQL that exists but cannot be evaluated here, so that the error does not call it a mistake."""
        if self.word() in ("EXISTS", "COLLATE", "SELECT"):
            self.unsupported(self.word())
        if self.mark() in ("*", "~"):
            self.unsupported(f"the operator {self.mark()}")
