"""Files that real writers get wrong: `mica check` names the fault, and after `mica repair` Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

import mica

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

#: More than 32 fields, so that Spark looks them up by bisection, and in no order that sorting would give.
KEYS = [f"{'zyxwv'[n % 5]}{n:02}" for n in range(60)]
ROWS = [{key: n for n, key in enumerate(KEYS)} for _ in range(3)]


@pytest.fixture
def faulty(duck: duckdb.DuckDBPyConnection, tmp_path: Path) -> str:
    """A file that DuckDB 2.0 wrote from JSON."""
    (tmp_path / "rows.json").write_bytes(b"\n".join(map(orjson.dumps, ROWS)))
    path = str(tmp_path / "duck.parquet")
    duck.execute(
        "COPY (SELECT json::VARIANT AS v FROM read_json_objects(?)) TO "
        f"'{path}' (FORMAT parquet, SHREDDING {{'v': 'INTEGER'}})",
        [str(tmp_path / "rows.json")],
    )
    return path


def _seen(spark: SparkSession, path: str) -> list[list[Any]]:
    columns = [f"try_variant_get(v, '$.{key}', 'int') AS {key}" for key in KEYS]
    return [list(row) for row in spark.read.parquet(path).selectExpr(*columns).collect()]


def test_spark_reads_a_file_of_duckdb_after_the_repair(spark: SparkSession, faulty: str, tmp_path: Path) -> None:
    report = mica.check(faulty)
    assert {(v.kind, v.rule) for v in report} == {("unsorted_ids", 10)}
    assert mica.variant.to_python(mica.read_parquet(faulty).to_arrow().column("v")) == ROWS, "mica reads it as it is"
    expected = [list(row.values()) for row in ROWS]
    assert _seen(spark, faulty) != expected, "if Spark reads it now, the fault is gone and this test with it"
    mended = str(tmp_path / "mended.parquet")
    mica.repair(faulty, mended)
    assert mica.check(mended).ok
    assert _seen(spark, mended) == expected


def test_spark_reads_a_table_with_a_file_of_duckdb_after_the_repair(
    delta_session: SparkSession, faulty: str, tmp_path: Path
) -> None:
    root = tmp_path / "t"
    table = mica.Table.create(root, "v VARIANT")
    table.append(mica.read_parquet(faulty).to_arrow())
    (path,) = root.glob("*.parquet")
    log = root / "_delta_log" / f"{1:020}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    path.write_bytes(Path(faulty).read_bytes())
    for line in lines:
        if "add" in line:
            line["add"] |= {"stats": '{"numRecords":3}', "size": path.stat().st_size}
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    done = mica.repair(root)
    assert done.version == 2
    columns = [f"try_variant_get(v, '$.{key}', 'int')" for key in KEYS]
    found = delta_session.read.format("delta").load(str(root)).selectExpr(*columns).collect()
    assert [list(row) for row in found] == [list(row.values()) for row in ROWS]


def test_spark_orders_fields_by_utf16(spark: SparkSession, tmp_path: Path) -> None:
    text = orjson.dumps({"￰": 1, "\U00010000": 2}).decode()
    frame = spark.createDataFrame([(text,)], "j string").selectExpr("parse_json(j) AS v").coalesce(1)
    frame.write.option("spark.sql.variant.inferShreddingSchema", "false").parquet(str(tmp_path / "spark"))
    report = mica.check(tmp_path / "spark")
    assert {(v.kind, v.rule) for v in report} == {("utf16_order", 10)}
    (path,) = (tmp_path / "spark").glob("*.parquet")
    mica.repair(path, tmp_path / "out.parquet")
    assert mica.check(tmp_path / "out.parquet").ok
    (row,) = spark.read.parquet(str(tmp_path / "out.parquet")).selectExpr("to_json(v) AS t").collect()
    assert orjson.loads(row.t) == orjson.loads(text)
