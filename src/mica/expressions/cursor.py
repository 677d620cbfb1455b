"""A cursor over the tokens of a text.

The rule: tokens are read from left to right, without backtracking; every error carries its position in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from mica.errors import UserError
from mica.expressions.tokens import Token, syntax_error, tokenize
from mica.schema.ddl import parse_type
from mica.schema.interval_types import MONTHS, TIMES, interval
from mica.schema.spelling import RESERVED, unquote, unquoted
from mica.schema.types import DataType

#: What follows a value: reserved words before it are columns. A sign may also begin a value.
_AFTER_VALUES = frozenset(") , ] [ = == <> != < <= > >= <=> !> !< / % || :: : . & | ^".split())
_OPERATORS = frozenset("AND OR IS IN LIKE ILIKE RLIKE REGEXP BETWEEN DIV".split())
_BETWEEN_VALUES = _OPERATORS | {"WHEN", "THEN", "ELSE", "END", "AS", "COLLATE", "ESCAPE", "WHERE"}
_SIGNS, _BEFORE_VALUES, _LITERALS = ("+", "-", "*"), ("CASE", "SELECT"), ("TRUE", "FALSE", "NULL")
_SIZED = ("DECIMAL", "DEC", "NUMERIC", "CHAR", "CHARACTER", "VARCHAR")

_T = TypeVar("_T")


class Cursor:
    """The tokens of a text and the primitives to read them; `parse` is built on it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def word(self, ahead: int = 0) -> str:
        """The next word in capitals, or an empty string."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.text.upper() if token.kind == "word" else ""

    def mark(self, ahead: int = 0) -> str:
        """The next mark, or an empty string."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.text if token.kind == "mark" else ""

    def accept(self, *words: str) -> bool:
        """Consumes these words or marks if all of them come next."""
        for i, wanted in enumerate(words):
            if (self.word(i) or self.mark(i)) != wanted:
                return False
        self.at += len(words)
        return True

    def expect(self, wanted: str) -> None:
        """Consumes this word or mark, or fails."""
        if not self.accept(wanted):
            self.fail(f"{wanted} is expected")

    def error(self, why: str) -> UserError:
        """An error that names the token found here."""
        found = f"{self.token.text!r} is found" if self.token.kind != "end" else "the text ends"
        return syntax_error(self.text, self.token.at, f"{why}, {found}")

    def fail(self, why: str) -> NoReturn:
        """Raises `error`."""
        raise self.error(why)

    def missing(self, what: str, at: int | None = None) -> UserError:
        """The error for valid SQL that cannot be evaluated here."""
        place = self.token.at if at is None else at
        return syntax_error(self.text, place, f"{what} cannot be used here yet", code="UNSUPPORTED_EXPRESSION")

    def unsupported(self, what: str, at: int | None = None) -> NoReturn:
        """Raises `missing`."""
        raise self.missing(what, at)

    def identifier(self) -> str:
        """Reads a name, with or without backticks."""
        token = self.token
        if token.kind == "quoted":
            self.at += 1
            return unquoted(token.text)
        if token.kind != "word":
            self.fail("a name is expected")
        self.at += 1
        return token.text

    def names_column(self) -> bool:
        """Whether a reserved word is the name of a column: what follows does not go on with the word's own syntax."""
        word, following = self.word(), self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        if word not in RESERVED or word in _LITERALS:
            return False
        if following.kind == "end" or self.mark(1) in _AFTER_VALUES:
            return True
        if word == "NOT" or (word == "CASE" and "WHEN" in (self.word(1), self.word(2))):
            return False
        if self.mark(1) in _SIGNS:
            return word not in _BEFORE_VALUES and not (word == "INTERVAL" and self._is_length_signed)
        negated = self.word(1) == "NOT" and self.word(2) in _OPERATORS
        return negated or self.word(1) in _BETWEEN_VALUES

    @property
    def _is_length_signed(self) -> bool:
        """Whether a text, or a number with a unit, comes behind a word and a sign: as in INTERVAL -1 DAY."""
        kinds = [token.kind for token in self.tokens[self.at + 2 : self.at + 4]]
        return kinds[0] in ("string", "raw") or kinds == ["number", "word"]

    @property
    def at_string(self) -> bool:
        """Whether a string comes next."""
        return self.token.kind in ("string", "raw")

    def string(self) -> str:
        """Reads a string; adjacent strings are one."""
        parts = []
        while self.at_string:
            parts.append(self.token.text[2:-1] if self.token.kind == "raw" else unquote(self.token.text))
            self.at += 1
        return "".join(parts)

    def read_string(self, read: Callable[[str], _T]) -> _T:
        """Reads a string and parses it with `read`; errors of `read` show the position in the text."""
        at = self.token.at
        if not self.at_string:
            self.fail("a string is expected")
        try:
            return read(self.string())
        except UserError as e:
            raise syntax_error(self.text, at, e.message, e.hint) from e

    def type(self, read: Callable[[str], DataType] = parse_type) -> DataType:
        """Reads a type: one word with what follows it in (…) or <…>."""
        start = self.token
        if start.kind != "word":
            self.fail("a type is expected")
        end, following = start.end, self.tokens[self.at + 1]
        opening = following.text[:1]
        word = start.text.upper()
        if word == "INTERVAL":
            return self.interval_type()
        if (opening == "<" and word in ("ARRAY", "MAP", "STRUCT")) or (opening == "(" and word in _SIZED):
            end = _closing(self.text, following.at, opening)
        if word == "TIMESTAMP" and self.word(1) in ("WITH", "WITHOUT"):  # LOCAL TIME ZONE, TIME ZONE
            end = self.tokens[min(self.at + (4 if self.word(1) == "WITH" else 3), len(self.tokens) - 1)].end
        try:
            found = read(self.text[start.at : end])
        except UserError as e:
            raise syntax_error(self.text, start.at, e.message, e.hint) from e
        while self.token.kind != "end" and self.token.at < end:
            self.at += 1
        return found

    def interval_type(self) -> DataType:
        """Reads INTERVAL DAY, INTERVAL DAY TO SECOND, …: a type that no column has, so DDL does not."""
        self.at += 1
        first, last = self.word().lower(), ""
        if self.word(1) == "TO":
            last = self.word(2).lower()
        units = [unit for unit in (first, last) if unit]
        kinds = [kind for kind in (MONTHS, TIMES) if set(units) <= set(kind)]
        if not kinds or (last and kinds[0].index(first) >= kinds[0].index(last)):
            self.fail("YEAR TO MONTH, DAY TO SECOND or a part of either is expected")
        self.at += 3 if last else 1
        return interval(units)


def _closing(text: str, at: int, opening: str) -> int:
    """The offset after the bracket that closes the one at `at`; brackets in backticks are ignored."""
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
