"""Shredding rules are read as they are meant, and what cannot be read is named with what is nearest."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.variant.shredding import Limits
from mica.variant.steering import Steering, without_column

TEXT = """commit.record.*: infer, features.*: skip
price: decimal(18,2), v:`a.b`['c, d']: struct<x: bigint, y: variant>
s.v:tags[*].id: later, **.secret: skip, $.$type: string, *: max 50, geo: max 3"""


def test_a_text_is_rules_with_columns_paths_and_wishes() -> None:
    rules = Steering.parse(TEXT).rules
    assert [rule.column for rule in rules] == [None, None, None, ("v",), ("s", "v"), None, None, None, None]
    assert [rule.wish for rule in rules] == [
        "infer", "skip", pa.decimal128(18, 2), pa.struct({"x": pa.int64(), "y": pa.null()}), "later", "skip",
        pa.string(), 50, 3,
    ]  # fmt: skip
    assert [rule.steps for rule in rules[3:7]] == [
        (("name", "a.b"), ("name", "c, d")),
        (("name", "tags"), ("element", ""), ("name", "id")),
        (("any", ""), ("name", "secret")),
        (("name", "$type"),),
    ]
    assert Steering.parse(str(Steering.parse(TEXT))).rules == rules


def test_later_is_skip_for_new_rows_and_what_the_sample_says_afterwards() -> None:
    rules = Steering.parse("a: later, *: max 7, b: max 2")
    assert rules.has_later
    assert [rule.wish for rule in rules.limits(Limits(), "new").rules] == ["skip", 2]
    assert [rule.wish for rule in rules.limits(Limits(), "again").rules] == ["infer", 2]
    assert rules.limits(Limits(), "new").max_fields == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "it is not PATH: WISH"),
        ("a: skipp", "Is skip meant?"),
        ("a: decmal(3,2)", "Is decimal meant?"),
        ("a: map<string, int>", "a map has no fixed keys"),
        ("a: banana", "Write infer, skip, later, max N or a type."),
        ("a[0].b: skip", "Elements of arrays are [*]."),
        ("a..b: skip", "cannot be read at offset 1"),
        ("$.: skip", "cannot be read at offset 0"),
        (".a: skip", "cannot be read at offset 0"),
        ("a.**: skip", "Write * at the end, not **."),
        (": skip", "it is not PATH: WISH"),
        (".".join("a" * 31) + ": int", "nests deeper than 30 levels"),
    ],
)
def test_what_is_no_rule_is_named_with_a_way_out(text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        Steering.parse(text)
    assert caught.value.code == "INVALID_SHREDDING_SCHEMA"
    assert said in str(caught.value)


def test_rules_and_one_type_are_told_apart_by_a_colon_outside_of_brackets() -> None:
    assert Steering.is_in("a: bigint")
    assert not Steering.is_in("struct<a: bigint>")


def test_a_renamed_column_keeps_its_rules_and_a_dropped_one_loses_them() -> None:
    text = "a: skip, V:b['c: d']: infer, w:b: int"
    assert without_column(text, ["v"], "x y") == "a: skip, `x y`:b['c: d']: infer, w:b: int"
    assert without_column(text, ["v"], None) == "a: skip, w:b: int"
