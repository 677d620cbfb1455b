"""What a call asks for a Variant column holds alone; the table's rules are for the others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.variant.wanted import ShreddingWishes

VARIANTS = [("v",), ("s", "W")]


def shown(given: object, kept: str | None = None) -> tuple[dict[tuple[str, ...], object], dict[tuple[str, ...], str]]:
    wanted = ShreddingWishes.of(given, VARIANTS, kept)
    return dict(wanted.trees), {at: str(rules) for at, rules in wanted.steering.items()}


def test_rules_are_for_all_columns_or_for_the_one_that_they_name() -> None:
    assert shown("a: skip, s.w:b: int") == ({}, {("v",): "a: skip", ("s", "W"): "a: skip, s.w:b: int"})
    assert shown(None, "v:a: skip") == ({}, {("v",): "v:a: skip"})


def test_what_a_call_gives_for_a_column_replaces_the_rules_of_the_table() -> None:
    assert shown({"V": "struct<a: int>"}, "a: skip") == (
        {("v",): pa.struct({"a": pa.int32()})},
        {("s", "W"): "a: skip"},
    )
    assert shown({"v": "b: int", "s.w": None}, "a: skip") == ({("s", "W"): pa.null()}, {("v",): "b: int"})


def test_a_rule_of_a_table_that_cannot_be_read_counts_as_none() -> None:
    assert shown(None, "a: wish of a later version") == ({}, {})


@pytest.mark.parametrize("given", ["x:a: skip", {"x": "a: skip"}])
def test_a_column_that_is_no_variant_is_named(given: object) -> None:
    with pytest.raises(UserError) as caught:
        ShreddingWishes.of(given, VARIANTS)
    assert caught.value.code == "UNKNOWN_COLUMN"


def test_a_column_with_a_dot_in_its_name_is_not_a_field() -> None:
    wanted = ShreddingWishes.of({"s.v": "a: skip", "`s.v`": None}, [("s.v",), ("s", "v")])
    assert (dict(wanted.trees), [*wanted.steering]) == ({("s.v",): pa.null()}, [("s", "v")])


def test_a_column_is_named_once() -> None:
    with pytest.raises(UserError) as caught:
        ShreddingWishes.of({"v": None, "`V`": "a: skip"}, VARIANTS)
    assert caught.value.code == "DUPLICATE_COLUMN"
