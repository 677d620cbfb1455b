"""SQL scripts know mica's tables: their statements run as `mica.sql` does, the rest is Spark's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import mica
from mica.engines.spark.scripts import Script
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

N = "DECLARE n BIGINT DEFAULT 0; "


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Iterator[dict[str, mica.Table]]:
    """Two tables with names that only mica knows; no view is left of them."""
    events = mica.Table.create(tmp_path / "events", "id BIGINT, v VARIANT")
    events.append([{"id": i, "v": {"n": i * 10, "s": "x"}} for i in range(1, 7)])
    words = mica.Table.create(tmp_path / "words", "id BIGINT, w STRING")
    words.append([{"id": 1, "w": "one"}, {"id": 9, "w": "nine"}])
    mica.register("script_events", events.path)
    mica.register("script_words", words.path)
    yield {"events": events, "words": words}
    assert not spark.sql("SHOW VIEWS LIKE 'script_*|mica_*'").collect()


def rows(text: str, spark: SparkSession, args: Any = None) -> list[tuple[Any, ...]]:
    """What a script gives."""
    return [tuple(row) for row in mica.sql(text, spark, args).collect()]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("SELECT max(id) FROM script_events;", 6),
        ("SELECT count(*) FROM script_events VERSION AS OF 0;", 0),
        ("SELECT sum(v:n::int) FROM delta.`{path}`;", 210),
        ("WITH a AS (SELECT id FROM script_events) SELECT sum(id) FROM a;", 21),
        ("SELECT 1; SELECT 2 FROM script_events LIMIT 1;", 2),
        ("DECLARE x BIGINT; SET x = (SELECT max(id) FROM script_events); SELECT x + 1;", 7),
        ("IF EXISTS (SELECT 1 FROM script_events WHERE v:n::int = 60) THEN SELECT 'y'; ELSE SELECT 'n'; END IF;", "y"),
        ("CASE (SELECT max(id) FROM script_events) WHEN 6 THEN SELECT 'six'; ELSE SELECT 'other'; END CASE;", "six"),
        (N + "WHILE n < (SELECT max(id) FROM script_events) DO SET n = n + 1; END WHILE; SELECT n;", 6),
        (N + "REPEAT SET n = n + 1; UNTIL n > (SELECT min(id) + 2 FROM script_events) END REPEAT; SELECT n;", 4),
        (N + "FOR r AS SELECT id FROM script_events WHERE id < 4 DO SET n = n * 9 + r.id; END FOR; SELECT n;", 102),
        ("DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO BEGIN SELECT count(*) FROM script_events; END; SELECT 1 / 0;", 6),
        (N + "BEGIN DECLARE n INT DEFAULT 2; SELECT count(*) FROM script_events WHERE id > n; END;", 4),
        ("DECLARE t STRING DEFAULT 'script_events'; SELECT count(*) FROM IDENTIFIER(t);", 6),
        ("DECLARE s STRING DEFAULT 'SELECT max(id) FROM script_events'; EXECUTE IMMEDIATE s;", 6),
        (N + "EXECUTE IMMEDIATE 'SELECT max(id) FROM script_events WHERE id < ?' INTO n USING 4; SELECT n;", 3),
        ("SELECT max(id) + :n FROM script_events;", 8),
        ("DECLARE t STRING DEFAULT 'script_' || 'events'; IF EXISTS (TABLE IDENTIFIER(t)) THEN SELECT 6; END IF;", 6),
        ("DECLARE s STRING DEFAULT 'SELECT max(id) FROM script_' || 'events'; EXECUTE IMMEDIATE s;", 6),
    ],
)  # fmt: skip
def test_what_a_script_reads(spark: SparkSession, tables: dict[str, mica.Table], body: str, expected: object) -> None:
    text = f"BEGIN {body.replace('{path}', tables['events'].path)} END"
    assert rows(text, spark, {"n": 2}) == [(expected,)]


@pytest.mark.slow
def test_conditions_call_functions_over_registered_tables(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    """Their texts name the tables, and not the script's."""
    for text in (
        "f() RETURNS BIGINT RETURN (SELECT max(id) FROM script_events)",
        "f2() RETURNS BIGINT RETURN script_f()",
    ):
        mica.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION script_{text}", spark)
    try:
        assert rows("BEGIN IF Script_F() = 6 THEN SELECT 'y'; END IF; END", spark) == [("y",)]
        assert rows(f"BEGIN {N} WHILE n < script_f2() DO SET n = n + 1; END WHILE; SELECT n; END", spark) == [(6,)]
    finally:
        for name in ("f", "f2"):
            spark.sql(f"DROP TEMPORARY FUNCTION script_{name}")


