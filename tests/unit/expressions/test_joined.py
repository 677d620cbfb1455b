"""Expressions over two tables: which column a name is, and how ON is cut."""

from __future__ import annotations

import pytest

from mica.errors import UserError
from mica.expressions.joined import Sides
from mica.expressions.tree import to_sql
from mica.schema.ddl import parse_ddl

SIDES = Sides(
    parse_ddl("id INT, p STRING, v VARIANT, t STRUCT<x: INT>"), parse_ddl("id BIGINT, n INT, w VARIANT"),
    "t", "s", ("p",),
)  # fmt: skip


def test_names_are_of_a_side_by_alias_or_because_only_one_has_them() -> None:
    found = SIDES.bind("T.ID + s.id + n + s.w:a::int + t.x")
    assert [(side, ".".join(leaf.column)) for leaf, side in zip(found.bound.leaves, found.sides, strict=True)] == [
        ("target", "id"), ("source", "id"), ("source", "n"), ("source", "w"), ("target", "t.x"),
    ]  # fmt: skip
    assert [leaf.partition for leaf in SIDES.bind("p || s.n").bound.leaves] == [True, False]
    assert [leaf.column for leaf in SIDES.bind("year(current_date) > t.id").bound.leaves] == [("id",)]


@pytest.mark.parametrize(
    ("text", "sees", "code"),
    [
        ("id = 1", ("target", "source"), "AMBIGUOUS_COLUMN"),
        ("t.id = 1", ("source",), "UNKNOWN_COLUMN"),
        ("s.id = 1", ("target",), "UNKNOWN_COLUMN"),
        ("nope = 1", ("target", "source"), "UNKNOWN_COLUMN"),
        ("t.nope = 1", ("target", "source"), "UNKNOWN_COLUMN"),
        ("t.id + 1", ("target", "source"), "NOT_A_PREDICATE"),
    ],
)
def test_other_names_are_refused(text: str, sees: tuple, code: str) -> None:
    with pytest.raises(UserError) as raised:
        SIDES.predicate(text, sees)
    assert raised.value.code == code


def test_aliases_differ() -> None:
    with pytest.raises(UserError):
        Sides(SIDES.target, SIDES.source, "t", "T")


def test_on_is_cut_into_what_each_side_decides_the_keys_and_the_rest() -> None:
    text = (
        "s.w:k::string = t.v:k::string AND t.id > 3 AND s.n < 5 AND t.id <=> s.id AND (t.id = s.n OR s.n = 1) AND true"
    )
    found = SIDES.condition(text)
    assert [(to_sql(k.target.expr), to_sql(k.source.expr), k.null_safe) for k in found.keys] == [
        ("t.v:k::string", "s.w:k::string", False), ("t.id", "s.id", True),
    ]  # fmt: skip
    assert [to_sql(one.expr) for one in (found.target, found.source) if one is not None] == [
        "t.id > 3 AND TRUE", "s.n < 5",
    ]  # fmt: skip
    assert found.rest is not None
    assert to_sql(found.rest.bound.expr) == "t.id = s.n OR s.n = 1"
    assert [leaf.column for leaf in found.rest.leaves("source")] == [("n",)]
    assert SIDES.condition("t.id = s.id OR t.p = s.n").keys == ()
    assert SIDES.condition("t.id + s.n = s.id").keys == ()
