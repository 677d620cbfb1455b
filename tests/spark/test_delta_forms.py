"""Forms of statements that delta-spark takes: each gives what delta-spark gives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.errors import UserError
from mica.format.source import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    """A table of four rows in two partitions, also known as `forms`."""
    made = mica.Table.create(tmp_path / "forms", "id INT, p INT", ["p"])
    made.append([{"id": i, "p": i % 2} for i in range(4)])
    mica.register("forms", made.path)
    return made


@contextmanager
def _setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def _rows(spark: SparkSession, text: str) -> list[tuple[object, ...]]:
    return sorted(map(tuple, mica.sql(text, spark).collect()))


def test_a_path_names_a_version_or_a_time(spark: SparkSession, table: mica.Table) -> None:
    path = table.path
    assert _rows(spark, f"SELECT count(*) FROM delta.`{path}@v0` UNION SELECT 9 FROM delta.`{path}@V1`") == [(0,), (9,)]
    at = datetime.fromtimestamp(table.snapshot.timestamp / 1000, UTC).strftime("%Y%m%d%H%M%S%f")[:17]
    assert _rows(spark, f"SELECT count(*) FROM delta.`{path}@{at}`") == [(4,)]
    assert [row[0] for row in _rows(spark, f"DESCRIBE HISTORY delta.`{path}@v0`")] == [0, 1]
    for twice in ("VERSION AS OF 1", "WITH (versionAsOf = 0)", "TIMESTAMP AS OF '2026-01-01'"):
        with pytest.raises(UserError, match="one of them twice"):
            mica.sql(f"SELECT * FROM delta.`{path}@v0` {twice}", spark)
    with pytest.raises(UserError, match="changes a table at its newest version"):
        mica.sql(f"DELETE FROM delta.`{path}@v0`", spark)
    assert table.refresh().version == 1


def test_a_lite_vacuum_keeps_what_the_log_does_not_name(spark: SparkSession, table: mica.Table) -> None:
    table.delete("p = 1")
    stray = Path(table.path, "left.parquet")
    for file in (stray, *Path(table.path).rglob("*.parquet")):
        file.touch()
        os.utime(file, (1, 1))
    with _setting(spark, "spark.databricks.delta.retentionDurationCheck.enabled", "false"):
        shown = [Path(str(path)) for (path,) in _rows(spark, "VACUUM forms LITE RETAIN 0 HOURS DRY RUN")]
        assert [path.parent for path in shown] == [Path(table.path, "p=1")], "full names, as delta-spark has them"
        assert shown[0].exists()
        assert _rows(spark, "VACUUM forms RETAIN 0 HOURS LITE") == [(table.path,)]
        assert [path.exists() for path in (*shown, stray)] == [False, True]
        assert _rows(spark, "VACUUM forms RETAIN 0 HOURS") == [(table.path,)] == _rows(spark, "VACUUM forms")
        assert not stray.exists()


def test_optimize_counts_the_files_that_its_condition_leaves(spark: SparkSession, table: mica.Table) -> None:
    table.append([{"id": i, "p": i % 2} for i in range(4)])
    for where, considered in (("WHERE p = 1", 2), ("", 3)):
        (row,) = mica.sql(f"OPTIMIZE forms {where}", spark).collect()
        assert (row.metrics.totalConsideredFiles, row.metrics.numFilesRemoved) == (considered, 2)
        assert row.metrics.totalFilesSkipped == considered - 2


def test_a_registered_name_moves_to_another_place(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    """A table of Spark's by the same name was moved instead."""
    other = mica.Table.create(tmp_path / "other", "id INT, p INT", ["p"])
    mica.sql(f"ALTER TABLE forms SET LOCATION '{other.path}'", spark)
    assert _rows(spark, "SELECT * FROM forms") == []
    assert table.count() == 4


