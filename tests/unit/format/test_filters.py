"""Filters of Spark as predicates: certain ones only."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import datasource as spark

import mica
from mica.format.filters import pushed
from mica.readers.terms import Terms

COLUMNS = (
    "i INT, s STRING, c STRING COLLATE UNICODE_CI, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, x DOUBLE, m DECIMAL(5,2), "
    "b BINARY, ok BOOLEAN, st STRUCT<a:INT, c:STRING COLLATE UNICODE_CI>, `a b` INT"
)
UTC = dt.UTC


@pytest.fixture(scope="module")
def terms(tmp_path_factory: pytest.TempPathFactory) -> Terms:
    return Terms(mica.Table.create(tmp_path_factory.mktemp("filters") / "t", COLUMNS).scan())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (spark.EqualTo(("i",), 3), "i = 3"),
        (spark.EqualNullSafe(("s",), "it's"), "s <=> 'it\\'s'"),
        (spark.In(("s",), ("a", "b")), "s IN ('a', 'b')"),
        (spark.Not(spark.LessThan(("i",), 5)), "NOT i < 5"),
        (spark.LessThan(("x",), 0.5), "x < '0.5'::DOUBLE"),
        (spark.IsNull(("st", "a")), "st.a IS NULL"),
        (spark.IsNotNull(("a b",)), "`a b` IS NOT NULL"),
        (spark.GreaterThan(("d",), dt.date(2020, 1, 2)), "d > DATE'2020-01-02'"),
        (spark.LessThanOrEqual(("t",), dt.datetime(2020, 1, 2, 3, tzinfo=UTC)), "t <= TIMESTAMP'2020-01-02 03:00:00Z'"),
        (
            spark.GreaterThanOrEqual(("n",), dt.datetime(2020, 1, 2, 3)),  # noqa: DTZ001 - a time without a zone
            "n >= TIMESTAMP_NTZ'2020-01-02 03:00:00'",
        ),
        (spark.EqualTo(("m",), Decimal("1.20")), "m = 1.20"),
        (spark.EqualTo(("b",), b"\x00\xff"), "b = X'00FF'"),
        (spark.EqualTo(("ok",), True), "ok = TRUE"),
        (spark.StringContains(("s",), "a%"), "contains(s, 'a%')"),
    ],
)
def test_a_certain_filter_is_a_predicate(terms: Terms, given: Any, text: str) -> None:
    assert pushed(given, terms) == [text]


@pytest.mark.parametrize(
    "given",
    [
        spark.EqualTo(("c",), "a"), spark.EqualTo(("st", "c"), "a"), spark.Not(spark.EqualTo(("c",), "a")),
        spark.EqualTo(("none",), 1), spark.EqualTo(("i", "a"), 1), spark.EqualTo(("i",), "text"),
        spark.EqualTo(("x",), float("nan")), spark.EqualTo(("x",), float("-inf")), spark.EqualTo(("i",), None),
        spark.In(("i",), (1, None)), spark.In(("i",), ()), spark.EqualTo(("d",), dt.datetime(2020, 1, 1, tzinfo=UTC)),
        spark.EqualTo(("i",), True), spark.StringContains(("b",), "a"), spark.Not(spark.LessThan(("x",), 0.5)),
    ],
)  # fmt: skip
def test_what_is_not_certain_stays_with_spark(terms: Terms, given: Any) -> None:
    assert pushed(given, terms) == []
