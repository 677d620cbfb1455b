"""What rows say of a column beside its type (comments, lengths, collations, keys of their own) is the new column's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

import mica
from tests.oracle import conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAID = {"k": "v", "comment": "c"}
LCASE = {"__COLLATIONS": {"lc": "spark.UTF8_LCASE"}}


@pytest.fixture(autouse=True)
def enabled(spark: SparkSession) -> Iterator[None]:
    """The session knows `format("mica")`."""
    mica.enable(spark)
    yield
    mica.disable(spark)


def _schema(k: str = "v") -> StructType:
    inner = StructType([StructField("x", IntegerType(), True, {"in": [1, 2]})])
    return StructType(
        [StructField("id", LongType()), StructField("n", LongType(), True, SAID | {"k": k}), StructField("s", inner)]
    )


def _said(table: mica.Table, *path: str) -> dict[str, Any]:
    found = table.refresh().schema.field(path[0])
    for name in path[1:]:
        found = found.type.field(name)  # type: ignore[attr-defined]
    return dict(found.metadata)


def _rows(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, 5, (2,))], _schema()).selectExpr("*", "'A' COLLATE UTF8_LCASE AS lc")


@pytest.mark.slow
def test_columns_that_a_write_adds_keep_what_rows_say(delta_session: SparkSession, tmp_path: Path) -> None:
    """They lost it, and their collations, so that 'a' = 'A' was true of the rows and false in the table."""
    rows = _rows(delta_session)
    tables = [mica.Table.create(tmp_path / name, "id BIGINT") for name in ("by_call", "by_format")]
    tables[0].append(rows, schema_evolution=True)
    rows.write.format("mica").mode("append").option("mergeSchema", "true").save(tables[1].path)
    theirs = str(tmp_path / "theirs")
    delta_session.range(0).write.format("delta").save(theirs)
    rows.drop("lc").write.format("delta").mode("append").option("mergeSchema", "true").save(theirs)
    for table in tables:
        assert (_said(table, "n"), _said(table, "s", "x"), _said(table, "lc")) == (SAID, {"in": [1, 2]}, LCASE)
        assert table.schema.fields[:3] == mica.Table.open(theirs).schema.fields
        assert table.scan(where="lc = 'a'").count() == 1


def test_statements_take_types_with_their_collations_alone(spark: SparkSession, tmp_path: Path) -> None:
    """As delta-spark does, but for collations, of which it makes plain strings."""
    _rows(spark).createOrReplaceTempView("said_rows")
    for name, text in (
        ("inserted", "INSERT INTO {} SELECT id, n, lc FROM said_rows"),
        ("merged", "MERGE INTO {} t USING said_rows s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"),
    ):
        table = mica.Table.create(tmp_path / name, "id BIGINT")
        with conf(spark, {"spark.databricks.delta.schema.autoMerge.enabled": "true"}):
            mica.sql(text.format(f"delta.`{table.path}`"), spark)
        assert (_said(table, "n"), _said(table, "lc")) == ({}, LCASE)
        assert table.scan(where="lc = 'a'").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["mica", "delta"])
def test_an_overwritten_schema_says_what_the_rows_say(delta_session: SparkSession, tmp_path: Path, form: str) -> None:
    """If nothing but the keys differed they stayed."""
    path = str(tmp_path / form)
    for k in ("v", "w"):
        rows = delta_session.createDataFrame([(1, 5, (2,))], _schema(k))
        rows.write.format(form).mode("overwrite").option("overwriteSchema", "true").save(path)
        assert _said(mica.Table.open(path), "n") == SAID | {"k": k}
