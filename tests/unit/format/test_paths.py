"""Declarations of typed paths."""

from __future__ import annotations

import pytest

from mica.errors import UserError
from mica.format.paths import parse
from mica.schema.ddl import parse_ddl

ONE, TWO = parse_ddl("id INT, v VARIANT"), parse_ddl("v VARIANT, w VARIANT")


def test_a_declaration_is_ddl_with_paths() -> None:
    found = parse("t BIGINT, `a b` STRING, c DECIMAL(3, 1) AS v:x['y, z'], l ARRAY<INT> AS v:tags", ONE)
    assert [one.expression for one in found] == [
        "try_cast(v:t AS BIGINT)", "try_cast(v:['a b'] AS STRING)", "try_cast(v:x['y, z'] AS DECIMAL(3,1))",
        "try_cast(v:tags AS ARRAY<INT>)",
    ]  # fmt: skip
    assert {one.column for one in found} == {"v"}
    assert [one.column for one in parse("t INT AS w:t", TWO)] == ["w"]
    assert parse("", ONE) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("t", "a type is expected"), ("t INT,, u INT", "a name"), ("t INT AS", "a path is expected"),
        ("id INT", "the name of another column"), ("t INT, T INT", "the name of another column"), ("t WRONG", "WRONG"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_says_where(text: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        parse(text, ONE)


def test_two_variants_need_a_path() -> None:
    with pytest.raises(UserError, match="2 VARIANT columns"):
        parse("t INT", TWO)
