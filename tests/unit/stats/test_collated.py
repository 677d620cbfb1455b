"""Collated bounds stand under their collation and version; they are whole or left out."""

from typing import Any

import orjson
import pytest

from mica.schema.ddl import parse_ddl
from mica.stats.collated import MADE_BY, MAX_BYTES, TAG, CollatedBounds, CollatedColumn, collated_leaves, with_bounds

LEAF = CollatedColumn(("d", "e"), ("d", "e"), "icu.en_USA")


def added(low: str | None, high: str | None, leaf: CollatedColumn = LEAF) -> object:
    text = with_bounds(None, [CollatedBounds(leaf, low, high)], "78.3", None, ())
    return orjson.loads(text).get("statsWithCollation")


def test_the_shape_is_the_rfcs() -> None:
    assert added("a", "B") == {
        "icu.en_USA.78.3": {"minValues": {"d": {"e": "a"}}, "maxValues": {"d": {"e": "B"}}}
    }  # fmt: skip


def test_what_others_wrote_stays_and_our_own_version_is_replaced() -> None:
    before = {
        "numRecords": 1,
        "minValues": {"d": {"e": "B"}},
        "statsWithCollation": {
            "ICU.en_US.72": {"minValues": {"d": {"e": "x"}}},
            "ICU.en_usa.78.3": {"minValues": {"d": {"e": "y"}}},
        },
    }
    text = with_bounds(orjson.dumps(before).decode(), [CollatedBounds(LEAF, "a", "B")], "78.3", {TAG: MADE_BY}, ())
    assert orjson.loads(text) == {
        "numRecords": 1,
        "minValues": {"d": {"e": "B"}},
        "statsWithCollation": {
            "ICU.en_US.72": {"minValues": {"d": {"e": "x"}}},
            "icu.en_USA.78.3": {"minValues": {"d": {"e": "a"}}, "maxValues": {"d": {"e": "B"}}},
        },
    }


def test_bounds_of_other_columns_stay_and_keep_their_place() -> None:
    key, other = "icu.en_USA.78.3", CollatedColumn(("d", "f"), ("d", "f"), "icu.en_USA")
    sides = {"minValues": {"d": {"e": "x", "f": ""}, "g": "stale"}, "maxValues": {"d": {"f": "z", "e": "y"}}}
    before = orjson.dumps({"statsWithCollation": {key: sides}}).decode()

    def after(low: str | None, high: str | None, **options: Any) -> Any:
        options = {"tags": {TAG: MADE_BY}, "others": [other], **options}
        return orjson.loads(with_bounds(before, [CollatedBounds(LEAF, low, high)], "78.3", **options))

    kept = {"minValues": {"d": {"e": "a", "f": ""}}, "maxValues": {"d": {"f": "z", "e": "b"}}}
    assert orjson.dumps(after("a", "b")["statsWithCollation"]) == orjson.dumps({key: kept})
    assert after(None, None)["statsWithCollation"] == {
        key: {"minValues": {"d": {"f": ""}}, "maxValues": {"d": {"f": "z"}}}
    }
    for own in (after("a", None, others=[]), after("a", None, tags={}), after("a", None, tags={TAG: "else"})):
        assert own["statsWithCollation"] == {key: {"minValues": {"d": {"e": "a"}}}}


@pytest.mark.parametrize("collated", [[1], "a", {"icu.en_USA.78.3": 1}, {"icu.en_USA.78.3": {"minValues": {"d": [1]}}}])
def test_what_is_no_object_is_made_anew(collated: object) -> None:
    text = orjson.dumps({"statsWithCollation": collated}).decode()
    found = with_bounds(text, [CollatedBounds(LEAF, "a", None)], "78.3", {TAG: MADE_BY}, ())
    assert orjson.loads(found)["statsWithCollation"] == {"icu.en_USA.78.3": {"minValues": {"d": {"e": "a"}}}}


def test_bounds_of_another_maker_go_as_the_file_gets_a_tag() -> None:
    text = orjson.dumps({"statsWithCollation": {"ICU.de.72": {"minValues": {"x": "a"}}}}).decode()
    assert orjson.loads(with_bounds(text, [CollatedBounds(LEAF, None, None)], "78.3", {"a": "b"}, ())) == {}


def test_long_strings_are_left_out_and_never_cut() -> None:
    long = "x" * (MAX_BYTES + 1)
    assert added("a", long) == {"icu.en_USA.78.3": {"minValues": {"d": {"e": "a"}}}}
    assert added("ก" * 171, "b") == {"icu.en_USA.78.3": {"maxValues": {"d": {"e": "b"}}}}
    assert added(long, long) is None
    assert added(None, None) is None


def test_lcase_is_cut_by_code_points() -> None:
    leaf = CollatedColumn(("l",), ("l",), "spark.UTF8_LCASE")
    assert added("É" * 100, "É" * 100, leaf) == {
        "spark.UTF8_LCASE.78.3": {"minValues": {"l": "É" * 64}, "maxValues": {"l": "É" * 64 + "\U0010ffff"}}
    }  # fmt: skip
    assert added("a", "a" * 64, leaf) == {
        "spark.UTF8_LCASE.78.3": {"minValues": {"l": "a"}, "maxValues": {"l": "a" * 64}}
    }  # fmt: skip
    assert added("a", "a" * 64 + "\U0010ffff" * 2, leaf) == {"spark.UTF8_LCASE.78.3": {"minValues": {"l": "a"}}}


@pytest.mark.parametrize(
    ("ddl", "configuration", "found"),
    [
        ("a STRING COLLATE de, b STRING, c INT", {}, ["a"]),
        ("s STRUCT<x: STRING COLLATE de>, t ARRAY<STRING COLLATE de>", {}, ["s.x"]),
        ("u ARRAY<STRUCT<f: STRING COLLATE de>>, m MAP<STRING COLLATE de, INT>", {}, []),
        ("a STRING COLLATE de, b STRING COLLATE de", {"delta.dataSkippingNumIndexedCols": "1"}, ["a"]),
        ("a STRING COLLATE de, b STRING COLLATE de", {"delta.dataSkippingStatsColumns": "b"}, ["b"]),
        ("a STRING COLLATE fr_CAN_CI, b STRING COLLATE fr", {}, ["a", "b"]),
    ],
)
def test_which_columns_have_them(ddl: str, configuration: dict[str, str], found: list[str]) -> None:
    assert [".".join(leaf.column) for leaf in collated_leaves(parse_ddl(ddl), configuration)] == found
