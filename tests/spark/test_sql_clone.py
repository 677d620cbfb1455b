"""CREATE TABLE … SHALLOW CLONE through `mica.sql`: of paths and names, at versions, with properties and a place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.errors import UserError
from mica.query import cloned
from tests.support import stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = [
    "source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files", "removed_files_size",
    "copied_files_size",
]  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> mica.Table:
    table = mica.Table.create(tmp_path / "source", "id BIGINT, v VARIANT")
    table.append([{"id": n, "v": {"k": n}} for n in range(3)])
    table.delete("id = 0")
    return table


def run(spark: SparkSession, text: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in mica.sql(text, spark).collect()]


def test_a_clone_is_made_where_the_statement_says(spark: SparkSession, tmp_path: Path, source: mica.Table) -> None:
    place = f"delta.`{tmp_path}/a b`"
    [row] = run(spark, f"CREATE TABLE {place} SHALLOW CLONE delta.`{source.path}`")
    assert list(row) == COLUMNS
    assert list(row.values()) == [sum(source.files()["size"].to_pylist()), 1, 0, 0, 0, 0]
    assert run(spark, f"SELECT v:k::int AS k FROM {place} WHERE id = 2") == [{"k": 2}]
    assert run(spark, f"CREATE TABLE IF NOT EXISTS {place} SHALLOW CLONE delta.`{source.path}`") == []
    with pytest.raises(UserError, match="already exists"):
        run(spark, f"CREATE TABLE {place} SHALLOW CLONE delta.`{source.path}`")
    run(spark, f"DELETE FROM {place}")
    [row] = run(
        spark,
        f"CREATE OR REPLACE TABLE {place} SHALLOW CLONE delta.`{source.path}@v2` VERSION AS OF 1"
        " TBLPROPERTIES ('own' = 'x')",
    )
    table = mica.Table.open(tmp_path / "a b")
    assert (table.count(), table.version, table.properties["own"]) == (3, 2, "x")


def test_names_are_registered_and_read(
    spark: SparkSession, tmp_path: Path, source: mica.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloned, "has_delta", lambda _: False)  # which takes the names of its catalog
    mica.register("clone_of", source.path)
    run(spark, f"CREATE TABLE clone_a SHALLOW CLONE clone_of LOCATION '{tmp_path}/a' TBLPROPERTIES ('own' = 'x')")
    assert run(spark, "DELETE FROM clone_a WHERE id = 1") == [{"num_affected_rows": 1}]
    assert run(spark, "SELECT (SELECT count(*) FROM clone_a) a, (SELECT count(*) FROM clone_of) b") == [
        {"a": 1, "b": 2}
    ]
    when = mica.Table.open(tmp_path / "a", version=0).snapshot.timestamp
    text = (
        f"CREATE TABLE clone_b SHALLOW CLONE clone_a TIMESTAMP AS OF timestamp_millis({when}) LOCATION '{tmp_path}/b'"
    )
    run(spark, text)
    assert stored(tmp_path / "b") == stored(source.path)
    assert run(spark, f"CREATE TABLE IF NOT EXISTS clone_b SHALLOW CLONE clone_a LOCATION '{tmp_path}/c'") == []
    assert not (tmp_path / "c").exists()
    [entry] = run(spark, "DESCRIBE HISTORY clone_a LIMIT 2")[1:]
    assert (entry["operation"], entry["operationParameters"]["sourceVersion"]) == ("CLONE", "2")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CREATE TABLE {t} SHALLOW CLONE {s} VERSION AS OF 9", "VERSION_NOT_FOUND"),
        ("CREATE TABLE {t} SHALLOW CLONE {s} TIMESTAMP AS OF '2001-01-01'", "TIMESTAMP_OUT_OF_RANGE"),
        ("CREATE TABLE {t} SHALLOW CLONE {t}", "TABLE_NOT_FOUND"),
        ("REPLACE TABLE {t} SHALLOW CLONE {s}", "TABLE_NOT_FOUND"),
        ("CREATE OR REPLACE TABLE {s} SHALLOW CLONE {s}", "INVALID_ARGUMENT"),
        ("CREATE TABLE {t} DEEP CLONE {s}", "INVALID_ARGUMENT"),
        ("CREATE TABLE {t} CLONE {s}", "INVALID_ARGUMENT"),
        ("CREATE TABLE {t} SHALLOW CLONE {s} WITH ROWS", "INVALID_EXPRESSION"),
        ("CREATE TABLE {t} SHALLOW CLONE {s} TBLPROPERTIES ('delta.nope' = '1')", "UNKNOWN_TABLE_PROPERTY"),
    ],
)
def test_what_is_refused(spark: SparkSession, tmp_path: Path, source: mica.Table, text: str, code: str) -> None:
    with pytest.raises(UserError) as caught:
        run(spark, text.format(t=f"delta.`{tmp_path}/t`", s=f"delta.`{source.path}`"))
    assert caught.value.code == code
    assert not (tmp_path / "t").exists()


def test_an_unknown_source_is_named_where_no_delta_spark_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.query.changes.has_delta", lambda _: False)
    with pytest.raises(UserError, match="Delta table clone_no") as caught:
        run(spark, f"CREATE TABLE delta.`{tmp_path}/t` SHALLOW CLONE clone_no")
    assert caught.value.code == "TABLE_NOT_FOUND"
    with pytest.raises(UserError) as caught:
        run(spark, f"CREATE TABLE delta.`{tmp_path}/t` SHALLOW CLONE parquet.`{tmp_path}`")
    assert f"CONVERT TO DELTA parquet.`{tmp_path}`" in str(caught.value.hint)
