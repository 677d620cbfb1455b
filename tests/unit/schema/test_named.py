"""Columns by the names that people give them."""

from __future__ import annotations

import pytest

from mica.schema.named import find
from mica.schema.spelling import spelled

DOTTED, FIELD, OTHER, COMMA = ("s.v",), ("s", "v"), ("a.B", "c"), ("x, y",)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("s.v", FIELD), ("S.V", FIELD), ("`s`.`v`", FIELD), ("s.`v`", FIELD), ("`s.v`", DOTTED), ("`S.v`", DOTTED),
        ("a.b.c", OTHER), ("`a.b`.C", OTHER), ("x, y", COMMA), ("`x, y`", COMMA), ("s", None), ("", None),
    ],
)  # fmt: skip
def test_a_name_means_one_column(name: str, column: tuple[str, ...] | None) -> None:
    assert find(name, [DOTTED, FIELD, OTHER, COMMA]) == column


def test_a_spelled_column_is_found() -> None:
    columns = [DOTTED, FIELD, OTHER, COMMA, ("end",), ("it`s",)]
    assert [find(spelled(column), columns) for column in columns] == columns
    assert find("s.v", [DOTTED]) == DOTTED
