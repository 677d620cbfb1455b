"""Filters of Spark as predicates: certain ones only."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import datasource as spark

from mica.expressions.bind import bind
from mica.format.filters import text_of
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl(
    "i INT, s STRING, c STRING COLLATE UNICODE_CI, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, x DOUBLE, m DECIMAL(5,2), "
    "b BINARY, ok BOOLEAN, st STRUCT<a:INT, c:STRING COLLATE UNICODE_CI>, `a b` INT"
)
UTC = dt.UTC


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (spark.EqualTo(("i",), 3), "i = CAST('3' AS INT)"),
        (spark.EqualNullSafe(("s",), "it's"), "s <=> 'it\\'s'"),
        (spark.In(("s",), ("a", "b")), "s IN ('a', 'b')"),
        (spark.Not(spark.LessThan(("x",), 0.5)), "NOT (x < CAST('0.5' AS DOUBLE))"),
        (spark.IsNull(("st", "a")), "st.a IS NULL"),
        (spark.IsNotNull(("a b",)), "`a b` IS NOT NULL"),
        (spark.GreaterThan(("d",), dt.date(2020, 1, 2)), "d > DATE'2020-01-02'"),
        (
            spark.LessThanOrEqual(("t",), dt.datetime(2020, 1, 2, 3, tzinfo=UTC)),
            "t <= CAST('2020-01-02T03:00:00.000000Z' AS TIMESTAMP)",
        ),
        (
            spark.GreaterThanOrEqual(("n",), dt.datetime(2020, 1, 2, 3)),  # noqa: DTZ001 - a time without a zone
            "n >= CAST('2020-01-02T03:00:00.000000' AS TIMESTAMP_NTZ)",
        ),
        (spark.EqualTo(("m",), Decimal("1.20")), "m = CAST('1.20' AS DECIMAL(5,2))"),
        (spark.EqualTo(("b",), b"\x00\xff"), "b = X'00FF'"),
        (spark.EqualTo(("ok",), True), "ok = TRUE"),
        (spark.StringContains(("s",), "a%"), "contains(s, 'a%')"),
    ],
)
def test_a_filter_is_a_predicate_that_binds(given: Any, text: str) -> None:
    assert text_of(given, SCHEMA, {}) == text
    bind(text, SCHEMA)


@pytest.mark.parametrize(
    "given",
    [
        spark.EqualTo(("c",), "a"), spark.EqualTo(("st", "c"), "a"), spark.Not(spark.EqualTo(("c",), "a")),
        spark.EqualTo(("none",), 1), spark.EqualTo(("i", "a"), 1), spark.EqualTo(("i",), "text"),
        spark.EqualTo(("x",), float("nan")), spark.EqualTo(("x",), float("-inf")), spark.EqualTo(("i",), None),
        spark.In(("i",), (1, None)), spark.In(("i",), ()), spark.EqualTo(("d",), dt.datetime(2020, 1, 1, tzinfo=UTC)),
        spark.EqualTo(("d",), dt.date(1, 1, 1)), spark.EqualTo(("i",), True), spark.StringContains(("b",), "a"),
    ],
)  # fmt: skip
def test_what_is_not_certain_stays_with_spark(given: Any) -> None:
    assert text_of(given, SCHEMA, {}) is None
