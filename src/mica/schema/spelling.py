"""Names and strings as texts of SQL and DDL, in their quotes and out of them.

The rule: a name that is printed is read as the same name, and what Spark prints bare stays bare.

Source: Spark's `QuotingUtils` and `ParserUtils.unescapeSQLString`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mica import late

# A doubled quote (no group), or a backslash and what follows it.
_ESCAPE = late.pattern(r"""''|""|\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[01][0-7]{2}|.)""", re.DOTALL)

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}

#: Words that are no column where an expression is expected, unless they have backticks.
RESERVED = frozenset(
    "AND AS BETWEEN CASE CAST COLLATE DISTINCT ELSE END ESCAPE EXISTS FALSE FROM GROUP ILIKE IN INTERVAL IS LIKE NOT "
    "NULL OR ORDER REGEXP RLIKE SELECT THEN TRUE WHEN WHERE".split()
)


def quote_if_needed(name: str) -> str:
    """Adds backticks if Spark, or an expression of ours, would not parse the bare name as one identifier."""
    return _of_spark(name) if name.upper() not in RESERVED else f"`{name}`"


def quoted(name: str) -> str:
    """Adds backticks."""
    return f"`{name.replace('`', '``')}`"


def _of_spark(name: str) -> str:
    """As Spark's DDL prints it."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    return quoted(name)


def as_spark(names: Iterable[str]) -> str:
    """The name of several parts as Spark prints it: it quotes no keyword."""
    return ".".join(map(_of_spark, names))


def spelled(names: Iterable[str]) -> str:
    """The name of several parts that means no other: a part with a dot in it has backticks."""
    return ".".join(map(quote_if_needed, names))


def unquoted(name: str) -> str:
    """A name without its backticks, if it is in some."""
    inside = len(name) > 1 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if inside else name


def unquote(literal: str) -> str:
    """Returns the value of a Spark string literal; the argument includes its quotes.

    A doubled quote is a quote; backslash escapes, `\\uXXXX` and octal as in Spark; `\\%` and `\\_` keep the backslash.
    """
    quote, body = literal[0], literal[1:-1]

    def one(match: re.Match[str]) -> str:
        if match[1] is not None:
            return _unescape(match[1])
        return quote if match[0][0] == quote else match[0]

    text = _ESCAPE.sub(one, body)
    # Two \u escapes can be the halves of one character.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\" in body else text


def _unescape(code: str) -> str:
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16)) if int(code[1:], 16) <= 0x10FFFF else "\ufffd"
    if len(code) == 3:
        return chr(int(code, 8))
    return "\\" + code if code in "%_" else _ESCAPES.get(code, code)
