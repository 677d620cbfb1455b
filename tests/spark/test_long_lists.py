"""Lists of so many values that Spark makes a set of them, and times cut to a unit: which files they skip."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

import mica
from mica.query import select
from mica.query.tables import tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The second holds what separates the values of a set on their way to Python.
STRINGS = ("a", "b\x1fc", "", "\x1f", "q'uote", "é", "x\\y", "null")


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    columns = "id INT, s STRING, d DATE, t TIMESTAMP, m DECIMAL(10,2), f DOUBLE, v VARIANT"
    table = mica.Table.create(tmp_path_factory.mktemp("lists") / "t", columns)
    for first in range(0, 100, 25):
        rows = []
        for i in range(first, first + 25):
            time = dt.datetime(2020, 1, 1, i % 24, tzinfo=dt.UTC) + dt.timedelta(days=i)
            text = [*STRINGS, None][i % 9]
            row = {"id": i, "s": text, "d": time.date(), "t": time, "m": Decimal(i) / 4, "f": i / 2}
            rows.append({**row, "v": {"s": text, "n": i, "t": time}})
        table.append(rows)
    table.to_df(spark).createOrReplaceTempView("of_lists")
    return table


def texts(*more: str) -> str:
    every = (text.replace("\\", "\\\\").replace("'", "\\'") for text in (*more, *(f"k{i}" for i in range(12))))
    return ", ".join(f"'{text}'" for text in every)


INTS = ", ".join(map(str, range(30, 50)))
DAYS = ", ".join(f"DATE'2020-02-{day:02}'" for day in range(1, 15))


@pytest.mark.parametrize(
    ("where", "files"),
    [
        (f"id IN ({INTS})", 1), (f"id NOT IN ({INTS})", 4), (f"v:n::int IN ({INTS})", 1),
        (f"s IN ({texts(*STRINGS)})", 4), (f"s IN ({texts('b')})", 4), (f"s IN ({texts('z')}, NULL)", 4),
        (f"s NOT IN ({texts(*STRINGS)})", 4), (f"v:s::string IN ({texts(*STRINGS)})", 4),
        (f"d IN ({DAYS})", 1),
        (f"m IN ({', '.join(f'{i}.25' for i in range(12))})", 2),
        (f"f IN ({', '.join(f'{i}D' for i in range(12))})", 1),
        ("date_trunc('day', t) = TIMESTAMP'2020-02-01'", 1), ("date_trunc(s, t) = TIMESTAMP'2020-02-01'", 4),
        ("date_trunc('MONTH', v:t::timestamp) = TIMESTAMP'2020-01-01'", 2),
    ],
)  # fmt: skip
def test_rows_are_those_of_spark(spark: SparkSession, table: mica.Table, where: str, files: int) -> None:
    text = f"SELECT id FROM delta.`{table.path}` WHERE {where}"
    wanted = {row.id for row in spark.sql(f"SELECT id FROM of_lists WHERE {where}").collect()}
    assert {row.id for row in mica.sql(text, spark).collect()} == wanted
    named = tables_of(text, spark)
    assert named is not None
    (scan,) = select.narrowed(spark, named)
    assert scan.scan.kept.num_rows == files