def test_names_in_another_case_where_cases_differ(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        test = "IF (SELECT count(*) FROM Script_Words) = (SELECT count(*) FROM script_words) THEN SELECT 'y'; END IF;"
        assert rows(f"BEGIN {test} END", spark) == [("y",)]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.slow
def test_what_is_read_of_a_row_is_a_value_of_a_change(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    columns = "id, v, named_struct('a', array('x', 'y')) AS s"
    text = f"""
        BEGIN
            FOR r AS SELECT {columns} FROM script_events WHERE id IN (1, 2) DO
                INSERT INTO script_words VALUES (r.id + 20, 'new');
                UPDATE script_words SET w = r.v:n::string || r.s.a[1] || (r.v:n::int + 1)
                    WHERE id = r.v:n::int / 10 + 20;
                DELETE FROM script_words WHERE r.v:['s']::string = 'x' AND id = 10 - r.id;
            END FOR;
            SELECT * FROM script_words WHERE id <> 1;
        END"""
    assert rows(text, spark) == [(21, "10y11"), (22, "20y21")]


@pytest.mark.slow
def test_what_a_script_changes_is_seen_by_what_follows(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    found = rows(
        """
        /* why */ BEGIN
            DECLARE k BIGINT DEFAULT 1;
            UPDATE script_words SET w = concat('up', k) WHERE id = k;
            FOR r AS SELECT id, v:n::int AS n FROM script_events WHERE id > 3 DO
                INSERT INTO script_words VALUES (r.id, string(r.n));
                DELETE FROM script_words WHERE id = r.id - 1 AND n = 60;
            END FOR;
            MERGE INTO script_words a USING script_events b ON a.id = b.id AND b.id = k + 3
                WHEN MATCHED THEN UPDATE SET w = 'merged';
            WHILE (SELECT count(*) FROM script_words) < 6 DO
                INSERT INTO script_words SELECT max(id) + 1, 'more' FROM script_words;
            END WHILE;
            ALTER TABLE script_words SET TBLPROPERTIES ('a' = 'b');
            EXECUTE IMMEDIATE 'OPTIMIZE script_words';
            SELECT * FROM script_words ORDER BY id;
            DELETE FROM script_words WHERE id > 9;
        END;
        """,
        spark,
    )
    assert found == [(1, "up1"), (4, "merged"), (6, "60"), (9, "nine"), (10, "more"), (11, "more")]
    assert tables["words"].refresh().scan().count() == 4


def test_a_script_without_a_query_has_no_rows(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    done = mica.sql("BEGIN INSERT INTO script_words VALUES (2, 'two'); END", spark)
    assert (done.columns, done.collect()) == ([], [])
    assert tables["words"].refresh().scan().count() == 3


def test_a_script_makes_tables_and_views(spark: SparkSession, tables: dict[str, mica.Table], tmp_path: Path) -> None:
    made = f"CREATE TABLE script_made (x BIGINT) USING mica LOCATION '{tmp_path / 'made'}'"
    view = "CREATE OR REPLACE TEMPORARY VIEW around_script AS SELECT id FROM script_events"
    test = "IF (SELECT max(x) FROM script_made) = 6 THEN SELECT 'made'; END IF"
    text = f"BEGIN {made}; {view}; INSERT INTO script_made SELECT max(id) FROM around_script; {test}; END"
    try:
        assert rows(text, spark) == [("made",)]
    finally:
        spark.catalog.dropTempView("around_script")


def test_a_script_may_name_only_tables_that_it_makes(spark: SparkSession) -> None:
    """With delta-spark Spark ran it, in whose catalog the table was made: INSERT ended in its interpreter."""
    made = "CREATE TABLE script_alone (x STRING) USING /* ours */ mica DEFAULT COLLATION UTF8_LCASE"
    body = "INSERT INTO script_alone VALUES ('a'), ('B'); SELECT count(*) FROM script_alone WHERE x IN ('A', 'b')"
    assert rows(f"BEGIN {made}; {body}; DROP TABLE script_alone; END", spark) == [(2,)]
    assert not spark.catalog.tableExists("script_alone")


@pytest.mark.slow
def test_a_handler_takes_errors_of_mica(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    handler = "DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'caught'; END;"
    for failing in (
        "DELETE FROM script_words WHERE nope(id) = 1", "INSERT INTO script_words VALUES ('x', 'y')",
        "SELECT v:s::int FROM script_events",
    ):  # fmt: skip
        assert rows(f"BEGIN {handler} {failing}; END", spark) == [("caught",)]
    with pytest.raises(mica.UserError, match="UNSUPPORTED_EXPRESSION"):
        mica.sql("BEGIN DELETE FROM script_words WHERE nope(id) = 1; END", spark)
    with pytest.raises(PySparkException, match="UNRESOLVED_COLUMN"):
        mica.sql("BEGIN SELECT nope FROM script_events; END", spark)
    with pytest.raises(PySparkException, match="PARSE_SYNTAX_ERROR"):
        mica.sql("BEGIN SELEC id FROM script_events; END", spark)


@pytest.mark.parametrize(
    ("condition", "failing"),
    dealt([
        ("DIVIDE_BY_ZERO", "UPDATE script_words SET id = id / (id - id)"),
        ("SQLSTATE '22012'", "DELETE FROM script_words WHERE 1 / (id - id) > 0"),
        ("DIVIDE_BY_ZERO", "INSERT INTO script_words SELECT id / 0, w FROM script_words"),
        ("ARITHMETIC_OVERFLOW", "UPDATE script_words SET id = id + 9223372036854775807"),
        ("CAST_INVALID_INPUT", "UPDATE script_words SET id = CAST(w AS BIGINT)"),
        ("CAST_INVALID_INPUT", "UPDATE script_words SET id = CAST('a x:y' AS BIGINT)"),
        ("CAST_INVALID_INPUT", "INSERT INTO script_words VALUES ('x', 'y')"),
        ("INVALID_VARIANT_CAST", "SELECT v:s::int FROM script_events"),
        ("INVALID_VARIANT_CAST", "DELETE FROM script_events WHERE v:s::int = 1"),
        ("TABLE_OR_VIEW_NOT_FOUND", "INSERT INTO script_nowhere SELECT id FROM script_events"),
        ("TABLE_OR_VIEW_NOT_FOUND", "DELETE FROM delta.`/nowhere`"),
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "UPDATE script_words SET nope = 1"),
        ("CAST_OVERFLOW", "UPDATE script_words SET w = CAST(id + 300 AS TINYINT)"),
        ("CAST_OVERFLOW", "DELETE FROM script_words WHERE CAST(3000000000 AS INT) = id"),
        ("SQLSTATE '22003'", "UPDATE script_words SET w = CAST(id * 1e20 AS INT)"),
        ("SQLSTATE '22003'", "INSERT INTO script_words VALUES (1e30D, 'y')"),
        ("NUMERIC_VALUE_OUT_OF_RANGE", "UPDATE script_words SET w = CAST(id + 1000 AS DECIMAL(3, 1))"),
        ("CANNOT_PARSE_TIMESTAMP", "UPDATE script_words SET w = to_date(w, 'yyyy')"),
        ("REMAINDER_BY_ZERO", "UPDATE script_words SET id = id % (id - id)"),
        ("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "UPDATE script_words SET id = element_at(array(1), 9)"),
        ("INVALID_VARIANT_CAST", "UPDATE script_events SET id = CAST(v AS INT)"),
    ], 0),
)  # fmt: skip
def test_a_handler_names_spark_s_condition(
    spark: SparkSession, tables: dict[str, mica.Table], condition: str, failing: str
) -> None:
    handler = f"DECLARE EXIT HANDLER FOR {condition} BEGIN SELECT 'caught'; END;"
    other = "DECLARE EXIT HANDLER FOR SCALAR_SUBQUERY_TOO_MANY_ROWS BEGIN SELECT 'by another'; END;"
    assert rows(f"BEGIN {handler} BEGIN {other} {failing}; END; END", spark) == [("caught",)]


def test_an_error_without_a_handler_of_its_own_ends_the_script(
    spark: SparkSession, tables: dict[str, mica.Table]
) -> None:
    other = "DECLARE EXIT HANDLER FOR SCALAR_SUBQUERY_TOO_MANY_ROWS BEGIN SELECT 'by another'; END;"
    for failing in ("UPDATE script_words SET id = id / (id - id)", "UPDATE script_words SET nope = 1"):
        with pytest.raises((PySparkException, mica.MicaError)):
            mica.sql(f"BEGIN {other} {failing}; END", spark)


def test_results_have_the_types_of_the_query(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    columns = "v, id, TIMESTAMP'2020-01-01 00:00:00' t, array(1, 2) a, named_struct('x', 1) s, map('k', X'00') m, 1.5 n"
    query = f"SELECT {columns} FROM script_events WHERE id = 1"
    ours, theirs = mica.sql(f"BEGIN {query}; END", spark), mica.sql(query, spark)
    assert ours.schema == theirs.schema
    assert str(ours.collect()) == str(theirs.collect())


def test_a_view_of_the_session_is_back_after_a_script(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    spark.sql("CREATE TEMPORARY VIEW script_words AS SELECT 'own' AS w")
    try:
        assert rows("BEGIN IF (SELECT count(*) FROM script_words) = 2 THEN SELECT 2; END IF; END", spark) == [(2,)]
        assert spark.table("script_words").collect() == [("own",)]
    finally:
        spark.catalog.dropTempView("script_words")


def test_what_a_script_does_with_a_registered_name_lasts(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    """Its statements find no lent view, which ends with the script."""
    condition = "IF (SELECT count(*) FROM script_words) = 2 THEN SELECT 2; END IF;"
    try:
        assert rows(f"BEGIN CREATE TEMPORARY VIEW script_words AS SELECT 1 AS one; {condition} END", spark) == [(2,)]
        assert spark.table("script_words").collect() == [(1,)]
        rows(f"BEGIN {condition} CREATE OR REPLACE TEMPORARY VIEW script_words AS SELECT 2 AS two; END", spark)
        assert spark.table("script_words").collect() == [(2,)]
    finally:
        rows(f"BEGIN {condition} DROP VIEW script_words; END", spark)
    test = "IF EXISTS (SELECT 1 FROM script_words) THEN SELECT 'stays'; END IF;"
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql(f"BEGIN {test} DROP TABLE script_words; {test} END", spark)


def test_a_word_that_is_a_lost_table_s_name_is_no_table(
    spark: SparkSession, tables: dict[str, mica.Table], tmp_path: Path
) -> None:
    mica.register("script_lost", mica.Table.create(tmp_path / "lost", "id BIGINT").path)
    shutil.rmtree(tmp_path / "lost")
    assert rows("BEGIN SELECT max(id) AS script_lost FROM script_events; END", spark) == [(6,)]


@pytest.mark.slow
def test_no_view_is_left_by_threads(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    """The fixture looks for views that stay: one thread must not take the other's for the session's own."""
    loop = "WHILE n < (SELECT min(id) + 3 FROM script_events) DO SET n = n + 1; END WHILE; SELECT n;"
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: rows(f"BEGIN {N} {loop} END", spark), range(9)))
    assert found == [[(4,)]] * 9


def test_an_enabled_session_runs_scripts(spark: SparkSession, tables: dict[str, mica.Table]) -> None:
    mica.enable(spark)
    try:
        assert spark.sql("BEGIN SELECT count(*) FROM script_events; END").collect() == [(6,)]
        assert spark.sql("BEGIN SELECT 1 AS one; END").collect() == [(1,)]
    finally:
        mica.disable(spark)


@pytest.mark.slow
def test_scripts_know_the_tables_of_the_current_database(spark: SparkSession, tmp_path: Path) -> None:
    """Conditions and FOR did not find them; a view of the session's own still comes first, as in Spark."""
    mica.enable(spark)
    try:
        spark.sql("CREATE SCHEMA of_scripts")
        spark.sql("USE of_scripts")
        spark.sql(f"CREATE TABLE loops USING mica LOCATION '{tmp_path}/loops' AS SELECT id FROM range(4)")
        condition = "IF (SELECT count(*) FROM loops) > 3 THEN SELECT 'many'; ELSE SELECT 'few'; END IF;"
        loop = "FOR r AS SELECT id FROM loops WHERE id > 1 DO UPDATE loops SET id = id * 10 WHERE id = r.id; END FOR;"
        assert rows(f"BEGIN {condition} END", spark) == [("many",)]
        assert rows(f"BEGIN {loop} SELECT max(id), min(id) FROM loops; END", spark) == [(30, 0)]
        assert not spark.sql("SHOW VIEWS LIKE 'loops'").collect()
        spark.range(1).createOrReplaceTempView("loops")
        assert rows(f"BEGIN {condition} END", spark) == [("few",)]
    finally:
        spark.catalog.dropTempView("loops")
        spark.sql("USE default")
        spark.sql("DROP SCHEMA IF EXISTS of_scripts CASCADE")
        mica.disable(spark)


def test_a_spark_whose_interpreter_is_another_one_runs_the_whole_script(
    spark: SparkSession, tables: dict[str, mica.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Spark Connect: the tables are read, and a change of one is refused."""
    monkeypatch.setattr(Script, "of", staticmethod(lambda *_: None))
    loop = "FOR r AS SELECT id FROM script_events DO SET n = n + r.id; END FOR; SELECT n;"
    assert rows(f"BEGIN {N} {loop} END", spark) == [(21,)]
    for change in ("INSERT INTO script_words VALUES (2, 'two')", "DELETE FROM script_words"):
        with pytest.raises(mica.UserError, match="script_words is a temporary view") as caught:
            mica.sql(f"BEGIN {change}; END", spark)
        assert caught.value.code == "INVALID_ARGUMENT"
    assert tables["words"].refresh().scan().count() == 2
