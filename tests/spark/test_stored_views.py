"""Views that the catalog keeps as texts, over tables that only mica reads: without delta-spark Spark reads no Delta
table, so each text of theirs would fail there. The oracle is Spark's view of the same text over Parquet files."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import mica
from mica.engines.spark import stored_views
from mica.query import around, changes, scripts, tables, views
from tests.oracle import conf
from tests.support import CAMPAIGN, dealt

Sql = Callable[[str], list[tuple[Any, ...]]]
ROWS = "SELECT CAST(id AS INT) AS id, 's' || id % 3 AS s, id * 0.5D AS d, named_struct('a', id) AS n FROM range(20)"


@pytest.fixture
def sql(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sql]:
    """Runs a text as in a session without delta-spark, whose tables `ev` (mica's) and `pq` (Spark's) have the same
    rows; what it makes in `kept` is gone after the test."""
    for module in (stored_views, tables, views, changes, around, scripts):
        monkeypatch.setattr(module, "has_delta", lambda _: False)

    def run(text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in mica.sql(text, spark).collect()]

    with conf(spark, {"spark.sql.codegen.factoryMode": "FALLBACK"}):
        run("CREATE SCHEMA kept")
        run("USE kept")
        run(f"CREATE TABLE ev USING mica AS {ROWS}")
        run(f"CREATE TABLE pq USING parquet AS {ROWS}")
        yield run
        spark.catalog.dropTempView("temp")
        run("USE default")
        run("DROP SCHEMA kept CASCADE")


#: Views and queries over `{t}`.
VIEWS = [
    "SELECT * FROM {t}",
    "SELECT id, s AS name, d, n FROM {t} WHERE id >= 5",
    "SELECT s, count(*) AS c, max(id) AS m FROM {t} GROUP BY s",
    "SELECT a.id, b.s, a.n.a AS na FROM {t} a JOIN kept.{t} b ON a.id = b.id + 1",
    "WITH {t} AS (SELECT * FROM kept.{t} WHERE id < 7) SELECT * FROM {t}",
    "SELECT id, (SELECT max(id) FROM {t} b WHERE b.s = {t}.s) AS m FROM {t}",
    "SELECT id FROM {t} UNION ALL SELECT id + 100 FROM {t} WHERE s IN (SELECT s FROM {t} WHERE id = 4)",
    "SELECT * FROM {t} ORDER BY id DESC LIMIT 3",
    "FROM {t} SELECT id, d WHERE d > 3",
    "SELECT id, current_date() > DATE '2020-01-01' AS now FROM {t}",
    "SELECT spark_catalog.kept.{t}.id, s FROM spark_catalog.kept.{t}",
]
QUERIES = [
    "SELECT * FROM {v}",
    "SELECT count(*) FROM {v} WHERE {v}.{c} IS NOT NULL",
    "SELECT x.{c} FROM {v} x JOIN {v} y ON x.{c} = y.{c}",
    "SELECT {c} FROM kept.{v} WHERE {c} > (SELECT min({c}) FROM {v})",
    "SELECT kept.{v}.{c} FROM kept.{v} LIMIT 100",
    "SELECT {c}, count(*) FROM {v} GROUP BY {c}",
    "WITH q AS (TABLE {v}) SELECT {c} FROM q WHERE {c} < 9 OR {c} IS NULL",
    "SELECT * FROM {t} WHERE id IN (SELECT {c} FROM {v})",
]


@pytest.mark.slow
def test_views_give_what_spark_s_give_over_other_files(sql: Sql, rng: random.Random) -> None:
    columns = {}
    for number, text in enumerate(VIEWS):
        for table in ("ev", "pq"):
            sql(f"CREATE VIEW v{number}_{table} AS {text.format(t=table)}")
        columns[number] = rng.choice(
            [name for name, kind, _ in sql(f"DESCRIBE v{number}_pq") if kind in ("int", "bigint")]
        )
    for number, column in columns.items():  # and one over each of them
        for table in ("ev", "pq"):
            sql(f"CREATE VIEW w{number}_{table} AS SELECT {column}, {column} + 1 AS next FROM v{number}_{table}")
    for _ in range(2 if CAMPAIGN else 1):
        for number, column in columns.items():
            name, query = rng.choice("vw"), rng.choice(QUERIES)
            ours, theirs = (
                sorted(sql(query.format(v=f"{name}{number}_{table}", c=column, t=table)), key=repr)
                for table in ("ev", "pq")
            )
            assert ours == theirs, (VIEWS[number], name, query)


#: What is asked of each table's views in turn, and what it gives, or how its error begins.
STEPS: list[tuple[str, Any]] = [
    ("CREATE VIEW v (number COMMENT 'n', name) COMMENT 'few' TBLPROPERTIES ('a' = 'b') AS SELECT id, s FROM {t}", []),
    ("DESCRIBE v", [("name", "string", None), ("number", "int", "n")]),
    ("SHOW TBLPROPERTIES v", [("a", "b")]),
    ("SHOW VIEWS LIKE 'v'", [("kept", "v", False)]),
    ("SELECT count(*) FROM v", [(20,)]),
    ("INSERT INTO {t} SELECT 20, 's', 1D, NULL", None),
    ("SELECT name FROM v WHERE number = 20", [("s",)]),
    ("CREATE VIEW v AS SELECT * FROM {t}", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    ("CREATE VIEW IF NOT EXISTS v AS SELECT * FROM {t}", []),
    ("CREATE VIEW {t} AS SELECT 1 AS one", "TABLE_(EXISTS|OR_VIEW_ALREADY_EXISTS)"),
    ("CREATE VIEW u AS SELECT id + 1 FROM {t}", "CREATE_PERMANENT_VIEW_WITHOUT_ALIAS"),
    ("CREATE VIEW u AS SELECT nothing FROM {t}", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ("CREATE VIEW u AS SELECT * FROM {t}, nowhere", "TABLE_OR_VIEW_NOT_FOUND"),
    ("CREATE TEMPORARY VIEW temp AS SELECT * FROM {t}", []),
    ("CREATE VIEW u AS SELECT * FROM {t} JOIN temp USING (id)", "INVALID_TEMP_OBJ_REFERENCE"),
    ("CREATE OR REPLACE VIEW v AS SELECT * FROM {t} WHERE id < 3", []),
    ("CREATE VIEW w AS SELECT v.id, temp.s AS s FROM v, {t} temp WHERE v.id = temp.id", []),
    ("CREATE OR REPLACE TEMPORARY VIEW {t} AS SELECT 'other' AS id", []),
    ("SELECT * FROM w", [(0, "s0"), (1, "s1"), (2, "s2")]),
    ("DROP VIEW {t}", []),
    ("CREATE OR REPLACE VIEW v AS SELECT id FROM w", "RECURSIVE_VIEW|INVALID_ARGUMENT"),
    ("ALTER VIEW v AS SELECT * FROM {t} WHERE id = 1", []),
    ("SELECT * FROM w", [(1, "s1")]),
    ("USE default", []),
    ("SELECT w.id, x.s FROM kept.w JOIN kept.w x ON w.id = x.id", [(1, "s1")]),
    ("USE kept", []),
    ("ALTER VIEW w RENAME TO w2", []),
    ("SELECT * FROM w2", [(1, "s1")]),
    ("SHOW VIEWS LIKE 'w*'", [("kept", "w2", False)]),
    ("CREATE TABLE copy USING parquet AS SELECT * FROM w2", []),
    ("INSERT INTO copy TABLE w2", None),
    ("SELECT count(*) FROM copy", [(2,)]),
    ("BEGIN IF (SELECT count(*) FROM v) = 1 THEN SELECT 'one'; END IF; END", [("one",)]),
    ("BEGIN FOR r AS SELECT * FROM v DO SELECT r.id; END FOR; END", [(1,)]),
    ("CREATE TEMPORARY FUNCTION of_view() RETURNS INT RETURN SELECT max(id) + 7 FROM v", []),
    ("SELECT of_view()", [(8,)]),
    ("DROP TEMPORARY FUNCTION of_view", []),
    ("REFRESH TABLE v", []),
    ("INSERT INTO v VALUES (1, 's', 1, NULL)", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    ("DROP VIEW v", []),
    ("SELECT * FROM w2", "TABLE_OR_VIEW_NOT_FOUND"),
    ("DROP VIEW temp", []),
    ("SET spark.sql.ansi.enabled = false", None),
    ("CREATE VIEW loose AS SELECT id, CAST(s AS INT) AS k FROM {t}", []),
    ("SET spark.sql.ansi.enabled = true", None),
    ("SELECT k FROM loose WHERE id = 1", [(None,)]),
    ("CREATE VIEW here AS SELECT CAST(TIMESTAMP '2024-01-01 00:00:00' AS STRING) AS t FROM {t} WHERE id = 1", []),
    ("SET spark.sql.session.timeZone = Asia/Tokyo", None),
    ("SELECT * FROM here", [("2024-01-01 00:00:00",)]),
    ("SET spark.sql.session.timeZone = UTC", None),
]


@pytest.mark.slow
@pytest.mark.parametrize("table", dealt(["pq", "ev"], 0))
def test_statements_about_views_do_what_they_do_over_other_files(sql: Sql, table: str) -> None:
    for step, wanted in STEPS:
        found = _answer(sql, step.format(t=table))
        same = re.match(wanted, found) if isinstance(wanted, str) and isinstance(found, str) else found == wanted
        assert wanted is None or same, (step, found)


def _answer(sql: Sql, text: str) -> Any:
    """The rows of a text, or what its error says."""
    try:
        return sorted(sql(text), key=repr)
    except (AnalysisException, mica.UserError) as e:
        return str(e).lstrip().lstrip("[")


@pytest.mark.slow
def test_a_view_keeps_its_columns_while_its_table_changes(sql: Sql) -> None:
    sql("CREATE VIEW v AS SELECT * FROM ev")
    sql("CREATE VIEW evolves WITH SCHEMA EVOLUTION AS SELECT * FROM ev")
    sql("ALTER TABLE ev ADD COLUMN more INT FIRST")
    assert len(sql("SELECT * FROM v LIMIT 1")[0]) == 4
    assert len(sql("SELECT * FROM evolves LIMIT 1")[0]) == len(sql("DESCRIBE evolves")) == 5
    sql("CREATE OR REPLACE TABLE ev USING mica AS SELECT 1 AS other")
    with pytest.raises(AnalysisException, match="INCOMPATIBLE_VIEW_SCHEMA_CHANGE"):
        sql("SELECT * FROM v")
    assert sql("SELECT * FROM evolves") == [(1,)]
    sql("DROP TABLE ev")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql("SELECT * FROM v")


def test_conditions_reach_the_tables_of_views(sql: Sql, spark: SparkSession) -> None:
    sql("CREATE TABLE parts (id INT, v VARIANT) USING mica PARTITIONED BY (id)")
    sql("INSERT INTO parts SELECT id, parse_json('{\"k\": ' || id || '}') FROM range(5)")
    sql("CREATE VIEW inner_view AS SELECT * FROM parts WHERE id > 0")
    sql("CREATE VIEW outer_view AS SELECT id, v:k::int AS k FROM inner_view")
    explained = str(mica.explain("SELECT k FROM outer_view WHERE id = 3 AND k = 3", spark))
    assert explained.startswith("outer_view.inner_view.parts: ")
    assert re.search(r"files: 1 of 5", explained)
    assert "left to Spark" not in explained
    assert sql("SELECT k FROM outer_view WHERE id = 3 AND k = 3") == [(3,)]


def test_views_name_paths_versions_and_hidden_columns(sql: Sql, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT", data=[{"id": 1}])
    table.append([{"id": 2}])
    sql(f"CREATE VIEW old AS SELECT * FROM delta.`{table.path}` VERSION AS OF 0")
    sql(f"CREATE VIEW files AS SELECT *, _metadata.file_name AS name FROM delta.`{table.path}`")
    assert sql("SELECT * FROM old") == [(1,)]
    assert sql("SELECT id, length(name) > 9 FROM files ORDER BY id") == [(1, True), (2, True)]
    assert sql("SELECT count(*) FROM files JOIN old USING (id)") == [(1,)]


@pytest.mark.slow
def test_a_temporary_view_shows_what_a_stored_one_becomes(sql: Sql) -> None:
    sql("CREATE VIEW v AS SELECT id FROM ev WHERE id > 10")
    sql("CREATE TEMPORARY VIEW counted AS SELECT count(*) AS n FROM v")
    assert sql("SELECT * FROM counted") == [(9,)]
    sql("INSERT INTO ev SELECT 50, 's', 0D, NULL")
    assert sql("SELECT * FROM counted") == [(10,)]
    sql("CREATE OR REPLACE VIEW v AS SELECT id FROM ev")
    assert sql("SELECT * FROM counted") == [(21,)]
    sql("DROP VIEW counted")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM v", "UPDATE v SET id = 1", "OPTIMIZE v", "VACUUM v", "DESCRIBE HISTORY v", "DESCRIBE DETAIL v",
        "FSCK REPAIR TABLE v",
        "MERGE INTO v USING v s ON v.id = s.id WHEN MATCHED THEN DELETE", "RESTORE v TO VERSION AS OF 0",
    ],
)  # fmt: skip
def test_a_view_is_no_table(sql: Sql, text: str) -> None:
    sql("CREATE VIEW v AS SELECT * FROM ev")
    with pytest.raises(mica.UserError, match=r"INVALID_ARGUMENT.* v is a view, and no table"):
        sql(text)


def test_a_table_is_no_view(sql: Sql) -> None:
    for text in ("DROP VIEW ev", "DROP VIEW IF EXISTS kept.ev", "CREATE OR REPLACE VIEW ev AS SELECT 1 AS a"):
        with pytest.raises(mica.UserError, match=r"TABLE_EXISTS.* is the table .*, and no view"):
            sql(text)
    sql("CREATE VIEW v AS SELECT * FROM ev")
    with pytest.raises(mica.UserError, match="TABLE_EXISTS"):
        sql("CREATE TABLE v USING mica AS SELECT 1 AS a")


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE ev RENAME TO v", "ALTER TABLE ev RENAME TO kept.pq", "ALTER VIEW v RENAME TO ev",
        "ALTER VIEW ones RENAME TO ev", "ALTER VIEW ev RENAME TO other",
    ],
)  # fmt: skip
def test_a_name_has_one_meaning(sql: Sql, text: str) -> None:
    sql("CREATE VIEW v AS SELECT * FROM ev")
    sql("CREATE VIEW ones AS SELECT 1 AS one")
    with pytest.raises(mica.UserError, match="TABLE_EXISTS"):
        sql(text)
    assert [len(sql(f"SELECT * FROM {name}")) for name in ("ev", "v", "ones")] == [20, 20, 1]


def test_what_is_there_stays_if_a_statement_says_so(sql: Sql) -> None:
    sql("CREATE VIEW v AS SELECT id FROM ev WHERE id < 5")
    sql("CREATE VIEW IF NOT EXISTS ev AS SELECT 1 AS one")
    for name in ("v", "pq"):
        sql(f"CREATE TABLE IF NOT EXISTS {name} (other INT) USING mica")
    assert [len(sql(f"SELECT id FROM {name}")) for name in ("ev", "v", "pq")] == [20, 5, 20]


@pytest.mark.slow
def test_a_later_view_hides_no_stored_one_from_an_earlier_view(sql: Sql) -> None:
    sql("CREATE VIEW v AS SELECT id FROM ev WHERE id > 10")
    sql("CREATE TEMPORARY VIEW counted AS SELECT count(*) AS n FROM v")
    sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS id")
    try:
        assert sql("SELECT n, id FROM counted, v") == [(9, 1)]
        sql("INSERT INTO ev SELECT 50, 's', 0D, NULL")
        assert sql("SELECT * FROM counted") == [(10,)]
        sql("CREATE OR REPLACE VIEW kept.v AS SELECT id FROM ev WHERE id > 11")
        assert sql("SELECT * FROM counted") == [(9,)]
        sql("DROP VIEW v")
        sql("INSERT INTO ev SELECT 51, 's', 0D, NULL")
        assert sql("SELECT * FROM counted") == [(10,)]
    finally:
        sql("DROP VIEW counted")


@pytest.mark.slow
def test_methods_know_stored_views(sql: Sql, spark: SparkSession) -> None:
    sql("CREATE VIEW v AS SELECT * FROM ev WHERE id >= 10")
    mica.enable(spark)
    try:
        frames: list[DataFrame] = [
            spark.table("v"), spark.table("kept.v"), spark.read.table("v"), spark.sql("TABLE v"),
            spark.range(20).filter("id IN (SELECT id FROM v)"),
        ]  # fmt: skip
        assert [frame.where("id < 15").count() for frame in frames] == [5] * len(frames)
        assert spark.catalog.tableExists("v")
        assert spark.catalog.getTable("v").tableType == "VIEW"
        assert [column.name for column in spark.catalog.listColumns("v")] == ["id", "s", "d", "n"]
        spark.catalog.refreshTable("v")
        spark.catalog.uncacheTable("v")
        assert not spark.catalog.isCached("v")
        with pytest.raises(mica.UserError, match="CACHE TABLE v would hold rows that no query asks for"):
            spark.catalog.cacheTable("v")
    finally:
        mica.disable(spark)


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_views_of_delta_spark_are_read_as_their_tables_are(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, run = delta_session, lambda text: mica.sql(text, delta_session).collect()
    spark.sql("CREATE SCHEMA theirs")
    try:
        spark.sql("CREATE TABLE theirs.t (id INT, v VARIANT) USING delta PARTITIONED BY (id)")
        spark.sql("INSERT INTO theirs.t SELECT id, parse_json('{\"k\": ' || id || '}') FROM range(5)")
        spark.sql("CREATE VIEW theirs.a AS SELECT id, v:k::int AS k FROM theirs.t")
        run("CREATE VIEW theirs.b AS SELECT a.k FROM theirs.a WHERE id > 1")
        mica.register("views_own", mica.Table.create(tmp_path, "id INT", data=[{"id": 3}]).path)
        run("CREATE VIEW theirs.c AS SELECT k FROM theirs.b JOIN views_own ON k = views_own.id")
        assert "files: 1 of 5" in str(mica.explain("SELECT * FROM theirs.a WHERE id = 3", spark))
        assert run("SELECT * FROM theirs.b WHERE k < 4 ORDER BY k") == [(2,), (3,)]
        assert run("SELECT * FROM theirs.c") == [(3,)] == spark.sql("SELECT * FROM theirs.c").collect()
        assert "AS SELECT a.k FROM theirs.a WHERE id > 1" in run("SHOW CREATE TABLE theirs.b")[0][0]
        run("ALTER VIEW theirs.b RENAME TO theirs.d")
        run("DROP VIEW theirs.c")
        assert [name for database, name, _ in run("SHOW VIEWS IN theirs") if database] == ["a", "d"]
    finally:
        spark.sql("DROP SCHEMA theirs CASCADE")


@pytest.mark.slow
def test_spark_is_told_a_view_without_its_database(sql: Sql) -> None:
    sql("CREATE VIEW v AS SELECT * FROM ev")
    made = "CREATE TEMPORARY FUNCTION of_view() RETURNS BIGINT RETURN (SELECT count(*) FROM {v})"
    with pytest.raises(mica.UserError, match="does not know ev in a stored view") as refused:
        sql(made.format(v="kept.v"))
    assert "Name the view without its database" in str(refused.value)
    sql(made.format(v="v"))
    assert sql("SELECT of_view()") == [(20,)]
    sql("DROP TEMPORARY FUNCTION of_view")
