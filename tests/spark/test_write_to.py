"""`df.writeTo` of an enabled session, and clusterBy of its writers: Spark's methods, as statements of `spark.sql`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import bucket, col

import mica
from mica.errors import UserError
from mica.query import registry
from tests.support import stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def rows(spark: SparkSession) -> Iterator[DataFrame]:
    """Four rows in two partitions, of an enabled session."""
    mica.enable(spark)
    yield spark.sql("SELECT id, CAST(id % 2 AS INT) AS p, named_struct('a', id) AS s FROM range(4)")
    mica.disable(spark)


def _detail(spark: SparkSession, name: str) -> dict[str, Any]:
    return spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].asDict()


@pytest.mark.slow
def test_a_new_name_becomes_a_table(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """Spark said that it finds no source, or left an entry with nothing behind it."""
    with pytest.raises(UserError, match="TABLE_NOT_FOUND"):
        rows.writeTo("to_new").using("mica").replace()
    rows.writeTo("to_new").using("mica").partitionedBy(col("p")).tableProperty("own", "1").tableProperty(
        "comment", "said"
    ).option("delta.enableChangeDataFeed", "true").create()
    detail = _detail(spark, "to_new")
    assert (detail["partitionColumns"], detail["description"]) == (["p"], "said")
    assert detail["properties"].items() >= {"own": "1", "delta.enableChangeDataFeed": "true"}.items()
    with pytest.raises(UserError, match=r"TABLE_EXISTS.*\n.*createOrReplace"):
        rows.writeTo("to_new").using("mica").create()
    rows.select((col("id") + 10).alias("id"), "p").where("p = 1").writeTo("to_new").overwritePartitions()
    assert [row.id for row in spark.table("to_new").orderBy("id").collect()] == [0, 2, 11, 13]
    rows.where("id = 3").writeTo("to_new").overwrite((col("p") == 1) & (col("id") < 12))
    assert [row.id for row in spark.table("to_new").orderBy("id").collect()] == [0, 2, 3, 13]
    rows.select("id").writeTo("to_new").using("mica").clusterBy("id").createOrReplace()
    assert _detail(spark, "to_new")["clusteringColumns"] == ["id"]
    spark.table("to_new").where("id < 2").writeTo("to_new").using("mica").replace()
    assert [tuple(row) for row in spark.table("to_new").orderBy("id").collect()] == [(0,), (1,)]
    rows.writeTo("to_there").using("mica").option("path", str(tmp_path / "t")).create()
    assert registry.place_of("to_there") == str(tmp_path / "t")
    with pytest.raises(Exception, match="UNKNOWN_COLUMN"):
        spark.sql("SELECT 9L AS more").writeTo("to_there").append()
    spark.sql("SELECT 9L AS more").writeTo("to_there").option("mergeSchema", "true").append()
    assert spark.table("to_there").columns == ["id", "p", "s", "more"]
    spark.sql("DROP TABLE to_there")
    assert len(stored(tmp_path / "t")) == 5


def test_what_delta_has_not_is_refused(spark: SparkSession, rows: DataFrame) -> None:
    with pytest.raises(UserError, match=r"partitionedBy must be columns.*bucket\(4, id\)"):
        rows.writeTo("to_bucket").using("mica").partitionedBy(bucket(4, "id")).create()
    rows.writeTo("to_once").using("mica").create()
    with pytest.raises(UserError, match="using must be mica or delta"):
        rows.writeTo("to_once").using("parquet").createOrReplace()
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.writeTo("to_nothing").append()
    spark.sql("CREATE TABLE to_parquet (id BIGINT) USING parquet")
    try:
        with pytest.raises(UserError, match="TABLE_EXISTS"):
            rows.writeTo("to_parquet").using("mica").createOrReplace()
        with pytest.raises(UserError, match="TABLE_EXISTS"):
            rows.write.format("mica").mode("append").saveAsTable("to_parquet")
    finally:
        spark.sql("DROP TABLE to_parquet")


@pytest.mark.slow
def test_a_writer_clusters_the_table_that_it_makes(spark: SparkSession, rows: DataFrame, tmp_path: Path) -> None:
    """Spark took a Python source to have other clusters, and refused."""
    writer = rows.write.format("mica").clusterBy("s.a").mode("append")
    for _ in range(2):
        writer.save(str(tmp_path / "t"))
    path = f"mica.`{tmp_path / 't'}`"
    assert (_detail(spark, path)["clusteringColumns"], len(stored(tmp_path / "t"))) == (["s.a"], 8)
    stream = spark.readStream.format("mica").load(str(tmp_path / "t")).writeStream.format("mica").clusterBy("id")
    stream = stream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
    stream.start(str(tmp_path / "streamed")).awaitTermination()
    assert _detail(spark, f"mica.`{tmp_path / 'streamed'}`")["clusteringColumns"] == ["id"]
    assert len(stored(tmp_path / "streamed")) == 8
    rows.write.format("mica").clusterBy("id").mode("overwrite").saveAsTable("clustered")
    with pytest.raises(UserError, match="is clustered by id, not by p"):
        rows.write.format("mica").clusterBy("p").mode("append").saveAsTable("clustered")
    rows.write.format("mica").clusterBy("p").mode("overwrite").option("overwriteSchema", "true").saveAsTable(
        "clustered"
    )
    assert _detail(spark, "clustered")["clusteringColumns"] == ["p"]


@pytest.mark.slow
def test_files_go_with_the_name_of_a_table_that_got_its_place_by_it(spark: SparkSession, rows: DataFrame) -> None:
    """A table could not be made again after DROP TABLE, and a new one of its old name not after RENAME."""
    for make in (
        lambda: rows.write.format("mica").saveAsTable("goes"),
        lambda: rows.writeTo("goes").using("mica").create(),
        lambda: spark.sql("CREATE TABLE goes USING mica AS SELECT 1 AS id"),
    ):
        make()
        place = Path(registry.place_of("goes") or "")
        assert spark.table("goes").count() > 0
        spark.sql("DROP TABLE goes")
        assert not place.exists()
    rows.writeTo("goes").using("mica").create()
    spark.sql("ALTER TABLE goes RENAME TO went")
    rows.where("id = 0").writeTo("goes").using("mica").create()
    assert (spark.table("went").count(), spark.table("goes").count()) == (4, 1)
    kept = registry.place_of("went") or ""
    mica.register("went", kept)
    spark.sql("DROP TABLE went")
    assert mica.Table.open(kept).count() == 4, "registered by its path it is none of the name's"


def test_a_database_goes_with_its_tables_only_if_that_is_said(spark: SparkSession, rows: DataFrame) -> None:
    """Spark took it for empty, and deleted the files of its tables without CASCADE."""
    spark.sql("CREATE SCHEMA to_schema")
    try:
        rows.write.format("mica").saveAsTable("to_schema.t")
        for drop in (lambda: spark.sql("DROP SCHEMA to_schema"), lambda: spark.sql("DROP DATABASE to_schema RESTRICT")):
            with pytest.raises(UserError, match=r"to_schema is not empty: it has t\n.*CASCADE"):
                drop()
        assert spark.table("to_schema.t").count() == 4
    finally:
        spark.catalog.dropDatabase("to_schema", cascade=True) if hasattr(spark.catalog, "dropDatabase") else spark.sql(
            "DROP SCHEMA to_schema CASCADE"
        )
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.table("to_schema.t")
