"""Columns by the names that people give them in calls.

The rule: case does not matter, a field is `s.v`, and backticks are needed only where a name would mean two columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mica.schema.ddl import quote_if_needed


def spelled(column: Iterable[str]) -> str:
    """The name that means this column and no other: a part with a dot in it has backticks."""
    return ".".join(map(quote_if_needed, column))


def by_name(columns: Iterable[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The columns by their names in lower case: as they are spelled, and without backticks where that is one column."""
    columns = list(columns)
    plain = Counter(".".join(column).lower() for column in columns)
    return {name: column for column in columns if plain[name := ".".join(column).lower()] == 1} | {
        spelled(column).lower(): column for column in columns
    }
