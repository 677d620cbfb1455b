"""Splits a text into tokens, as Spark's lexer does.

The rule: every character of the text belongs to a token, to white space or to a comment; text that Spark's lexer would
split differently is rejected. Each token keeps its own text, so nothing of a literal's spelling is lost.

Source: Spark's SqlBaseLexer.g4.
"""

from __future__ import annotations

import re

from mica import late
from mica.errors import UserError
from mica.records import dataclass
from mica.schema.lexical import COMMENT, HALF, QUOTED_NAME, QUOTED_STRING, RAW_STRING

_TOKEN = late.pattern(
    rf"""(?P<space>\s+ | {COMMENT})
      | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[lLsSyYfFdD]|[bB][dD])?(?!\w))
      | (?P<raw>{RAW_STRING})
      | (?P<string>{QUOTED_STRING})
      | (?P<word>\w+)
      | (?P<quoted>{QUOTED_NAME})
      | (?P<mark><=>|<>|!=|!<|!>|==|<=|>=|::|\|\||[=<>!:.,()\[\]+*/%&|^~-])""",
    re.VERBOSE | re.DOTALL,
)


class OnlySparkError(ValueError):
    """Something that Spark evaluates and mica does not, because its answer is not certain here."""


@dataclass(frozen=True)
class Token:
    """`kind` is number, raw, string, word, quoted, mark or end; `at` and `end` are offsets in the text."""

    kind: str
    text: str
    at: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of the text and a last one of the kind `end`. Errors: INVALID_EXPRESSION with the offset."""
    tokens: list[Token] = []
    at = 0
    half = re.search(HALF, text)
    if half is not None:
        raise syntax_error(text.replace(half[0], "?"), half.start(), f"{half[0]!r} is half of a character")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            why = "a quote is not closed" if text[at] in "'\"`" else f"{text[at]!r} is not allowed here"
            raise syntax_error(text, at, why)
        if match.lastgroup != "space":
            tokens.append(Token(match.lastgroup, match[0], at, match.end()))
        at = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def syntax_error(
    text: str,
    at: int,
    why: str,
    hint: str | None = None,
    code: str = "INVALID_EXPRESSION",
    *,
    condition: str | None = None,
) -> UserError:
    """An error that shows the position in the text."""
    line_start = text.rfind("\n", 0, at) + 1
    line = text[line_start:].split("\n", 1)[0]
    start = max(0, at - line_start - 60)
    shown = line[start : start + 100]
    pointer = " " * (at - line_start - start) + "^"
    return UserError(
        code, f"{why}, at offset {at} of\n  {shown}\n  {pointer}", hint=hint, offset=at, condition=condition
    )
