"""CREATE TABLE … USING delta as USING mica, for sessions without delta-spark.

The rule: only the provider of the table changes, and no word of a string, a comment or a query.
"""

from __future__ import annotations

import re

from mica.errors import UserError
from mica.query.statement_parts import Parts
from mica.schema.lexical import GAP, SPACE

_MAKES = re.compile(
    rf"(?is){GAP}(?:CREATE{SPACE}(?:OR{SPACE}REPLACE{SPACE}|EXTERNAL{SPACE})?|REPLACE{SPACE})TABLE\b(?=.*\bdelta\b)"
)


def using_mica(text: str) -> str:
    """The text with mica in place of the provider delta of a table that it makes."""
    if _MAKES.match(text) is None:
        return text
    try:
        parts, depth = Parts(text), 0
    except UserError:
        return text  # Spark says what is wrong
    for at, token in enumerate(parts.tokens):
        depth += (token.text == "(") - (token.text == ")")
        word, next_word = parts.word(at), parts.word(at + 1)
        if depth or word not in ("AS", "USING"):
            continue
        if (word, next_word) == ("USING", "DELTA"):
            given = parts.tokens[at + 1]
            return f"{text[: given.at]}mica{text[given.end :]}"
        break
    return text
