"""Which changes of a column's type mica can read (PROTOCOL.md "Type Widening").

The rule: a table with the feature is read only if every type change in its schema is in the table below. Files from
before a change hold the narrower type; their values are widened when they are read.

| from | to |
|---|---|
| byte | short, integer, long, double, decimal(10 + k, k) or wider |
| short | integer, long, double, decimal(10 + k, k) or wider |
| integer | long, double, decimal(10 + k, k) or wider |
| long | decimal(20 + k, k) or wider |
| float | double |
| decimal(p, s) | decimal(p + k + m, s + k) |
| date | timestamp_ntz |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.errors import UnsupportedTableError
from mica.schema.edit import places
from mica.schema.types import Primitive, StructField, StructType
from mica.stats.columns import TYPE_CHANGES

_WIDER: Mapping[str, tuple[str, ...]] = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
#: The digits of an integer's decimals.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}


def check(schema: StructType, table: str) -> None:
    """Errors: UNSUPPORTED_TYPE_CHANGE (UnsupportedTableError), naming the column and the change."""
    for column, change in ((at, change) for at, _, f, _ in places(schema) if f is not None for change in _listed(f)):
        source, target = (change.get(key) if isinstance(change, Mapping) else None for key in ("fromType", "toType"))
        if isinstance(source, str) and isinstance(target, str) and is_wider(source, target):
            continue
        raise UnsupportedTableError(
            "UNSUPPORTED_TYPE_CHANGE",
            f"the type of column {column} of {table} changed from {source} to {target}, which mica cannot read",
            hint="Use a newer version of mica, or another engine; or rewrite the table's files.",
            column=column,
        )


def is_wider(source: str, target: str) -> bool:
    """Whether the second type holds all values of the first, by the table above; both by their Delta names."""
    if source == target or target in _WIDER.get(source, ()):
        return True
    to = Primitive(target).decimal
    if to is None:
        return False
    precision, scale = to
    digits, places = Primitive(source).decimal or (_DIGITS.get(source), 0)
    return digits is not None and scale >= places and precision - scale >= digits - places


def _listed(f: StructField) -> list[Any]:
    found = f.metadata.get(TYPE_CHANGES, [])
    return found if isinstance(found, list) else [found]
