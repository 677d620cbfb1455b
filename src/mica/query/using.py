"""Tables and temporary views of delta as those of mica, for sessions without delta-spark: CREATE TABLE … USING delta.

The rule: only the provider of the table or view changes, and no word of a string, a comment or a query. A table without
one has the session's default.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mica.errors import UserError
from mica.query.statement_parts import Parts
from mica.schema.lexical import GAP, SPACE

_MAKES = re.compile(
    rf"(?is){GAP}(?:CREATE{SPACE}(?:OR{SPACE}REPLACE{SPACE}|EXTERNAL{SPACE})?|REPLACE{SPACE})"
    rf"(?:TABLE|(?P<view>(?:GLOBAL{SPACE})?TEMP(?:ORARY)?{SPACE}VIEW))\b"
)
#: Words by which a table has another provider than the default.
_OTHERS = ("USING", "LIKE", "CLONE", "STORED", "ROW")
_QUERY = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def using_mica(text: str, is_default: Callable[[], bool] = lambda: False) -> str:
    """The text with mica in place of the provider delta of what it makes, and of none where delta `is_default`."""
    made = _MAKES.match(text)
    if made is None or not (re.search(r"(?i)\bdelta\b", text) or (made["view"] is None and is_default())):
        return text
    try:
        parts, depth, has_other = Parts(text), 0, False
        for at, token in enumerate(parts.tokens):
            depth += (token.text == "(") - (token.text == ")")
            word = parts.word(at)
            if depth == 0 and word == "USING" and parts.word(at + 1) == "DELTA":
                given = parts.tokens[at + 1]
                return f"{text[: given.at]}mica{text[given.end :]}"
            has_other |= depth == 0 and word in _OTHERS
            if depth == 0 and word in ("AS", "USING"):
                break
        if made["view"] is not None or has_other or depth or not is_default():
            return text
        end = _head(parts, made.end())
    except UserError:
        return text  # Spark says what is wrong
    return f"{text[:end]} USING mica{text[end:]}"


def _head(parts: Parts, begin: int) -> int:
    """Where the name of a table and its columns end. Errors: INVALID_EXPRESSION."""
    parts.at = next(at for at, token in enumerate(parts.tokens) if token.at >= begin)
    parts.accept("IF", "NOT", "EXISTS")
    parts.table()
    while parts.mark() == "(" and parts.word(1) not in _QUERY:
        depth = 1
        while depth:
            parts.at += 1
            depth += (parts.mark() == "(") - (parts.mark() == ")")
        parts.at += 1
    return parts.tokens[parts.at - 1].end
