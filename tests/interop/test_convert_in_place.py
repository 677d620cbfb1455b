"""A folder that Spark wrote becomes a table in place, which delta-spark and mica read alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_a_folder_of_spark(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    frame = spark.range(0, 300, 1, 3).selectExpr(
        "CAST(id AS INT) AS id", "date_add(DATE'2020-01-01', CAST(id % 3 AS INT)) AS day",
        "timestamp_seconds(1577836800 + id) AS ts", "CAST(id / 7 AS DECIMAL(9, 2)) AS n",
        "parse_json(concat('{\"a\": ', id, ', \"s\": \"t', id, '\"}')) AS v",
    )  # fmt: skip
    frame.write.partitionBy("day").parquet(str(path))
    expected = sorted(map(str, frame.selectExpr("id", "day", "ts", "n", "to_json(v)").collect()))
    table = mica.Table.convert_to_delta(path)
    read = spark.read.format("delta").load(str(path)).selectExpr("id", "day", "ts", "n", "to_json(v)")
    assert sorted(map(str, read.collect())) == expected
    assert (table.count(), table.scan(where="v:a::int = 77").count()) == (300, 1)
    assert len(table.scan(where="v:a::int = 77").plan.kept) < table.files().num_rows
    assert mica.check(table).ok
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 10")
    assert table.refresh().count() == 290


@pytest.mark.slow
def test_variants_that_spark_does_not_annotate(delta_session: SparkSession, tmp_path: Path) -> None:
    """Spark 4.0 writes them so, and a setting of later ones."""
    spark, path = delta_session, tmp_path / "t"
    variant = "parse_json(concat('{\"a\": ', id, '}'))"
    frame = spark.range(0, 300, 1, 2).selectExpr(
        "id", f"{variant} AS v", f"array({variant}) AS l", f"named_struct('v', {variant}) AS s",
        "CASE WHEN id % 2 = 0 THEN 'X' ELSE 'x' END COLLATE UTF8_LCASE AS c",
    )  # fmt: skip
    with conf(spark, {"spark.sql.parquet.variant.annotateLogicalType.enabled": "false"}):
        frame.write.parquet(str(path))
    columns = ["to_json(v) AS v", "to_json(l[0]) AS l", "to_json(s.v) AS s", "c"]
    where = "c = 'x' AND v:a::int > 100"
    expected = sorted(map(str, spark.read.parquet(str(path)).where(where).selectExpr(*columns).collect()))
    scan = mica.read_parquet(path, where=where)
    assert sorted(map(str, scan.to_df(spark).selectExpr(*columns).collect())) == expected
    assert (len(expected), scan.count()) == (199, 199)
    table = mica.Table.convert_to_delta(path)
    assert table.scan("v:a::int > 100").count() == 199
    read = spark.read.format("delta").load(str(path)).where("v:a::int > 100").selectExpr(*columns)
    assert sorted(map(str, read.collect())) == expected
