"""The texts of CHECK constraints as their writers mean them: those of deltalake are not Spark's.

The rule: a text in double quotes that is the name of a column, letter by letter, is that column: deltalake quotes names
with capitals or blanks so, and Spark's reading, a string, lets every row pass, or none. What deltalake makes of
instants and of fields of structs becomes Spark's words; any other text stays as it is.
"""

from __future__ import annotations

from mica import late
from mica.expressions.tokens import tokenize
from mica.schema.spelling import quoted
from mica.schema.types import StructType

_INSTANT = late.pattern(r"""arrow_cast\('([-\d]+T[:.\d]+)', 'Timestamp\(Microsecond, (None|Some\("UTC"\))\)'\)""")
_KINDS = {"None": "_NTZ'{}'", 'Some("UTC")': "'{}Z'"}
_FIELD = late.pattern(r"""get_field\(((?:\w+|`(?:[^`]|``)+`)(?:\.`(?:[^`]|``)+`)*), '([^'\\]+)'\)""")


def as_meant(text: str, schema: StructType) -> str:
    """The text of a CHECK constraint in Spark's words. Errors: INVALID_EXPRESSION for one that has no tokens."""
    names = {field.name for field in schema.fields}
    parts, end = [], 0
    for token in tokenize(text):
        name = token.text[1:-1].replace('""', '"')
        own = quoted(name) if token.text.startswith('"') and name in names else token.text
        parts += [text[end : token.at], own]
        end = token.end
    found = _INSTANT.sub(lambda said: f"TIMESTAMP{_KINDS[said[2]].format(said[1])}", "".join(parts))
    while (field := _FIELD.search(found)) is not None:
        found = f"{found[: field.start()]}{field[1]}.{quoted(field[2])}{found[field.end() :]}"
    return found
