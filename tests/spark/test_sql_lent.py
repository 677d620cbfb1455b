"""Statements that only Spark runs know mica's tables, which are lent to it as temporary views."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

import mica
from mica.query import registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Iterator[mica.Table]:
    """A table with a name that only mica knows; no view is left of it."""
    table = mica.Table.create(tmp_path / "events", "id BIGINT, g STRING")
    table.append([{"id": i, "g": f"g{i % 2}"} for i in range(5)])
    mica.register("lent_events", table.path)
    yield table
    assert not spark.sql("SHOW VIEWS LIKE 'lent_*|mica_*'").collect()


def test_functions_of_the_session_ask_our_tables(spark: SparkSession, events: mica.Table) -> None:
    """They ask anew each time: Spark keeps the text."""
    for text in (
        "lent_max() RETURNS BIGINT RETURN (SELECT max(id) FROM lent_events)",
        "lent_of(k BIGINT) RETURNS STRING RETURN (SELECT max(g) FROM lent_events e WHERE e.id = k)",
        "lent_above(lo BIGINT) RETURNS TABLE (id BIGINT, g STRING) RETURN SELECT * FROM lent_events WHERE id > lo",
    ):
        mica.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {text}", spark)
    try:
        assert mica.sql("SELECT lent_max()", spark).collect() == [(4,)]
        mica.sql("INSERT INTO lent_events VALUES (7, 'new')", spark)
        assert mica.sql("SELECT lent_max()", spark).collect() == [(7,)]
        found = mica.sql("SELECT id, lent_of(id) FROM lent_events WHERE id > 3 ORDER BY id", spark).collect()
        assert found == [(4, "g0"), (7, "new")]
        assert mica.sql("SELECT id FROM lent_above(3) ORDER BY id", spark).collect() == [(4,), (7,)]
    finally:
        for name in ("max", "of", "above"):
            spark.sql(f"DROP TEMPORARY FUNCTION lent_{name}")


def test_what_a_view_is_not_enough_for_says_so(spark: SparkSession, events: mica.Table) -> None:
    for text, why in (
        ("ANALYZE TABLE lent_events COMPUTE STATISTICS", "EXPECT_PERMANENT_VIEW_NOT_TEMP"),
        ("ANALYZE TABLE lent_events COMPUTE STATISTICS FOR COLUMNS id", "ANALYZE_UNCACHED_TEMP_VIEW"),
        (
            "CREATE FUNCTION lent_kept() RETURNS BIGINT RETURN (SELECT max(id) FROM lent_events)",
            "INVALID_TEMP_OBJ_REFERENCE",
        ),
    ):
        with pytest.raises(mica.UserError, match=why) as caught:
            mica.sql(text, spark)
        assert caught.value.code == "INVALID_ARGUMENT"


def test_a_name_with_its_database_says_what_to_write(spark: SparkSession, events: mica.Table) -> None:
    """Spark's error was that there is no such table."""
    mica.sql("CREATE SCHEMA IF NOT EXISTS lent_there", spark)
    mica.register("lent_there.Events", events.path)
    mica.sql("CREATE TABLE lent_default USING mica AS SELECT 1 AS id", spark)
    function = "CREATE OR REPLACE TEMPORARY FUNCTION lent_most() RETURNS BIGINT RETURN (SELECT max(id) FROM {})"
    try:
        for name, before in (("spark_catalog.lent_there.`events`", "lent_there"), ("default.lent_default", "default")):
            for text in (function, "BEGIN FOR r AS SELECT id FROM {} DO SELECT r.id; END FOR; END"):
                with pytest.raises(mica.UserError, match=f"does not know {before}") as caught:
                    mica.sql(text.format(name), spark)
                assert caught.value.code == "INVALID_ARGUMENT"
                assert f"after USE {before}." in str(caught.value)
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            mica.sql(function.format("lent_there.others"), spark)
        mica.sql("USE lent_there", spark)
        mica.sql(function.format("events"), spark)
        assert mica.sql("SELECT lent_most()", spark).collect() == [(4,)]
        mica.sql("DROP TEMPORARY FUNCTION lent_most", spark)
    finally:
        mica.sql("USE default", spark)
        mica.sql("DROP TABLE lent_default", spark)
        mica.sql("DROP SCHEMA lent_there CASCADE", spark)


