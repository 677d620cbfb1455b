"""Conditions of a text on parts of dates and times are evaluated by the scan, which skips files by them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from pyspark.sql import SparkSession

import mica
from mica.query import select
from mica.query.tables import tables_of


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """A file of 2024, and one of 2026."""
    made = mica.Table.create(tmp_path_factory.mktemp("times") / "t", "d DATE, ts TIMESTAMP, n INT")
    for year in (2024, 2026):
        days = [date(year, 1, 1), date(year, 12, 31)]
        made.append([{"d": d, "ts": datetime(d.year, d.month, d.day, 5, tzinfo=UTC), "n": year} for d in days])
    return made


@pytest.mark.parametrize(("where", "files"), [
    ("year(d) = 2024", 1),
    ("year(ts) IN (1, 2)", 0),
    ("last_day(d) < DATE'2025-01-01'", 1),
    ("trunc(d, 'YEAR') > DATE'2025-06-01'", 1),
    ("unix_seconds(ts) < 1750000000 AND unix_millis(ts) < 1750000000000 AND unix_micros(ts) < 1750000000000000", 1),
    ("unix_date(d) < 20000", 1),
    ("date_from_unix_date(n) > DATE'1975-07-19'", 1),
    ("hour(ts) = 5 AND month(ts) = 12", 2),
])  # fmt: skip
def test_parts_of_times_skip_files(spark: SparkSession, table: mica.Table, where: str, files: int) -> None:
    text = f"SELECT d FROM delta.`{table.path}` WHERE {where}"
    found = tables_of(text, spark)
    assert found is not None
    (place,) = select.narrowed(spark, found.text, found.views)
    assert place.left == ()
    assert place.scan.kept.num_rows == table.scan(where).kept.num_rows == files
    assert sorted(mica.sql(text, spark).collect()) == sorted(
        (row["d"],) for row in table.scan(where).to_arrow().to_pylist()
    )
