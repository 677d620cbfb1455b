"""A temporary view that has a table's name, or shows a table, and a session that is not the one of its thread."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from tests.support import stored

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def enabled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session reads names of mica's."""
    mica.enable(spark)
    yield spark
    mica.disable(spark)


def _rows(frame: DataFrame) -> list[int]:
    return sorted(row[0] for row in frame.collect())


def test_a_view_that_hides_a_table_is_what_drop_and_rename_mean(enabled: SparkSession) -> None:
    """DROP TABLE of the name deleted the files of the table below the view, and left the view."""
    spark = enabled
    spark.sql("CREATE TABLE below USING mica AS SELECT 1 AS a")
    try:
        spark.sql("SELECT 2 AS a").createOrReplaceTempView("below")
        spark.sql("DROP TABLE below")
        assert _rows(spark.table("below")) == [1]
        spark.sql("SELECT 3 AS a").createOrReplaceTempView("below")
        spark.sql("ALTER TABLE below RENAME TO above")
        assert (_rows(spark.table("above")), _rows(spark.table("below"))) == ([3], [1])
    finally:
        spark.catalog.dropTempView("above")
        spark.catalog.dropTempView("below")
        spark.sql("DROP TABLE IF EXISTS below")


def test_a_name_with_its_database_means_no_view(enabled: SparkSession) -> None:
    """`insertInto("default.t")` and `getTable` took a temporary view t, and the former failed."""
    spark = enabled
    spark.sql("CREATE TABLE beside USING mica AS SELECT 1L AS a")
    try:
        spark.range(2, 3).toDF("a").createOrReplaceTempView("beside")
        spark.table("beside").write.insertInto("default.beside")
        assert _rows(spark.table("default.beside")) == [1, 2]
        assert spark.catalog.getTable("default.beside").tableType == "MANAGED"
        assert spark.catalog.getTable("beside").tableType == "TEMPORARY"
    finally:
        spark.catalog.dropTempView("beside")
        spark.sql("DROP TABLE beside")


@pytest.mark.filterwarnings("ignore:`dbName` has been deprecated")
def test_a_database_beside_a_name_is_not_the_current_one(enabled: SparkSession) -> None:
    """`tableExists("t", "other")` failed where the current database has a table t."""
    spark = enabled
    for database in ("here", "there"):
        spark.sql(f"CREATE SCHEMA {database}_db")
    try:
        spark.sql("CREATE TABLE here_db.known USING mica AS SELECT 1 AS a")
        spark.sql("USE here_db")
        exists = spark.catalog.tableExists
        assert (exists("known", "here_db"), exists("known", "there_db")) == (True, False)
        assert spark.catalog.getTable("spark_catalog.here_db.known").namespace == ["here_db"]
    finally:
        spark.sql("USE default")
        for database in ("here", "there"):
            spark.sql(f"DROP SCHEMA {database}_db CASCADE")


@pytest.mark.slow
def test_views_that_show_the_whole_of_a_table_stand_for_it(enabled: SparkSession, tmp_path: Path) -> None:
    """A view of a view, of all columns by their names, or by the name of its own table was refused."""
    spark, path = enabled, tmp_path / "t"
    mica.Table.create(path, "id BIGINT, s STRING").append([{"id": n, "s": "a"} for n in range(6)])
    mica.register("whole", path)
    try:
        spark.table("whole").select("id", "s").createOrReplaceTempView("whole_1")
        spark.table("whole_1").createOrReplaceTempView("whole_2")
        spark.sql("UPDATE whole_1 SET s = 'b' WHERE id = 1")
        spark.sql("DELETE FROM whole_2 WHERE id = 2")
        spark.table("whole").createOrReplaceTempView("whole")
        spark.sql("DELETE FROM whole WHERE whole.id = 3")
        spark.sql("INSERT INTO whole VALUES (9, 'c')")
        assert _rows(spark.table("whole")) == [0, 1, 4, 5, 9]
        kept = stored(path)
        shown = spark.table("whole")
        for frame in (shown.where("id > 0"), shown.select("s", "id"), shown.selectExpr("id", "s || '' AS s")):
            frame.createOrReplaceTempView("whole_3")
            spark.table("whole_3").createOrReplaceTempView("whole_4")
            for view in ("whole_3", "whole_4"):
                with pytest.raises(Exception, match="UNSUPPORTED_FEATURE"):
                    spark.sql(f"UPDATE {view} SET s = 'z'")
                assert stored(path) == kept
    finally:
        for view in ("whole", "whole_1", "whole_2", "whole_3", "whole_4"):
            spark.catalog.dropTempView(view)


def test_threads_write_by_sessions_of_their_own(enabled: SparkSession, tmp_path: Path) -> None:
    """Spark looks for a Python source in the active session of the thread: there was none (DATA_SOURCE_NOT_FOUND)."""
    path = str(tmp_path / "t")

    def run() -> None:
        session = mica.enable(enabled.newSession())
        session.sql("SELECT 1 AS a").write.format("mica").save(path)
        mica.disable(session)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()
    assert stored(path) == ["{'a': 1}"]