@pytest.mark.slow
def test_rows_change_through_a_view_of_the_format(spark: SparkSession, table: mica.Table) -> None:
    """The view shows the change: Spark would go on with the version that it read first."""
    register(spark)
    spark.read.format("mica").load(table.path).alias("a").createOrReplaceTempView("seen")
    assert spark.table("seen").count() == 4
    merge = "MERGE INTO seen t USING (SELECT 2 AS id, 7 AS p) s ON t.id = s.id WHEN MATCHED THEN DELETE"
    for text in ("DELETE FROM seen WHERE id = 3", merge):
        assert mica.sql(text, spark).collect()[0][0] == 1
    rows = sorted(map(tuple, spark.table("seen").collect()))
    assert rows == [(0, 0), (1, 1)]


@pytest.mark.slow
def test_a_view_of_some_rows_columns_or_an_older_version_is_not_the_table(
    spark: SparkSession, table: mica.Table
) -> None:
    register(spark)
    reader = spark.read.format("mica")
    for frame in (
        reader.load(table.path).where("id > 1"),
        reader.load(f"{table.path}@v1"),
        spark.read.format("mica").option("where", "id > 1").load(table.path),
    ):
        frame.createOrReplaceTempView("part")
        with pytest.raises(Exception) as caught:  # noqa: PT011 - Spark's own, of several kinds
            mica.sql("DELETE FROM part WHERE id = 3", spark)
        assert "not through a view" in "".join(getattr(caught.value, "__notes__", ())), caught.value
    assert table.refresh().count() == 4


def test_a_version_or_a_time_is_an_option_of_a_table_too(spark: SparkSession, table: mica.Table) -> None:
    table.delete("id = 0")
    by_path = f"SELECT count(*) FROM delta.`{table.path}` WITH (versionAsOf = 1)"
    assert _rows(spark, f"{by_path} UNION ALL SELECT count(*) FROM forms f") == [(3,), (4,)]
    assert _rows(spark, "SELECT count(f.id) FROM forms WITH ('versionAsOf' = '0') f") == [(0,)]
    for options in ("readChangeFeed = true, startingVersion = 0", "versionAsOf = 1, other = 'x)'"):
        for named in ("forms", f"delta.`{table.path}`"):
            with pytest.raises(mica.UserError, match="versionAsOf or timestampAsOf alone"):
                mica.sql(f"SELECT count(*) FROM {named} WITH ({options}) AS f", spark)


def test_columns_are_replaced_and_partitions_chosen(spark: SparkSession, table: mica.Table) -> None:
    mica.sql("ALTER TABLE forms REPLACE COLUMNS (p INT, id INT COMMENT 'k', q STRING)", spark)
    assert table.refresh().schema.names == ["p", "id", "q"]
    assert _rows(spark, "SHOW PARTITIONS forms PARTITION (p = 1)") == [(1,)]


@pytest.mark.slow
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_update_and_merge_cast_texts_as_delta_spark(spark: SparkSession, tmp_path: Path, ansi: str) -> None:
    """A table of texts is merged into one of numbers and times. A text that is no such value is an error."""
    place = f"delta.`{tmp_path / 't'}`"
    columns = "id INT, n BIGINT, d DATE, dc DECIMAL(6,2), b BOOLEAN, s STRING, st STRUCT<x: INT>"
    mica.Table.create(tmp_path / "t", columns)
    mica.sql(f"INSERT INTO {place} (id, s) VALUES (1, '5'), (2, 'five')", spark)
    with _setting(spark, "spark.sql.ansi.enabled", ansi):
        values = "n = s, st.x = s, b = id, dc = aggregate(array(s), '', (a, x) -> x)"
        mica.sql(f"UPDATE {place} SET {values} WHERE id = 1", spark)
        source = "SELECT * FROM VALUES ('1', '7', '2024-02-03', true), ('3', '8', NULL, false) AS v(id, n, d, dc)"
        mica.sql(
            f"MERGE INTO {place} t USING ({source}) u ON t.id = u.id "
            "WHEN MATCHED THEN UPDATE SET n = u.n, d = u.d "
            "WHEN NOT MATCHED THEN INSERT (id, n, dc) VALUES (u.id, u.n, u.dc)",
            spark,
        )
        rows = [tuple(row) for row in mica.sql(f"SELECT * FROM {place} WHERE id <> 2 ORDER BY id", spark).collect()]
        assert rows == [
            (1, 7, date(2024, 2, 3), Decimal("5.00"), True, "5", (5,)), (3, 8, None, Decimal("0.00"), None, None, None),
        ]  # fmt: skip
        for text in (
            "UPDATE {} SET n = s",
            "MERGE INTO {} t USING (SELECT 2 AS id, 'two' AS n) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET n = u.n",
        ):
            with pytest.raises(mica.MicaError, match="INVALID_CAST"):
                mica.sql(text.format(place), spark)
    with pytest.raises(mica.UserError, match="INCOMPATIBLE_TYPE"):  # the calls of `Table` want the cast
        mica.Table.open(tmp_path / "t").update({"n": "s"})


