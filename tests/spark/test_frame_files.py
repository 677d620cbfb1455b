"""What DataFrames of an enabled session say of the files of their rows, and that a table is the same one by any way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import col, expr, input_file_name

import mica
from mica.engines.spark.catalog import is_temporary
from mica.errors import UserError
from mica.query import registry
from tests.support import spark_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS: dict[str, Callable[[SparkSession], DataFrame]] = {
    "table": lambda spark: spark.table("filed"),
    "text": lambda spark: spark.sql("SELECT * FROM filed"),
    "part": lambda spark: spark.sql("SELECT id FROM filed WHERE id < 9"),
    "version": lambda spark: spark.read.option("versionAsOf", 1).table("filed"),
    "version of a text": lambda spark: spark.sql("SELECT * FROM filed VERSION AS OF 1"),
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[mica.Table]:
    """Ids 0 and 1 in a file, 2 and 3 in another, by version 2, in an enabled session."""
    made = mica.Table.create(tmp_path_factory.mktemp("filed") / "a b", "id BIGINT NOT NULL, n INT")
    for first in (0, 2):
        made.append([{"id": first, "n": 1}, {"id": first + 1, "n": None}])
    mica.register("filed", made.path)
    mica.enable(spark)
    yield made
    mica.disable(spark)
    registry.forget("filed")


@pytest.mark.parametrize("way", WAYS)
def test_rows_know_their_files(spark: SparkSession, table: mica.Table, way: str) -> None:
    """Names were empty, and there were no input files."""
    frame = WAYS[way](spark)
    files = 1 if "version" in way else 2
    assert frame.schema["id"].nullable is False, "as delta-spark"
    found = {row.f for row in frame.select(input_file_name().alias("f")).collect()}
    assert len(found) == files
    assert all("/a%20b/" in name for name in found)
    assert found == {*frame.inputFiles()}
    if spark_version() >= (4, 2):  # Spark 4.1 does not see it through an alias
        assert frame.where("n = 1").select("_metadata.file_name").distinct().count() == files
    assert len(frame.where("id = 1").inputFiles()) == 1, "as an action reads them"


@pytest.mark.usefixtures("table")
def test_subqueries_of_conditions_know_registered_names(spark: SparkSession) -> None:
    """As they do those of Spark's catalog."""
    frame = spark.range(9).where("id > 0").where("id IN (SELECT id FROM filed WHERE n IS NULL)")
    assert [row.id for row in frame.orderBy("id").collect()] == [1, 3]
    assert spark.range(1).select(expr("(SELECT max(id) FROM filed) AS m")).collect()[0].m == 3
    assert spark.sql("SELECT id FROM filed").where("id = (SELECT min(id) + 1 FROM filed)").count() == 1
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.range(1).where("id IN (SELECT id FROM nowhere_filed)")
    assert not is_temporary(spark, "filed"), "it was lent, and taken back"


def test_a_version_is_read_as_its_table_is(spark: SparkSession, table: mica.Table) -> None:
    """It was read by the source of the format, which skips nothing of what comes after."""
    frame = spark.read.option("versionAsOf", 1).table("filed").where("filed.id = 1")
    assert (frame.count(), mica.explain(frame).scans[0].kept.num_rows) == (1, 1)
    assert spark.read.option("versionAsOf", 2).table("filed").where(col("id") > 0).count() == 3
    with pytest.raises(UserError, match="VERSION_NOT_FOUND"):
        spark.read.option("versionAsOf", 7).table("filed")
    made = spark.sql("SELECT n FROM filed").where("n = 1").where("id > 0").orderBy("id")
    assert [row.n for row in made.collect()] == [1], "Spark finds what a text leaves out below several filters"
