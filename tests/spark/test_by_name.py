"""Registered names in an enabled session's readers, writers and catalog: Spark made tables of its own of such names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import ParseException
from pyspark.sql.catalog import Catalog
from pyspark.sql.functions import expr
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import mica
from mica.errors import UserError
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[mica.Table]:
    """A table that is known as `named` to an enabled session."""
    made = mica.Table.create(tmp_path / "t", "id INT, p INT", ["p"])
    made.append([{"id": 1, "p": 0}, {"id": 2, "p": 1}])
    mica.register("named", made.path)
    mica.enable(spark)
    yield made
    mica.disable(spark)


def _rows(spark: SparkSession, *rows: tuple[int, int], columns: str = "id INT, p INT") -> DataFrame:
    return spark.createDataFrame(list(rows), columns)


def _of(table: mica.Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["p"]) for row in table.refresh().to_arrow().to_pylist())


@pytest.mark.slow
def test_writers_write_into_the_table_of_the_name(spark: SparkSession, table: mica.Table) -> None:
    _rows(spark, (0, 3), columns="p INT, id INT").write.mode("append").saveAsTable("named")
    assert _of(table) == [(1, 0), (2, 1), (3, 0)], "by the names of the columns"
    _rows(spark, (4, 0), columns="x INT, y INT").write.insertInto("`named`")
    assert _of(table) == [(1, 0), (2, 1), (3, 0), (4, 0)], "by their places"
    for wrong, words in (
        (lambda df: df.write.saveAsTable("named"), "ErrorIfExists"),
        (lambda df: df.writeTo("named").create(), "TABLE_EXISTS"),
    ):
        with pytest.raises(Exception, match=words):
            wrong(_rows(spark, (7, 7)))
    assert not spark.sql("SHOW TABLES IN default LIKE 'named'").where("NOT isTemporary").collect()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["default.named", "spark_catalog.default.named"])
def test_a_name_may_be_written_with_the_current_database(spark: SparkSession, table: mica.Table, name: str) -> None:
    """As in texts. Methods did not find it, and `saveAsTable` made a table of Spark's beside it."""
    assert spark.catalog.tableExists(name)
    assert len(spark.catalog.listColumns(name)) == spark.table(name).count() == 2
    assert spark.readStream.table(name).isStreaming
    _rows(spark, (0, 3), columns="p INT, id INT").write.mode("append").saveAsTable(name)
    _rows(spark, (4, 0)).write.insertInto(name)
    _rows(spark, (5, 0)).writeTo(name).append()
    assert _of(table) == [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0)]
    assert not spark.catalog.tableExists(name.replace("named", "unnamed"))
    assert not spark.catalog.tableExists(name.replace("default", "global_temp"))


def test_columns_may_have_the_name_before_them(spark: SparkSession, table: mica.Table) -> None:
    """As of Spark's own tables and views; more than a name is Spark's to refuse, and not taken for the table alone."""
    for frame in (spark.table("`named`"), spark.read.table("named")):
        assert [row.id for row in frame.where("named.p = 1").select("named.id").collect()] == [2]
    with pytest.raises(ParseException):
        spark.table("named UNION ALL TABLE named")


def test_readers_read_it_with_their_options(spark: SparkSession, table: mica.Table) -> None:
    assert spark.read.option("versionAsOf", 0).table(tableName="named").count() == 0
    assert spark.readStream.table("named").isStreaming
    assert spark.catalog.tableExists("named")


@pytest.mark.skipif(not hasattr(DataFrameReader, "changes"), reason="Spark 4.1 has no changes")
def test_changes_of_spark_s_catalogs_lead_to_those_of_mica(spark: SparkSession, table: mica.Table) -> None:
    for reader in (spark.read, spark.readStream):
        with pytest.raises(UserError, match="readChangeFeed"):
            reader.option("startingVersion", 0).changes("named")
    with pytest.raises(Exception, match="CHANGE_DATA_CAPTURE") as failed:
        spark.sql("SELECT * FROM named CHANGES FROM VERSION 0 TO VERSION 1")
    assert "table_changes" in "".join(failed.value.__notes__)


def test_a_text_takes_a_stream_by_a_view_of_it(spark: SparkSession, table: mica.Table) -> None:
    for name in ("named", f"delta.`{table.path}`"):
        with pytest.raises(Exception, match="not a temp view of streaming") as failed:
            spark.sql(f"SELECT * FROM STREAM {name}").collect()
        assert "spark.readStream.table" in "".join(failed.value.__notes__)
    spark.readStream.table("named").createOrReplaceTempView("moving")
    try:
        assert spark.sql("SELECT * FROM STREAM moving").isStreaming
    finally:
        spark.catalog.dropTempView("moving")


