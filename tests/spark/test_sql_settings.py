"""Statements through `mica.sql` follow the settings of the session as delta-spark's do, or are refused."""

from __future__ import annotations

import datetime as dt
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import PySparkException

import mica
from tests.oracle import conf
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def pair(tmp_path: Path) -> list[mica.Table]:
    """Two equal tables of twenty rows in two files."""
    tables = [mica.Table.create(tmp_path / name, "id BIGINT, s STRING") for name in ("ours", "theirs")]
    for table in tables:
        for first in (0, 10):
            table.append([{"id": i, "s": f"s{i}"} for i in range(first, first + 10)])
    return tables


def test_a_time_to_restore_is_read_as_that_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    """A session with another TIMESTAMP refused both; a text that is not a time failed without a code."""
    table = mica.Table.create(tmp_path / "t", "id INT")
    zone = ZoneInfo(str(spark.conf.get("spark.sql.session.timeZone")))
    when = table.history().to_pylist()[0]["timestamp"].astimezone(zone).replace(tzinfo=None)
    table.append([{"id": 1}])
    as_of = f"TIMESTAMP AS OF '{when.isoformat(' ', 'milliseconds')}'"
    with conf(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        assert mica.sql(f"SELECT * FROM delta.`{table.path}` {as_of}", spark).count() == 0
        mica.sql(f"RESTORE delta.`{table.path}` TO {as_of} -- empty", spark)
    assert table.refresh().count() == 0
    with conf(spark, {"spark.sql.ansi.enabled": "false"}), pytest.raises(mica.UserError, match="TIMESTAMP AS OF"):
        mica.sql(f"RESTORE delta.`{table.path}` TO TIMESTAMP AS OF 'yesterday''s'", spark)


def test_settings_count_in_every_thread(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's parser evaluates VALUES, without a session in a new thread (as one of dbt) by its defaults: ANSI."""
    table = mica.Table.create(tmp_path / "t", "id INT, d DECIMAL(10, 2)")
    rows = "VALUES (1, CAST('None' AS DECIMAL(10, 2)))"
    texts = (f"INSERT INTO delta.`{table.path}` {rows}", f"BEGIN INSERT INTO delta.`{table.path}` {rows}; END")
    with conf(spark, {"spark.sql.ansi.enabled": "false"}), ThreadPoolExecutor(1) as pool:
        for text in texts:
            pool.submit(lambda text=text: mica.sql(text, spark)).result()
    assert table.refresh().to_arrow().to_pylist() == [{"id": 1, "d": None}] * 2


@pytest.mark.slow
def test_statements_follow_the_settings_of_delta_spark(delta_session: SparkSession, pair: list[mica.Table]) -> None:
    spark, delta, found = delta_session, "spark.databricks.delta.", []
    settings = {f"{delta}schema.autoMerge.enabled": "true", f"{delta}commitInfo.userMetadata": "nightly"}
    with conf(spark, settings):
        for table, run in zip(pair, (lambda text: mica.sql(text, spark), spark.sql), strict=True):
            t = f"delta.`{table.path}`"
            row = f"SELECT id, 'new' AS s, id * 2 AS twice FROM {t}"
            run(f"INSERT INTO {t} {row} WHERE id < 2")
            run(f"""MERGE INTO {t} t USING ({row} WHERE id > 17) s ON t.id = s.id
                WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""")
            run(f"DELETE FROM {t} WHERE id = 5")
            texts = table.refresh().history(3).column("user_metadata").to_pylist()
            found.append((texts, sorted(map(repr, spark.read.format("delta").load(str(table.path)).collect()))))
    assert found[0] == found[1]
    assert (found[0][0], "twice" in found[0][1][0]) == (["nightly"] * 3, True)


@pytest.mark.slow
def test_a_statement_with_a_transaction_happens_once(delta_session: SparkSession, pair: list[mica.Table]) -> None:
    spark, write, found = delta_session, "spark.databricks.delta.write.", []
    for table, run in zip(pair, (lambda text: mica.sql(text, spark), spark.sql), strict=True):
        t, counts = f"delta.`{table.path}`", []
        with conf(spark, {f"{write}txnAppId": "job", f"{write}txnVersion": "7"}):
            for text in (f"INSERT INTO {t} (id) VALUES (99)", f"DELETE FROM {t} WHERE id < 3"):
                run(text)
                counts.append(table.refresh().count())
            spark.conf.set(f"{write}txnVersion", "8")
            spark.conf.set(f"{write}txnVersion.autoReset.enabled", "true")
            run(f"DELETE FROM {t} WHERE id < 3")
            spark.conf.unset(f"{write}txnVersion.autoReset.enabled")
            counts.append((table.refresh().count(), spark.conf.get(f"{write}txnVersion", None)))
            with pytest.raises(Exception, match="txnVersion"):
                run(f"DELETE FROM {t} WHERE id < 3")
        found.append((counts, table.snapshot.app_transactions))
    assert found[0] == found[1] == ([21, 21, (18, None)], {"job": 8})


def test_a_new_table_has_the_defaults_of_the_session(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, prefix, found = delta_session, "spark.databricks.delta.properties.defaults.", []
    settings = {f"{prefix}enableChangeDataFeed": "true", f"{prefix}logRetentionDuration": "interval 9 days"}
    with conf(spark, settings | {f"{prefix}minReaderVersion": "1", f"{prefix}ofAnotherEngine": "true"}):
        for run, source in ((lambda text: mica.sql(text, spark), "mica"), (spark.sql, "delta")):
            place = tmp_path / source
            run(f"""CREATE TABLE delta.`{place}` (id INT) USING {source}
                TBLPROPERTIES ('delta.logRetentionDuration' = 'interval 40 days')""")
            found.append(dict(mica.Table.open(place).properties))
    assert found[0] == found[1]
    assert found[0] == {"delta.enableChangeDataFeed": "true", "delta.logRetentionDuration": "interval 40 days"}


@pytest.mark.slow
def test_a_converted_table_follows_the_session(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, delta, found = delta_session, "spark.databricks.delta.", []
    settings = {
        f"{delta}properties.defaults.enableChangeDataFeed": "true",
        f"{delta}commitInfo.userMetadata": "nightly",
    }
    with conf(spark, settings):
        for run, source in ((lambda text: mica.sql(text, spark), "mica"), (spark.sql, "delta")):
            place = tmp_path / source
            spark.range(3).write.parquet(str(place))
            run(f"CONVERT TO DELTA parquet.`{place}`")
            table = mica.Table.open(place)
            found.append(
                (table.properties.get("delta.enableChangeDataFeed"), table.history()["user_metadata"][0].as_py())
            )
    assert found[0] == found[1] == ("true", "nightly")
    with (
        conf(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}),
        pytest.raises(mica.UserError, match="timestampType"),
    ):
        mica.sql(f"CONVERT TO DELTA parquet.`{tmp_path}/other` PARTITIONED BY (t TIMESTAMP)", spark)


def test_what_the_session_reads_otherwise_than_mica_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    place = f"delta.`{tmp_path}/t`"
    mica.sql(f"CREATE TABLE {place} (id INT, ts TIMESTAMP) USING mica", spark)
    with conf(spark, {"spark.sql.timestampType": "TIMESTAMP_NTZ"}):
        for text in (
            f"CREATE TABLE delta.`{tmp_path}/other` (ts TIMESTAMP) USING mica",
            f"UPDATE {place} SET ts = CAST('2026-01-01 00:00:00Z' AS TIMESTAMP)",
            f"DELETE FROM {place} WHERE ts > to_timestamp('2026-01-01 00:00:00Z')",
            f"DELETE FROM {place} WHERE ts > TIMESTAMP'2026-01-01'",
        ):
            with pytest.raises(mica.MicaError, match="timestampType") as raised:
                mica.sql(text, spark)
            assert raised.value.code == "UNSUPPORTED_EXPRESSION"
        mica.sql(f"CREATE TABLE delta.`{tmp_path}/other` (ts TIMESTAMP_NTZ) USING mica", spark)
        mica.sql(f"INSERT INTO {place} SELECT 1, CAST('2026-01-01' AS TIMESTAMP)", spark)
        mica.sql(f"INSERT INTO {place} SELECT 2, '2025-12-31 22:00:00-02:00'", spark)  # a text keeps its zone
        done = mica.sql(f"DELETE FROM {place} WHERE ts = TIMESTAMP'2026-01-01 00:00:00Z'", spark)
    assert done.collect()[0].num_affected_rows == 2
    with conf(spark, {"spark.sql.decimalOperations.allowPrecisionLoss": "false"}):
        with pytest.raises(mica.MicaError, match="allowPrecisionLoss"):
            mica.sql(f"UPDATE {place} SET id = id * 2", spark)
        mica.sql(f"UPDATE {place} SET id = -1, ts = TIMESTAMP'2026-01-01'", spark)
        mica.sql(f"INSERT INTO {place} SELECT 2 * 2, NULL", spark)
    with conf(spark, {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}):
        mica.sql(f"""INSERT INTO {place} SELECT parse_json('{{"a":7}}'):a::int, NULL""", spark)
        with pytest.raises(mica.MicaError, match="doubleQuotedIdentifiers"):
            mica.sql(
                f"""DELETE FROM {place} -- it's a name
                WHERE "id" <> 'id'""",
                spark,
            )
    with pytest.raises(mica.MicaError, match="the retention is 0 hours"):
        mica.sql(f"VACUUM {place} RETAIN 0 HOURS", spark)
    with conf(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        assert mica.sql(f"VACUUM {place} RETAIN 0 HOURS", spark).count()
    with conf(spark, {"spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true"}):
        with pytest.raises(mica.MicaError, match="exponentLiteralAsDecimal"):
            mica.sql(f"DELETE FROM {place} WHERE id > 1e2", spark)
        mica.sql(f"DELETE FROM {place} WHERE id > 1e2D", spark)


@pytest.mark.parametrize(
    ("setting", "value", "refused", "same"),
    [
        ("legacy.timeParserPolicy", "LEGACY", "DELETE FROM t WHERE try_to_date(s, 'yyyy-MM-dd') = DATE'2024-01-05'",
         "DELETE FROM t WHERE to_date(s) = DATE'2024-01-05'"),
        ("legacy.consecutiveStringLiterals.enabled", "true", "DELETE FROM t WHERE s = 'a''b'",
         "UPDATE t SET s = '' WHERE s = 'a' 'b' OR s = ''"),
        ("storeAssignmentPolicy", "STRICT", "INSERT INTO t (id) SELECT 7L", "DELETE FROM t WHERE id = 7"),
        ("storeAssignmentPolicy", "LEGACY", "UPDATE t SET id = '7'", "OPTIMIZE t "),
        ("storeAssignmentPolicy", "STRICT", "WITH q AS (SELECT 7L AS i) INSERT INTO t (id) SELECT i FROM q",
         "DELETE FROM t WHERE id IN (SELECT 7)"),
        ("legacy.charVarcharAsString", "true", "DELETE FROM t WHERE c LIKE 'x'", "INSERT INTO t (c) VALUES ('x')"),
        ("readSideCharPadding", "false", "UPDATE t SET id = 2 WHERE c LIKE 'x'", "INSERT OVERWRITE t (c) VALUES ('x')"),
        ("readSideCharPadding", "false", "INSERT INTO t REPLACE WHERE c LIKE 'x' TABLE t", "OPTIMIZE t "),
        ("charAsVarchar", "true", "ALTER TABLE t ADD COLUMNS (n CHARACTER(2))", "INSERT INTO t (s) SELECT char(65)"),
        ("charAsVarchar", "true", "REPLACE TABLE t (n CHAR(2)) USING mica", "REPLACE TABLE t (n INT) USING mica"),
        ("timestampType", "TIMESTAMP_NTZ", "UPDATE t SET s = CAST('2026-01-01' AS TIMESTAMP)",
         "WITH q AS (SELECT CAST('2026-01-01' AS TIMESTAMP) AS i) INSERT INTO t (s) SELECT i FROM q"),
        ("legacy.literal.pickMinimumPrecision", "false", "UPDATE t SET s = CAST(id AS DECIMAL(38, 10)) * 2",
         "UPDATE t SET s = CAST(id AS DECIMAL(38, 10)) * 2.0 WHERE id = -1"),
        ("legacy.interval.enabled", "true", "UPDATE t SET s = TIMESTAMP_LTZ'2026-03-28 12:00:00' + INTERVAL 25 HOURS",
         "WITH q AS (SELECT date_add(now(), 1) - INTERVAL 1 DAY AS i) INSERT INTO t (s) SELECT i FROM q"),
        ("chunkBase64String.enabled", "false", "DELETE FROM t WHERE length(base64(s)) > 76",
         "WITH q AS (SELECT base64('x') AS i) INSERT INTO t (s) SELECT i FROM q"),
        ("variant.allowDuplicateKeys", "true", "UPDATE t SET v = try_parse_json(s)",
         "WITH q AS (SELECT parse_json('{}') AS i) INSERT INTO t (v) SELECT i FROM q"),
        ("caseSensitive", "true", "UPDATE t SET S = 'x' WHERE id = 1", "UPDATE t SET s = 'x' WHERE id = 1"),
        ("caseSensitive", "true", "DELETE FROM t WHERE st.X = 1", "DELETE FROM t WHERE st.x = 1 AND v:X::int = 1"),
        ("caseSensitive", "true", "INSERT INTO t (ID) VALUES (1)", "INSERT INTO t (id) VALUES (1)"),
        ("caseSensitive", "true",
         "MERGE INTO t t USING (SELECT 1 AS ID) s ON t.id = s.ID WHEN MATCHED THEN UPDATE SET S = 'x'",
         "MERGE INTO t t USING (SELECT 1 AS ID) s ON t.id = s.ID WHEN MATCHED THEN UPDATE SET s = 'x'"),
        ("caseSensitive", "true", "ALTER TABLE t ADD CONSTRAINT c CHECK (ID > 0)",
         "ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0)"),
        ("caseSensitive", "true", "ALTER TABLE t ALTER COLUMN ID COMMENT 'x'",
         "ALTER TABLE t ALTER COLUMN id COMMENT 'x'"),
        ("caseSensitive", "true", "ALTER TABLE t ALTER COLUMN st.y AFTER X", "ALTER TABLE t ALTER COLUMN st.y FIRST"),
        ("caseSensitive", "true", "ALTER TABLE t ADD COLUMNS (l.element.n INT AFTER W)",
         "ALTER TABLE t ADD COLUMNS (ID2 INT AFTER id, st.z INT AFTER x, l.element.n INT AFTER w)"),
        ("caseSensitive", "true", "ALTER TABLE t CLUSTER BY (ID)", "ALTER TABLE t CLUSTER BY (id)"),
        ("caseSensitive", "true", "OPTIMIZE t ZORDER BY (ID)", "OPTIMIZE t ZORDER BY (id)"),
        ("caseSensitive", "true", "CREATE TABLE t2 (g INT GENERATED ALWAYS AS (ID + 1), id INT) USING mica",
         "CREATE TABLE t2 (g INT GENERATED ALWAYS AS (id + 1), id INT) USING mica"),
        ("caseSensitive", "true", "CREATE TABLE t2 (id INT, p INT) USING mica PARTITIONED BY (P)",
         "CREATE TABLE t2 (id INT, p INT) USING mica PARTITIONED BY (p)"),
        ("caseSensitive", "true", "CREATE TABLE t2 (id INT, s STRUCT<x: INT>) USING mica CLUSTER BY (s.X)",
         "CREATE TABLE t2 (id INT, s STRUCT<x: INT>) USING mica CLUSTER BY (s.x)"),
    ],
)  # fmt: skip
def test_settings_that_mica_does_not_follow_are_named(
    spark: SparkSession, tmp_path: Path, setting: str, value: str, refused: str, same: str
) -> None:
    ddl = "id INT, s STRING, st STRUCT<x: INT, y: INT>, v VARIANT, c CHAR(4), l ARRAY<STRUCT<w: INT>>"
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append([{"id": 1, "s": "2024-01-05"}])

    def run(text: str) -> None:
        for name in ("t", "t2"):
            text = text.replace(f" {name} ", f" delta.`{tmp_path / name}` ", 1)
        mica.sql(text, spark)

    with conf(spark, {f"spark.sql.{setting}": value}):
        with pytest.raises(mica.UserError, match=setting):
            run(refused)
        run(same)


@pytest.mark.parametrize(
    ("setting", "value", "refused", "same"),
    [
        ("legacy.sizeOfNull", "false", "size(l) = -1", "l IS NULL"),
        (
            "legacy.typeCoercion.datetimeToString.enabled",
            "true",
            "d = '2024-1-5'",
            "d = DATE'2024-01-05' AND l IS NULL",
        ),
        ("legacy.typeCoercion.datetimeToString.enabled", "true", "d < s OR s = '7'", "d = DATE '2024-1-5'"),
    ],
)
def test_what_settings_mean_without_ansi_is_named(
    spark: SparkSession, tmp_path: Path, setting: str, value: str, refused: str, same: str
) -> None:
    mica.Table.create(tmp_path, "d DATE, s STRING, l ARRAY<INT>").append([{"d": dt.date(2024, 1, 5)}])
    delete = f"DELETE FROM delta.`{tmp_path}` WHERE"
    with conf(spark, {f"spark.sql.{setting}": value}):
        mica.sql(f"{delete} {refused} AND false", spark)  # ANSI is on: it says nothing
        with conf(spark, {"spark.sql.ansi.enabled": "false"}):
            with pytest.raises(mica.UserError, match=setting):
                mica.sql(f"{delete} {refused}", spark)
            assert mica.sql(f"{delete} {same}", spark).collect()[0].num_affected_rows == 1


#: Names, and what Spark puts in their places.
VARIABLES = {"who": "it", "deep": "${who}-${spark:who}", "spark.own": "mine"}
PLACES = ["${who}", "${deep}", "${hiveconf:who}", "${spark.own}", "${nobody}", "${system:mica.none}", "${x:who}",
          "${who"]  # fmt: skip


@pytest.mark.slow
def test_variables_have_their_values_in_statements(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, found = delta_session, []
    with conf(spark, {**VARIABLES, "place": f"{tmp_path}/ours"}):
        for name, run in (("ours", lambda text, **args: mica.sql(text, spark, **args)), ("theirs", spark.sql)):
            table = mica.Table.create(tmp_path / name, "id INT, s STRING")
            table.append([{"id": 1, "s": "it"}, {"id": 2, "s": "${who}"}])
            values = ", ".join(f"(3, '{place}')" for place in PLACES)
            run(f"INSERT INTO delta.`{tmp_path / name}` VALUES {values} -- ${{who}}")
            twice = " ".join(f"WHEN '{place}' THEN concat(s, '{place}')" for place in PLACES)
            run(f"UPDATE delta.`{tmp_path / name}` SET s = CASE s {twice} ELSE s END")
            run(f"DELETE FROM delta.`{tmp_path / name}` WHERE s = '${{system:java.io.tmpdir}}' OR id = ${{nobody}} 1")
            found.append(sorted(mica.Table.open(tmp_path / name).to_arrow().column("s").to_pylist()))
        assert found[0] == found[1]
        assert "itit" in found[0]
        count = "SELECT count(*) FROM delta.`${place}` WHERE s = "
        assert mica.sql(f"{count}'mine' OR s = 'minemine'", spark).collect()[0][0] == 1
        assert mica.explain(f"{count}'${{spark.own}}'", spark).to_dict()["tables"][0]["table"] == f"{tmp_path}/ours"
        # What is given as a value is no text of Spark's.
        mica.sql("UPDATE delta.`${place}` SET s = :s WHERE id = 2", spark, {"s": "${who}"})
        assert mica.sql(f"{count}:s", spark, {"s": "${who}"}).collect()[0][0] == 1
    with conf(spark, {"a": "${b}", "b": "${a}"}), pytest.raises(mica.UserError, match="itself"):
        mica.sql(f"DELETE FROM delta.`{tmp_path}/ours` WHERE s = '${{a}}'", spark)
    with conf(spark, {"who": "it", "spark.sql.variable.substitute": "false"}):
        done = mica.sql(f"DELETE FROM delta.`{tmp_path}/ours` WHERE s = '${{who}}'", spark)
        assert done.collect()[0].num_affected_rows == 1


@pytest.mark.slow
def test_a_text_has_the_current_catalog_and_the_variables_of_the_session(
    delta_session: SparkSession, tmp_path: Path
) -> None:
    spark, read = delta_session, lambda text: sorted(map(tuple, mica.sql(text, delta_session).collect()))
    mica.Table.create(tmp_path / "t", "a INT, v VARIANT").append([{"a": n, "v": {"n": n}} for n in (1, 2, 3)])
    spark.sql(f"CREATE TABLE here USING delta LOCATION '{tmp_path / 't'}'")
    spark.sql("DECLARE OR REPLACE VARIABLE least INT DEFAULT 2")
    catalog, derby = "spark.sql.catalog.derby", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    url = {".url": f"jdbc:derby:{tmp_path}/derby;create=true", ".driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    try:
        assert read("SELECT a, session.least FROM here WHERE v:n::int > Least") == [(3, 2)]
        assert read("SELECT least.a, `least` FROM here AS least WHERE a = 1") == [(1, 2)]
        spark.sql("CREATE OR REPLACE TEMP VIEW lowest AS SELECT least AS n")
        assert read("SELECT a FROM here JOIN lowest ON a = n") == [(2,)]
        mica.sql("UPDATE here SET a = a * 10 + least WHERE v:n::int > `Least`", spark)
        assert read("SELECT a FROM here") == [(1,), (2,), (32,)]
        on = "ON here.a = q.a AND q.a > least WHEN MATCHED AND here.a > least THEN UPDATE SET a = q.a + Least"
        mica.sql(f"MERGE INTO here USING (SELECT a, 1 AS one FROM here) q {on}", spark)
        named = mica.Table.create(tmp_path / "s", "session STRUCT<least: INT>, a INT")
        named.append([{"session": {"least": 1}, "a": 5}])
        mica.sql(f"DELETE FROM delta.`{tmp_path / 's'}` WHERE session.least = 2 OR a < least", spark)
        mica.sql(f"INSERT INTO delta.`{tmp_path / 's'}` REPLACE WHERE a = least + 3 SELECT NULL, 5", spark)
        assert named.refresh().to_arrow().to_pylist() == [{"session": None, "a": 5}]
        mica.sql("DELETE FROM here WHERE a = 30 + least + session.Least", spark)
        spark.sql("DECLARE OR REPLACE VARIABLE date DATE DEFAULT DATE'2020-01-01'")
        mica.sql("DELETE FROM here WHERE date > DATE '2020-01-01' OR CAST('2020-01-01' AS DATE) > `date`", spark)
        mica.sql("WITH q AS (SELECT a + 1 AS b FROM here) DELETE FROM here WHERE a IN (SELECT b FROM q)", spark)
        mica.sql("WITH q AS (SELECT 2 AS b) UPDATE here SET a = a * (SELECT b FROM q) WHERE a < 0", spark)
        mica.sql("INSERT INTO here SELECT 2, parse_json('{\"n\":2}')", spark)
        assert read("SELECT a FROM here") == [(1,), (2,)]
        mica.sql("INSERT INTO here SELECT least + 1, parse_json('{\"n\":3}')", spark)
        with conf(spark, {catalog: derby, **{catalog + key: value for key, value in url.items()}}):
            spark.sql("CREATE NAMESPACE derby.default")
            spark.sql("CREATE TABLE derby.default.here (a INT)")
            spark.sql("USE derby.default")
            assert read("SELECT a FROM here") == read("SELECT a FROM default.here") == []
            text = "SELECT b.v:n::int, current_catalog() FROM here RIGHT JOIN spark_catalog.default.here b ON b.a < 0"
            assert read(text) == [(n, "derby") for n in (1, 2, 3)]
            spark.sql("USE spark_catalog.default")
    finally:
        spark.sql("USE spark_catalog.default")
        spark.sql("DROP TABLE here")
        spark.sql("DROP TEMPORARY VARIABLE least")
        spark.sql("DROP TEMPORARY VARIABLE IF EXISTS date")
        spark.catalog.dropTempView("lowest")


#: Values of PARTITION that their columns can hold, and some that they cannot: without ANSI casts make these null.
HELD = {"d": "'2024-1-31'", "i": "' 7 '", "n": "1.239", "b": "NULL", "s": "'it\\'s\\n'", "x": "0.1",
        "ts": "'2024-01-01 00:00:00'", "y": "X'4142'"}  # fmt: skip
TYPES = "d DATE, i INT, n DECIMAL(5,2), b BOOLEAN, s STRING, x FLOAT, ts TIMESTAMP, y BINARY"
NOT_HELD = [
    ("d", "'2024-02-30'"), ("i", "3000000000"), ("i", "'x'"), ("i", "1.7"), ("i", "'1.7'"), ("i", "''"),
    ("n", "100000"), ("b", "'no way'"), ("x", "'1,5'"), ("ts", "'2024-01-01 25:00:00'"),
]  # fmt: skip


@pytest.mark.slow
def test_a_value_that_a_partition_cannot_hold_is_never_null(delta_session: SparkSession, tmp_path: Path) -> None:
    found = []
    with conf(delta_session, {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}):
        for name, run in (("ours", lambda text: mica.sql(text, delta_session)), ("theirs", delta_session.sql)):
            table = mica.Table.create(tmp_path / name, f"id INT, {TYPES}", [*HELD], data=[{"id": 1}])

            def text(verb: str, column: str = "", value: str = "", place: str = table.path) -> str:
                values = ", ".join(f"{n} = {value if n == column else v}" for n, v in HELD.items())
                return f"INSERT {verb} delta.`{place}` PARTITION ({values}) SELECT 2"

            run(text("INTO"))
            run(text("OVERWRITE"))
            for column, value in NOT_HELD:
                with pytest.raises((mica.UserError, PySparkException), match=r"CAST|OUT_OF_RANGE"):
                    run(text("OVERWRITE", column, value))
            found.append(sorted(table.refresh().to_arrow().to_pylist(), key=str))
    assert found[0] == found[1]
    assert [row["id"] for row in found[0]] == [1, 2]


CAST_WITHOUT_ANSI = [
    {"i": "' 12 '", "n": "'7.774'", "b": "'yes'", "x": "'1.5'", "d": "'2024-1-2'", "ts": "'2024-01-01'", "y": "'a'"},
    {"i": "TIMESTAMP'2024-01-01 00:00:00'", "n": "false", "b": "0", "ts": "5", "s": "array(1, NULL)"},
    {"i": "parse_json('5')", "n": "'7'", "s": "named_struct('a', 1)"},
    {"i": "true", "x": "true", "s": "X'4142'"},
    {"i": "CAST(NULL AS STRING)", "s": "parse_json('[1]')"},
    {"i": "parse_json('null')", "n": "INTERVAL '3' DAY", "s": "INTERVAL '14' MONTH", "y": "'a' COLLATE UTF8_LCASE"},
]


@pytest.mark.slow
def test_without_ansi_an_insert_casts_whole_values_and_makes_none_null(
    delta_session: SparkSession, tmp_path: Path
) -> None:
    found, given = [], dealt(CAST_WITHOUT_ANSI, 0)
    with conf(delta_session, {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Asia/Tokyo"}):
        for name, run in (("theirs", delta_session.sql), ("ours", lambda text: mica.sql(text, delta_session))):
            table = mica.Table.create(tmp_path / name, f"id INT, {TYPES}")
            insert = f"INSERT INTO delta.`{table.path}` (id, {{}}) SELECT id, {{}} FROM range(2)"
            for row in given:
                run(insert.format(", ".join(row), ", ".join(row.values())))
            found.append(sorted(table.refresh().to_arrow().to_pylist(), key=str))
        for column, value in NOT_HELD:
            if value != "1.7":  # a number loses its fraction
                with pytest.raises(mica.MicaError, match=r"CAST|cannot be cast to|does not fit"):
                    run(insert.format(column, value))
    assert found[0] == found[1] == sorted(table.refresh().to_arrow().to_pylist(), key=str)
    assert len(found[0]) == 2 * len(given)


@pytest.mark.slow
def test_an_insert_casts_intervals_and_variants_to_what_delta_spark_does(
    delta_session: SparkSession, tmp_path: Path
) -> None:
    found = []
    for name, run in (("theirs", delta_session.sql), ("ours", lambda text: mica.sql(text, delta_session))):
        ddl = "i INT, s STRING, l ARRAY<INT>, r STRUCT<a: INT, b: STRING>, m MAP<STRING, INT>, y BINARY, v VARIANT"
        table = mica.Table.create(tmp_path / name, ddl)
        t = f"delta.`{table.path}`"
        rest = "parse_json('[1, null]'), parse_json('{\"b\": \"x\"}'), parse_json('{\"k\": 2}')"
        run(f"INSERT INTO {t} SELECT INTERVAL '7' MONTH, INTERVAL '1' DAY, {rest}, 'a' COLLATE UTF8_LCASE, X'41'")
        if name == "ours":  # as UPDATE and MERGE do
            run(f"UPDATE {t} SET i = INTERVAL '7' MONTH, l = parse_json('[1, null]')")
        columns = {**{name: name for name in "islrmy"}, "v": "cast(v AS BINARY)"}
        found.append(table.refresh().scan(columns=columns).to_arrow().to_pylist())
    assert found[0] == found[1]
    with pytest.raises(Exception, match="INVALID_VARIANT_CAST"):
        run(f"INSERT INTO {t} (l) SELECT parse_json('[\"x\"]')")


@pytest.mark.slow
def test_writers_by_a_name_refuse_casts_of_another_policy(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "i INT")
    mica.register("other_policy", tmp_path)
    session = mica.enable(spark.newSession())
    try:
        session.conf.set("spark.sql.storeAssignmentPolicy", "STRICT")
        for value in ("1.5D", "1L"):
            rows = session.sql(f"SELECT {value} AS i")
            for write in (
                rows.writeTo("other_policy").append,
                partial(rows.write.mode("append").saveAsTable, "other_policy"),
            ):
                with pytest.raises(mica.UserError, match="storeAssignmentPolicy"):
                    write()
        session.sql("SELECT 1 AS i").writeTo("other_policy").append()
    finally:
        mica.disable(session)
    assert table.refresh().to_arrow().to_pylist() == [{"i": 1}]


@pytest.mark.slow
def test_upkeep_has_the_zone_of_the_session(delta_session: SparkSession, tmp_path: Path) -> None:
    """Of two equal tables, with partitions that old writers of Delta spell without a zone."""
    spark, found, old = delta_session, [], "spark.databricks.delta.write.utcTimestampPartitionValues"
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Tokyo", old: "false"}):
        made = f"delta.`{tmp_path / 'made'}`"
        spark.sql(f"CREATE TABLE {made} (id INT, at TIMESTAMP, ts TIMESTAMP) USING delta PARTITIONED BY (ts)")
        for number in (0, 2):
            days = [
                f"({number + day}, TIMESTAMP'2020-01-01 05:00:00', TIMESTAMP'2020-01-0{1 + day} 00:00:00')"
                for day in (0, 1)
            ]
            spark.sql(f"INSERT INTO {made} VALUES {', '.join(days)}")
        for name, run in (("ours", lambda text: mica.sql(text, spark)), ("theirs", spark.sql)):
            t, seen = f"delta.`{tmp_path / name}`", []
            shutil.copytree(tmp_path / "made", tmp_path / name)
            seen.append(sorted(map(str, run(f"SHOW PARTITIONS {t}").toArrow().column(0).to_pylist())))
            run(f"OPTIMIZE {t} WHERE ts = TIMESTAMP'2020-01-01 00:00:00'")
            seen.append(len(mica.Table.open(tmp_path / name).file_uris()))
            run(f"OPTIMIZE {t}")
            seen.append(sorted(map(tuple, spark.sql(f"SELECT id, CAST(ts AS STRING) FROM {t}").collect())))
            run(f"ALTER TABLE {t} ADD CONSTRAINT early CHECK (hour(at) = 5)")
            with pytest.raises(Exception, match=r"CONSTRAINT_VIOLATED|DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"):
                run(f"ALTER TABLE {t} ADD CONSTRAINT late CHECK (hour(at) = 20)")
            found.append(seen)
    assert found[0] == found[1]


def test_rules_are_judged_as_the_session_evaluates_them(spark: SparkSession, tmp_path: Path) -> None:
    t = f"delta.`{tmp_path}`"
    ddl = "i INT, s STRING DEFAULT CAST(CAST('x' AS INT) AS STRING), g STRING GENERATED ALWAYS AS (coalesce(i, s))"
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        mica.sql(f"CREATE TABLE {t} ({ddl}) USING mica", spark)
        mica.sql(f"ALTER TABLE {t} ADD CONSTRAINT c CHECK (coalesce(i, s) = 'x')", spark)
        mica.sql(f"ALTER TABLE {t} ALTER COLUMN s SET DEFAULT CAST(CAST('y' AS INT) AS STRING)", spark)
        mica.sql(f"INSERT INTO {t} (i, s) VALUES (NULL, 'x')", spark)
        mica.sql(f"CREATE OR REPLACE TABLE {t} (i INT, s STRING) USING mica", spark)
        assert "delta.constraints.c" not in mica.Table.open(tmp_path).properties  # as in delta-spark
        with pytest.raises(mica.UserError, match="TYPE_MISMATCH"):
            mica.sql(f"CREATE OR REPLACE TABLE {t} ({ddl.replace('g STRING', 'g BIGINT')}) USING mica", spark)
