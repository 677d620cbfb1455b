"""Statements of Spark's with queries in them know mica's tables: EXPLAIN, DESCRIBE QUERY, CACHE TABLE, SET VAR, …"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> Iterator[mica.Table]:
    """A table with a name that only mica knows; what a test makes in the session is gone after it."""
    table = mica.Table.create(tmp_path / "events", "id BIGINT COMMENT 'which', v VARIANT")
    table.append([{"id": i, "v": {"kind": f"k{i % 2}"}} for i in range(5)])
    mica.register("around_events", table.path)
    yield table
    for view in ("around_cached", "around_lazy", "around_bad"):
        spark.catalog.dropTempView(view)
    assert not [row.viewName for row in spark.sql("SHOW VIEWS").collect() if row.viewName.startswith("mica_")]


def plan(text: str, spark: SparkSession, args: Any = None) -> str:
    """What EXPLAIN gives."""
    return "\n".join(row.plan for row in mica.sql(text, spark, args).collect())


@pytest.mark.parametrize("name", ["around_events", "delta.`{path}`", "IDENTIFIER(:t)"])
def test_a_query_is_explained_with_our_scans(spark: SparkSession, events: mica.Table, name: str) -> None:
    name, args = name.format(path=events.path), {"t": "around_events", "n": 2}
    query = (
        f"WITH a AS (SELECT id FROM {name} WHERE id > :n) SELECT id, id, v:kind::string FROM a JOIN {name} USING (id)"
    )
    for mode in ("", "FORMATTED ", "EXTENDED ", "COST "):
        found = plan(f"/* why */ explain {mode}{query}", spark, args)
        assert "MapInArrow" in found or "mapInArrow" in found, mode
    assert "error occurred" not in found.lower()


def test_explain_of_statements(spark: SparkSession, events: mica.Table, tmp_path: Path) -> None:
    made = plan("EXPLAIN CREATE TABLE around_new USING parquet AS SELECT id FROM around_events", spark)
    assert "CreateDataSourceTableAsSelect" in made
    assert "parquet" in made
    assert "Error occurred" not in made
    spark.sql(f"CREATE TABLE around_spark (id BIGINT) USING parquet LOCATION '{tmp_path / 'parquet'}'")
    try:
        text = "INSERT INTO around_spark WITH e AS (SELECT * FROM around_events) SELECT id FROM e"
        assert "InsertIntoHadoopFsRelation" in plan(f"EXPLAIN {text}", spark)
        assert "InsertIntoHadoopFsRelation" in plan(
            "EXPLAIN WITH e AS (SELECT * FROM around_events) INSERT INTO around_spark SELECT id FROM e", spark
        )
        assert not spark.sql("SELECT * FROM around_spark").collect()
    finally:
        spark.sql("DROP TABLE around_spark")
    for statement in (
        "DELETE FROM around_events WHERE id = 1", "INSERT INTO around_events SELECT * FROM around_events",
        "OPTIMIZE around_events", "DROP TABLE around_events", "ALTER TABLE around_events DROP COLUMN v",
        "CREATE TABLE around_made (id INT) USING mica", "DESCRIBE around_events",
    ):  # fmt: skip
        with pytest.raises(mica.UserError, match="EXPLAIN has no plan") as caught:
            mica.sql(f"EXPLAIN {statement}", spark)
        assert caught.value.code == "INVALID_ARGUMENT"
    assert events.refresh() is None or events.version == 1
    assert "Range" in plan("EXPLAIN SELECT * FROM range(5)", spark)
    with pytest.raises(PySparkException, match="SELEC"):
        plan("EXPLAIN SELEC id FROM around_events", spark)


def test_delta_spark_explains_what_it_knows(delta_session: SparkSession, events: mica.Table) -> None:
    found = plan(f"EXPLAIN DELETE FROM delta.`{events.path}` WHERE id = 1", delta_session)
    assert "DeleteCommand" in found
    assert events.scan().count() == 5


def test_a_query_is_described(spark: SparkSession, events: mica.Table) -> None:
    for text in (
        "DESCRIBE QUERY SELECT id, v:kind::string AS kind FROM around_events",
        "DESC SELECT id, v:kind::string AS kind FROM around_events;",
        f"DESC QUERY FROM delta.`{events.path}` SELECT id, v:kind::string AS kind",
        "describe (SELECT id, v:kind::string AS kind FROM around_events)",
        "DESC WITH e AS (SELECT * FROM around_events) SELECT id, v:kind::string AS kind FROM e",
    ):
        rows = [tuple(row) for row in mica.sql(text, spark).collect()]
        assert rows == [("id", "bigint", "which"), ("kind", "string", None)], text
    assert [row[0] for row in mica.sql("DESC QUERY TABLE around_events", spark).collect()] == ["id", "v"]
    assert [row[0] for row in mica.sql("DESC around_events", spark).collect()] == ["id", "v"]


def test_a_query_is_cached(spark: SparkSession, events: mica.Table) -> None:
    mica.sql("CACHE TABLE around_cached AS SELECT id FROM around_events WHERE v:kind::string = 'k1'", spark)
    mica.sql(
        "CACHE LAZY TABLE around_lazy OPTIONS ('storageLevel' = 'MEMORY_ONLY') SELECT max(id) AS id FROM around_events",
        spark,
    )
    assert all(spark.catalog.isCached(name) for name in ("around_cached", "around_lazy"))
    mica.sql("DELETE FROM around_events WHERE id = 1", spark)
    assert sorted(row.id for row in mica.sql("SELECT id FROM around_cached", spark).collect()) == [1, 3]
    assert [row.id for row in spark.table("around_lazy").collect()] == [4]
    assert "InMemoryRelation" in plan("EXPLAIN SELECT * FROM around_cached", spark)
    with pytest.raises(PySparkException, match="TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"):
        mica.sql("CACHE TABLE around_cached AS SELECT 1 AS x FROM around_events", spark)
    with pytest.raises(PySparkException, match="INVALID_CAST"):
        mica.sql("CACHE TABLE around_bad AS SELECT v:kind::int FROM around_events", spark)
    assert not spark.catalog.tableExists("around_bad")  # as after Spark's own


@pytest.mark.slow
def test_variables_get_values_of_queries(spark: SparkSession, events: mica.Table) -> None:
    spark.sql("DECLARE OR REPLACE around_x BIGINT")
    spark.sql("DECLARE OR REPLACE around_y STRING")
    try:
        for text, expected in (
            ("around_x = (SELECT max(id) FROM around_events)", (4, None)),
            (("around_x = 1 + (SELECT max(id) FROM around_events) + "
             "CASE WHEN EXISTS (SELECT 1 FROM around_events WHERE id = 9) THEN 100 ELSE (SELECT 10) END"), (15, None)),
            ("(around_x, around_y) = (SELECT id, v:kind::string FROM around_events WHERE id = 3)", (3, "k1")),
            ("around_x = (SELECT id + 1 FROM around_events WHERE id = around_x), around_y = 'y'", (4, "y")),
            ("around_x = (SELECT id FROM around_events WHERE false)", (None, "y")),
            ("around_x = 7", (7, "y")),
        ):  # fmt: skip
            mica.sql(f"SET VAR {text}", spark)
            assert tuple(mica.sql("SELECT around_x, around_y", spark).collect()[0]) == expected, text
        with pytest.raises(Exception, match="SUBQUERY_TOO_MANY_ROWS"):
            mica.sql("SET VARIABLE around_x = (SELECT id FROM around_events)", spark)
        mica.sql(
            "EXECUTE IMMEDIATE 'SELECT id, v:kind::string FROM around_events WHERE id = ?' "
            "INTO around_x, around_y USING 2", spark,
        )  # fmt: skip
        assert tuple(mica.sql("SELECT around_x, around_y", spark).collect()[0]) == (2, "k0")
    finally:
        for name in ("around_x", "around_y"):
            spark.sql(f"DROP TEMPORARY VARIABLE {name}")


def test_a_text_is_executed_at_once(spark: SparkSession, events: mica.Table) -> None:
    def ids(text: str) -> list[int]:
        return sorted(row.id for row in mica.sql(f"EXECUTE IMMEDIATE {text}", spark).collect())

    assert ids("'SELECT id FROM around_events WHERE id > ? AND id < ?' USING 1, 2 + 2") == [2, 3]
    assert ids("concat('SELECT id FROM ', 'around_events WHERE id > :lo') USING 3 AS lo") == [4]
    assert ids("'SELECT id FROM range(2)'") == [0, 1]
    assert ids("'EXECUTE IMMEDIATE ''SELECT id FROM range(2)'''") == [0, 1]
    done = mica.sql("EXECUTE IMMEDIATE 'DELETE FROM around_events WHERE id = :n' USING 4 AS n", spark)
    assert [row.num_affected_rows for row in done.collect()] == [1]
    assert ids("'SELECT id FROM around_events'") == [0, 1, 2, 3]
    for wrong in ("nowhere", "1", "NULL", "'SELECT ?'"):
        with pytest.raises(PySparkException):
            mica.sql(f"EXECUTE IMMEDIATE {wrong}", spark)


@pytest.mark.parametrize(
    "value",
    [
        "TIMESTAMP_NTZ'2024-01-01 12:00:00.000001'", "TIMESTAMP'0001-01-01 00:00:00'", "DATE'-0044-01-01'", "1",
        "CAST(2 AS BIGINT)", "CAST(1 AS TINYINT)", "CAST(0.1 AS FLOAT)", "DOUBLE('NaN')", "-1.50BD", "true", "'a''b'",
        "X'00ff'", "CAST(NULL AS INT)", "NULL", "INTERVAL '1' DAY", "INTERVAL '3' MONTH", "'a' COLLATE UTF8_LCASE",
    ],
)  # fmt: skip
def test_a_value_of_using_keeps_its_type(spark: SparkSession, events: mica.Table, value: str) -> None:
    """What it gives is what Spark gives for the value itself, in a zone that is not Python's."""
    zone = spark.conf.get("spark.sql.session.timeZone")
    text = f"EXECUTE IMMEDIATE 'SELECT typeof(:p), CAST(:p AS STRING) FROM around_events LIMIT 1' USING {value} AS p"
    spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
    try:
        expected = tuple(spark.sql(f"SELECT typeof({value}), CAST({value} AS STRING)").collect()[0])
        assert tuple(mica.sql(text, spark).collect()[0]) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_a_query_into_variables_may_begin_with_from(spark: SparkSession, events: mica.Table) -> None:
    spark.sql("DECLARE VARIABLE around_z BIGINT")
    try:
        mica.sql("SET VAR (around_z) = (FROM around_events SELECT id WHERE id = 4)", spark)
        assert mica.sql("SELECT around_z", spark).collect()[0][0] == 4
        mica.sql("EXECUTE IMMEDIATE 'FROM around_events SELECT id WHERE id = :n' INTO around_z USING 3 AS n", spark)
        assert mica.sql("SELECT around_z", spark).collect()[0][0] == 3
        wrongs: list[tuple[str, type[Exception], str]] = [
            ("'DELETE FROM around_events' INTO around_z", mica.UserError, "takes the row of a query"),
            ("'INSERT INTO around_events VALUES (1)' INTO around_z", mica.UserError, "takes the row of a query"),
            ("'SHOW TABLES' INTO around_z", PySparkException, "INVALID_STATEMENT_FOR_EXECUTE_INTO"),
            (
                "'SELECT id FROM around_events' USING 1 AS n, 2 AS n",
                PySparkException,
                "DUPLICATE_ARGUMENT_ALIASES",
            ),
        ]
        for wrong, kind, why in wrongs:
            with pytest.raises(kind, match=why):
                mica.sql(f"EXECUTE IMMEDIATE {wrong}", spark)
        assert events.refresh().scan().count() == 5
    finally:
        spark.sql("DROP TEMPORARY VARIABLE around_z")


