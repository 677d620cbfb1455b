"""`_metadata` and names of files in DataFrames of tables that the kernel reads, as in those that Spark reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, input_file_name, rand

import mica
from mica.errors import UserError
from mica.query import registry
from tests.support import spark_version

pytestmark = pytest.mark.skipif(spark_version() < (4, 2), reason="Spark 4.1 does not see it through an alias")
Way = Callable[[SparkSession], DataFrame]
WAYS: dict[str, Way] = {
    "a table": lambda spark: spark.table("hidden"),
    "a text": lambda spark: spark.sql("SELECT * FROM hidden"),
    "some columns of a text": lambda spark: spark.sql("SELECT id FROM hidden"),
}


@pytest.fixture(scope="module", params=["the kernel", "Spark"])
def table(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[mica.Table]:
    """Ids 1 to 9 but for 0, 3 and 6 in three files, in an enabled session."""
    kernel = request.param == "the kernel"
    properties = {"delta.enableDeletionVectors": "true"} if kernel else {}
    made = mica.Table.create(tmp_path_factory.mktemp("hidden") / "a b", "id BIGINT, n INT", properties=properties)
    for first in (0, 3, 6):
        made.append([{"id": i, "n": i % 3} for i in range(first + (not kernel), first + 3)])
    made.delete("n = 0")
    mica.register("hidden", made.path)
    mica.enable(spark)
    yield made
    mica.disable(spark)
    registry.forget("hidden")


def files(table: mica.Table, where: str | None = None) -> set[str]:
    return {uri.as_py() for uri in table.scan(where, columns={"f": "_metadata.file_path"}).to_arrow()["f"]}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_column_is_found_by_its_name_and_skips(spark: SparkSession, table: mica.Table, way: str) -> None:
    """It was not there where the kernel reads, and elsewhere who asked for it read all files."""
    frame = WAYS[way](spark)
    assert "_metadata" not in frame.columns
    one = frame.where("id = 4").select("id", "_metadata.file_path")
    assert mica.explain(one).scans[0].kept.num_rows == 1
    assert {row.file_path for row in one.collect()} == files(table, "id = 4")
    assert {row.f for row in frame.withColumn("f", col("_metadata.file_path")).collect()} == files(table)
    assert frame.selectExpr("_metadata.row_index AS r").distinct().count() == 2
    assert sorted(row["count"] for row in frame.groupBy("_metadata.file_name").count().collect()) == [2, 2, 2]
    by_file = frame.where(col("_metadata.file_name") == next(iter(files(table, "id = 7"))).rpartition("/")[2])
    assert sorted(row.id for row in by_file.collect()) == [7, 8]
    assert frame.select("_metadata").first()[0].file_size > 0
    assert [row.file_path in files(table) for row in frame.select("_metadata.file_path").limit(1).collect()] == [True]
    assert frame.select("_metadata.file_path", rand(1)).count() == 6, "what depends on how rows are spread, too"


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_names_of_files(spark: SparkSession, table: mica.Table, way: str) -> None:
    """They were refused where the kernel reads."""
    frame = WAYS[way](spark)
    names = {row.f for row in frame.select(input_file_name().alias("f")).collect()}
    assert names == {name.replace("file:/", "file:///") for name in files(table)} == {*frame.inputFiles()}
    assert frame.where(input_file_name() != "").count() == 6
    assert frame.withColumn("f", input_file_name()).where("id = 4").first().f.endswith(".parquet")
    joined = frame.withColumn("f", input_file_name()).join(spark.range(5), "id")
    assert {row.f.replace("file:///", "file:/") for row in joined.collect()} == files(table, "id < 5")


def test_names_of_files_in_texts(spark: SparkSession, table: mica.Table) -> None:
    """As in DataFrames; of two tables at once nobody knows which file is meant."""
    found = mica.sql(
        "SELECT input_file_name() AS f, count(*) AS c FROM hidden WHERE id < 6 GROUP BY 1", spark
    ).collect()
    assert {row.f.replace("file:///", "file:/") for row in found} == files(table, "id < 6")
    assert [row.c for row in found] == [2, 2]
    if table.snapshot.files.num_rows and table.properties.get("delta.enableDeletionVectors"):
        with pytest.raises(UserError, match=r"UNSUPPORTED_EXPRESSION.*deletion vectors"):
            mica.sql("SELECT input_file_name() FROM hidden a JOIN hidden b USING (id)", spark)
    with pytest.raises(UserError, match="UNSUPPORTED_EXPRESSION"):
        mica.sql("SELECT input_file_name(), _metadata.row_index FROM hidden", spark)


def test_names_of_files_in_views(spark: SparkSession, table: mica.Table) -> None:
    """Views of tables that the kernel reads were refused, which the tables themselves are not."""
    spark.table("hidden").createOrReplaceTempView("hidden_rows")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW hidden_view AS SELECT id FROM hidden_rows WHERE id < 6")
    for view in ("hidden_rows", "hidden_view"):
        rows = spark.sql(f"SELECT id, input_file_name() AS f FROM {view} WHERE id < 6").collect()
        assert {row.f.replace("file:///", "file:/") for row in rows} == files(table, "id < 6")
        assert spark.table(view).where(input_file_name().startswith("file:///") & (col("id") < 6)).count() == len(rows)
    spark.catalog.dropTempView("hidden_view")
    spark.catalog.dropTempView("hidden_rows")


def test_a_table_without_files_has_no_names_of_files(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    """Views of such a table were refused: Spark's own reader has no files there either."""
    mica.register("none_hidden", mica.Table.create(tmp_path / "none", "id BIGINT"))
    spark.table("none_hidden").createOrReplaceTempView("hidden_rows")
    assert spark.sql("SELECT upper(input_file_name()) AS f, count(*) FROM hidden_rows GROUP BY 1").collect() == []
    assert spark.sql("SELECT count(*) FROM hidden_rows WHERE input_file_name() LIKE 'f%'").collect() == [(0,)]
    spark.catalog.dropTempView("hidden_rows")


def test_a_column_of_that_name_hides_it(spark: SparkSession, table: mica.Table, tmp_path: str) -> None:
    """The table's own is what is meant."""
    made = mica.Table.create(
        f"{tmp_path}/own", "id INT, `_metadata` STRING", properties={"delta.enableDeletionVectors": "true"}
    )
    made.append([{"id": i, "_metadata": f"m{i}"} for i in range(2)])
    made.delete("id = 0")
    assert [row[0] for row in made.to_df(spark).select("_metadata").collect()] == ["m1"]


def test_rows_that_no_action_looks_into_have_it(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    """mica's own writes run a DataFrame of a view by other ways than its actions do."""
    rows = spark.table("hidden").select("id", col("_metadata.file_name").alias("f"), input_file_name().alias("g"))
    rows.createOrReplaceTempView("hidden_rows")
    made = mica.Table.create(tmp_path / "copy", "id BIGINT, f STRING, g STRING")
    made.append(spark.table("hidden_rows"))
    spark.sql(f"INSERT INTO delta.`{made.path}` SELECT * FROM hidden_rows")
    found = made.refresh().to_arrow().to_pylist()
    assert {row["g"].replace("file:///", "file:/") for row in found} == files(table)
    assert {row["g"].rpartition("/")[2] for row in found} == {row["f"] for row in found}
    assert len(found) == 12
    spark.catalog.dropTempView("hidden_rows")
