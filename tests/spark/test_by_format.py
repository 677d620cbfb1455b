"""Readers and writers of the format in an enabled session: the source learns what Spark does not tell it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.engines.spark.doors import as_before
from mica.errors import UserError
from mica.query import by_format, enabled, entry, registry
from tests.oracle import conf
from tests.support import stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    """Two rows in two partitions, of an enabled session."""
    mica.enable(spark)
    yield spark.createDataFrame([(1, 0), (2, 1)], "id INT, p INT")
    mica.disable(spark)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session is taken for one without delta-spark."""
    for module in (by_format, enabled, entry):
        monkeypatch.setattr(module, "has_delta", lambda _: False)


def test_every_mode_and_partition_columns_are_taken(rows: DataFrame, tmp_path: Path) -> None:
    """Spark refuses both for a Python source; ErrorIfExists is the mode of who names none."""
    path = str(tmp_path / "t")
    rows.write.format("mica").partitionBy("p").save(path)
    assert mica.Table.open(path).partition_by == ("p",)
    with pytest.raises(UserError, match="ErrorIfExists"):
        rows.write.save(path, format="mica")
    rows.write.format("mica").mode("ignore").option("path", path).save()
    assert mica.Table.open(path).version == 0
    writer = rows.write.mode("append").partitionBy("p")
    writer.save(path, "mica")
    assert mica.Table.open(path).count() == 4
    writer.save(str(tmp_path / "plain"))
    assert (tmp_path / "plain" / "p=0").is_dir(), "the writer is as it was: of Spark's own format"
    with pytest.raises(Exception, match="INVALID_PARTITION_COLUMN"):
        rows.write.format("mica").mode("append").partitionBy("id").save(path)


