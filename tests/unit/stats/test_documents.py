"""Statistics that are changed in one place keep every other digit."""

from __future__ import annotations

import orjson
import pytest

from mica.stats import documents

DIGITS = '{"numRecords":3,"minValues":{"d":12345678901234567890123456789012345678,"x":1.10,"e":1E+2,"s":{"t":"1.10"}}}'


def test_numbers_keep_their_spelling() -> None:
    document = documents.read(DIGITS)
    assert documents.write(document) == DIGITS
    document["maxValues"] = {"d": 1}
    assert documents.write(document) == DIGITS[:-1] + ',"maxValues":{"d":1}}'


def test_halves_of_characters_are_left_out() -> None:
    """No UTF-8 has them: a file with such bounds could get no deletion vector."""
    text = r'{"numRecords":3,"minValues":{"a":"\ud800","b":1.10,"c":{"\udfff":1,"d":"x"}},"nullCount":{"a":0}}'
    assert documents.write(documents.read(text)) == (
        '{"numRecords":3,"minValues":{"b":1.10,"c":{"d":"x"}},"nullCount":{"a":0}}'
    )


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "3", "[" * 100_000, '{"a":1}{'])
def test_what_is_no_object_is_begun_anew(text: str | None) -> None:
    assert documents.read(text) == documents.values(text) == {}


def test_values_are_exact() -> None:
    found = documents.values(DIGITS)["minValues"]
    assert found["d"] == 12345678901234567890123456789012345678
    assert repr(found["x"]) == "Decimal('1.10')"
    assert documents.values('{"a":1e999999999999999999999}') == {}


def test_objects_stand_in_place_of_what_is_none() -> None:
    tree = {"a": 1, "b": {"c": 2}}
    documents.put(tree, ("a", "x", "y"), 3)
    for names in (("b", "c"), ("b", "none", "d"), ("b", "c", "d"), ("none",)):
        documents.remove(tree, names)
    assert tree == {"a": {"x": {"y": 3}}, "b": {}}


def test_what_is_no_number_is_null() -> None:
    assert documents.write(documents.read('{"a":NaN,"b":-Infinity,"c":1}')) == '{"a":null,"b":null,"c":1}'


def test_a_path_ends_where_no_object_is() -> None:
    tree = orjson.loads(DIGITS)
    assert documents.at(tree, ("minValues", "s", "t")) == "1.10"
    assert documents.at(tree, ()) is tree
    for names in (("minValues", "s", "t", "u"), ("none", "s"), ("numRecords", "x")):
        assert documents.at(tree, names) is None
