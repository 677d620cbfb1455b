"""Conditions of a text on parts of dates and times are evaluated by the scan, which skips files by them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import mica
from mica.query import select
from mica.query.tables import tables_of
from mica.skipping.row_ranges import rows_of
from mica.tasks.file import DataFileReader
from tests.oracle import conf


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
    (place,) = select.narrowed(spark, found)
    assert place.left == ()
    assert place.scan.kept.num_rows == table.scan(where).kept.num_rows == files
    assert sorted(mica.sql(text, spark).collect()) == sorted(
        (row["d"],) for row in table.scan(where).to_arrow().to_pylist()
    )


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize("where", [
    "to_date(ts) = DATE'2024-05-03'",
    "year(ts) = 2024 AND month(ts) = 5 AND date_trunc('DAY', ts) >= TIMESTAMP'2024-05-30 00:00:00'",
    "date_format(ts, 'yyyy-MM-dd') = '2024-05-03'",
    "v:t::timestamp >= TIMESTAMP'2024-05-30 00:00:00'",
    "v:t::date = DATE'2024-05-03'",
    "to_date(s) = DATE'2024-05-03'",
    "try_cast(s AS TIMESTAMP) < TIMESTAMP'2024-05-03 00:00:00'",
    "unix_timestamp(ts) < unix_timestamp(TIMESTAMP'2024-05-02 00:00:00')",
    "from_unixtime(u) LIKE '2024-05-03%'",
    "to_date(from_unixtime(v:u::bigint)) = DATE'2024-05-03'",
    "CAST(v:u::bigint / 1 AS TIMESTAMP) >= TIMESTAMP'2024-05-30 00:00:00'",
    "v:u::bigint * 1000 < 1714608000000",
    "ts + INTERVAL 1 DAY < TIMESTAMP'2024-05-03 06:00:00'",
    "CAST(ts AS STRING) LIKE '2024-05-03%'",
    "day(ts) = 3 AND month(ts) = 5",
    "CASE WHEN n > 3000 THEN 'late' ELSE 'early' END = 'late'",
    "coalesce(u - 1714608000 < 0, false)",
    "add_months(to_date(ts), 1) > DATE'2024-06-28'",
])  # fmt: skip
def test_conditions_on_times_skip_in_any_zone(spark: SparkSession, tmp_path: Path, zone: str, where: str) -> None:
    """Files of a day each. For texts, and in a zone that changes its clocks, those around may be read too."""
    made = mica.Table.create(tmp_path / "t", "n INT, u BIGINT, ts TIMESTAMP, s STRING, v VARIANT")
    for day in (1, 3, 5, 28, 31):
        times = [datetime(2024, 5, day, hour, 30, tzinfo=UTC) for hour in (0, 12, 23)]
        texts = [time.isoformat() for time in times]
        made.append([
            {"n": day * 100 + time.hour, "u": int(time.timestamp()), "ts": time, "s": text,
             "v": {"t": text, "u": int(time.timestamp())}}
            for time, text in zip(times, texts, strict=True)
        ])  # fmt: skip
    with conf(spark, {"spark.sql.session.timeZone": zone}):
        text = f"SELECT n FROM delta.`{made.path}` WHERE {where}"
        found = tables_of(text, spark)
        assert found is not None
        (place,) = select.narrowed(spark, found)
        assert place.left == ()
        assert 1 <= place.scan.kept.num_rows <= 3
        expected = sorted(made.to_df(spark).where(where).select("n").collect())
        assert expected
        assert sorted(mica.sql(text, spark).collect()) == expected
        assert sorted((row["n"],) for row in made.scan(where, timezone=zone).to_arrow().to_pylist()) == expected


@pytest.mark.parametrize("ansi", [True, False])
@pytest.mark.parametrize(("where", "files"), [
    ("to_date(s) = DATE'2024-12-31'", 1),
    ("CAST(s AS TIMESTAMP) > TIMESTAMP'2025-01-02 00:00:00'", 1),
    ("date_trunc('MONTH', d) = TIMESTAMP'2024-12-01 00:00:00'", 1),
    ("date_format(d, 'yyyy-MM') = '2026-01'", 1),
    ("date_trunc('MONTH', to_date(s)) < TIMESTAMP'2023-06-01 00:00:00'", 0),
])  # fmt: skip
def test_casts_of_texts_and_days_skip_with_and_without_ansi(
    spark: SparkSession, tmp_path: Path, where: str, files: int, ansi: bool
) -> None:
    made = mica.Table.create(tmp_path / "t", "d DATE, s STRING")
    for year in (2024, 2026):
        made.append([{"d": d, "s": d.isoformat()} for d in (date(year, 1, 1), date(year, 12, 31))])
    with conf(spark, {"spark.sql.ansi.enabled": str(ansi).lower(), "spark.sql.session.timeZone": "America/New_York"}):
        text = f"SELECT s FROM delta.`{made.path}` WHERE {where}"
        found = tables_of(text, spark)
        assert found is not None
        (place,) = select.narrowed(spark, found)
        assert place.scan.kept.num_rows == files
        assert sorted(mica.sql(text, spark).collect()) == sorted(made.to_df(spark).where(where).select("s").collect())


def test_conditions_that_only_skip_skip_within_files_too(spark: SparkSession, tmp_path: Path) -> None:
    made = mica.Table.create(tmp_path / "t", "n BIGINT, ts TIMESTAMP")
    first = datetime(2024, 5, 1, tzinfo=UTC)
    count = 200_000
    made.append(pa.table({"n": range(count), "ts": [first + timedelta(minutes=i) for i in range(count)]}))
    where = "unix_timestamp(ts) >= unix_timestamp(TIMESTAMP'2024-09-10 00:00:00') AND n % 2 = 0"
    found = tables_of(f"SELECT n FROM delta.`{made.path}` WHERE {where}", spark)
    assert found is not None
    (place,) = select.narrowed(spark, found)
    assert len(place.skipping) >= 1
    spec, (part,) = place.read.spec(), place.read.whole_files()
    assert 0 < rows_of(DataFileReader(spec, part).candidates(spec.predicate)) < count / 4
    expected = made.to_df(spark).where(where).agg({"n": "sum"}).collect()
    assert mica.sql(f"SELECT sum(n) FROM delta.`{made.path}` WHERE {where}", spark).collect() == expected