@pytest.mark.usefixtures("table")
def test_a_text_takes_a_table_of_delta_spark_as_a_stream(delta_session: SparkSession) -> None:
    """Mica took the table, and Spark refused the stream of it."""
    delta_session.sql("CREATE TABLE flowing (id INT) USING delta")
    try:
        for name in ("flowing", "default.flowing WITH (maxFilesPerTrigger = 1)"):
            assert delta_session.sql(f"SELECT id + 1 AS id FROM STREAM {name}").isStreaming
    finally:
        delta_session.sql("DROP TABLE flowing")


@pytest.mark.slow
def test_a_view_that_is_made_later_comes_before_a_registered_name(spark: SparkSession, table: mica.Table) -> None:
    """As before a table of Spark's: mica's was read, whatever the session called so."""
    _rows(spark, (7, 7)).createOrReplaceTempView("Named")
    try:
        assert spark.sql("SELECT * FROM named").collect() == [(7, 7)]
        for frame in (spark.table("named"), spark.read.table("named"), mica.sql("TABLE named", spark)):
            assert frame.collect() == [(7, 7)]
        assert [column.isPartition for column in spark.catalog.listColumns("named")] == [False, False]
        spark.sql(f"INSERT INTO delta.`{table.path}` TABLE named")
        assert _of(table) == [(1, 0), (2, 1), (7, 7)]
        for text in ("DELETE FROM named", "OPTIMIZE named", "DESCRIBE HISTORY named"):
            with pytest.raises(UserError, match="named is a temporary view"):
                spark.sql(text)
        assert len(_of(table)) == 3, "no statement changes a table that queries do not see by the name"
    finally:
        spark.catalog.dropTempView("named")
    assert spark.sql("SELECT count(*) FROM named").collect() == [(3,)]
    # A view over the table of its name.
    mica.sql("CREATE TEMPORARY VIEW named AS SELECT id FROM named WHERE id > 1", spark)
    assert sorted(spark.table("named").collect()) == [(2,), (7,)]
    mica.register("Named", table.path)
    assert spark.table("named").count() == 3, "who registers a name after a view means it"
    spark.table("named").where("id > 1").createOrReplaceTempView("named")
    assert sorted(row.id for row in spark.table("named").collect()) == [2, 7]
    spark.sql("CREATE TEMPORARY FUNCTION how_many() RETURNS BIGINT RETURN (SELECT count(*) FROM named)")
    assert spark.sql("SELECT how_many()").collect() == [(2,)]
    spark.sql("DROP TEMPORARY FUNCTION how_many")
    spark.catalog.dropTempView("named")
    assert spark.table("named").count() == 3


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("by", ["name", "path", "version"])
def test_a_dataframe_of_a_table_is_pruned_by_spark(spark: SparkSession, tmp_path: Path, by: str) -> None:
    made = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    made.append([{"id": 1, "v": {"a": 1, "b": "x"}}, {"id": 2, "v": {"a": 2, "b": "y"}}])
    mica.register("varied", made.path)
    mica.enable(spark)
    try:
        frame = spark.table(
            {"name": "varied", "path": f"delta.`{made.path}`", "version": f"delta.`{made.path}@v1`"}[by]
        )
    finally:
        mica.disable(spark)
    made.append([{"id": 3, "v": None}])
    assert frame.columns == ["id", "v"]
    assert sorted(row.id for row in frame.collect()) == [1, 2], "of the version at the call"
    path = frame.selectExpr("variant_get(v, '$.a', 'int') AS a")
    assert "v:struct<0:int>" in path._jdf.queryExecution().executedPlan().toString()
    assert sorted(path.collect()) == [(1,), (2,)]