def test_an_enabled_session_does_the_same(spark: SparkSession, events: mica.Table) -> None:
    mica.enable(spark)
    try:
        assert "FileScan parquet" in spark.sql("EXPLAIN SELECT id FROM around_events").head()[0]  # type: ignore[index]
        assert len(spark.sql("EXECUTE IMMEDIATE 'SELECT id FROM around_events'").collect()) == 5
        assert spark.sql("EXECUTE IMMEDIATE 'SELECT 1 AS one'").collect()[0].one == 1
        spark.sql("CACHE TABLE around_cached AS SELECT id FROM around_events")
        assert spark.table("around_cached").count() == 5
    finally:
        mica.disable(spark)


def test_a_whole_table_is_not_cached(spark: SparkSession, events: mica.Table) -> None:
    """Spark would hold rows that no query asks for."""
    for text in ("CACHE TABLE around_events", "CACHE LAZY TABLE around_events", "EXPLAIN CACHE TABLE around_events"):
        with pytest.raises(mica.UserError, match="CACHE TABLE w AS SELECT") as caught:
            mica.sql(text, spark)
        assert caught.value.code == "INVALID_ARGUMENT"
    for text in ("UNCACHE TABLE around_events", "UNCACHE TABLE IF EXISTS around_events", "REFRESH TABLE around_events"):
        assert mica.sql(text, spark).collect() == []


