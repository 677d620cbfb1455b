"""DataFrames say NOT NULL of a table's columns, whoever reads the files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mica

KERNEL = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


@pytest.mark.parametrize("tasks", [True, False], ids=["tasks", "here"])
def test_columns_that_are_not_null(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, tasks: bool
) -> None:
    """Spark took all of them to have nulls where the kernel reads."""
    if tasks:
        request.getfixturevalue("by_tasks")
    ddl = "id BIGINT NOT NULL, st STRUCT<a: INT NOT NULL, b: INT> NOT NULL, n INT"
    made = mica.Table.create(tmp_path, ddl, properties=KERNEL)
    made.append([{"id": i, "st": {"a": i, "b": None}, "n": None} for i in range(3)])
    made.delete("id = 1")
    frame = made.to_df(spark)
    assert [f.nullable for f in frame.schema.fields] == [False, False, True]
    assert frame.schema["st"].dataType.fields[0].nullable is False
    assert frame.select("id").schema["id"].nullable is False, "in the plan too, not only in the schema"
    assert sorted(row.id for row in frame.where("id IS NOT NULL").collect()) == [0, 2]
    some = made.scan(columns={"key": "id", "a": "st.a", "n": "n"}).to_df(spark)
    assert [f.nullable for f in some.schema.fields] == [False, True, True]


def test_changes_may_be_older_than_a_not_null(spark: SparkSession, tmp_path: Path) -> None:
    """A deleted row has a null that no row of the table may have."""
    made = mica.Table.create(tmp_path, "id BIGINT, n INT", properties={"delta.enableChangeDataFeed": "true"})
    made.append([{"id": 1, "n": None}, {"id": 2, "n": 2}])
    made.delete("n IS NULL")
    made.alter_column("n", nullable=False)
    feed = made.changes(1).to_df(spark)
    assert feed.schema["n"].nullable is True
    assert sorted(row.id for row in feed.where("n IS NULL").collect()) == [1, 1]
