"""Collated bounds stand under their collation and version; they are whole or left out."""

import orjson
import pytest

from mica.schema.ddl import parse_ddl
from mica.stats.collated import MAX_BYTES, CollatedBounds, CollatedColumn, collated_leaves, with_bounds

LEAF = CollatedColumn(("d", "e"), ("d", "e"), "icu.en_USA")


def added(low: str | None, high: str | None, leaf: CollatedColumn = LEAF) -> object:
    text = with_bounds(None, [CollatedBounds(leaf, low, high)], "78.3")
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
    text = with_bounds(orjson.dumps(before).decode(), [CollatedBounds(LEAF, "a", "B")], "78.3")
    assert orjson.loads(text) == {
        "numRecords": 1,
        "minValues": {"d": {"e": "B"}},
        "statsWithCollation": {
            "ICU.en_US.72": {"minValues": {"d": {"e": "x"}}},
            "icu.en_USA.78.3": {"minValues": {"d": {"e": "a"}}, "maxValues": {"d": {"e": "B"}}},
        },
    }


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