@pytest.mark.slow
def test_inserts_share_a_from(spark: SparkSession, events: mica.Table, tmp_path: Path) -> None:
    mica.register("around_ids", mica.Table.create(tmp_path / "ids", "id BIGINT, w STRING").path)
    for text, count in (
        ("FROM around_events INSERT INTO around_ids SELECT id, 'a'", 5),
        (("FROM around_events INSERT INTO TABLE around_ids (id) SELECT id + 10 WHERE id = 1 "
         "INSERT INTO around_ids SELECT id + 20, v:kind::string WHERE v:kind::string = 'k1'"), 3),
        ("WITH q AS (SELECT * FROM around_events WHERE id > 3) FROM q INSERT INTO around_ids SELECT id + 30, 'q'", 1),
    ):  # fmt: skip
        assert mica.sql(text, spark).collect() == [(count, count)]
    found = mica.sql("SELECT * FROM around_ids WHERE id > 3 ORDER BY id", spark).collect()
    assert found == [(4, "a"), (11, None), (21, "k1"), (23, "k1"), (34, "q")]
    mica.sql(
        "FROM around_events e JOIN around_ids i ON e.id = i.id INSERT OVERWRITE around_ids SELECT i.id, 'o'", spark
    )
    assert mica.sql("SELECT count(*), max(w) FROM around_ids", spark).collect() == [(5, "o")]
    assert mica.sql("FROM around_ids |> SELECT 'INSERT' AS x |> LIMIT 1", spark).collect() == [("INSERT",)]
    with pytest.raises(mica.UserError, match="EXPLAIN has no plan"):
        mica.sql("EXPLAIN FROM around_events INSERT INTO around_ids SELECT id, 'a'", spark)


