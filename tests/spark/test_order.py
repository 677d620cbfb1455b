"""Why some strings and one base have no bounds: Spark's comparator itself puts them into no order.

Where one of these fails, the comparator was mended, and `collation/sound.py` may be asked for less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mica.collation.sound import has_bounds, in_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOFT = "\u00ad"
CYCLES = [
    *((name, ("Aß", "aẞ", f"{SOFT}Äss")) for name in ("UNICODE_CI", "de_CI", "tr_CI", "ja_CI_RTRIM")),
    ("fr_CAN", ("ê", f"ê{SOFT}\u0301", "è")),
]


def below(spark: SparkSession, name: str, pairs: list[tuple[str, str]]) -> list[bool]:
    """Whether the first of each pair is not above the second."""
    frame = spark.createDataFrame([(i, *pair) for i, pair in enumerate(pairs)], "i int, a string, b string")
    rows = frame.selectExpr("i", f"a COLLATE {name} <= b COLLATE {name} AS holds").collect()
    return [row.holds for row in sorted(rows)]


@pytest.mark.parametrize(("name", "strings"), CYCLES)
def test_the_comparator_contradicts_itself(spark: SparkSession, name: str, strings: tuple[str, str, str]) -> None:
    a, b, c = strings
    assert below(spark, name, [(a, b), (b, c), (a, c)]) == [True, True, False]
    assert not has_bounds(name) or not all(in_order(text, name) for text in strings)


def test_what_is_told_apart_otherwise_has_its_order(spark: SparkSession) -> None:
    """The same strings without the odd letter, and the other base of the same language, are in order."""
    for name, (a, b, c) in (("UNICODE_CI", ("Ass", "aSS", f"{SOFT}Äss")), ("fr", CYCLES[-1][1])):
        assert False in below(spark, name, [(a, b), (b, c)]) or below(spark, name, [(a, c)]) == [True]
        assert has_bounds(name)
        assert all(in_order(text, name) for text in (a, b, c))
