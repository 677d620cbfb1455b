"""Readers and writers of the format in an enabled session: the source learns what Spark does not tell it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.engines.spark.doors import as_before
from mica.errors import UserError
from mica.query import by_format, enabled, entry, registry, settings
from mica.query.made import new_place
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_session_s_settings_are_obeyed(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """With the mode dynamic all other partitions were lost."""
    path = str(tmp_path / "t")
    rows.write.format("mica").partitionBy("p").save(path)
    with conf(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        rows.where("p = 1").selectExpr("3 AS id", "p").write.format("mica").mode("overwrite").save(path)
        assert stored(path) == ["{'id': 1, 'p': 0}", "{'id': 3, 'p': 1}"]
        new = rows.where("p = 1").selectExpr("p", "'x' AS more").write.format("mica").mode("overwrite")
        new.option("overwriteSchema", "true").save(path)
    assert stored(path) == ["{'p': 1, 'more': 'x'}"], "as by delta-spark: it was refused"
    with pytest.raises(Exception, match="TIMESTAMP_OUT_OF_RANGE"):
        spark.read.format("mica").option("timestampAsOf", "2020-01-01").load(path)


def test_writers_follow_settings_as_statements_do(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """A write that was repeated gave its rows twice, new tables lacked their properties, a new column was refused."""
    path, delta = str(tmp_path / "t"), "spark.databricks.delta."
    mine = {f"{delta}schema.autoMerge.enabled": "true", f"{delta}write.txnAppId": "a", f"{delta}write.txnVersion": "1"}
    mine |= {f"{delta}properties.defaults.enableChangeDataFeed": "true", f"{delta}commitInfo.userMetadata": "nightly"}
    mica.Table.create(path, "id INT")
    with conf(spark, mine):
        for _ in range(2):
            rows.write.format("mica").mode("append").save(path)
        told = settings.as_options(spark, {"mergeschema": "false", "txnappid": "b"})
        assert told == settings.as_options(spark, {"mergeschema": "false"}, stream=True)
        assert told == {"delta.enableChangeDataFeed": "true", "userMetadata": "nightly"}
    table = mica.Table.open(path)
    assert (table.count(), table.schema.names, table.version) == (2, ["id", "p"], 1)
    assert table.history(1).column("user_metadata").to_pylist() == ["nightly"]


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


@pytest.mark.usefixtures("rows")
def test_each_batch_of_a_stream_stays_the_caller_s(spark: SparkSession, tmp_path: Path) -> None:
    """format("delta").foreachBatch(…).start() wrote to no path, and failed: start told Spark the format again."""
    source, seen = str(tmp_path / "source"), list[object]()
    mica.Table.create(source, "id INT")
    writer = spark.readStream.format("mica").load(source).writeStream.format("mica").foreachBatch(lambda *_: None)
    start = partial(by_format.BY_FORMAT["DataStreamWriter.start"], lambda _, path, kind, *__, **___: seen.append(kind))
    start(writer)
    start(writer, "sink", "mica")
    assert seen == [None, "mica"]


@pytest.mark.slow
@pytest.mark.usefixtures("rows")
def test_a_stream_s_state_may_be_where_the_session_says(spark: SparkSession, tmp_path: Path) -> None:
    """It was refused: the source is told only of the option."""
    source, sink = str(tmp_path / "source"), str(tmp_path / "sink")
    rows = mica.Table.create(source, "id INT")
    with conf(spark, {"spark.sql.streaming.checkpointLocation": str(tmp_path / "states")}):
        for number in range(2):
            rows.append([{"id": number}])
            writer = spark.readStream.format("mica").load(source).writeStream.format("mica").queryName("copy")
            writer.trigger(availableNow=True).start(sink).awaitTermination()
        assert stored(sink) == ["{'id': 0}", "{'id': 1}"]
        writer = spark.readStream.format("mica").load(source).writeStream.format("mica")
        writer.trigger(availableNow=True).start(sink).awaitTermination()
    assert len(stored(sink)) == 4, "without a name it is another stream"
    assert (tmp_path / "states" / "copy" / "metadata").is_file()


@pytest.mark.usefixtures("rows")
def test_a_stream_that_would_update_rows_is_refused_when_it_starts(spark: SparkSession, tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "source", "id INT")
    writer = spark.readStream.format("mica").load(str(tmp_path / "source")).writeStream.format("mica")
    for start in (
        lambda: writer.start(str(tmp_path / "sink"), outputMode="update"),
        lambda: writer.outputMode("update").toTable("by_update"),
    ):
        with pytest.raises(UserError, match="append or complete, got update"):
            start()
    assert not registry.is_registered("by_update")


@pytest.mark.usefixtures("alone")
def test_the_session_s_default_format_counts(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """spark.sql.sources.default = delta, as on Databricks, was no source that Spark knew."""
    path = str(tmp_path / "t")
    with conf(spark, {"spark.sql.sources.default": "delta"}):
        rows.write.partitionBy("p").save(path)
        assert spark.read.load(path).schema.names == ["id", "p"]
        assert spark.range(0).write.parquet(str(tmp_path / "plain")) is None
    assert (mica.Table.open(path).partition_by, (tmp_path / "plain" / "_delta_log").exists()) == (("p",), False)


@pytest.mark.usefixtures("alone")
def test_options_of_a_call_may_be_numbers_and_booleans(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """load(path, versionAsOf=0), and so pandas-on-Spark's read_delta(path, version=0), was an AttributeError."""
    path = str(tmp_path / "t")
    rows.write.save(path, "delta")
    before = rows.count()
    rows.write.save(path, "delta", "append", mergeSchema=True)
    rows.write.option("MERGESCHEMA", "true").save(path, "delta", "overwrite")  # of which Spark said INTERNAL_ERROR
    assert spark.read.load(path, "delta", versionAsOf=0).count() == before
    assert spark.read.load(path, "delta", versionAsOf=1).count() == 2 * before


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


