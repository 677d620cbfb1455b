"""Temporary views of SQL show what those of delta-spark show after each change of their tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession, functions

import mica
from mica.query import live_views
from tests.oracle import conf
from tests.support import dealt

VIEWS = {
    "v": "SELECT * FROM {t}",
    "w": "SELECT id FROM {v} WHERE id > 1",
    "x": "SELECT {v}.id + 1 AS a, u.s FROM {v} JOIN {u} u ON {v}.id = u.id",
    "y": "SELECT count(*) AS n FROM {w} LEFT JOIN {t} t ON {w}.id = t.id",
    "old": "SELECT * FROM {t} VERSION AS OF 0",
    "n": "SELECT s FROM {t} WHERE id = (SELECT max(id) FROM {u})",
    "c": "WITH q AS (SELECT * FROM {t}) SELECT id FROM q WHERE id > (SELECT count(*) AS {n} FROM {old}) - 3",
}
CHANGES = [
    ["INSERT INTO {t} VALUES (4, 'd')", "UPDATE {t} SET id = id + 1 WHERE id > 2", "DELETE FROM {u} WHERE id = 3"],
    [
        "INSERT INTO {t} SELECT id + 100, s FROM {v}",
        "DELETE FROM {v} WHERE id = 101",
        "MERGE INTO {u} a USING {w} b ON a.id = b.id WHEN NOT MATCHED THEN INSERT (id, s) VALUES (b.id, 'new')",
    ],
    ["ALTER TABLE {t} ADD COLUMNS (k INT FIRST)", "INSERT INTO {t} VALUES (7, 3, 'k')", "DELETE FROM {v} WHERE id = 2"],
    [
        "CREATE OR REPLACE TEMPORARY VIEW {w} AS SELECT id FROM {v} WHERE id < 5",
        "CREATE OR REPLACE TEMPORARY VIEW {v} AS SELECT 3 AS id, 'x' AS s",
        "INSERT INTO {u} VALUES (3, 'z')",
    ],
]
ROWS = [{"id": 1, "s": "a"}, {"id": 2, "s": "b"}, {"id": 3, "s": "c"}]


@pytest.mark.slow
def test_views_show_the_newest_versions_of_their_tables(delta_session: SparkSession, tmp_path: Path) -> None:
    found = []
    for name, run in (("ours", lambda text: mica.sql(text, delta_session)), ("theirs", delta_session.sql)):
        named = {one: f"live_{name}_{one}" for one in VIEWS}
        for table in ("t", "u"):
            made = mica.Table.create(tmp_path / name / table, "id INT, s STRING", data=ROWS)
            named[table] = f"delta.`{made.path}`"
        for one, query in VIEWS.items():
            run(f"CREATE TEMPORARY VIEW {named[one]} AS {query.format(**named)}")
        looks = [f"SELECT '{one}', to_json(struct(*)) FROM {named[one]}" for one in VIEWS]
        seen = []
        for number, changes in enumerate(CHANGES):
            for change in changes:
                run(change.format(**named)).collect()
            seen.append(sorted(map(tuple, run(" UNION ALL ".join(dealt(looks, number))).collect())))
        found.append(seen)
    for changes, ours, theirs in zip(CHANGES, *found, strict=True):
        assert ours == theirs, changes


def test_a_view_of_somebody_else_stays(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", data=[{"id": 1}])
    mica.sql(f"CREATE TEMPORARY VIEW live_taken AS SELECT * FROM delta.`{tmp_path}`", spark)
    spark.range(5).createOrReplaceTempView("live_taken")
    table.append([{"id": 2}])
    assert mica.sql("SELECT count(*) FROM live_taken", spark).collect() == [(5,)]
    spark.catalog.dropTempView("live_taken")
    with_rows = spark.sql("VALUES (7L) AS q(id)")
    with_rows.createOrReplaceTempView("live_taken")
    assert mica.sql("SELECT * FROM live_taken", spark).collect() == [(7,)]


def test_a_view_has_the_settings_of_its_making(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "s STRING", data=[{"s": "1"}])
    at = "CAST(TIMESTAMP'2026-01-01 00:00:00' AS LONG) AS at"
    query = f"SELECT CAST(s AS INT) AS i, {at} FROM delta.`{tmp_path}`"
    with conf(spark, {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}):
        mica.sql(f"CREATE TEMPORARY VIEW live_set AS {query}", spark)
    table.append([{"s": "x"}])
    rows = mica.sql("SELECT * FROM live_set", spark).collect()
    assert sorted(map(tuple, rows), key=str) == [(1, 1767193200), (None, 1767193200)]  # nine hours before UTC


def test_a_view_has_all_settings_of_its_making(spark: SparkSession, tmp_path: Path) -> None:
    """Its columns got the types of the settings of later: TIMESTAMP was another type, a quoted name was a text."""
    table = mica.Table.create(tmp_path, "d DATE, s STRING", data=[{"d": None, "s": "x"}])
    query = f"""SELECT CAST(d AS TIMESTAMP) AS t, "s" AS s FROM delta.`{tmp_path}`"""
    with conf(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        mica.sql(f"CREATE TEMPORARY VIEW live_all AS {query}", spark)
    table.append([{"s": "y"}])
    with conf(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        found = mica.sql("SELECT * FROM live_all", spark)
        assert found.dtypes[0] == ("t", "timestamp_ntz")
        assert found.collect() == [(None, "s"), (None, "s")]


def test_a_clone_of_a_session_has_its_views(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", data=[{"id": 1}])
    mica.sql(f"CREATE TEMPORARY VIEW live_cloned AS SELECT * FROM delta.`{tmp_path}`", spark)
    clone = SparkSession(spark.sparkContext, cast("Any", spark)._jsparkSession.cloneSession())
    for number in (2, 3):
        table.append([{"id": number}])
        for session in (clone, spark):
            assert mica.sql("SELECT count(*) FROM live_cloned", session).collect() == [(number,)]


def test_a_view_that_cannot_be_made_again_keeps_its_versions(spark: SparkSession, tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path, "id BIGINT, s STRING", properties=mapped, data=[{"id": 1, "s": "a"}])
    mica.register("live_gone", tmp_path)
    mica.sql("CREATE TEMPORARY VIEW live_column AS SELECT s FROM live_gone", spark)
    mica.sql("CREATE TEMPORARY VIEW live_gone AS SELECT id FROM live_gone", spark)  # over its own name
    table.drop_columns(["s"])
    assert mica.sql("SELECT * FROM live_column", spark).collect() == [("a",)]
    assert mica.sql("SELECT * FROM live_gone", spark).collect() == [(1,)]
    spark.catalog.dropTempView("live_gone")
    mica.register("live_gone", mica.Table.create(tmp_path / "other", "s STRING", data=[{"s": "z"}]).path)
    assert mica.sql("SELECT * FROM live_column", spark).collect() == [("a",)]  # another table by the name


def test_a_view_is_made_again_once_a_version(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", data=[{"id": 1}])
    mica.sql(f"CREATE TEMPORARY VIEW live_once AS SELECT * FROM delta.`{tmp_path}`", spark)
    first = live_views._identity(spark, "live_once")
    mica.sql("SELECT * FROM live_once", spark)
    assert live_views._identity(spark, "live_once") == first
    table.append([{"id": 2}])
    mica.sql("SELECT * FROM live_once", spark)
    second = live_views._identity(spark, "live_once")
    mica.sql("SELECT * FROM live_once", spark)
    assert first != second == live_views._identity(spark, "live_once")


@pytest.mark.slow
def test_a_view_is_made_again_however_it_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", data=[{"id": 0}])
    mica.register("live_rows", tmp_path)
    session = mica.enable(spark.newSession())
    one = session.range(1)
    session.sql("CREATE TEMPORARY VIEW `live ``n` AS SELECT count(*) AS n FROM live_rows")
    session.sql("CREATE TEMPORARY VIEW live_n AS SELECT * FROM `live ``n`")
    session.sql("CREATE TEMPORARY FUNCTION live_f() RETURNS BIGINT RETURN (SELECT n FROM live_n)")
    session.sql("CREATE TEMPORARY VIEW live_of_f AS SELECT live_f() AS n")
    session.sql("DECLARE VARIABLE live_name STRING DEFAULT 'live_n'")
    ways: list[Callable[[], Any]] = [
        lambda: session.sql("SELECT * FROM IDENTIFIER('live_n')"),
        lambda: session.sql("SELECT * FROM IDENTIFIER('live' || '_n')"),
        lambda: session.sql("SELECT * FROM IDENTIFIER(live_name)"),
        lambda: session.sql("SELECT * FROM `live ``N`"),
        lambda: session.sql("SELECT live_f()"),
        lambda: session.sql("SELECT n FROM live_of_f"),
        lambda: session.table("live_n"),
        lambda: session.read.table("live_n"),
        lambda: one.selectExpr("(SELECT n FROM live_n)"),
        lambda: one.select(functions.expr("(SELECT n FROM live_n)")),
        lambda: one.select(functions.expr("live_f()")),
        lambda: session.sql(
            "BEGIN DECLARE a BIGINT DEFAULT 0; INSERT INTO live_rows VALUES (0); "
            "FOR r AS SELECT n FROM live_n DO SET a = r.n - 1; END FOR; "
            "IF a + 1 = (SELECT n FROM live_n) THEN SELECT a; END IF; END"
        ),
    ]
    try:
        for number, way in enumerate(ways):
            table.append([{"id": number}])
            assert way().collect() == [(number + 2,)], number
    finally:
        mica.disable(session)


def test_a_later_view_hides_no_table_from_an_earlier_one(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", data=[{"id": 1}])
    mica.register("live_hidden", tmp_path)
    mica.sql("CREATE TEMPORARY VIEW live_earlier AS SELECT * FROM live_hidden", spark)
    mica.sql("CREATE TEMPORARY VIEW live_hidden AS SELECT 7 AS id", spark)
    table.append([{"id": 2}])
    try:
        assert sorted(mica.sql("SELECT * FROM live_earlier", spark).collect()) == [(1,), (2,)]
        assert mica.sql("SELECT * FROM live_hidden", spark).collect() == [(7,)]
    finally:
        spark.catalog.dropTempView("live_hidden")


def test_a_clone_has_views_that_were_made_again_since(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", data=[{"id": 1}])
    mica.sql(f"CREATE TEMPORARY VIEW live_since AS SELECT * FROM delta.`{tmp_path}`", spark)
    clone = SparkSession(spark.sparkContext, cast("Any", spark)._jsparkSession.cloneSession())
    table.append([{"id": 2}])
    for session in (spark, clone):
        assert mica.sql("SELECT count(*) FROM live_since", session).collect() == [(2,)]


def test_a_view_shows_what_its_variables_are(spark: SparkSession, tmp_path: Path) -> None:
    mica.Table.create(tmp_path, "id BIGINT", data=[{"id": n} for n in range(5)])
    run = partial(mica.sql, spark=spark)
    run("DECLARE OR REPLACE VARIABLE live_most INT DEFAULT 3")
    run("CREATE TEMPORARY VIEW live_most_is AS SELECT live_most AS n")
    run(f"CREATE TEMPORARY VIEW live_few AS SELECT * FROM delta.`{tmp_path}` WHERE id < (SELECT n FROM live_most_is)")
    run("CREATE TEMPORARY VIEW live_count AS SELECT count(*) FROM live_few")
    try:
        for most in (3, 1, 4):
            run(f"SET VAR live_most = {most}")
            assert run("SELECT * FROM live_count").collect() == [(most,)]
    finally:
        run("DROP TEMPORARY VARIABLE live_most")


@pytest.mark.parametrize(
    "shows", ["SELECT * FROM {} WHERE id = 1", "SELECT id FROM {}", "SELECT * FROM {} VERSION AS OF 0"]
)
def test_a_view_of_other_than_a_whole_table_is_not_changed(spark: SparkSession, tmp_path: Path, shows: str) -> None:
    """Spark's planner failed inside, or named a table `unknown`."""
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING", data=ROWS)
    mica.sql(f"CREATE OR REPLACE TEMPORARY VIEW part AS {shows.format(f'delta.`{table.path}`')}", spark)
    try:
        for text in (
            "DELETE FROM part",
            "UPDATE part SET id = 2",
            "MERGE INTO part USING part p ON p.id = part.id WHEN MATCHED THEN DELETE",
            "FSCK REPAIR TABLE part",
        ):
            with pytest.raises(mica.UserError, match="part is a temporary view that does not show the whole") as caught:
                mica.sql(text, spark)
            assert caught.value.hint == f"Name a table. The view reads {table.path}."
    finally:
        spark.catalog.dropTempView("part")
    assert table.refresh().version == 0