@pytest.mark.usefixtures("compiled")
def test_a_text_may_name_python_objects(spark: SparkSession, table: mica.Table) -> None:
    """As PySpark has it: DataFrames, columns and values in braces."""
    given = _rows(spark, (2, 5), (3, 6))
    spark.sql(
        "MERGE INTO named USING {given} AS s ON named.id = s.id WHEN MATCHED THEN UPDATE SET p = {p} "
        "WHEN NOT MATCHED THEN INSERT *",
        given=given,
        p=7,
    )
    assert _of(table) == [(1, 0), (2, 7), (3, 6)]
    found = spark.sql(
        "SELECT id FROM named WHERE {c} IN (SELECT p FROM {given}) AND id < :id", {"id": 9}, c=given.p, given=given
    )
    assert found.collect() == [(3,)], "after the view of the DataFrame is gone"
    with pytest.raises(KeyError):
        spark.sql("DELETE FROM named WHERE id = {other}", given=given)
    assert _of(table) == [(1, 0), (2, 7), (3, 6)]
    assert not [view for view in spark.catalog.listTables() if view.name.startswith("_pyspark")]


def test_other_names_and_sessions_are_sparks(spark: SparkSession, table: mica.Table) -> None:
    other = spark.newSession()
    assert not other.catalog.tableExists("named")
    assert not spark.catalog.tableExists("nowhere")
    assert not spark.catalog.tableExists("elsewhere.named")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.read.table("nowhere")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        other.sql("SELECT * FROM named")
    mica.disable(spark)
    assert not spark.catalog.tableExists("named")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("named")
    for method in (Catalog.tableExists, DataFrameReader.table, DataFrameWriter.insertInto, type(spark).sql):
        assert not hasattr(method, "__wrapped__")