@pytest.mark.slow
def test_who_replaces_a_table_tells_all_of_it(delta_session: SparkSession, tmp_path: Path) -> None:
    """Comment, properties and constraints stayed, and refused the new rows. Those stay that tell columns and rows
    apart, or say how deletes and checkpoints are written."""
    found = list[tuple[Any, ...]]()
    mapped = {"delta.columnMapping.maxColumnId", "delta.columnMapping.mode"}
    for kind in ("delta", "mica"):
        name = f"delta.`{tmp_path}/{kind}`"
        run = delta_session.sql if kind == "delta" else partial(mica.sql, spark=delta_session)
        run(
            f"CREATE TABLE {name} (a INT) USING {kind} COMMENT 'old' TBLPROPERTIES ('k' = 'v', "
            "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name', "
            "'delta.enableDeletionVectors' = 'true', 'delta.checkpointPolicy' = 'v2')"
        )
        run(f"ALTER TABLE {name} ADD CONSTRAINT positive CHECK (a > 0)")
        run(f"CREATE OR REPLACE TABLE {name} USING {kind} TBLPROPERTIES ('n' = 'w') AS SELECT -1 AS a")
        table = mica.Table.open(tmp_path / kind)
        kept = {key: text for key, text in table.metadata.configuration.items() if key not in mapped}
        found.append((table.metadata.description, kept, table.to_arrow().to_pylist()))
    staying = {"delta.enableDeletionVectors": "true", "delta.checkpointPolicy": "v2"}
    assert found[0] == found[1] == (None, {"n": "w"} | staying, [{"a": -1}])


def test_a_table_may_get_its_columns_later(spark: SparkSession, tmp_path: Path) -> None:
    by = partial(mica.sql, spark=spark)
    place = f"delta.`{tmp_path / 'later'}`"
    by(f"CREATE TABLE {place} USING delta")
    table = mica.Table.open(tmp_path / "later")
    register(spark)
    for read in (
        lambda: by(f"SELECT * FROM {place}").collect(),
        lambda: by(f"SELECT count(*) FROM {place}").collect(),
        lambda: spark.read.format("mica").load(table.path).collect(),
        lambda: table.to_df(spark),
        table.count,
    ):
        with pytest.raises(Exception, match="NO_COLUMNS"):
            read()
    for statement in (f"DELETE FROM {place}", f"OPTIMIZE {place}", f"DESCRIBE {place}", f"VACUUM {place}"):
        by(statement)
    assert table.file_uris() == []
    like = f"delta.`{tmp_path / 'like'}`"
    by(f"CREATE TABLE {like} LIKE {place}")
    assert by(f"SHOW CREATE TABLE {like}").first()[0].startswith(f"CREATE TABLE {like}\nUSING mica")
    with pytest.raises(UserError, match="1 values are given for 0 columns") as caught:
        by(f"INSERT INTO {place} SELECT 1 AS a")
    assert "INSERT WITH SCHEMA EVOLUTION" in (caught.value.hint or "")
    by(f"INSERT WITH SCHEMA EVOLUTION INTO {place} SELECT 1 AS a")
    by(f"ALTER TABLE {like} ADD COLUMNS (a INT)")
    assert by(f"SELECT a FROM {place} UNION ALL SELECT a FROM {like}").collect() == [(1,)]
