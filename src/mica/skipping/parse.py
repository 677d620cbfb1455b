"""The text of a predicate or of a column to an expression.

The rule: what Spark's grammar reads means here what it means there, and every token of the text is used: there is no
tree in between from which something could be dropped or changed on the way. (sqlglot reads `v:a.$type` as the key
`type`; its tree has no place for the rest.) What mica cannot judge yet is refused by name.

    or := and {OR and}        and := not {AND not}        not := [NOT | !] not | test
    test := comparison [[NOT] BETWEEN … | [NOT] IN (…) | IS [NOT] NULL | TRUE | FALSE | UNKNOWN | DISTINCT FROM …]
    comparison := unary {= | == | <> | != | < | <= | > | >= | <=> unary}
    unary := {+ | -} postfix              postfix := primary {:path | .field | ::type | COLLATE name}
    primary := literal | column | (or) | CAST | TRY_CAST | VARIANT_GET | TRY_VARIANT_GET

Source: Spark's SqlBaseParser.g4: booleanExpression, predicate, valueExpression, semiStructuredExtractionPath.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn, TypeVar

from mica.collation.names import from_sql
from mica.errors import UserError
from mica.schema.ddl import parse_type, unquote
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    DataType,
    decimal,
)
from mica.skipping.predicate import (
    And,
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
)
from mica.skipping.tokens import Token, syntax_error, tokenize
from mica.variant.path import Step, VariantPath

_COMPARISONS = {"=": Op.EQ, "==": Op.EQ, "<>": Op.NE, "!=": Op.NE, "<=>": Op.SAFE_EQ}
_COMPARISONS |= {op.value: op for op in (Op.LT, Op.LE, Op.GT, Op.GE)}

_TYPED_TEXT = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMP_LTZ": TIMESTAMP, "TIMESTAMP_NTZ": TIMESTAMP_NTZ}
_INTEGER_SUFFIX = {"L": (LONG, 63), "S": (SHORT, 15), "Y": (BYTE, 7)}

#: Words that cannot be a column where an expression is expected, so that a misplaced one is named.
_RESERVED = frozenset(
    "AND AS BETWEEN CASE CAST COLLATE DISTINCT ELSE END ESCAPE EXISTS FROM GROUP ILIKE IN INTERVAL IS LIKE NOT OR "
    "ORDER REGEXP RLIKE SELECT THEN WHEN WHERE".split()
)

_SIZED = ("DECIMAL", "DEC", "NUMERIC", "CHAR", "VARCHAR")

#: Python's own stack allows a thousand frames; a level of parentheses takes nine of them.
_MAX_DEPTH = 50

_T = TypeVar("_T")


def parse(text: str) -> Expr:
    """Reads a predicate or a value: `a = 1 AND v:b.c::string IS NOT NULL`, `v:did::string`.

    Errors: INVALID_EXPRESSION, UNSUPPORTED_EXPRESSION, with the place in the text.
    """
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.depth = 0

    # --- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def word(self, ahead: int = 0) -> str:
        place = min(self.at + ahead, len(self.tokens) - 1)
        token = self.tokens[place]
        return token.text.upper() if token.kind == "word" else ""

    def mark(self, ahead: int = 0) -> str:
        place = min(self.at + ahead, len(self.tokens) - 1)
        token = self.tokens[place]
        return token.text if token.kind == "mark" else ""

    def accept(self, *words: str) -> bool:
        """Takes these words or marks when all of them come next."""
        for i, wanted in enumerate(words):
            if (self.word(i) or self.mark(i)) != wanted:
                return False
        self.at += len(words)
        return True

    def expect(self, wanted: str) -> None:
        if not self.accept(wanted):
            self.fail(f"{wanted} is expected")

    def error(self, why: str) -> UserError:
        found = f"{self.token.text!r} is found" if self.token.kind != "end" else "the text ends"
        return syntax_error(self.text, self.token.at, f"{why}, {found}")

    def fail(self, why: str) -> NoReturn:
        raise self.error(why)

    def missing(self, what: str, at: int | None = None) -> UserError:
        place = self.token.at if at is None else at
        return syntax_error(self.text, place, f"{what} cannot be used here yet", code="UNSUPPORTED_EXPRESSION")

    def unsupported(self, what: str, at: int | None = None) -> NoReturn:
        raise self.missing(what, at)

    # --- boolean level

    def whole(self) -> Expr:
        found = self.disjunction()
        if self.token.kind != "end":
            self.refuse_known()
            self.fail("an operator or the end is expected")
        return found

    def disjunction(self) -> Expr:
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
        while self.accept("NOT") or self.accept("!"):
            count += 1
        found = self.test()
        for _ in range(count):
            found = Not(found, at=at)
        return found

    def test(self) -> Expr:
        value = self.comparison()
        at = self.token.at
        negated = self.word() == "NOT" and self.word(1) in ("BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
        if negated:
            self.at += 1
        if self.accept("BETWEEN"):
            low = self.comparison()
            self.expect("AND")
            found: Expr = And(
                (Compare(Op.GE, value, low, at=at), Compare(Op.LE, value, self.comparison(), at=at)), at=at
            )
            return Not(found, at=at) if negated else found
        if self.accept("IN"):
            return In(value, self.values(), negated, at=at)
        if self.word() in ("LIKE", "ILIKE", "RLIKE", "REGEXP"):
            self.unsupported(self.word())
        if self.accept("IS"):
            negated = self.accept("NOT")
            return self.is_test(value, at, negated)
        return value

    def is_test(self, value: Expr, at: int, negated: bool) -> Expr:
        if self.accept("NULL"):
            return IsNull(value, negated, at=at)
        op = Op.DISTINCT if negated else Op.SAFE_EQ
        if self.accept("TRUE"):
            return Compare(op, value, Literal(True, BOOLEAN), at=at)
        if self.accept("FALSE"):
            return Compare(op, value, Literal(False, BOOLEAN), at=at)
        if self.accept("UNKNOWN"):
            # Only a boolean can be unknown; the comparison makes anything else an error.
            return Compare(op, value, Literal(None, BOOLEAN), at=at)
        if self.accept("DISTINCT", "FROM"):
            return Compare(Op.SAFE_EQ if negated else Op.DISTINCT, value, self.comparison(), at=at)
        raise self.error("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected")

    def values(self) -> tuple[Expr, ...]:
        self.expect("(")
        if self.word() in ("SELECT", "WITH", "FROM"):
            self.unsupported("a subquery")
        values = [self.disjunction()]
        while self.accept(","):
            values.append(self.disjunction())
        self.expect(")")
        return tuple(values)

    # --- values

    def comparison(self) -> Expr:
        left = self.unary()
        while (op := _COMPARISONS.get(self.mark())) is not None:
            at = self.token.at
            self.at += 1
            left = Compare(op, left, self.unary(), at=at)
        if self.mark() in ("+", "-", "*", "/", "%", "||", "&", "|", "^"):
            self.unsupported(f"the operator {self.mark()}")
        return left

    def unary(self) -> Expr:
        at = self.token.at
        negative = False
        signs = 0
        while self.mark() in ("+", "-"):
            negative ^= self.mark() == "-"
            signs += 1
            self.at += 1
        if self.token.kind == "number":
            return self.postfix(self.number(negative, at))
        if signs:
            self.unsupported("arithmetic", at)
        return self.postfix(self.primary())

    def postfix(self, value: Expr) -> Expr:
        while True:
            at = self.token.at
            if self.accept("::"):
                value = Cast(value, self.type(), at=at)
            elif self.accept(":"):
                value = Path(value, self.path(), at=at)
            elif self.accept("."):
                if not isinstance(value, Column):
                    self.fail("a field can be taken of a column only")
                value = Column((*value.names, self.identifier()), at=value.at)
            elif self.mark() == "[":
                self.unsupported("an element of an array or a map")
            elif self.accept("COLLATE"):
                value = self.collate(value, at)
            else:
                return value

    def collate(self, value: Expr, at: int) -> Expr:
        if isinstance(value, Cast) and self.tokens[self.at - 2].text != ")":
            # Spark reads it as a cast to a type of that name, with rules of its own.
            self.unsupported("a cast to a type with a collation (write (x::string) COLLATE …)", at)
        try:
            return Collate(value, str(from_sql(self.identifier())), at=at)
        except UserError as e:
            raise syntax_error(self.text, at, e.message, e.hint, e.code) from None

    def primary(self) -> Expr:
        token, word = self.token, self.word()
        at = token.at
        if token.kind in ("string", "raw"):
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
        if following.kind == "string" and (word in _TYPED_TEXT or word == "X"):
            self.at += 1
            text = self.string()
            return Literal(_hex(self, text, at), BINARY, at=at) if word == "X" else Text(_TYPED_TEXT[word], text, at=at)
        if following.kind == "mark" and following.text == "(":
            return self.call(word, at)
        if word in ("TRUE", "FALSE"):
            self.at += 1
            return Literal(word == "TRUE", BOOLEAN, at=at)
        if word == "NULL":
            self.at += 1
            return Literal(None, VOID, at=at)
        if word in _RESERVED:
            self.refuse_known()
            self.fail("a value is expected")
        return Column((self.identifier(),), at=at)

    def call(self, word: str, at: int) -> Expr:
        self.at += 1
        if word in ("CAST", "TRY_CAST"):
            self.expect("(")
            value = self.disjunction()
            self.expect("AS")
            type_ = self.type()
            self.expect(")")
            return Cast(value, type_, word == "CAST", at=at)
        if word in ("VARIANT_GET", "TRY_VARIANT_GET"):
            self.expect("(")
            value = self.disjunction()
            self.expect(",")
            path = self.literal_text(VariantPath.parse)
            found: Expr = Path(value, path, at=at)
            if self.accept(","):
                found = Cast(found, self.literal_text(parse_type), word == "VARIANT_GET", at=at)
            self.expect(")")
            return found
        if word in ("IN", "AND", "OR", "NOT"):
            self.at -= 1
            self.fail("a value is expected")
        raise self.missing(f"the function {word.lower()}", at)

    def literal_text(self, read: Callable[[str], _T]) -> _T:
        """An argument that must be a string, read by `read`, whose errors then show the place."""
        at = self.token.at
        if self.token.kind not in ("string", "raw"):
            self.fail("a string is expected")
        try:
            return read(self.string())
        except UserError as e:
            raise syntax_error(self.text, at, e.message) from e

    def identifier(self) -> str:
        token = self.token
        if token.kind == "quoted":
            self.at += 1
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word":
            self.fail("a name is expected")
        self.at += 1
        return token.text

    def string(self) -> str:
        parts = []
        while self.token.kind in ("string", "raw"):
            parts.append(self.token.text[2:-1] if self.token.kind == "raw" else unquote(self.token.text))
            self.at += 1
        return "".join(parts)

    def path(self) -> VariantPath:
        """What stands after the colon: a name or a bracket first, then .names and brackets."""
        steps: list[Step] = []
        while True:
            if self.mark() == "[":
                self.at += 1
                steps.append(self.bracket())
                self.expect("]")
            elif not steps or self.mark() == ".":
                if steps:
                    self.at += 1
                steps.append(self.path_key())
            else:
                return VariantPath(tuple(steps))

    def path_key(self) -> str:
        at, quoted = self.token.at, self.token.kind == "quoted"
        if self.token.kind == "number":
            self.fail("a key is expected (one that is a number is written ['0'])")
        key = self.identifier()
        if quoted and (not key or any(c in key for c in ".[")):
            # Spark joins the name to the path's text and reads that again: `a.b` becomes two keys.
            raise syntax_error(
                self.text, at, f"Spark reads the key {key!r} in backticks as something else", "Write it as ['key']."
            )
        return key

    def bracket(self) -> Step:
        if self.token.kind in ("string", "raw"):
            return self.string()
        if self.token.kind == "number" and self.token.text.isdecimal():
            index = int(self.token.text)
            if index >= 2**31:
                self.fail("a position is 2147483647 at most")
            self.at += 1
            return index
        raise self.error("a 'key' or a position is expected")

    def type(self) -> DataType:
        """A type: one word with what follows it in (…) or <…>."""
        start = self.token
        if start.kind != "word":
            self.fail("a type is expected")
        end = start.end
        rest = self.text[end:]
        opening = rest.lstrip()[:1]
        word = start.text.upper()
        if (opening == "<" and word in ("ARRAY", "MAP", "STRUCT")) or (opening == "(" and word in _SIZED):
            end += len(rest) - len(rest.lstrip())
            end = _closing(self.text, end, opening)
        try:
            found = parse_type(self.text[start.at : end])
        except UserError as e:
            raise syntax_error(self.text, start.at, e.message) from e
        while self.token.kind != "end" and self.token.at < end:
            self.at += 1
        return found

    def number(self, negative: bool, at: int) -> Literal:
        """A number, typed by its spelling as Spark types it."""
        text = self.token.text.upper()
        sign = "-" if negative else ""
        self.at += 1
        if text.endswith("BD"):
            return self.decimal(sign + text[:-2], at)
        if text[-1] in _INTEGER_SUFFIX and text[:-1].isdecimal():
            type_, bits = _INTEGER_SUFFIX[text[-1]]
            value = int(sign + text[:-1])
            if not -(1 << bits) <= value < 1 << bits:
                raise syntax_error(self.text, at, f"{sign}{text} does not fit its type")
            return Literal(value, type_, at=at)
        if text[-1] in "LSY":
            raise syntax_error(self.text, at, f"{text} is no integer")
        if text[-1] in "FD" or "E" in text:
            body = text.rstrip("FD")
            value_f = float(sign + body)
            if value_f in (float("inf"), float("-inf")):
                raise syntax_error(self.text, at, f"{sign}{text} does not fit a double")
            if text[-1] == "F":
                return Literal(_to_float32(self, value_f, at), FLOAT, at=at)
            return Literal(value_f, DOUBLE, at=at)
        if text.isdecimal():
            value = int(sign + text)
            for type_, bits in ((INTEGER, 31), (LONG, 63)):
                if -(1 << bits) <= value < 1 << bits:
                    return Literal(value, type_, at=at)
        return self.decimal(sign + text, at)

    def decimal(self, text: str, at: int) -> Literal:
        value = Decimal(text)
        sign, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise syntax_error(self.text, at, f"{text} is no number")
        if exponent > 0:
            value = Decimal((sign, (*digits, *([0] * min(exponent, 50))), 0))
            digits, exponent = value.as_tuple().digits, 0
        scale = -exponent
        precision = max(len(digits) if digits != (0,) else 1, scale)
        if precision > 38:
            raise syntax_error(self.text, at, f"{text} has more than 38 digits")
        return Literal(value, decimal(precision, scale), at=at)

    def refuse_known(self) -> None:
        """Names SQL that exists but cannot be judged here, so that the error does not call it a mistake."""
        word = self.word()
        if word in ("CASE", "EXISTS", "INTERVAL", "COLLATE", "LIKE", "SELECT"):
            self.unsupported(word)
        if self.mark() in ("*", "~"):
            self.unsupported(f"the operator {self.mark()}")


def _hex(parser: _Parser, text: str, at: int) -> bytes:
    try:
        return bytes.fromhex("0" * (len(text) % 2) + text) if not any(c.isspace() for c in text) else bytes.fromhex("?")
    except ValueError as e:
        raise syntax_error(parser.text, at, f"X'{text}' is no binary literal: hexadecimal digits are expected") from e


def _to_float32(parser: _Parser, value: float, at: int) -> float:
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError as e:
        raise syntax_error(parser.text, at, f"{value} does not fit a float") from e
    return rounded


def _closing(text: str, at: int, opening: str) -> int:
    """The offset after the bracket that closes the one at `at`; backticks inside are left alone."""
    closing = {"<": ">", "(": ")"}[opening]
    depth, quoted = 0, False
    for i in range(at, len(text)):
        c = text[i]
        if c == "`":
            quoted = not quoted
        elif not quoted and c == opening:
            depth += 1
        elif not quoted and c == closing:
            depth -= 1
            if depth == 0:
                return i + 1
    raise syntax_error(text, at, f"{opening!r} is not closed")
