"""delta-spark 4.4.0 and mica on the same tables, in both directions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import mica
from mica.cli.events import lines
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ALL_TYPES = (
    "id BIGINT, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, f FLOAT, d DOUBLE, dec DECIMAL(20,3), s STRING, "
    "bin BINARY, day DATE, ts TIMESTAMP, a ARRAY<INT>, m MAP<STRING, BIGINT>, st STRUCT<x: INT, v: VARIANT>, v VARIANT"
)


def _rows(spark: SparkSession, path: Path | str) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def _shown(frame: DataFrame, *expressions: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.selectExpr(*expressions).collect()), key=repr)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.ndjson"
    path.write_bytes(lines(0, 3_000, seed=5))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("partitioned", dealt([False, True], 0))
def test_delta_spark_reads_an_ingest_row_for_row_and_appends(
    delta_session: SparkSession, tmp_path: Path, events: Path, partitioned: bool
) -> None:
    spark = delta_session
    options: dict[str, Any] = {"columns": {"kind": "v:kind::string"}, "partition_by": ["kind"]} if partitioned else {}
    mica.ingest_json(events, tmp_path / "t", spark=spark, target_file_size="100KB", **options)
    source = spark.read.text(str(events)).selectExpr("parse_json(value) AS v")
    assert _shown(_rows(spark, tmp_path / "t"), "to_json(v)") == _shown(source, "to_json(v)")
    _rows(spark, tmp_path / "t").limit(100).write.format("delta").mode("append").save(str(tmp_path / "t"))
    table = mica.Table.open(tmp_path / "t")
    assert table.version == 1
    assert table.scan().count() == 3_100
    own = _shown(table.scan(where="v IS NOT NULL").to_df(spark), "to_json(v)")
    assert own == _shown(_rows(spark, tmp_path / "t"), "to_json(v)")


def test_every_type_reads_the_same_on_both_sides(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    frame = spark.range(200).selectExpr(
        "id", "id % 2 = 0 AS b", "CAST(id % 100 AS TINYINT) AS i8", "CAST(id AS SMALLINT) AS i16",
        "CAST(-id AS INT) AS i32",
        "CAST(id / 3 AS FLOAT) AS f", "id / 7 AS d", "CAST(id / 8 AS DECIMAL(20,3)) AS dec", "concat('ß', id) AS s",
        "unhex(hex(id)) AS bin", "date_add(DATE'1582-10-15', CAST(id * 900 AS INT)) AS day",
        "timestamp_micros(id * 1234567890123) AS ts", "array(CAST(id AS INT), NULL) AS a", "map('k', id) AS m",
        "named_struct('x', CAST(id AS INT), 'v', parse_json(concat('{\"y\":', id, '}'))) AS st",
        "CASE WHEN id % 10 = 0 THEN NULL ELSE parse_json(concat('{\"a\":', id, ',\"s\":\"x\"}')) END AS v",
    )  # fmt: skip
    table = mica.Table.create(tmp_path / "t", ALL_TYPES)
    table.append(frame)
    shown = [*(n for n in table.schema.names if n not in ("v", "st")), "to_json(st)", "to_json(v)"]
    expected = _shown(frame, *shown)
    assert _shown(_rows(spark, tmp_path / "t"), *shown) == expected
    assert _shown(table.scan(where="id >= 0").to_df(spark), *shown) == expected
    found = table.scan(where="id = 11").to_pandas().iloc[0]
    assert found["dec"] == Decimal("1.375")
    assert found["day"] == dt.date(1582, 10, 15) + dt.timedelta(days=9900)
    assert found["v"] == {"a": 11, "s": "x"}


@pytest.mark.slow
@pytest.mark.parametrize("shredded", [True, False])
@pytest.mark.parametrize("partitioned", [True, False])
def test_mica_reads_and_skips_on_what_delta_spark_wrote(
    delta_session: SparkSession, tmp_path: Path, events: Path, shredded: bool, partitioned: bool
) -> None:
    spark = delta_session
    source = spark.read.text(str(events)).selectExpr("parse_json(value) AS v").selectExpr("v", "v:kind::string AS kind")
    writer = source.write.format("delta").option("delta.enableVariantShredding", str(shredded).lower())
    (writer.partitionBy("kind") if partitioned else writer).save(str(tmp_path / "t"))
    table = mica.Table.open(tmp_path / "t")
    assert _shown(table.to_df(spark), "to_json(v)", "kind") == _shown(source, "to_json(v)", "kind")
    where = "v:commit.collection::string = 'app.bsky.feed.post' AND kind = 'commit'"
    expected = _shown(source.where(where), "v:did::string")
    assert _shown(table.scan(where=where, columns={"did": "v:did::string"}).to_df(spark), "did") == expected
    assert sorted(table.scan(where=where, columns={"did": "v:did::string"}).to_arrow().column("did").to_pylist()) == [
        row[0] for row in expected
    ]


def test_mica_appends_to_a_table_of_delta_spark(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    frame = spark.range(10).selectExpr("id", "parse_json(concat('{\"a\":', id, '}')) AS v")
    frame.write.format("delta").save(str(tmp_path / "t"))
    table = mica.Table.open(tmp_path / "t")
    with pytest.warns(UserWarning, match="unshredded") if "true" not in table.properties.values() else _nothing():
        table.append(frame)
    assert _shown(_rows(spark, tmp_path / "t"), "id", "to_json(v)") == sorted(
        [*_shown(frame, "id", "to_json(v)")] * 2, key=repr
    )


@pytest.mark.slow
def test_deleted_rows_and_mapped_columns_are_read_right(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    path = tmp_path / "t"
    frame = spark.range(100).selectExpr(
        "id AS `a b`",
        "named_struct('x', id, 'v', parse_json(concat('{\"n\":', id, '}'))) AS s",
        "CAST(id % 2 AS INT) AS p",
    )
    (
        frame.coalesce(1).write.format("delta").partitionBy("p")
        .option("delta.columnMapping.mode", "name").option("delta.enableDeletionVectors", "true").save(str(path))
    )  # fmt: skip
    spark.sql(f"DELETE FROM delta.`{path}` WHERE `a b` % 10 = 3")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN `a b` TO renamed")
    table = mica.Table.open(path)
    shown = ["renamed", "to_json(s)", "p"]
    expected = _shown(_rows(spark, path), *shown)
    assert len(expected) == 90
    assert _shown(table.to_df(spark), *shown) == expected
    found = table.scan(where="s.v:n::int < 15 AND p = 1", columns=["renamed"])
    assert sorted(found.to_arrow().column("renamed").to_pylist()) == [1, 5, 7, 9, 11]
    assert table.scan().count() == 90


@pytest.mark.slow
def test_time_travel_sees_what_delta_spark_sees(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    for n in range(13):  # beyond a checkpoint
        table.append(pa.table({"id": pa.array([n], pa.int64())}))
    for version in (0, 5, 11, 13):
        frame = spark.read.format("delta").option("versionAsOf", version).load(str(tmp_path / "t"))
        assert sorted(r.id for r in frame.collect()) == list(range(version))
        assert mica.Table.open(tmp_path / "t", version=version).scan().count() == version
    history = spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 't'}`").collect()
    assert [row.version for row in history] == table.history().column("version").to_pylist()


class _nothing:  # noqa: N801 - reads as what it does in a `with`
    def __enter__(self) -> None: ...
    def __exit__(self, *exc: object) -> None: ...