def test_plans_of_statements_that_only_spark_runs(spark: SparkSession, events: mica.Table) -> None:
    for text in ("CACHE TABLE w AS SELECT id FROM lent_events", "EXECUTE IMMEDIATE 'SELECT id FROM lent_events'"):
        plan = "".join(row.plan for row in mica.sql(f"EXPLAIN {text}", spark).collect())
        assert "Physical Plan" in plan
        assert "Error occurred" not in plan


@pytest.mark.slow
def test_a_name_is_made_of_any_constant(spark: SparkSession, events: mica.Table) -> None:
    spark.sql("DECLARE OR REPLACE lent_name STRING DEFAULT 'lent_events'")
    try:
        for name in ("'lent_' || 'events'", "lower('LENT_EVENTS')", "concat('lent', '_', replace('xvents', 'x', 'e'))"):
            mica.sql(f"INSERT INTO IDENTIFIER({name}) SELECT max(id) + 1, 'x' FROM IDENTIFIER(lent_name)", spark)
        query = "SELECT max(id) FROM IDENTIFIER(:a || :b)"
        assert mica.sql(query, spark, {"a": "lent_", "b": "events"}).collect() == [(7,)]
        assert mica.sql(f"EXECUTE IMMEDIATE '{query}' USING 'lent_' AS a, 'events' AS b", spark).collect() == [(7,)]
        with pytest.raises(Exception, match="NOT_A_CONSTANT_STRING"):
            mica.sql("SELECT * FROM IDENTIFIER((SELECT 'lent_events'))", spark)
    finally:
        spark.sql("DROP TEMPORARY VARIABLE lent_name")


def test_values_by_their_place_are_counted_with_those_of_names(spark: SparkSession, events: mica.Table) -> None:
    query = "SELECT max(id), ? AS q FROM IDENTIFIER(? || '_events') WHERE id < ?"
    assert mica.sql(query, spark, ["lent_none", "lent", 3]).collect() == [(2, "lent_none")]
    assert mica.sql("SELECT max(id) FROM IDENTIFIER(?) WHERE id < ?", spark, ["lent_events", 3]).collect() == [(2,)]


def test_a_lent_view_is_not_altered(spark: SparkSession, events: mica.Table) -> None:
    for text in ("RENAME TO lent_other", "AS SELECT 1"):
        with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
            mica.sql(f"ALTER VIEW lent_events {text}", spark)
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql("ALTER VIEW global_temp.lent_nowhere AS SELECT id FROM lent_events", spark)


def test_registered_names_are_listed(spark: SparkSession, events: mica.Table) -> None:
    for text in ("SHOW TABLES LIKE 'lent_*'", "show tables in default 'LENT_e*'", "/* all */ SHOW TABLES"):
        found = [tuple(row) for row in mica.sql(text, spark).collect() if row.tableName.startswith("lent_")]
        assert found == [("", "lent_events", True)], text
    assert spark.sql("SHOW TABLES LIKE 'lent_*'").collect() == []
    assert mica.sql("SHOW TABLES LIKE 'lent_nothing*'", spark).collect() == []


def test_views_and_details_are_listed_with_registered_names(
    spark: SparkSession, events: mica.Table, tmp_path: Path
) -> None:
    mica.register("lent_lost", mica.Table.create(tmp_path / "lost", "id BIGINT").path)
    shutil.rmtree(tmp_path / "lost")
    found = mica.sql("SHOW /* all */ VIEWS LIKE 'lent_*'", spark).collect()
    assert found == [("", "lent_events", True), ("", "lent_lost", True)]
    (row,) = mica.sql("SHOW TABLE EXTENDED LIKE 'lent_*'", spark).collect()
    assert tuple(row)[:3] == ("", "lent_events", True)
    assert "|-- g: string" in row.information
    assert spark.sql("SHOW TABLE EXTENDED LIKE 'lent_*'").collect() == []