@pytest.mark.slow
def test_a_name_may_have_its_database(spark: SparkSession, rows: DataFrame) -> None:
    """Only the catalog of delta-spark had such names: pipelines are full of them."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS silver")
    spark.sql("CREATE OR REPLACE TABLE silver.made USING mica AS SELECT 1 AS id, 0 AS p")
    assert str(registry.place_of("silver.made")).endswith("/silver.db/made")
    assert [spark.catalog.tableExists(name, "silver") for name in ("made", "other")] == [True, False]
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
    assert spark.table("silver.made_alone").count() == 3, "a new name without a database keeps the one before"
    assert not spark.catalog.tableExists("silver.made")


def test_a_new_name_is_one_of_the_current_database(spark: SparkSession, rows: DataFrame) -> None:
    """Under USE gold an append made another table, in the warehouse, and silver's table was gold's too."""
    for database in ("current_gold", "current_silver"):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {database}")
    mica.Table.create(new_place(spark, ["twice"]), "id INT, p INT")
    mica.register("twice", new_place(spark, ["twice"]))
    rows.write.format("mica").saveAsTable("current_gold.twice")
    try:
        spark.sql("USE current_gold")
        rows.write.format("mica").mode("append").saveAsTable("twice")
        assert spark.table("twice").count() == spark.sql("SELECT * FROM current_gold.twice").count() == 4
        spark.sql("DELETE FROM twice WHERE id = 1")
        spark.sql("CREATE TABLE by_text USING mica AS SELECT 1 AS id")
        assert str(registry.place_of("current_gold.by_text")).endswith("/current_gold.db/by_text")
        spark.sql("USE current_silver")
        assert not spark.catalog.tableExists("by_text")
        rows.limit(1).write.format("mica").mode("overwrite").saveAsTable("by_text")
        assert spark.read.table("current_gold.by_text").columns == ["id"]
    finally:
        spark.sql("USE default")
    assert (spark.table("twice").count(), spark.table("current_gold.twice").count()) == (0, 2)


@pytest.mark.slow
def test_a_table_of_default_is_none_of_another_database(spark: SparkSession, rows: DataFrame) -> None:
    """Under USE an overwrite by the same short name replaced it."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS elsewhere")
    rows.write.format("mica").saveAsTable("of_default")
    try:
        spark.sql("USE elsewhere")
        for text in ("SELECT * FROM of_default", "SELECT * FROM of_default VERSION AS OF 0", "DROP TABLE of_default"):
            with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
                spark.sql(text)
        assert not spark.catalog.tableExists("of_default")
        rows.limit(1).write.format("mica").mode("overwrite").saveAsTable("of_default")
        assert str(registry.place_of("elsewhere.of_default")).endswith("/elsewhere.db/of_default")
        spark.sql("INSERT INTO default.of_default VALUES (3, 3)")
        whole = "SELECT of_default.id FROM default.of_default WHERE default.of_default.id > 1"
        assert sorted(spark.sql(whole).collect()) == [(2,), (3,)]
        assert spark.sql("SELECT * FROM default.of_default VERSION AS OF 0").count() == 2
        spark.sql("ALTER TABLE default.of_default RENAME TO of_default_2")
        assert spark.table("default.of_default_2").count() == 3
    finally:
        spark.sql("USE default")
    assert spark.sql("SELECT * FROM of_default_2").count() == 3
    spark.sql("CREATE TABLE default.by_its_database USING mica AS SELECT 1 AS a")
    assert spark.table("by_its_database").count() == 1


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.usefixtures("alone")
def test_a_loaded_table_skips_and_its_view_is_the_table(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """format("mica") read all rows where format("delta") skipped; of that, and of spark.table, no view could change."""
    path = str(tmp_path / "t")
    rows.write.format("mica").partitionBy("p").save(path)
    mica.register("of_view", path)
    loaded = spark.read.format("mica").load(path)
    assert mica.explain(loaded.where("p = 1")).scans[0].kept.num_rows == 1
    for number, frame in enumerate((loaded, spark.table("of_view"), spark.table("of_view").alias("a"))):
        frame.createOrReplaceTempView("shown_whole")
        spark.sql(f"INSERT INTO shown_whole VALUES ({number + 10}, 0)")
        assert spark.sql(f"UPDATE shown_whole SET p = 3 WHERE id = {number + 10}").first() == (1,)
        assert spark.table("shown_whole").where("p = 3").count() == number + 1
    others = (
        spark.table("of_view").where("p = 3"),
        spark.table("of_view").select("p", "id"),
        spark.read.option("versionAsOf", 0).format("mica").load(path),
        mica.Table.create(tmp_path / "other", "id INT, p INT").to_df(spark).alias("of_view"),
    )
    for frame in others:
        frame.createOrReplaceTempView("shown_whole")
        with pytest.raises(Exception, match="UNSUPPORTED_FEATURE"):
            spark.sql("UPDATE shown_whole SET p = 4")
    spark.read.table(f"delta.`{path}@v0`").createOrReplaceTempView("shown_whole")
    with pytest.raises(UserError, match="newest version"):
        spark.sql("UPDATE shown_whole SET p = 4")
    spark.catalog.dropTempView("shown_whole")
