"""Parses the text of a predicate or of a column into an expression.

The rule: what Spark's grammar accepts has the same meaning here, and every token of the text is used. The parser is our
own, so nothing is lost in another library's tree (sqlglot reads `v:a.$type` as the key `type`). SQL that mica cannot
evaluate yet is rejected by name.

    or := and {OR and}        and := not {AND not}        not := [NOT | !] not | test
    test := comparison [[NOT] BETWEEN … | [NOT] IN (…) | [NOT] LIKE comparison [ESCAPE 'c']
                        | [NOT] LIKE {ANY | SOME | ALL} (…)
                        | [NOT] {RLIKE | REGEXP} comparison | IS [NOT] NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM …]
    comparison := bits {= | == | <> | != | < | <= | !> | > | >= | !< | <=> bits}
    bits := sum {`|` | ^ | & | << | >> | >>> sum}, the last ones first
    sum := product {+ | - | `||` product}        product := unary {* | / | % | DIV unary}
    unary := {+ | - | ~} postfix
    postfix := primary {:path | .field | [or] | ::type | COLLATE name}
    primary := literal | column | (or) | case | function(or, …), see `parse_calls`
    literal := … | INTERVAL {number unit} | INTERVAL 'number unit …' | INTERVAL 'text' unit TO unit
    case := CASE [or] WHEN or THEN or {WHEN or THEN or} [ELSE or] END

Source: Spark's SqlBaseParser.g4: booleanExpression, predicate, valueExpression, semiStructuredExtractionPath.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from mica.expressions import constants
from mica.expressions.conditionals import case
from mica.expressions.parse_calls import CallParser, cast_type
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
from mica.schema.spelling import RESERVED
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
)

_COMPARISONS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<=>": Op.SAFE_EQ}
_COMPARISONS |= {"!>": Op.LE, "!<": Op.GE} | {op.value: op for op in (Op.LT, Op.LE, Op.GT, Op.GE)}

_TYPED_TEXT = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}
_SIGNS = {"-": "negate", "+": "positive", "~": "~"}
#: How strongly bitwise operators bind, and how many signs a shift has.
_BITS = {"|": 1, "^": 2, "&": 3, "shiftleft": 4, "shiftright": 4, "shiftrightunsigned": 4}
_MARKS = {"shiftleft": 2, "shiftright": 2, "shiftrightunsigned": 3}
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


class _Parser(CallParser):
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
            return self.like(value, at, negated)
        if self.accept("RLIKE") or self.accept("REGEXP"):
            found = Call("rlike", (value, self.comparison()), at=at)
            return Not(found, at=at) if negated else found
        if self.accept("IS"):
            negated = self.accept("NOT")
            return self.is_test(value, at, negated)
        return value

    def like(self, value: Expr, at: int, negated: bool) -> Expr:
        in_lower = self.word() == "ILIKE"
        self.at += 1
        if self.word() in ("ANY", "SOME", "ALL") and self.mark(1) == "(":
            joined = And if self.word() == "ALL" else Or
            self.at += 1
            likes: list[Expr] = [self.likeness(value, one, at, in_lower=in_lower) for one in self.values()]
            if negated:
                likes = [Not(one, at=at) for one in likes]
            return likes[0] if len(likes) == 1 else joined(tuple(likes), at=at)
        args = self.likeness(value, self.comparison(), at, in_lower=in_lower).args
        if self.accept("ESCAPE"):
            place = self.token.at
            escape = self.read_string(str)
            if len(escape) != 1:
                raise syntax_error(self.text, place, "one character is expected after ESCAPE")
            args = (*args, Literal(escape, STRING, at=place))
        found = Call("like", args, at=at)
        return Not(found, at=at) if negated else found

    def likeness(self, value: Expr, pattern: Expr, at: int, *, in_lower: bool) -> Call:
        sides = (value, pattern)
        return Call("like", tuple(Call("lower", (side,), at=at) if in_lower else side for side in sides), at=at)

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

    # --- values

    def comparison(self) -> Expr:
        left = self.bits()
        while (op := _COMPARISONS.get(self.mark())) is not None:
            at = self.token.at
            self.at += 1
            left = Compare(op, left, self.bits(), at=at)
        return left

    def bits(self) -> Expr:
        """Reads operands of bitwise operators, which bind by `_BITS`, without a call for each level."""
        operands, waiting = [self.sum()], list[tuple[str, int]]()
        while True:
            name = self.bitwise()
            while waiting and (name is None or _BITS[waiting[-1][0]] >= _BITS[name]):
                (done, at), right = waiting.pop(), operands.pop()
                operands.append(Call(done, (operands.pop(), right), at=at))
            if name is None:
                return operands[0]
            waiting.append((name, self.token.at))
            self.at += _MARKS.get(name, 1)
            operands.append(self.sum())

    def bitwise(self) -> str | None:
        """The bitwise operator that comes next; the signs of a shift have nothing between them."""
        mark = self.mark()
        if mark not in ("<", ">"):
            return mark if mark in _BITS else None
        first, second, third = (self.tokens[min(self.at + n, len(self.tokens) - 1)] for n in range(3))
        if second.text != mark or second.at != first.end:
            return None
        unsigned = mark == third.text == ">" and third.at == second.end
        return "shiftleft" if mark == "<" else "shiftrightunsigned" if unsigned else "shiftright"

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
        while self.mark() in _SIGNS:
            signs.append((self.mark(), self.token.at))
            self.at += 1
        if self.token.kind == "number":
            negative = bool(signs) and signs[-1][0] == "-"
            at = signs.pop()[1] if negative else self.token.at
            found = self.postfix(self.number("-" * negative, at))
        else:
            found = self.postfix(self.primary())
        for mark, at in reversed(signs):
            found = Call(_SIGNS[mark], (found,), at=at)
        return found

    def postfix(self, value: Expr) -> Expr:
        while True:
            at = self.token.at
            if self.accept("::"):
                value = Cast(value, self.type(cast_type), at=at)
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

    def primary(self) -> Expr:
        token, word = self.token, self.word()
        at = token.at
        if self.at_string:
            return Literal(self.string(), STRING, at=at)
        if self.accept("("):
            inner = self.disjunction()
            parts = [inner]
            while self.accept(","):
                parts.append(self.disjunction())
            self.expect(")")
            return inner if len(parts) == 1 else self.row(parts, at)
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

    def row(self, values: list[Expr], at: int) -> Expr:
        """A row of several values is a struct, whose fields have the names of columns, as in Spark: two with other
        names are compared by their places, but nothing is cast for it."""
        names = [one.names[-1] if isinstance(one, Column) else f"col{n}" for n, one in enumerate(values, 1)]
        named = [(Literal(name, STRING, at=one.at), one) for name, one in zip(names, values, strict=True)]
        return Call("named_struct", tuple(part for pair in named for part in pair), at=at)

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
        if self.mark() == "*":
            self.unsupported("the operator *")
