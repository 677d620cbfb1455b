"""Columns by the names that people give them in calls.

The rule: case does not matter, a field is `s.v`, and backticks are needed only where a name would mean two columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.properties import parse_names


def find(name: str, columns: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """The column of that name: by its parts, else the one that is written so without backticks."""
    parts = [tuple(map(str.lower, column)) for column in parse_names(name)]
    exact = [column for column in columns if [tuple(map(str.lower, column))] == parts]
    alike = exact or [column for column in columns if ".".join(column).lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
