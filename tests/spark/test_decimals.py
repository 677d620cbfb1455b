"""Decimals of rows that mica reads come to Spark as they are, and plans are those of Spark's own reader."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.engines.spark import types
from mica.engines.spark.sizes import row_bytes
from mica.scan import little
from mica.schema.ddl import parse_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "id INT NOT NULL, a DECIMAL(18,2) COMMENT 'money', b DECIMAL(9,0) NOT NULL, c DECIMAL(38,10), `d.e` DECIMAL(5,5)"
)


def test_decimals_cross_as_they_are(
    spark: SparkSession, tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(little, "FEW_FILE_BYTES", 0)  # by tasks, as a larger table
    table = mica.Table.create(tmp_path / "t", f"{COLUMNS}, s STRUCT<x: DECIMAL(10,3)>")

    def value(digits: int, scale: int) -> Decimal:
        most = 10**digits
        return Decimal(rng.choice([1, -1]) * rng.choice([0, 1, most - 1, rng.randrange(most)])).scaleb(-scale)

    rows = [
        {
            "id": i, "a": rng.choice([None, value(18, 2)]), "b": value(9, 0), "c": rng.choice([None, value(28, 10)]),
            "d.e": rng.choice([None, value(5, 5)]), "s": {"x": value(10, 3)},
        }
        for i in range(500)
    ]  # fmt: skip
    for start in range(0, 500, 100):
        table.append(rows[start : start + 100])
    scan = table.scan("id % 3 = 1", columns=table.schema.names)
    frame = scan.to_df(spark)
    assert "MapInArrow" in frame._jdf.queryExecution().toString()
    assert frame.schema == types.to_spark(scan.of_rows)
    assert [f.nullable for f in frame.schema.fields] == [False, True, False, True, True, True]
    key = lambda row: row["id"]  # noqa: E731
    found = sorted((row.asDict(recursive=True) for row in frame.collect()), key=key)
    assert found == [row for row in rows if row["id"] % 3 == 1]
    first = frame.where("a < 0 AND b <> 0").select("id", (frame["a"] * frame["b"]).alias("x")).orderBy("id").collect()
    assert [tuple(row) for row in first] == [
        (row["id"], row["a"] * row["b"]) for row in found if row["a"] is not None and row["a"] < 0 and row["b"]
    ]
    assert frame.where("id < 0").agg({"a": "sum"}).first() == (None,)


def test_rows_are_as_large_as_spark_takes_them_to_be(spark: SparkSession) -> None:
    ddl = (
        f"{COLUMNS}, e STRING, f BINARY, g DATE, h TIMESTAMP, i TIMESTAMP_NTZ, j BOOLEAN, k TINYINT, l SMALLINT, "
        "m BIGINT, n FLOAT, o DOUBLE, p ARRAY<STRING>, q MAP<INT, STRUCT<r: DATE, s: VARIANT>>, t VARIANT"
    )
    schema = parse_ddl(ddl)
    plan = spark.createDataFrame([], types.to_spark(schema))._jdf.queryExecution().analyzed()
    assert row_bytes(schema) == 8 + plan.schema().defaultSize()


@pytest.mark.slow
def test_a_join_is_planned_as_over_spark_s_own_reader(spark: SparkSession, tmp_path: Path) -> None:
    """A table of 30 MB was sorted for a join with two of its sixteen columns, which Spark broadcasts."""
    made = spark.range(200_000).selectExpr("id", *(f"md5(concat(id, {n})) AS c{n}" for n in range(6)))
    made.write.parquet(str(tmp_path / "files"))
    table = mica.Table.create(tmp_path / "t", types.from_spark(made.schema))
    table.append(spark.read.parquet(str(tmp_path / "files")))
    own = spark.read.parquet(str(tmp_path / "files")).where("id >= 0").select("id", "c1")

    def size(frame: DataFrame) -> int:
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    for where, reader in ((None, "FileScan"), ("id >= 0", "MapInArrow")):
        frame = table.scan(where, columns=["id", "c1"]).to_df(spark)
        assert reader in frame._jdf.queryExecution().executedPlan().toString()
        assert 0.25 < size(frame) / size(own) < 2, reader  # files of zstd are smaller
    mica.register("joined", table)
    found = mica.sql("SELECT count(*) FROM joined a JOIN joined b ON a.id = b.id WHERE b.c1 < 'a'", spark)
    assert "SortMergeJoin" not in found._jdf.queryExecution().executedPlan().toString()


@pytest.mark.slow
def test_decimals_of_a_dataframe_are_written_as_they_are(
    spark: SparkSession, tmp_path: Path, rng: random.Random
) -> None:
    digits = [(2, 0), (9, 9), (18, 4), (19, 4)]

    def value(precision: int, scale: int) -> Decimal | None:
        return rng.choice([None, *(Decimal(rng.randrange(-(10**precision) + 1, 10**precision)) for _ in range(4))])

    rows = [(i, *(None if (v := value(p, s)) is None else v.scaleb(-s) for p, s in digits)) for i in range(300)]
    ddl = "id INT, " + ", ".join(f"`d.{p}` DECIMAL({p},{s})" for p, s in digits)
    frame = spark.createDataFrame(rows, ddl).repartition(3)
    table = mica.Table.create(tmp_path / "t", ddl, partition_by=["d.2"])
    table.append(frame)
    table.merge(frame.where("id % 2 = 0"), "target.id = source.id", spark=spark).when_matched_update_all().execute()
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == rows
