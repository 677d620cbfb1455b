"""The parts that statements have in common: names of tables, aliases, expressions and lists of them.

The rule: expressions stay text, cut out of the statement as they are written, up to the word that ends them.

Source: Spark's SqlBaseParser.g4 and delta-spark's DeltaSqlBase.g4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from mica.cached import cached_property
from mica.errors import UserError
from mica.expressions.cursor import Cursor
from mica.expressions.tokens import Token
from mica.schema.lexical import QUOTED_NAME, QUOTED_STRING, RAW_STRING, REST, SKIPPED
from mica.schema.spelling import quote_if_needed, quoted, spelled, unquote, unquoted
from mica.schema.types import StructType

#: The words that begin a query.
QUERY = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
#: How a query in parentheses begins that stands for a value.
VALUE_QUERY = ("SELECT", "WITH")

#: A part of a text: what may follow its end, or something that belongs to it.
_PART = re.compile(
    rf"(?P<after>(?>(?:;|\s|{SKIPPED})+))|{RAW_STRING}|{QUOTED_STRING}|{QUOTED_NAME}|{REST}|\w+|.", re.DOTALL
)


def ended(text: str) -> str:
    """The text without what may follow its end: semicolons, blanks and comments."""
    return text[: max((part.end() for part in _PART.finditer(text) if part["after"] is None), default=0)]


def as_assigned(names: tuple[str, ...]) -> str:
    """A column or a field that gets a value: with all of its quotes a field is not taken for a column that has a dot in
    its name."""
    return quote_if_needed(names[0]) if len(names) == 1 else ".".join(map(quoted, names))


def refuse_again(column: str, known: set[str]) -> None:
    """Errors: DUPLICATE_COLUMN for a column that gets a value already; `known` in lower case."""
    if column.lower() in known:
        raise UserError("DUPLICATE_COLUMN", f"the column {column!r} is set twice", column=column)


def is_tables(names: Sequence[str], table: str, columns: StructType) -> bool:
    """Whether the first of these names is the table's, before a column's. A column that is called as the table comes
    after it, as in Spark: `t.x` is its field if the table `t` has no column `x`."""
    if len(names) < 2 or names[0].lower() != table.lower():
        return False
    return columns.find(table) is None or columns.find(names[1]) is not None


def without_name(text: str, name: str, columns: StructType) -> str:
    """The expression without the table's name before its columns, which a query in it keeps."""
    parts, found, at = Parts(text), "", 0
    hidden = _of_lambdas(parts.tokens, name)
    while parts.token.kind != "end":
        if parts.mark() == "(" and parts.word(1) in VALUE_QUERY:
            parts.parenthesised()
            continue
        begins = not parts.at or parts.tokens[parts.at - 1].text not in (".", ":")
        if begins and parts.at not in hidden and parts.mark(1) == ".":
            names = [unquoted(token.text) for token in parts.tokens[parts.at : parts.at + 3 : 2]]
            if is_tables(names, name, columns):
                found, at = found + text[at : parts.token.at], parts.tokens[parts.at + 1].end
        parts.at += 1
    return found + text[at:]


def _of_lambdas(tokens: Sequence[Token], name: str) -> set[int]:
    """The places of tokens of lambda functions that have a variable of this name: it hides the table's name there."""
    found = set[int]()
    for arrow, (one, other) in enumerate(pairwise(tokens)):
        if (one.text, other.text) == ("-", ">"):
            first, end, depth = arrow - 1, arrow + 2, 0
            while first > 0 and tokens[arrow - 1].text == ")" and tokens[first].text != "(":
                first -= 1
            while depth >= 0 and tokens[end].kind != "end" and (depth, tokens[end].text) != (0, ","):
                depth += (tokens[end].text in ("(", "[")) - (tokens[end].text in (")", "]"))
                end += 1
            if name.lower() in (unquoted(token.text).lower() for token in tokens[max(first, 0) : arrow]):
                found.update(range(max(first, 0), end))
    return found


