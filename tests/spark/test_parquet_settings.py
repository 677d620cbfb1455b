"""Every type of Spark's Parquet writer under each of its settings, read in both engines as delta-spark reads it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

PREFIX = "spark.sql.parquet."
FORMS = list(
    itertools.product(("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"), ("false", "true"), ("CORRECTED", "LEGACY"))
)
#: Before 1900 their offsets differ between Java's old zones and its new ones; one has no daylight saving, one no name.
ZONES = ("UTC", "America/Los_Angeles", "Asia/Kolkata", "+02:00")
#: Either side of the days on which calendars and zones changed.
DAYS = ["0001-01-01", "0900-02-28", "1000-01-01", "1500-03-01", "1582-10-04", "1582-10-15", "1883-11-17", "1899-12-31",
        "1900-01-01", "1969-12-31", "2024-02-29"]  # fmt: skip
CLOCK = "12:34:56.789"

COLUMNS = [
    "o",
    "b",
    "CAST(n AS TINYINT) AS i8",
    "CAST(n AS SMALLINT) AS i16",
    "n AS i32",
    "CAST(n AS BIGINT) * 10000000000 AS i64",
    "CAST(n AS FLOAT) / 3 AS f",
    "n / 7 AS d",
    "CAST(n AS DECIMAL(5,2)) / 8 AS small",
    "CAST(n AS DECIMAL(18,4)) AS middle",
    "CAST(n AS DECIMAL(38,10)) AS wide",
    "concat('s', n) AS s",
    "CAST(concat('b', n) AS BINARY) AS bin",
    "day",
    "ts",
    "CAST(day AS TIMESTAMP_NTZ) AS ntz",
    "array(ts, NULL) AS l",
    "map('k', ts) AS m",
    "named_struct('ts', ts, 'day', day, 'l', array(named_struct('d', day))) AS st",
    "array(n, NULL) AS ints",
]


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def rows(table: pa.Table) -> list[str]:
    return sorted(repr(list(row.values())) for row in table.to_pylist())


@pytest.fixture(scope="module")
def written(delta_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table, with a file for each form."""
    spark, path = delta_session, tmp_path_factory.mktemp("settings") / "t"
    for number, (kind, legacy, rebase) in enumerate(FORMS):
        values = ", ".join(
            f"({number}, {n % 2 == 0}, {n}, DATE'{day}', TIMESTAMP'{day} {CLOCK} UTC')" for n, day in enumerate(DAYS)
        )
        with settings(
            spark,
            **{
                f"{PREFIX}outputTimestampType": kind,
                f"{PREFIX}writeLegacyFormat": legacy,
                f"{PREFIX}datetimeRebaseModeInWrite": rebase,
                f"{PREFIX}int96RebaseModeInWrite": rebase,
                "spark.sql.session.timeZone": ZONES[number % len(ZONES)],
            },
        ):
            frame = spark.sql(f"SELECT * FROM VALUES {values} AS t(o, b, n, day, ts)").coalesce(1)
            frame.selectExpr(*COLUMNS).write.mode("append").parquet(str(path))
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")  # with statistics
    return path


@pytest.mark.slow
def test_both_engines_read_what_delta_spark_reads(delta_session: SparkSession, written: Path) -> None:
    table = mica.Table.open(written)
    expected = rows(delta_session.read.format("delta").load(str(written)).toArrow())
    assert len(expected) == len(FORMS) * len(DAYS)
    assert rows(table.scan().to_arrow()) == expected
    assert rows(table.scan(where="1 = 1").to_df(delta_session).toArrow()) == expected
    assert rows(table.to_df(delta_session).toArrow()) == expected


@pytest.mark.slow
@pytest.mark.parametrize("stats", [True, False])
def test_every_value_is_found_by_every_bound(
    delta_session: SparkSession, written: Path, tmp_path: Path, stats: bool
) -> None:
    """By those of the log, and by those of footers alone."""
    table = mica.Table.open(written)
    if not stats:
        table = without_statistics(table, tmp_path / "t")
    found = delta_session.read.format("delta").load(str(written))
    every = [tuple(row) for row in found.selectExpr("CAST(day AS STRING)", "CAST(ts AS STRING)").collect()]
    for column, literal, texts in (("day", "DATE", [d for d, _ in every]), ("ts", "TIMESTAMP", [t for _, t in every])):
        for text in set(texts):
            for place in (column, f"st.{column}"):
                assert table.scan(where=f"{place} = {literal}'{text}'").count() == texts.count(text), (place, text)


def without_statistics(table: mica.Table, path: Path) -> mica.Table:
    """A table of the same files, of which the log says nothing."""
    from mica.log.transaction import Transaction

    copy = mica.Table.create(path, table.schema)
    transaction: Any = Transaction(copy.snapshot, "WRITE")
    files = table.files().to_pylist()
    transaction.add_files(
        [{"path": f"{table.path}/{f['path']}", "size": f["size"], "modification_time": 1} for f in files]
    )
    transaction.commit()
    return copy.refresh()
