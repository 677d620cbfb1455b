"""`mica.sql`, `register`, `enable` and `disable` on a session: which tables are found, and what their scans skip."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.engines.spark.engine import Spark
from mica.errors import UserError
from mica.format.source import register
from mica.query import select
from mica.query.narrowed import Narrowed
from mica.query.tables import tables_of
from mica.scan import little
from tests.oracle import conf
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """Four files of ten rows, registered as `events`."""
    table = mica.Table.create(tmp_path_factory.mktemp("sql") / "events", "id BIGINT, s STRING, v VARIANT")
    for first in range(0, 40, 10):
        table.append([{"id": i, "s": f"s{i}", "v": {"n": i, "k": "ab"[i % 2]}} for i in range(first, first + 10)])
    mica.register("events", table.path)
    return table


def scans(spark: SparkSession, text: str) -> list[Narrowed]:
    found = tables_of(text, spark)
    assert found is not None
    return select.narrowed(spark, found)


def test_tables_are_named_by_path_by_name_and_in_the_catalog(delta_session: SparkSession, events: mica.Table) -> None:
    spark = delta_session
    spark.sql("CREATE DATABASE IF NOT EXISTS shop")
    spark.sql(f"CREATE TABLE IF NOT EXISTS shop.sales USING delta LOCATION '{events.path}'")
    try:
        for name in (f"delta.`{events.path}`", "EVENTS", "shop.sales", "`shop`.`sales`"):
            text = f"SELECT count(*) FROM {name} WHERE v:n::int >= 30"
            assert mica.sql(text, spark).collect()[0][0] == 10
            assert [scan.scan.kept.num_rows for scan in scans(spark, text)] == [1]
    finally:
        spark.sql("DROP DATABASE shop CASCADE")


def test_each_place_of_a_table_has_its_own_scan(spark: SparkSession, events: mica.Table) -> None:
    text = """
        WITH late AS (SELECT id, v FROM events WHERE v:n::int >= 30)
        SELECT late.id, a.s FROM late JOIN (SELECT * FROM events WHERE id < 35) a ON late.id = a.id
        WHERE late.id > (SELECT min(v:n::int) FROM events WHERE s = 's31')"""
    assert sorted(map(tuple, mica.sql(text, spark).collect())) == [(32, "s32"), (33, "s33"), (34, "s34")]
    found = {scan.columns: scan.scan.kept.num_rows for scan in scans(spark, text)}
    assert found[("variant_get(v, '$.n', 'INT')",)] == 2  # the files of s0 to s9 and of s30 to s39
    assert found[("id",)] == 1


def test_extractions_above_joins_and_aggregates_become_columns_of_the_scan(
    spark: SparkSession, events: mica.Table
) -> None:
    text = (
        "SELECT a.v:k::string AS k, count(DISTINCT a.v:n::int) AS n FROM events a JOIN events b ON a.id = b.id "
        "GROUP BY k ORDER BY k"
    )
    assert list(map(tuple, mica.sql(text, spark).collect())) == [("a", 20), ("b", 20)]
    columns = {name for scan in scans(spark, text) for name in scan.columns}
    assert columns == {"id", "variant_get(v, '$.k', 'STRING')", "try_variant_get(v, '$.n', 'INT')"}


@pytest.mark.slow
def test_a_cast_fails_only_for_a_row_that_spark_casts(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "odd", "id INT, v VARIANT")
    table.append([{"id": i, "v": v} for i, v in enumerate([{"k": "n", "x": 1}, {"k": "s", "x": "one"}, {"k": "n"}])])
    spark.range(3).where("id <> 1").createOrReplaceTempView("others")
    odd = f"delta.`{table.path}`"
    for text, found in (
        (f"SELECT sum(CASE WHEN v:k::string = 'n' THEN v:x::int END) FROM {odd}", [(1,)]),
        (f"SELECT max(v:x::int) FILTER (WHERE v:k::string = 'n') FROM {odd}", [(1,)]),
        (f"SELECT id, v:x::int FROM {odd} JOIN others USING (id) ORDER BY id", [(0, 1), (2, None)]),
        (f"SELECT id FROM {odd} WHERE hash(id) <> hash(1) AND v:x::int > 0", [(0,)]),
        (f"SELECT v:x::int + 1 FROM {odd} LIMIT 1", [(2,)]),
        (f"SELECT v:none::int + v:x::int FROM {odd}", [(None,)] * 3),
        (f"SELECT pmod(v:x::int, if(id = 1, NULL, 5)) FROM {odd} ORDER BY id", [(1,), (None,), (None,)]),
        (f"SELECT first(v:x::int) FROM {odd}", [(1,)]),
        (f"SELECT id IN (1, v:x::int) FROM {odd} ORDER BY id", [(False,), (True,), (None,)]),
    ):
        assert list(map(tuple, mica.sql(text, spark).collect())) == found, text
        assert all("v" not in scan.columns for scan in scans(spark, text)), text
    with pytest.raises(Exception, match=r"INVALID_VARIANT_CAST.*one"):
        mica.sql(f"SELECT id, v:x::int FROM {odd} WHERE hash(id) <> hash(0)", spark).collect()


def test_what_only_spark_can_evaluate_says_so(spark: SparkSession, events: mica.Table) -> None:
    (scan,) = scans(spark, "SELECT id FROM events WHERE id >= 30 AND v:n::int >= 30 AND hash(s) <> 0")
    assert "hash" in scan.left[0][0]
    assert scan.evaluated


def test_parameters(spark: SparkSession, events: mica.Table) -> None:
    # delta-spark 4.4.0's parser loses them in Spark's own queries.
    for text, args in (
        ("SELECT count(*) FROM events WHERE id < :n", {"n": 3}),
        ("SELECT count(*) FROM events WHERE id < ? OR id = ?", [2, 7]),
    ):
        assert mica.sql(text, spark, args).first() == (3,)  # type: ignore[arg-type]


@pytest.mark.slow
def test_parameters_of_statements_and_of_queries(delta_session: SparkSession, tmp_path: Path) -> None:
    # delta-spark's parser loses all of them.
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    mica.Table.create(tmp_path / "t", "id INT, s STRING").append([{"id": i, "s": f"s{i}"} for i in range(5)])
    mica.sql(f"DELETE FROM {t} WHERE id = :i", spark, args={"i": 1})
    mica.sql(f"UPDATE {t} SET s = ? WHERE id = ?", spark, args=["it's", 2])
    mica.sql(f"INSERT INTO {t} SELECT :i, :s", spark, args={"i": 7, "s": None})
    source = "SELECT :i AS id"
    merge = f"MERGE INTO {t} t USING ({source}) u ON t.id = u.id WHEN MATCHED THEN UPDATE SET s = :s"
    mica.sql(merge, spark, args={"i": 3, "s": "m"})
    found = mica.sql(f"SELECT * FROM {t} WHERE id < :most ORDER BY id", spark, args={"most": 7}).collect()
    assert [tuple(row) for row in found] == [(0, "s0"), (2, "it's"), (3, "m"), (4, "s4")]
    assert mica.sql(f"SELECT count(*) FROM {t} WHERE s IS NULL", spark).collect()[0][0] == 1
    with pytest.raises(mica.UserError, match=":nope"):
        mica.sql(f"DELETE FROM {t} WHERE id = :nope", spark, args={"i": 1})


def test_a_cte_and_a_view_of_the_session_hide_nothing_of_ours(spark: SparkSession, events: mica.Table) -> None:
    assert mica.sql("WITH events AS (SELECT 7 AS x) SELECT * FROM events", spark).collect()[0][0] == 7
    spark.range(3).createOrReplaceTempView("few")
    joined = mica.sql("SELECT count(*) FROM events JOIN few USING (id)", spark)
    assert joined.collect()[0][0] == 3
    assert not spark.catalog.tableExists("events")


def test_the_result_is_a_dataframe_like_any_other(spark: SparkSession, events: mica.Table) -> None:
    frame = mica.sql("SELECT id AS Id, v:n::int + 1 AS `n + 1` FROM events", spark)
    assert frame.columns == ["Id", "n + 1"]
    assert frame.where("`n + 1` > 38").groupBy().count().collect()[0][0] == 2


def test_a_limit_reads_no_more_rows(spark: SparkSession, events: mica.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(little, "FEW_FILE_BYTES", 0)  # a large table
    given: list[int] = []
    own = Spark.given
    monkeypatch.setattr(
        Spark, "given", lambda self, rows, schema: given.append(rows.num_rows) or own(self, rows, schema)
    )
    assert len(mica.sql("SELECT * FROM events LIMIT 3", spark).collect()) == 3
    rows = mica.sql("SELECT s, v:n::int AS n FROM events WHERE v:n::int >= 15 LIMIT 7", spark).collect()
    assert len({row.n for row in rows if row.n >= 15}) == 7
    assert len(mica.sql("SELECT id FROM events WHERE hash(id) <> 0 LIMIT 2", spark).collect()) == 2
    assert max(given) < 40
    assert len(given) == 2


def test_enable_and_disable(spark: SparkSession, events: mica.Table) -> None:
    mica.enable(spark)
    try:
        mica.enable(spark)
        assert spark.sql("SELECT max(v:n::int) FROM events").collect()[0][0] == 39
        assert spark.table("events").count() == 40
        assert spark.sql("SELECT 1 AS one").collect()[0].one == 1
        assert spark.sql("SELECT {n} AS n", n=3).collect()[0].n == 3
    finally:
        mica.disable(spark)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM events")


def test_errors_are_sparks_own_and_say_what_is_near(spark: SparkSession, events: mica.Table) -> None:
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        mica.sql("SELECT * FRO events", spark)
    with pytest.raises(Exception, match=r"UNRESOLVED_COLUMN.*`id`"):
        mica.sql("SELECT idd FROM events", spark)
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        mica.sql("SELECT * FROM event", spark)
    assert caught.value.__notes__ == ["mica.register has: events."]
    with pytest.raises(mica.MicaError, match="not a Delta table"):
        mica.sql("SELECT * FROM delta.`/no/such`", spark)


def test_rows_in_groups(spark: SparkSession, events: mica.Table) -> None:
    text = (
        "SELECT v:k::string AS k, count(*), min(v:n::int), count(DISTINCT s) FROM events WHERE v:n::int >= 5 GROUP BY k"
    )
    assert sorted(map(tuple, mica.sql(text, spark).collect())) == [("a", 17, 6, 17), ("b", 18, 5, 18)]
    assert [scan.folded is not None for scan in scans(spark, text)] == [True]
    # Each row counts for itself where Spark filters, or the aggregate takes more than counts and ends.
    for other in (text.replace("count(*)", "sum(v:n::int)"), text.replace("WHERE", "WHERE hash(s) <> 0 AND")):
        assert [scan.folded is not None for scan in scans(spark, other)] == [False]


@pytest.mark.parametrize("kind", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_constant_times_in_zones_of_the_session(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Whether Spark reads them alike is asked of constants that are grouped or compared, whatever TIMESTAMP means."""
    table = mica.Table.create(tmp_path / "t", "ts TIMESTAMP, p TIMESTAMP, v VARIANT", ["p"])
    table.append([{"ts": None, "p": datetime(2024, 3, 31, 1, 30, tzinfo=UTC), "v": {"a": "2024-03-31 01:30:00Z"}}])
    zone = {"spark.sql.session.timeZone": "Europe/Berlin", "spark.sql.timestampType": kind}
    with conf(spark, zone):
        of = f"FROM delta.`{table.path}` WHERE ts IS NULL OR ts <> TIMESTAMP'2024-10-27 02:30:00'"
        for text in (
            f"SELECT max(TIMESTAMP_LTZ'2024-03-31 01:30:00Z') AS m, max(v:a::timestamp_ltz) AS a, max(p) AS p {of}",
            f"SELECT TIMESTAMP_LTZ'2024-03-31 01:30:00Z' AS m, v:a::timestamp_ltz AS a, p {of}",
        ):
            seconds = mica.sql(text, spark).selectExpr("unix_seconds(m)", "unix_seconds(a)", "unix_seconds(p)")
            assert seconds.collect() == [(1711848600,) * 3], text
        assert table.to_df(spark).selectExpr("unix_seconds(p)").collect() == [(1711848600,)]


