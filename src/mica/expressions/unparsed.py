"""What the tokens alone say of an expression that only Spark reads.

The rule: what is not certain is left open: a condition is one part, and any column may be meant.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from mica.errors import UserError
from mica.expressions.tokens import Token, tokenize
from mica.schema.spelling import unquoted

_OPENS = ("(", "[", "CASE")
#: What is open where one of these closes it; a CASE without a THEN is the name of a column.
_CLOSES = {")": "(", "]": "[", "END": "THEN"}


def conjuncts(text: str) -> list[str]:
    """The parts of `a AND b`, as they are written: a row that fulfils the condition fulfils each of them."""
    tokens = _tokens(text)
    if not tokens:
        return [text]
    found, opened, start, betweens = list[str](), list[str](), 0, 0
    for before, token in pairwise([tokens[-1], *tokens]):
        word = "" if before.text == "." else _word(token)
        if word in _CLOSES:
            if not opened or opened.pop() != _CLOSES[word]:
                return [text]
        elif word in _OPENS:
            opened.append(word)
        elif opened:
            opened[-1] = "THEN" if (opened[-1], word) == ("CASE", "THEN") else opened[-1]
        elif word == "OR":
            return [text]
        elif word == "BETWEEN":
            betweens += 1
        elif word == "AND" and betweens:
            betweens -= 1
        elif word == "AND":
            found.append(text[start : token.at])
            start = token.end
    return [text] if opened else [part.strip() for part in (*found, text[start:])]


def names(text: str) -> set[str] | None:
    """Every word of a text, in lower case, that may be the name of a column; None if it may mean all columns."""
    tokens = _tokens(text)
    if not tokens or any(one.text in ("(", ",", ".") and other.text == "*" for one, other in pairwise(tokens)):
        return None
    quoted = {unquoted(one.text).lower() for one in tokens if one.kind == "quoted"}
    return quoted | {one.text.lower() for one in tokens if one.kind == "word"}


def for_spark(text: str) -> str:
    """The expression with Spark's words for what only mica reads: values that a query gave (`query.subqueries`)."""
    tokens, found, at = _tokens(text), "", 0
    for place, token in enumerate(tokens[:-2]):
        one, other = tokens[place + 1 : place + 3]
        if _is_text(token, one):
            found, at = f"{found}{text[at : token.at]}CAST({one.text} AS STRING)", one.end
        elif (_word(token), _word(one), _word(other)) == ("(", "SELECT", ")"):
            found, at = f"{found}{text[at : token.at]}(SELECT NULL WHERE false)", other.end
    return found + text[at:]


def gives_texts(text: str) -> bool:
    """Whether a query gave a text to the expression, beside which Spark pads no CHAR column."""
    return any(_is_text(one, other) for one, other in pairwise(_tokens(text)))


def has_window(text: str) -> bool:
    """Whether a function sees other rows: `rank() OVER (…)`."""
    return any((_word(one), other.text) == ("OVER", "(") for one, other in pairwise(_tokens(text)))


def _tokens(text: str) -> list[Token]:
    """The tokens, the last of which is the end; none of a text that mica's tokens are not those of."""
    with suppress(UserError):
        return tokenize(text)
    return []


def _is_text(token: Token, after: Token) -> bool:
    """Whether two tokens are a text of type STRING, as mica writes what a query gives: `STRING'x'`."""
    return _word(token) == "STRING" and after.kind in ("string", "raw") and token.end == after.at


def _word(token: Token) -> str:
    return token.text.upper() if token.kind in ("word", "mark") else ""