def test_inserts_that_share_a_from_read_what_was_there_before(
    spark: SparkSession, events: mica.Table, tmp_path: Path
) -> None:
    """As on Spark, where they are one plan."""
    ids = mica.Table.create(tmp_path / "ids", "id BIGINT")
    ids.append([{"id": 1}, {"id": 2}])
    mica.register("around_ids", ids.path)
    into = "INSERT INTO around_ids SELECT id + 10"
    assert mica.sql(f"FROM around_ids {into} {into}0", spark).collect() == [(4, 4)]
    assert mica.sql("SELECT sum(id) FROM around_ids", spark).collect() == [(3 + 23 + 203,)]
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        mica.sql(f"FROM around_ids {into} INSERT INTO around_ids SELECT nope", spark)
    assert ids.refresh().scan().count() == 6


@pytest.mark.slow
def test_inserts_that_share_a_from_are_checked_before_the_first(
    spark: SparkSession, events: mica.Table, tmp_path: Path
) -> None:
    ids = mica.Table.create(tmp_path / "ids", "id BIGINT, w STRING")
    mica.register("around_ids", ids.path)
    spark.sql("CREATE TABLE around_spark (id BIGINT) USING parquet")
    spark.sql("CREATE TABLE around_other (id BIGINT) USING parquet")
    try:
        for wrong, why in (
            ("INTO around_missing SELECT id", "TABLE_OR_VIEW_NOT_FOUND"),
            ("INTO around_ids SELECT id", "1 values are given for 2 columns"),
            ("INTO around_ids (id, nope) SELECT id, 1", "UNKNOWN_COLUMN"),
            ("INTO around_ids SELECT array(id), 1", "INCOMPATIBLE_TYPE"),
            ("OVERWRITE around_ids PARTITION (id = 1) SELECT 'a'", "INVALID_PARTITION_COLUMN"),
            ("INTO around_spark SELECT id, id", "INSERT_COLUMN_ARITY_MISMATCH"),
        ):
            for text in (
                f"INSERT INTO around_ids SELECT id, 'a' INSERT {wrong}",
                f"INSERT {wrong} INSERT INTO around_ids SELECT id, 'a'",
            ):
                with pytest.raises((PySparkException, mica.UserError), match=why):
                    mica.sql(f"FROM around_events {text}", spark)
        two = "INSERT INTO around_spark SELECT id INSERT INTO around_other SELECT id, id"
        with pytest.raises(PySparkException, match="INSERT_COLUMN_ARITY_MISMATCH"):
            mica.sql(f"FROM around_events INSERT INTO around_ids SELECT id, 'a' {two}", spark)
        assert ids.refresh().version == spark.table("around_spark").count() == 0
        both = "INSERT INTO around_ids SELECT id, 'a' INSERT INTO around_spark SELECT id + 1"
        assert mica.sql(f"FROM around_events {both}", spark).collect() == [(5, 5)]
        assert spark.sql("SELECT max(id) FROM around_spark").collect() == [(5,)]
        each = ["INSERT INTO around_ids SELECT id, 's'", "INSERT INTO around_spark SELECT id + 100"]
        for text in (each, each[::-1]):  # a table of Spark's is read before it gets rows
            spark.sql("INSERT OVERWRITE around_spark VALUES (1L), (2L)")
            assert mica.sql(f"FROM around_spark {' '.join(text)}", spark).collect() == [(2, 2)]
            assert sorted(spark.table("around_spark").collect()) == [(1,), (2,), (101,), (102,)]
        evolving = "INSERT WITH SCHEMA EVOLUTION INTO around_ids SELECT id, 'e', 1 AS more"
        folder = f"INSERT OVERWRITE DIRECTORY '{tmp_path / 'out'}' USING parquet SELECT id"
        assert mica.sql(f"FROM around_events {folder} {evolving}", spark).collect() == [(5, 5)]
        assert (spark.read.parquet(str(tmp_path / "out")).count(), ids.refresh().schema.names[-1]) == (5, "more")
    finally:
        spark.sql("DROP TABLE around_spark")
        spark.sql("DROP TABLE around_other")


