"""Answers of the JVM come at once, in each thread, and threads that ask at the same time get their own."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from mica.engines.spark import at_once
from mica.engines.spark.making import Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_long_answers_are_not_held_back(spark: SparkSession) -> None:
    """Each waited for 40 ms, and so did every action on a plan of some columns."""
    schema = spark.range(1).selectExpr(*(f"id AS column_{i}" for i in range(500)))._jdf.schema()

    def least() -> float:
        found = []
        for _ in range(10):
            began = time.perf_counter()
            assert len(schema.json()) > 3 << 13
            found.append(time.perf_counter() - began)
        return min(found)

    told: list[float] = []

    def asks() -> None:
        at_once.answers_at_once(spark)
        told.append(least())

    at_once.answers_at_once(spark)
    assert least() < 0.03
    thread = threading.Thread(target=asks)
    thread.start()
    thread.join()
    assert told[0] < 0.03


def test_what_cannot_be_told_is_left(spark: SparkSession) -> None:
    """Another Py4J has no such field."""

    class Other:
        """A session of it."""

        class sparkContext:  # noqa: N801 - PySpark's name
            """Its context."""

            class _gateway:  # noqa: N801 - Py4J's name
                _gateway_client = object()

    try:
        at_once.answers_at_once(Other)
        assert at_once._TOLD.client is Other.sparkContext._gateway._gateway_client
    finally:
        at_once._TOLD.client = spark.sparkContext._gateway._gateway_client


@pytest.mark.slow
def test_threads_make_plans_of_their_own_rows(spark: SparkSession) -> None:
    """One had the columns of a query over the rows of another one, which were no rows of it, or wrong ones."""
    make = Maker.of(spark)

    def made(number: int) -> int:
        plan = spark.range(number)._jdf.queryExecution().analyzed()
        found = make.renumbered(plan, plan.newInstance().output())
        return int(make.of_rows(spark._jsparkSession, found).queryExecution().optimizedPlan().maxRows().get())

    numbers = range(1, 400)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(made, numbers)) == list(numbers)