def test_the_session_s_settings_are_obeyed(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """With the mode dynamic all other partitions were lost."""
    path = str(tmp_path / "t")
    rows.write.format("mica").partitionBy("p").save(path)
    with conf(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        rows.where("p = 1").selectExpr("3 AS id", "p").write.format("mica").mode("overwrite").save(path)
    assert stored(path) == ["{'id': 1, 'p': 0}", "{'id': 3, 'p': 1}"]
    with pytest.raises(Exception, match="TIMESTAMP_OUT_OF_RANGE"):
        spark.read.format("mica").option("timestampAsOf", "2020-01-01").load(path)


@pytest.mark.usefixtures("rows")
def test_a_stream_tells_the_source_its_partition_columns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new table had none, without a word."""
    source, seen = str(tmp_path / "source"), list[object]()
    mica.Table.create(source, "id INT, p INT")
    writer = spark.readStream.format("mica").load(source).writeStream.format("mica").partitionBy("p")

    def started(on: Any, path: str, kind: str, *_: Any) -> None:
        with as_before(on) as told:
            seen.extend((path, kind, told.options["partitionby"], told.partition_by))

    by_format.BY_FORMAT["DataStreamWriter.start"](started, writer, "sink")
    assert seen == ["sink", "mica", "p", ()]
    with pytest.raises(Exception, match="checkpointLocation must be specified"):
        writer.toTable("by_stream")
    assert not registry.is_registered("by_stream")
    monkeypatch.setattr(type(writer), "start", lambda _, *given, **options: (*given, options))
    *given, _ = writer.toTable("by_stream", checkpointLocation="state")
    assert given == [registry.place_of("by_stream"), "mica", None, None, None]


def test_a_new_name_is_that_of_a_table_in_the_warehouse(spark: SparkSession, rows: DataFrame) -> None:
    """As of CREATE TABLE … USING mica, also when a later process writes again."""
    rows.write.format("mica").mode("append").saveAsTable("by_format")
    registry.forget("by_format")
    rows.write.saveAsTable("`by_format`", "mica", "append")
    assert spark.table("by_format").count() == 4
    rows.createOrReplaceTempView("by_format_view")
    with pytest.raises(UserError, match="TABLE_EXISTS"):
        rows.write.format("mica").saveAsTable("by_format_view")
    rows.write.format("mica").mode("overwrite").option("overwriteSchema", "true").partitionBy("p").saveAsTable(
        "by_format"
    )
    assert mica.register("by_format", registry.place_of("by_format") or "").partition_by == ("p",)


def test_a_name_may_have_its_database(spark: SparkSession, rows: DataFrame) -> None:
    """Only the catalog of delta-spark had such names: pipelines are full of them."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS silver")
    spark.sql("CREATE OR REPLACE TABLE silver.made USING mica AS SELECT 1 AS id, 0 AS p")
    assert str(registry.place_of("silver.made")).endswith("/silver.db/made")
    rows.write.insertInto("silver.made")
    spark.sql("UPDATE silver.made SET p = 7 WHERE id = 2")
    assert spark.table("spark_catalog.silver.made").where("silver.made.p = 7").select("made.id").first() == (2,)
    older = "SELECT 1 FROM silver.made VERSION AS OF 0 AS o WHERE o.id = made.id"
    assert spark.sql(f"SELECT sum(made.id) FROM silver.made made WHERE EXISTS ({older})").first() == (2,)
    spark.sql("USE silver")
    try:
        assert spark.table("made").count() == 3
    finally:
        spark.sql("USE default")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("made")
    spark.sql("ALTER TABLE silver.made RENAME TO made_alone")
    assert spark.table("default.made_alone").count() == 3, "the database is the current one"
    assert not spark.catalog.tableExists("silver.made")


@pytest.mark.usefixtures("alone")
def test_without_delta_spark_its_format_is_mica_s(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    rows.write.format("delta").partitionBy("p").save(path)
    assert spark.read.format("delta").load(path).where("id = 1").count() == 1
    assert mica.explain(spark.read.load(path, "delta").where("p = 1")).scans[0].kept.num_rows == 1
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).count() == 2
    assert spark.readStream.format("delta").load(path).isStreaming
    rows.write.format("delta").saveAsTable("of_delta")
    spark.sql(f"CREATE TABLE of_delta_too (id INT COMMENT 'USING delta') USING DELTA LOCATION '{tmp_path / 'u'}'")
    assert registry.is_registered("of_delta")
    assert registry.place_of("of_delta_too") == str(tmp_path / "u")
    spark.sql("CREATE TABLE IF NOT EXISTS of_delta_too USING delta")


@pytest.mark.usefixtures("alone")
def test_without_delta_spark_methods_take_paths_as_names(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    rows.write.mode("append").saveAsTable(name)
    rows.write.insertInto(name)
    assert spark.read.table(name).count() == spark.read.option("versionAsOf", 1).table(name).count() == 4
    assert spark.readStream.table(f" {name} ").isStreaming
    assert spark.catalog.tableExists(name)
    assert not spark.catalog.tableExists(f"delta.`{tmp_path / 'u'}`")


def test_a_schema_is_refused_for_a_name(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """It was passed over."""
    rows.write.format("mica").save(str(tmp_path / "t"))
    mica.register("schemed", tmp_path / "t")
    with pytest.raises(Exception, match=r"(?i)user.specified.schema"):
        spark.read.schema("id INT").table("schemed")


def test_the_catalog_makes_tables_of_the_format(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """Spark left an entry with nothing behind it."""
    kinds = spark.sql("SELECT 1 AS id, 'a' COLLATE UTF8_LCASE AS s, parse_json('1') AS v").schema
    try:
        made = spark.catalog.createTable("catalogued", str(tmp_path / "t"), "mica", kinds, "of the catalog")
        assert (made.columns, made.count()) == (["id", "s", "v"], 0)
        table = mica.Table.open(tmp_path / "t")
        (detail,) = spark.sql("DESCRIBE DETAIL catalogued").collect()
        assert (detail.location, detail.description) == (table.path, "of the catalog")
        assert "COLLATE UTF8_LCASE" in str(table.schema)
        rows.write.format("mica").save(str(tmp_path / "u"))
        assert spark.catalog.createTable("again", source="mica", path=str(tmp_path / "u")).count() == 2
        with pytest.raises(UserError, match="TABLE_EXISTS"):
            spark.catalog.createTable("again", source="mica", schema=kinds)
    finally:
        registry.forget("catalogued")
        registry.forget("again")