#: The value of a column in PARTITION.
_LITERAL = re.compile(
    rf"""(?:-\s*)?\.?\d[\w.]*(?:(?<=e)[-+]\d+\w*)? | (?:\w+\s*)?{QUOTED_STRING}(?:\s*{QUOTED_STRING})*
      | NULL | TRUE | FALSE""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def name_parts(text: str) -> tuple[str, ...] | None:
    """The parts of a name of a table; None if the text is not one."""
    try:
        parts = Parts(text)
        found = parts.several_names()
        parts.end()
    except UserError:
        return None
    return found


class Parts(Cursor):
    """A place in a statement, and what may follow it. Errors: INVALID_EXPRESSION, with the place."""

    def table(self) -> tuple[str, ...]:
        """The name of a table."""
        return self.several_names()

    def several_names(self) -> tuple[str, ...]:
        """A name of one part or several."""
        parts = [self.identifier()]
        while self.accept("."):
            parts.append(self.identifier())
        return tuple(parts)

    def as_of(self, *ends: str) -> tuple[int | None, str | None]:
        """The version of VERSION AS OF, the expression of TIMESTAMP AS OF up to one of these words; None for what is
        not there."""
        is_marked = self.accept("FOR")
        if any(self.accept(word, "AS", "OF") for word in ("VERSION", "SYSTEM_VERSION")):
            return self.count(), None
        if any(self.accept(word, "AS", "OF") for word in ("TIMESTAMP", "SYSTEM_TIME")):
            return None, self.until(*ends) if ends else self.rest()
        if is_marked:
            self.fail("VERSION AS OF or TIMESTAMP AS OF is expected")
        return None, None

    def partition(self) -> dict[str, str | None]:
        """The columns of PARTITION, each with its value or None."""
        found: dict[str, str | None] = {}

        def one() -> str:
            name = self.identifier()
            if name.lower() in map(str.lower, found):
                self.fail(f"{name} is named twice")
            found[name] = None
            if self.accept("="):
                at, value = self.at, self.until(marks=",")
                found[name] = value
                if not _LITERAL.fullmatch(value):
                    self.at = at
                    self.fail("a literal is expected")
            return name

        self.each(one)
        return found

    def place(self) -> tuple[str, ...]:
        """A table by its name, or by its path in quotes, as delta-spark's own statements take it."""
        return ("delta", self.string()) if self.at_string else self.table()

    @cached_property
    def long_names(self) -> list[tuple[str, ...]]:
        """The names of several parts that may precede a column, in lower case."""
        return []

    def alias(self, *stops: str) -> str | None:
        """Another name for what precedes, unless one of these words follows."""
        self.accept("AS")
        if self.token.kind == "end" or self.word() in stops:
            return None
        return self.identifier()

    def alias_or_name(self, table: tuple[str, ...], *stops: str) -> str:
        """The alias that follows a table, or else the last part of its name, whose other parts may precede columns."""
        alias = self.alias(*stops)
        if alias is None and len(table) > 1:
            self.long_names.append(tuple(part.lower() for part in table))
        return alias or table[-1]

    def condition(self, word: str, *stops: str) -> str | None:
        """The expression after a word, up to one of `stops`; None without it."""
        return self.until(*stops) if self.accept(word) else None

    def until(self, *stops: str, marks: str = "") -> str:
        """The text up to one of these words or marks outside of parentheses; of a long name of a table before a column
        the last part stays. A query in parentheses is kept: there a name may be another one's."""
        start, depth, case, cut = self.token.at, 0, 0, []
        while self.token.kind != "end":
            before = self.tokens[self.at - 1].text if self.at else ""
            # A word that follows these is the name of a field or of a key.
            word, mark = "" if before in (".", ":") else self.word(), self.mark()
            case += (word == "CASE" and not self.names_column()) - (word == "END" and case > 0)
            if depth == 0 and case == 0 and (word in stops or (mark and mark in marks)):
                break
            if mark == ")" and depth == 0:
                break
            if mark == "(" and self.word(1) in VALUE_QUERY:
                self.parenthesised()
                continue
            depth += (mark == "(") - (mark == ")")
            more = 0 if before in (".", ":") else self.of_long_name()
            if more:
                cut.append((self.token.at, self.tokens[self.at + more].at))
            self.at += more + 1
        end = self.tokens[self.at - 1].end
        if end <= start:
            self.fail("an expression is expected")
        text, at = "", start
        for first, last in cut:
            text, at = text + self.text[at:first], last
        return text + self.text[at:end]

    def of_long_name(self) -> int:
        """The number of tokens here up to the last part of a name of several parts before a column; 0 without one."""
        for name in self.long_names:
            tokens = self.tokens[self.at : self.at + 2 * len(name)]
            words = [unquoted(token.text).lower() for token in tokens]
            if words == [part for one in name for part in (one, ".")]:
                return 2 * len(name) - 2
        return 0

    def assignments(self, *stops: str) -> dict[str, str]:
        """`column = expression, …`, as they are written."""
        found, known = dict[str, str](), set[str]()
        while True:
            column = self.assigned()
            self.expect("=")
            refuse_again(column, known)
            known.add(column.lower())
            found[column] = self.until(*stops, marks=",")
            if not self.accept(","):
                return found

    def assigned(self) -> str:
        """A column or a field that gets a value, maybe with the table's name before it."""
        self.at += self.of_long_name()
        return as_assigned(self.several_names())

    def column(self) -> str:
        """A column or a field as an expression."""
        return spelled(self.several_names())

    def expressions(self) -> tuple[str, ...]:
        """Expressions in parentheses."""
        return self.each(self.one_expression)

    def one_expression(self) -> str:
        """An expression up to a comma."""
        return self.until(marks=",")

    def listed(self) -> tuple[str, ...]:
        """Names of columns in parentheses."""
        return self.each(self.identifier)

    def each(self, one: Callable[[], str]) -> tuple[str, ...]:
        """What `one` finds, in parentheses, with commas between."""
        self.expect("(")
        found = self.several(one)
        self.expect(")")
        return found

    def several(self, one: Callable[[], str]) -> tuple[str, ...]:
        """What `one` finds, with commas between."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return tuple(found)

    def pairs(self) -> dict[str, str]:
        """Properties with their values, in parentheses."""
        self.expect("(")
        found: dict[str, str] = {}
        while True:
            name = self.string() if self.at_string else ".".join(self.table())
            self.accept("=")  # Spark's grammar can do without it
            if self.at_string:
                found[name] = self.string()
            elif self.token.kind not in ("word", "number"):
                self.fail("a value is expected")
            else:
                text = self.token.text
                found[name] = text.lower() if text.upper() in ("TRUE", "FALSE") else text
                self.at += 1
            if not self.accept(","):
                break
        self.expect(")")
        return found

    def parenthesised(self) -> str:
        """A text with the parentheses around it."""
        start = self.token.at
        self.expect("(")
        self.until()
        self.expect(")")
        return self.text[start : self.tokens[self.at - 1].end]

    def string(self) -> str:
        """A text in quotes, without them."""
        if not self.at_string:
            self.fail("a text in quotes is expected")
        self.at += 1
        token = self.tokens[self.at - 1]
        return token.text[2:-1] if token.kind == "raw" else unquote(token.text)

    def number(self) -> float:
        """A number."""
        try:
            found = float(self.token.text)
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            self.fail("a number is expected")
        self.at += 1
        return found

    def count(self) -> int:
        """A whole number."""
        if not self.token.text.isdecimal():
            self.fail("a whole number is expected")
        self.at += 1
        return int(self.tokens[self.at - 1].text)

    def rest(self) -> str:
        """The text up to the last word, without a comment after it."""
        start, self.at = self.token.at, len(self.tokens) - 1
        return self.text[start : self.tokens[-2].end]

    def end(self) -> None:
        """Nothing more may follow."""
        if self.token.kind != "end":
            self.fail("the end is expected")
