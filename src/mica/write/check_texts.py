"""The texts of CHECK constraints as their writers mean them: those of deltalake are not Spark's.

The rule: a name in double quotes is a column where all texts in double quotes are columns, letter by letter, whose
names deltalake quotes: those with more than small letters, digits and `_`. Spark reads a string there, so that every
row passes, or none. What deltalake makes of instants and of fields of structs becomes Spark's words; any other text
stays as it is. What mica adds is Spark's, and is spelled so that it reads as that everywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from mica import late
from mica.expressions.tokens import Token, tokenize
from mica.schema.spelling import quoted
from mica.schema.types import StructType

_PLAIN = late.pattern("[a-z_][a-z0-9_]*")
_INSTANT = late.pattern(r"""arrow_cast\('([-\d]+T[:.\d]+)', 'Timestamp\(Microsecond, (None|Some\("UTC"\))\)'\)""")
_KINDS = {"None": "_NTZ'{}'", 'Some("UTC")': "'{}Z'"}
_FIELD = late.pattern(r"""get_field\(((?:\w+|`(?:[^`]|``)+`)(?:\.`(?:[^`]|``)+`)*), '([^'\\]+)'\)""")


def as_meant(text: str, schema: StructType) -> str:
    """The text of a CHECK constraint in Spark's words. Errors: INVALID_EXPRESSION for one that has no tokens."""
    found = _INSTANT.sub(
        lambda said: f"TIMESTAMP{_KINDS[said[2]].format(said[1])}",
        _names_as(text, schema, lambda token: quoted(_name(token))),
    )
    while (field := _FIELD.search(found)) is not None:
        found = f"{found[: field.start()]}{field[1]}.{quoted(field[2])}{found[field.end() :]}"
    return found


def of_spark(text: str, schema: StructType) -> str:
    """A text of Spark's that nobody takes for deltalake's. Errors: as for `as_meant`."""
    return _names_as(text, schema, lambda token: "'{}'".format(_name(token).replace("'", "\\'")))


def _names_as(text: str, schema: StructType, spelled: Callable[[Token], str]) -> str:
    """The text with its columns in double quotes spelled otherwise."""
    own = [token for token in tokenize(text) if token.text.startswith('"')]
    columns = {field.name for field in schema.fields if _PLAIN.fullmatch(field.name) is None}
    if not all(_name(token) in columns for token in own):
        return text
    parts, end = [], 0
    for token in own:
        parts += [text[end : token.at], spelled(token)]
        end = token.end
    return "".join([*parts, text[end:]])


def _name(token: Token) -> str:
    return token.text[1:-1].replace('""', '"')