def test_a_view_of_the_session_is_altered(spark: SparkSession, events: mica.Table) -> None:
    for name, kind in (("around_cached", "TEMPORARY"), ("global_temp.around_cached", "GLOBAL TEMPORARY")):
        spark.sql(f"CREATE {kind} VIEW around_cached AS SELECT 1 AS one")
        try:
            mica.sql(f"ALTER VIEW {name} AS SELECT id, v:kind::string AS kind FROM around_events WHERE id > 3", spark)
            assert spark.table(name).collect() == [(4, "k0")]
            mica.sql(f"ALTER VIEW {name} AS SELECT 5 AS five", spark)
            assert spark.table(name).collect() == [(5,)]
        finally:
            spark.sql(f"DROP VIEW {name}")
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql("ALTER VIEW around_nowhere AS SELECT id FROM around_events", spark)


def test_a_stored_view_is_altered(delta_session: SparkSession, events: mica.Table) -> None:
    spark = delta_session
    mica.sql("CREATE VIEW around_stored AS SELECT id FROM around_events", spark)
    try:
        mica.sql("ALTER VIEW around_stored AS SELECT max(id) AS m FROM around_events", spark)
        assert spark.table("around_stored").collect() == [(4,)]
    finally:
        spark.sql("DROP VIEW around_stored")