def test_a_list_opens_what_its_pattern_takes(
    spark: SparkSession, events: mica.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mica.register("other", mica.Table.create(tmp_path / "other", "id BIGINT").path)
    opened = list[str]()
    own = registry.opened
    monkeypatch.setattr(registry, "opened", lambda place: opened.append(str(place)) or own(place))
    (row,) = mica.sql("SHOW TABLE EXTENDED LIKE 'lent_e*'", spark).collect()
    assert (row.tableName, opened) == ("lent_events", [events.path])
    assert mica.sql("SHOW TABLE EXTENDED LIKE 'none_*'", spark).collect() == []
    assert len(opened) == 1


@pytest.mark.slow
def test_a_damaged_table_is_not_asked_for_others(spark: SparkSession, events: mica.Table, tmp_path: Path) -> None:
    mica.register("lent_bad", mica.Table.create(tmp_path / "bad", "id BIGINT").path)
    (commit,) = (tmp_path / "bad/_delta_log").glob("*.json")
    commit.write_text("{garbage\n")
    mica.register("lent_bad_too", mica.Table.create(tmp_path / "bad_too", "id BIGINT").path)
    shutil.copy(commit, tmp_path / "bad_too/_delta_log" / commit.name)
    for pattern in ("lent_events", "lent_*"):
        (row,) = mica.sql(f"SHOW TABLE EXTENDED LIKE '{pattern}'", spark).collect()
        assert row.tableName == "lent_events"
    for statement in ("SELECT count(*) FROM IDENTIFIER(n)", "EXECUTE IMMEDIATE 'SELECT count(*) FROM ' || n"):
        script = f"BEGIN DECLARE n STRING DEFAULT 'lent_' || 'events'; {statement}; END"
        assert mica.sql(script, spark).collect() == [(5,)]
    with pytest.raises(mica.CorruptDataError, match="CORRUPT_LOG"):
        mica.sql("BEGIN SELECT count(*) FROM lent_bad; END", spark)


def test_what_no_view_would_be_enough_for_keeps_spark_s_error(spark: SparkSession, events: mica.Table) -> None:
    with pytest.raises(PySparkException, match="CREATE_PIPELINE_DATASET_QUERY_EXECUTION"):
        mica.sql("CREATE MATERIALIZED VIEW m AS SELECT id FROM lent_events", spark)


def test_a_list_shows_no_other_thread_an_empty_table(spark: SparkSession, events: mica.Table) -> None:
    mica.sql("CREATE TEMPORARY FUNCTION lent_max() RETURNS BIGINT RETURN (SELECT max(id) FROM lent_events)", spark)
    try:
        with ThreadPoolExecutor(1) as threads:
            lists = threads.submit(lambda: [mica.sql("SHOW TABLES", spark).collect() for _ in range(10)])
            while not lists.done():
                assert mica.sql("SELECT lent_max()", spark).collect() == [(4,)]
            lists.result()
    finally:
        spark.sql("DROP TEMPORARY FUNCTION lent_max")


def test_a_column_is_described_with_the_name_of_its_table(spark: SparkSession, events: mica.Table) -> None:
    for column in ("id", "lent_events.id", "LENT_EVENTS.ID", "`lent_events`.`id`"):
        found = {row.info_name: row.info_value for row in mica.sql(f"DESC lent_events {column}", spark).collect()}
        assert found == {"col_name": "id", "data_type": "bigint", "comment": "NULL"}
    with pytest.raises(mica.UserError, match="UNKNOWN_COLUMN"):
        mica.sql("DESC lent_events other.id", spark)
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        mica.sql("SHOW COLUMNS lent_events", spark)
