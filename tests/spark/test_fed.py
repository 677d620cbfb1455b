"""The change feed in SQL, beside delta-spark's functions of the same names."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from pyspark.sql.catalog import Catalog

import mica
from mica.engines.spark.engine import Spark
from mica.engines.spark.types import unread
from mica.query import names, registry
from mica.scan import little

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[mica.Table]:
    """A table with four versions of changes, registered as `fed_here`."""
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING", properties={"delta.enableChangeDataFeed": "true"})
    for change in (
        lambda: table.append([{"id": i, "s": f"s{i}"} for i in range(4)]),
        lambda: table.update({"s": "'x'"}, where="id = 1"),
        lambda: table.delete("id = 2"),
    ):
        time.sleep(0.02)  # the system tells times of files by ticks, and whoever reads a range makes equal ones differ
        change()
    mica.register("fed_here", table.path)
    yield table
    registry.forget("fed_here")


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_changes_are_those_of_delta_spark(delta_session: SparkSession, fed: mica.Table) -> None:
    spark = delta_session
    spark.sql(f"CREATE TABLE fed_there USING delta LOCATION '{fed.path}'")
    try:
        times = fed.history().column("timestamp").to_pylist()  # the newest first
        second, last = (f"'{time:%Y-%m-%d %H:%M:%S.%f}'" for time in (times[1], times[0]))
        for limits in (
            "0", "1, 2", "2, 2", "1, 99", "'2000-01-01'", f"'2000-01-01', {last}", f"1, {second}",
            "1+1", "(2)", "2L, +2", "CAST(2 AS BIGINT), length('ab')",
            f"TIMESTAMP{second}", f"TIMESTAMP'2000-01-01 00:00:00', CAST({second} AS TIMESTAMP) + INTERVAL 0 DAY",
        ):  # fmt: skip
            text = "SELECT c.*, 'table_changes(a)' FROM table_changes('{}', {}) AS c WHERE id > 0 ORDER BY ALL"
            ours = mica.sql(text.format("fed_here", limits), spark)
            theirs = spark.sql(text.format("fed_there", limits))
            assert (ours.collect(), ours.schema) == (theirs.collect(), theirs.schema), limits
        for call in ("`Table_Changes`('{}', 2)", "table_changes /* ) */ (/* ' */ '{}', -- ) it's\n 2)"):
            text = f"SELECT * FROM {call} ORDER BY ALL"
            assert mica.sql(text.format("fed_here"), spark).collect() == spark.sql(text.format("fed_there")).collect()
        for limits in ("99", "2, 1", "'2999-01-01'", "-1", "2.0", "1e0", "CAST(NULL AS INT)"):
            with pytest.raises(mica.MicaError):
                mica.sql(f"SELECT * FROM table_changes('fed_here', {limits})", spark)
            with pytest.raises(Exception, match=r"(?i)version|timestamp|range|unsupported"):
                spark.sql(f"SELECT * FROM table_changes('fed_there', {limits})").collect()
        # Tables of the catalog are delta-spark's.
        assert mica.sql("SELECT * FROM table_changes('fed_there', 0)", spark).count() == 7
    finally:
        spark.sql("DROP TABLE fed_there")
    assert not [table for table in spark.catalog.listTables() if table.name.startswith("mica_changes")]


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_changes_go_into_statements_and_views(spark: SparkSession, fed: mica.Table, tmp_path: Path) -> None:
    text = f"CREATE TABLE delta.`{tmp_path}/u` USING mica AS SELECT id, s FROM table_changes('fed_here', :a, 1)"
    mica.sql(text, spark, {"a": 1})
    made = mica.Table.open(tmp_path / "u")
    assert made.count() == 4
    mica.sql(
        f"""MERGE INTO delta.`{tmp_path}/u` t USING (
              SELECT * FROM table_changes('delta.`{fed.path}`', 2) WHERE _change_type <> 'update_preimage') c
            ON t.id = c.id WHEN MATCHED AND c._change_type = 'delete' THEN DELETE
            WHEN MATCHED THEN UPDATE SET s = c.s""",
        spark,
    )
    rows = sorted(made.refresh().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 0, "s": "s0"}, {"id": 1, "s": "x"}, {"id": 3, "s": "s3"}]
    mica.sql("CREATE OR REPLACE TEMPORARY VIEW fed_view AS SELECT * FROM table_changes('fed_here', 3)", spark)
    try:
        assert [row.id for row in spark.table("fed_view").collect()] == [2]
        assert not [view for view in spark.catalog.listTables() if view.name.startswith(names.FED)]
    finally:
        spark.catalog.dropTempView("fed_view")
    with pytest.raises(mica.UserError, match="fed_view cannot be stored over table_changes"):
        mica.sql("CREATE VIEW fed_view AS SELECT * FROM table_changes('fed_here', 3)", spark)
    assert not [view for view in spark.catalog.listTables() if view.name.startswith(names.FED)]
    script = "BEGIN SELECT id FROM table_changes('fed_here', 3); END"
    assert [row.id for row in mica.sql(script, spark).collect()] == [2]
    with pytest.raises(mica.UserError, match="needs a first version"):
        mica.sql("SELECT * FROM table_changes('fed_here')", spark)


def test_a_few_changes_are_read_in_the_driver(
    spark: SparkSession, fed: mica.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> NoReturn:
        raise AssertionError("Spark's tasks were asked for")

    scan = fed.changes(0, where="id >= 0", columns={"n": "id", "s": "s", "v": "to_json(parse_json('[1]'))"})
    wanted = sorted(map(tuple, (row.values() for row in scan.to_arrow().to_pylist())))
    by_tasks = unread(scan.to_df(spark))
    assert sorted(map(tuple, by_tasks.collect())) == wanted
    with monkeypatch.context() as patched:
        patched.setattr(Spark, "frame", refused)
        frame = scan.to_df(spark)
        assert sorted(map(tuple, frame.collect())) == wanted
        assert frame.groupBy("s").count().collect()
        assert fed.changes(0, limit=3).to_df(spark).count() == 3
        assert fed.changes(0, where="id > 99").to_df(spark).count() == 0
        # Its columns are known before a row is read.
        patched.setattr(little, "rows", refused)
        assert scan.to_df(spark).schema == by_tasks.schema == frame.schema
    for name, few in (("FEW_FILE_BYTES", 0), ("FEW_ROWS", 2), ("FEW_BYTES", 10)):
        with monkeypatch.context() as patched:
            patched.setattr(little, name, few)
            given: list[object] = []  # these are too many
            patched.setattr(Spark, "given", lambda *rows, given=given: given.append(rows))
            assert sorted(map(tuple, scan.to_df(spark).collect())) == wanted
            assert given == []


def test_changes_that_cannot_be_read_fail_as_in_tasks(spark: SparkSession, fed: mica.Table) -> None:
    frame = fed.changes(0, columns={"n": "s::int"}).to_df(spark)
    assert frame.columns == ["n"]
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        frame.collect()


def test_a_table_that_is_not_there_is_named(
    spark: SparkSession, fed: mica.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark, which does not know the function without delta-spark, said that of it instead."""
    monkeypatch.setattr("mica.query.fed.has_delta", lambda _: False)
    monkeypatch.setattr(Catalog, "functionExists", lambda *_: False)
    with pytest.raises(mica.UserError, match=r"TABLE_NOT_FOUND(?s:.*)Is fed_here meant"):
        mica.sql("SELECT * FROM table_changes('fed_hier', 0)", spark)
