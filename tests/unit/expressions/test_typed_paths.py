"""Declarations of typed paths."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.errors import UserError
from mica.expressions.typed_paths import of_table, parse, without_column
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


def test_a_property_that_is_older_than_the_columns_leaves_out_what_is_gone() -> None:
    text = "id INT, t INT AS v:t, u INT AS w:u, x INT"
    assert [one.name for one in of_table(text, ONE)] == ["t", "x"]  # id is a column of its own, w is gone
    assert [one.name for one in of_table(text, TWO)] == ["t", "u"]  # x could be of both
    assert of_table(text, parse_ddl("v STRING")) == []
    with pytest.raises(UserError, match="a type is expected"):
        of_table("t", ONE)


@pytest.mark.parametrize(
    ("text", "path", "name", "then"),
    [
        ("t INT AS v:t, u INT AS w:u", ["V"], "a b", "t INT AS `a b`:t, u INT AS w:u"),
        ("t INT AS v:t, u INT AS w:u", ["v"], None, "u INT AS w:u"),
        ("`a b` DECIMAL(3, 1) AS `v`:x['y, z'], v INT", ["v"], "z", "`a b` DECIMAL(3,1) AS z:x['y, z'], v INT"),
        ("t INT AS v:t", ["s", "v"], "z", "t INT AS v:t"),
        ("t INT AS v[0].a", ["v"], "z", "t INT AS z[0].a"),
        ("t INT AS s.v:t, u INT AS s.w:v", ["S", "V"], "a b", "t INT AS s.`a b`:t, u INT AS s.w:v"),
        ("t INT AS s.v:t, u INT AS s:v", ["s", "v"], None, "u INT AS s:v"),
        ("t INT AS s.v:t", ["s"], "z", "t INT AS z.v:t"),
    ],
)
def test_a_column_has_its_new_name_there(text: str, path: list[str], name: str | None, then: str) -> None:
    assert without_column(text, path, name) == then


def test_columns_that_are_shown_again_have_their_names() -> None:
    schema = parse_ddl("v VARIANT, w VARIANT, u VARIANT")
    assert of_table("v INT AS w:x, w INT AS u:y", schema) == []  # v is shown, so the first is left out, so w is


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("v:t::int", "INVALID_EXPRESSION"), ("t INT AS gone:t", "UNKNOWN_COLUMN"), ("id INT", "DUPLICATE_COLUMN"),
        ("t INT AS id:t", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_a_declaration_that_the_table_cannot_have_is_no_property(tmp_path: Path, text: str, code: str) -> None:
    table = mica.Table.create(tmp_path / "made", "id INT, v VARIANT")
    for set_it in (
        lambda: mica.Table.create(tmp_path / "new", str(table.schema), properties={"mica.paths": text}),
        lambda: table.set_properties({"mica.paths": text}),
    ):
        with pytest.raises(UserError) as raised:
            set_it()
        assert raised.value.code == code


def test_a_table_may_outgrow_its_paths(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT", properties={"mica.paths": "k INT"})
    table.add_columns("k INT, w VARIANT")
    assert of_table(table.properties["mica.paths"], table.schema) == []
    mica.Table.create(tmp_path, "id INT", mode="overwrite")