@pytest.mark.slow
@pytest.mark.parametrize("name", dealt(["événements", "2024", "a b"], 0, 3))
def test_names_that_need_backticks(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Folders whose names are no identifiers of Spark, and columns that are called as words of expressions."""
    words = ["end", "null", "True", "interval", "like", "case"]
    ddl = ", ".join(f"`{word}` INT" for word in words)
    table = mica.Table.create(tmp_path / name, f"{ddl}, v VARIANT", ["null"])
    table.append([dict.fromkeys(words, i) | {"v": {"end": i}} for i in range(4)])
    for word in words:
        text = f"SELECT count(`{word}`), max(v:end::int) FROM delta.`{table.path}` WHERE `{word}` > 1"
        assert mica.sql(text, spark).collect() == [(2, 3)], word
        assert mica.sql(text.replace("max(v:end::int)", "sum(hash(v:end::int)) > 0"), spark).collect()[0][0] == 2
    text = f"SELECT `true`, `null`, v FROM delta.`{table.path}` WHERE v:end::int > 1 ORDER BY `end`"
    assert [row[:2] for row in mica.sql(text, spark).collect()] == [(2, 2), (3, 3)]
    register(spark)
    frame = spark.read.format("mica").option("where", "`null` > 1").load(table.path)
    assert sorted(row[:6] for row in frame.collect()) == [(2,) * 6, (3,) * 6]
    mica.sql(f"UPDATE delta.`{table.path}` SET `null` = `end` + 1, `end` = `null` WHERE `true` = 3", spark)
    assert max(row[:3] for row in mica.Table.open(table.path).to_df(spark).collect()) == (3, 4, 3)


def test_statements_that_the_session_reads_otherwise_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "s STRING")
    table.append([{"s": "s"}, {"s": "\\n"}])
    for setting, where in (
        ("spark.sql.ansi.doubleQuotedIdentifiers", "\"s\" = 's'"),
        ("spark.sql.parser.escapedStringLiterals", "s = '\\n'"),
    ):
        with conf(spark, {setting: "true"}), pytest.raises(UserError, match=setting):
            mica.sql(f"DELETE FROM delta.`{table.path}` WHERE {where}", spark)


def test_fields_of_structs(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "st STRUCT<x: BIGINT, y: STRUCT<z: STRING>>, v VARIANT")
    table.append([{"st": {"x": 1, "y": {"z": "a"}}, "v": {"n": 1}}, {"st": None, "v": {"n": 2}}])
    text = f"SELECT st.y.z, st.x IS NULL AS none FROM delta.`{table.path}` WHERE v:n::int >= 1 ORDER BY none"
    assert list(map(tuple, mica.sql(text, spark).collect())) == [("a", False), (None, True)]
    assert [scan.columns for scan in scans(spark, text)] == [("st.y.z", "st.x IS NULL")]


def test_what_rows_have_beside_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, v VARIANT", properties={"delta.enableRowTracking": "true"})
    for first in (0, 2):
        table.append([{"id": i, "v": {"n": i}} for i in range(first, first + 2)])
    name = f"delta.`{table.path}`"
    files = f"SELECT _metadata.file_name, count(*) FROM {name} GROUP BY ALL"
    assert {tuple(row) for row in mica.sql(files, spark).collect()} == {
        (uri.rpartition("/")[2], 2) for uri in table.scan().file_uris()
    }
    late = f"SELECT t.*, _metadata.row_commit_version AS at FROM {name} t WHERE v:n::int > 0 AND _metadata.row_id < 3"
    assert [(row.id, row.at) for row in mica.sql(f"{late} ORDER BY id", spark).collect()] == [(1, 1), (2, 2)]
    assert [scan.scan.kept.num_rows for scan in scans(spark, late.replace("> 0", "> 1"))] == [1]
    (whole,) = mica.sql(f"SELECT *, _metadata AS m FROM {name} WHERE id = 2", spark).collect()
    assert (whole.m.file_name, whole.m.row_index) == (table.scan("id = 2").file_uris()[0].rpartition("/")[2], 0)
    assert (whole.m.row_id, whole.m.row_commit_version) == (2, 2)
    with pytest.raises(mica.UserError, match="List the columns"):
        mica.sql(f"SELECT * FROM (SELECT *, _metadata.row_id AS r FROM {name})", spark)


def test_names_of_files(spark: SparkSession, events: mica.Table) -> None:
    text = "SELECT DISTINCT input_file_name() FROM events WHERE v:n::int >= 30"
    (name,) = (row[0] for row in mica.sql(text, spark).collect())
    assert name.removeprefix("file://") == events.scan("v:n::int >= 30").file_uris()[0]


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_spark_s_own_statements_over_our_tables(spark: SparkSession, events: mica.Table, tmp_path: Path) -> None:
    try:
        mica.sql("CREATE OR REPLACE TEMPORARY VIEW late (n, k) AS SELECT v:n::int, v:k::string FROM events", spark)
        assert spark.sql("SELECT count(*), max(n) FROM late WHERE k = 'b'").collect()[0] == (20, 39)
        place = f"USING parquet LOCATION '{tmp_path / 'copy'}'"
        mica.sql(f"CREATE TABLE copied {place} AS SELECT id, s FROM events WHERE v:n::int < 2", spark)
        mica.sql("INSERT INTO copied (id) SELECT id FROM events WHERE id = 7;", spark)
        assert sorted(map(tuple, spark.table("copied").collect())) == [(0, "s0"), (1, "s1"), (7, None)]
        mica.sql("INSERT INTO copied BY NAME SELECT 8L AS id, 'x' AS s", spark)
        assert spark.table("copied").count() == 4
        assert not [t for t in spark.catalog.listTables() if t.name.startswith("mica_")]
        text = "SELECT v:n::int, _metadata.file_name, now() FROM events WHERE v:n::int = 7"
        mica.sql(f"CREATE OR REPLACE TEMP VIEW late AS {text}", spark)
        *one, then = mica.sql(text, spark).first() or ()
        *other, later = spark.sql("SELECT * FROM late").first() or ()
        assert (one, one[0], then < later) == (other, 7, True)
    finally:
        spark.catalog.dropTempView("late")
        spark.sql("DROP TABLE IF EXISTS copied")


def test_a_stored_view_has_the_paths_of_its_tables(delta_session: SparkSession, events: mica.Table) -> None:
    text = "CREATE VIEW stored_late (n) AS SELECT id + 1 AS m FROM EVENTS WHERE id >= 38;"
    try:
        mica.sql(text, delta_session)
        assert [row.n for row in delta_session.table("stored_late").orderBy("n").collect()] == [39, 40]
    finally:
        delta_session.sql("DROP VIEW IF EXISTS stored_late")


def test_explain_says_what_each_scan_does(spark: SparkSession, events: mica.Table) -> None:
    text = "SELECT s FROM events WHERE v:n::int >= 30 AND hash(s) <> 0 AND s COLLATE UNICODE_CI = 'S31'"
    (found,) = mica.explain(text, spark).to_dict()["tables"]
    assert found["evaluated"] == ["(variant_get(v, '$.n', 'INT') >= 30)"]
    assert "hash" in found["left"][0]["condition"]
    assert found["columns"] == ["s"]
    assert found["scan"]["files"]["kept"] == 1
    shown = str(mica.explain(text, spark))
    assert "evaluated by the scan: (variant_get(v, '$.n', 'INT') >= 30)" in shown
    assert "left to Spark" in shown


def test_explain_measures(spark: SparkSession, events: mica.Table) -> None:
    found = mica.explain("SELECT count(v:k::string) FROM events WHERE v:n::int < 5", spark, analyze=True)
    (table,) = found.to_dict()["tables"]
    assert table["reader"] == "mica"
    assert table["scan"]["analyze"]["rows"] == 5
    assert [scan.kept.num_rows for scan in found.scans] == [1]


def test_explain_of_no_table_of_ours(spark: SparkSession) -> None:
    with pytest.raises(mica.UserError, match="not a query of a table that mica reads"):
        mica.explain("SELECT 1", spark)


@pytest.mark.slow
def test_time_travel(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    for number in range(3):
        table.append([{"id": number}])
    made = {row["version"]: f"{row['timestamp']:%Y-%m-%d %H:%M:%S.%f}" for row in table.history().to_pylist()}
    t = f"delta.`{table.path}`"
    for as_of in (
        "VERSION AS OF 2",
        f"TIMESTAMP AS OF '{made[2]}'",
        f"FOR SYSTEM_TIME AS OF cast('{made[2]}' AS TIMESTAMP) + INTERVAL 1 MICROSECOND",
    ):
        text = f"SELECT b.id FROM {t} {{}} a RIGHT JOIN {t} b ON a.id = b.id WHERE a.id IS NULL"
        assert mica.sql(text.format(as_of), spark).collect() == spark.sql(text.format("VERSION AS OF 2")).collect()
    mica.sql(f"CREATE OR REPLACE VIEW kept AS SELECT * FROM {t} VERSION AS OF 1", spark)
    try:
        assert spark.sql("SELECT id FROM kept").collect() == [(0,)]
    finally:
        spark.sql("DROP VIEW kept")
    mica.register("travelled", mica.Table.create(tmp_path / "other", "id BIGINT"))
    spark.sql(f"CREATE TABLE past USING delta LOCATION '{table.path}'")
    spark.sql("CREATE DATABASE IF NOT EXISTS times")
    spark.sql(f"CREATE TABLE times.travelled USING delta LOCATION '{table.path}'")
    try:
        for name, as_of in (
            ("past", 'VERSION AS OF "2"'),
            ("times.travelled", f"/* at */ TIMESTAMP AS OF '{made[2]}'"),
        ):
            text = f"SELECT id FROM {name} {as_of} WHERE id >= 0"
            assert sorted(mica.sql(text, spark).collect()) == [(0,), (1,)]
            assert len(scans(spark, text)) == 1
        other = f"SELECT count(*) FROM past TIMESTAMP AS OF '{made[2]}' || '' JOIN past USING (id)"
        assert mica.sql(other, spark).collect() == [(2,)]
        source = "times.travelled VERSION AS OF 1 AS s"
        mica.sql(f"MERGE INTO past t USING {source} ON t.id = s.id WHEN MATCHED THEN DELETE", spark)
        assert sorted(spark.table("past").collect()) == [(1,), (2,)]
    finally:
        spark.sql("DROP TABLE past")
        spark.sql("DROP DATABASE times CASCADE")


def test_columns_and_aliases_called_delta(delta_session: SparkSession, events: mica.Table) -> None:
    spark = delta_session
    spark.sql("CREATE OR REPLACE TEMP VIEW odd AS SELECT 1 AS `my col`, named_struct('x y', 2) AS delta")
    mica.enable(spark)
    try:
        assert spark.sql("SELECT delta.`my col` FROM odd AS delta").collect() == [(1,)]
        assert spark.sql("SELECT odd.delta.`x y` FROM odd").collect() == [(2,)]
        of_path = f"SELECT count(*), max(delta.`id`) FROM spark_catalog.delta.`{events.path}` AS delta"
        assert spark.sql(of_path).collect() == [(40, 39)]
        with pytest.raises(mica.MicaError, match="not a Delta table"):
            spark.sql("SELECT * FROM delta.`/none`")
    finally:
        mica.disable(spark)
        spark.catalog.dropTempView("odd")


@pytest.mark.slow
def test_columns_by_names_of_several_parts(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    for number, database in enumerate(("left_db", "right_db")):
        mica.Table.create(tmp_path / database, "a INT, v VARIANT").append(
            [{"a": i, "v": {"n": number}} for i in (1, 2)]
        )
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
        spark.sql(f"CREATE TABLE {database}.same USING delta LOCATION '{tmp_path / database}'")
    spark.sql("USE left_db")
    try:
        for text in (
            "SELECT right_db.same.v:n::int FROM left_db.same JOIN right_db.same ON left_db.same.a = right_db.same.a",
            "SELECT spark_catalog.right_db.same.a FROM right_db.same WHERE right_db.same.v:n::int = 1 ORDER BY 1",
            "SELECT left_db.same.a, same.v:n::int FROM same WHERE spark_catalog.left_db.same.a = 1",
            "SELECT right_db.same.a FROM right_db.same WHERE right_db.same.a < (SELECT max(a) FROM right_db.same)",
            "SELECT a.a FROM `spark_catalog`.right_db.same a JOIN Spark_Catalog.left_db.`same` b ON a.a = b.a",
            "SELECT a.a FROM right_db.same a JOIN spark_catalog.right_db.same b ON a.a = b.a ORDER BY 1",
        ):
            assert mica.sql(text, spark).collect() == spark.sql(text).collect()
            assert len(scans(spark, text)) == text.count("JOIN") + text.count("(SELECT") + 1
        mica.sql("UPDATE spark_catalog.left_db.same SET a = 3 WHERE a = 2", spark)
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE left_db CASCADE")
        spark.sql("DROP DATABASE right_db CASCADE")


def test_a_database_called_mica_is_sparks(spark: SparkSession) -> None:
    spark.sql("CREATE DATABASE mica")
    try:
        spark.sql("CREATE TABLE mica.t1 (a INT) USING parquet")
        mica.sql("INSERT INTO mica.t1 VALUES (1)", spark)
        mica.sql("ALTER TABLE mica.t1 SET TBLPROPERTIES ('q' = 'r')", spark)
        assert [row.col_name for row in mica.sql("DESC mica.t1", spark).collect()] == ["a"]
        mica.sql("TRUNCATE TABLE mica.t1", spark)
        assert spark.table("mica.t1").count() == 0
    finally:
        spark.sql("DROP DATABASE mica CASCADE")


def test_statements_that_only_spark_knows_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    mica.sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}' USING parquet SELECT 1 AS a", spark)
    assert spark.read.parquet(str(tmp_path)).collect() == [(1,)]
    mica.sql("CREATE OR REPLACE TEMP VIEW seen (z COMMENT 'q') AS SELECT 1 AS a", spark)
    spark.sql("CREATE TABLE history (a INT) USING parquet")
    try:
        assert [row.col_name for row in mica.sql("DESC history", spark).collect()] == ["a"]
        spark.sql("SET said = history")
        assert [row.col_name for row in mica.sql("DESC ${said}", spark).collect()] == ["a"]
    finally:
        spark.sql("DROP TABLE history")
        spark.catalog.dropTempView("seen")


def test_a_restore_to_no_time_is_told(spark: SparkSession, tmp_path: Path) -> None:
    mica.Table.create(tmp_path, "id INT")
    with pytest.raises(mica.UserError, match="TIMESTAMP AS OF must be a time"):
        mica.sql(f"RESTORE mica.`{tmp_path}` TO TIMESTAMP AS OF NULL", spark)


def test_what_is_computed_of_keys_is_computed_of_groups(spark: SparkSession, events: mica.Table) -> None:
    mica.register("computed", events)
    for text in (
        "SELECT CAST(v:n::int AS BIGINT) AS k, count(*) FROM {} GROUP BY v:n::int",
        "SELECT year(d), d, count(*) FROM (SELECT CAST('2024-01-02' AS DATE) + v:n::int AS d FROM {}) GROUP BY d",
    ):
        events.to_df(spark).createOrReplaceTempView("computed_view")
        found, wanted = (mica.sql(text.format("computed"), spark), spark.sql(text.format("computed_view")))
        assert sorted(map(str, found.collect())) == sorted(map(str, wanted.collect()))


def test_rows_of_two_queries_can_be_joined(spark: SparkSession, events: mica.Table) -> None:
    mica.register("twice", events)
    one, other = (mica.sql(f"SELECT v:n::int AS n FROM twice WHERE v:n::int {by} 1", spark) for by in ("<=", ">="))
    assert {row[0] for row in one.join(other, one.n == other.n).select(other.n).collect()} == {1}
    assert one.join(other, one.n < other.n).count() > 0


def test_not_in_a_row_of_literals(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's join of rows without columns would keep it."""
    mica.Table.create(tmp_path / "t", "id BIGINT", data=[{"id": i} for i in (1, 2, 3)])
    mica.register("three", tmp_path / "t")
    for one in ("SELECT 1L", "WITH e AS (SELECT 1L AS id) SELECT id FROM e"):
        found = mica.sql(f"SELECT id FROM three WHERE id NOT IN ({one})", spark).collect()
        assert sorted(row.id for row in found) == [2, 3]


def test_a_path_takes_no_name_that_the_session_has(spark: SparkSession, tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "held", "id BIGINT", data=[{"id": 1}])
    spark.sql("SELECT 100L AS id").createOrReplaceTempView("held")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW over_held AS SELECT id FROM held")
    found = mica.sql(f"SELECT id FROM over_held UNION ALL SELECT id FROM delta.`{tmp_path / 'held'}`", spark)
    assert sorted(row.id for row in found.collect()) == [1, 100]


@pytest.mark.slow
def test_values_of_partition_are_compared_as_they_are_stored(spark: SparkSession, tmp_path: Path) -> None:
    for name, type_, value in (("empty_text", "STRING", ""), ("padded", "CHAR(5)", "ab")):
        mica.Table.create(tmp_path / name, f"id BIGINT, c {type_}", ["c"])
        mica.register(name, tmp_path / name)
        for number in range(3):
            mica.sql(f"INSERT OVERWRITE {name} PARTITION (c = '{value}') SELECT {number}L", spark)
        assert [row["id"] for row in mica.Table.open(tmp_path / name).to_arrow().to_pylist()] == [2]