@pytest.mark.slow
def test_a_mode_partitions_and_a_setting_mean_what_they_do_in_delta_spark(
    spark: SparkSession, table: mica.Table
) -> None:
    rows = _rows(spark, (3, 1))
    rows.write.mode("ignore").saveAsTable("named")
    assert _of(table) == [(1, 0), (2, 1)]
    rows.write.mode("append").partitionBy("p").saveAsTable(" `named` ")
    assert _of(table) == [(1, 0), (2, 1), (3, 1)]
    for wrong in (
        lambda: rows.write.mode("overwrite").partitionBy("id").saveAsTable("named"),
        lambda: rows.write.partitionBy("p").insertInto("named"),
        lambda: rows.write.format("csv").mode("append").saveAsTable("named"),
    ):
        with pytest.raises(UserError, match="INVALID_ARGUMENT"):
            wrong()
    merging = rows.alias("s").mergeInto("named", expr("named.id = s.id"))  # see test_ported.py
    merging.whenMatched(expr("s.p > 1")).delete().merge()
    with conf(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        _rows(spark, (4, 1)).write.mode("overwrite").saveAsTable("named")
        assert _of(table) == [(1, 0), (4, 1)]
        _rows(spark, (5, 0)).write.insertInto("named", overwrite=True)
        assert _of(table) == [(4, 1), (5, 0)]
    spark.sql("SELECT '6' x, 1 y").write.mode("overwrite").insertInto("named")
    assert _of(table) == [(6, 1)], "cast as by INSERT"
    rows.writeTo("named").using("delta").append()
    assert _of(table) == [(3, 1), (6, 1)]


@pytest.mark.slow
def test_a_job_that_makes_a_table_at_a_path_writes_there_again(
    spark: SparkSession, table: mica.Table, tmp_path: Path
) -> None:
    """Its second run failed: save() is called with a path parameter."""
    rows = _rows(spark, (3, 1))
    rows.write.format("mica").option("path", table.path).mode("append").saveAsTable("named")
    rows.write.mode("append").saveAsTable("named", PATH=f"file:{table.path}")
    rows.writeTo("named").option("path", table.path).append()
    assert _of(table) == [(1, 0), (2, 1), (3, 1), (3, 1), (3, 1)]
    for replaces in ("false", "true"):
        writer = rows.write.option("path", table.path).option("overwriteSchema", replaces)
        writer.mode("overwrite").saveAsTable("named")
        assert _of(table) == [(3, 1)]
    other = str(tmp_path / "elsewhere")
    for wrong in (
        lambda: rows.write.option("path", other).mode("append").saveAsTable("named"),
        lambda: rows.writeTo("named").option("path", other).append(),
    ):
        with pytest.raises(UserError, match=r"the option path is .*elsewhere, and named is the table"):
            wrong()
    for _ in range(2):
        stream = spark.readStream.table("named").writeStream.format("mica").trigger(availableNow=True)
        stream.option("path", other).option("checkpointLocation", str(tmp_path / "state")).toTable(
            "copied"
        ).awaitTermination()
    assert spark.table("copied").count() == 1
    mica.query.registry.forget("copied")


def test_a_reader_and_a_writer_are_left_as_they_were(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    mica.register("pinned", mica.Table.open(table.path, version=0))
    reader, writer = spark.read, _rows(spark, (3, 3)).write.mode("append")
    assert reader.table("pinned").count() == 0
    assert reader.table("named").count() == 2, "not at the version of the other table"
    with pytest.raises(UserError, match="at version 0, and another version is asked for"):
        spark.read.option("versionAsOf", 1).table("pinned")
    writer.saveAsTable("named")
    writer.save(str(tmp_path / "other"))
    assert spark.read.parquet(str(tmp_path / "other")).count() == 1
    mica.query.registry.forget("pinned")
    stream = spark.readStream
    rows = stream.table("named")
    assert stream.schema("a INT").load(str(tmp_path / "other")).columns == ["a"], "files of Parquet"
    with pytest.raises(UserError, match=r"mica or delta, since named is the table .*, got 'csv'"):
        rows.writeStream.format("csv").toTable("named")


def test_each_session_is_enabled_and_disabled_for_itself(spark: SparkSession, table: mica.Table) -> None:
    other = mica.enable(spark.newSession())  # Spark said that it has a source mica, which another has
    assert other.read.table("named").count() == 2
    mica.disable(spark)
    assert other.read.table("named").count() == 2
    assert not spark.catalog.tableExists("named")
    mica.disable(other)
    assert not hasattr(DataFrameReader.table, "__wrapped__")


def test_a_session_that_spark_clones_for_a_batch_asks_too(spark: SparkSession, table: mica.Table) -> None:
    batches = type(spark)(spark.sparkContext, spark._jsparkSession.cloneSession())
    _rows(batches, (3, 1)).write.mode("append").saveAsTable("named")
    _rows(batches, (4, 1)).write.insertInto("named")
    assert _of(table) == [(1, 0), (2, 1), (3, 1), (4, 1)]
    mica.enable(batches)  # it asks already
    mica.disable(spark)
    assert not batches.catalog.tableExists("named")


def test_a_batch_of_a_stream_is_merged_by_sql_of_its_session(
    spark: SparkSession, table: mica.Table, tmp_path: Path
) -> None:
    """The pattern that Spark's users write."""
    (tmp_path / "rows").mkdir()
    rows = pa.table({"id": pa.array([2, 3], pa.int32()), "p": pa.array([5, 6], pa.int32())})
    pq.write_table(rows, tmp_path / "rows" / "a.parquet")
    seen = list[int]()

    def upsert(batch: DataFrame, _: int) -> None:
        own = batch.sparkSession
        batch.createOrReplaceTempView("updates")
        own.sql(
            "MERGE INTO named USING updates ON named.id = updates.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        own.sql(f"DELETE FROM delta.`{table.path}` WHERE id = :id", {"id": 1})
        seen.append(own.table("named").count())

    batches = spark.readStream.schema("id INT, p INT").parquet(str(tmp_path / "rows")).writeStream.foreachBatch(upsert)
    state = str(tmp_path / "state")
    batches.trigger(availableNow=True).option("checkpointLocation", state).start().awaitTermination()
    assert _of(table) == [(2, 5), (3, 6)]
    assert seen == [2]


def test_each_object_of_a_session_is_the_session(spark: SparkSession, table: mica.Table) -> None:
    """After a stream `SparkSession.active()` gives another one."""
    other = type(spark)(spark.sparkContext, spark._jsparkSession)
    assert other.sql("SELECT id FROM named").count() == 2
    mica.disable(other)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT id FROM named")


@pytest.mark.usefixtures("compiled")
def test_the_catalog_shows_a_name_as_a_temporary_view(spark: SparkSession, table: mica.Table) -> None:
    catalog = spark.catalog
    assert catalog.getTable("named").isTemporary
    assert [(column.name, column.isPartition) for column in catalog.listColumns("named")] == [
        ("id", False),
        ("p", True),
    ]
    shown = catalog.listTables("default", "nam*")
    assert [(one.name, one.isTemporary) for one in shown] == [("named", True)]
    assert shown == [catalog.getTable("named")]
    assert catalog.listTables(pattern="x*") == []
    with pytest.raises(UserError, match="CACHE TABLE named would hold rows"):
        catalog.cacheTable("named")
    assert not catalog.isCached("named")
    catalog.refreshTable("named")
    catalog.uncacheTable("named")
    with pytest.raises(UserError, match="TABLE_EXISTS"):
        catalog.createTable("named", str(table.path), "delta")
