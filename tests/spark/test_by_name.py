"""Registered names in an enabled session's readers, writers and catalog: Spark made tables of its own of such names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.catalog import Catalog
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

import mica

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


def test_readers_read_it_with_their_options(spark: SparkSession, table: mica.Table) -> None:
    assert spark.read.option("versionAsOf", 0).table(tableName="named").count() == 0
    assert spark.readStream.table("named").isStreaming
    assert spark.catalog.tableExists("named")


def test_other_names_and_sessions_are_sparks(spark: SparkSession, table: mica.Table) -> None:
    other = spark.newSession()
    assert not other.catalog.tableExists("named")
    assert not spark.catalog.tableExists("nowhere")
    assert not spark.catalog.tableExists("default.named")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.read.table("nowhere")
    mica.disable(spark)
    assert not spark.catalog.tableExists("named")
    for method in (Catalog.tableExists, DataFrameReader.table, DataFrameWriter.insertInto):
        assert not hasattr(method, "__wrapped__")
