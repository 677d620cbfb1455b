"""Statements through `mica.sql` do what delta-spark does with the same text."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.errors import PySparkException

import mica
from mica.engines.spark import engine
from mica.log.transaction import Transaction
from mica.query.optimized import FORMER
from mica.schema.ddl import parse_ddl
from tests.oracle import RUNS
from tests.support import dealt, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Who runs a statement, each on a table of its own.
#: Each is run on two equal tables, by mica and by delta-spark; `{t}` is the table.
STATEMENTS = [
    "DELETE FROM {t} WHERE id % 5 = 0 AND s IS NOT NULL",
    "UPDATE {t} x SET s = concat(x.s, '!'), n = n + 1 WHERE x.id > 15",
    "INSERT INTO {t} VALUES (100, 'new', 1, NULL), (101, NULL, 2, NULL)",
    "INSERT INTO {t} (n, id) SELECT n, id + 1000 FROM {t} WHERE id < 3",
    """MERGE INTO {t} t USING (SELECT id + 5 AS id, s, n, p FROM {t}) s ON t.id = s.id
       WHEN MATCHED AND s.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET s = s.s WHEN NOT MATCHED THEN INSERT *""",
    "UPDATE {t} SET n = 7L, s = 5 WHERE id = 1",
    "INSERT INTO {t} VALUES (200, DEFAULT, DEFAULT, NULL), (month(DATE'2020-01-02'), 'q', 3, DEFAULT)",
    "INSERT INTO {t} SELECT id + 700, DEFAULT, DEFAULT, p FROM {t} WHERE id < 2",
    "INSERT INTO {t} (n, id) SELECT default, id FROM range(800, 802) ORDER BY id LIMIT 1",
    "INSERT INTO {t} (n, id) SELECT DEFAULT, id + 900 FROM (SELECT 5 AS default, 1 AS id)",
    "INSERT INTO {t} BY NAME SELECT 7.6D AS n, id + 300 AS id FROM range(2)",
    "INSERT INTO {t} (id, p) SELECT 400, named_struct('b', 1.26, 'a', array())",
    "INSERT INTO {t} VALUES (500, 's', 1, named_struct('a', 1, 'b', array(1))), (501, 's', 1, NULL)",
    "INSERT INTO {t} (id, n, s) VALUES ('600', '7', 'texts')",
    "INSERT INTO {t} BY NAME SELECT '7' AS n, '601' AS id",
    "OPTIMIZE {t}",
    "INSERT OVERWRITE {t} SELECT id, s, n, p FROM {t} WHERE id < 10 OR id >= 200",
]


@pytest.fixture
def pair(tmp_path: Path) -> list[mica.Table]:
    """Two equal tables."""
    found = []
    for name in ("ours", "theirs"):
        ddl = "id BIGINT, s STRING, n INT DEFAULT 1 + 1, p STRUCT<a: DECIMAL(3,1), b: ARRAY<INT>>"
        table = mica.Table.create(tmp_path / name, ddl)
        for first in (0, 10):
            table.append([{"id": i, "s": f"s{i}" if i % 4 else None, "n": i % 3} for i in range(first, first + 10)])
        found.append(table)
    return found


@pytest.mark.slow
def test_statements_in_a_row(delta_session: SparkSession, pair: list[mica.Table]) -> None:
    spark = delta_session
    ours, theirs = (f"delta.`{table.path}`" for table in pair)
    for text in STATEMENTS:
        frames = mica.sql(text.format(t=ours), spark), spark.sql(text.format(t=theirs))
        done, expected = (frame.collect() for frame in frames)
        if text.startswith(("DELETE", "UPDATE", "MERGE")):
            assert done[0].num_affected_rows == expected[0].num_affected_rows, text
        if text.startswith("OPTIMIZE"):
            own, its = (frame.schema.simpleString() for frame in frames)
            assert own.replace("".join(f",{name}:bigint" for name in FORMER), "") == its
            assert done[0].metrics.numFilesAdded == expected[0].metrics.numFilesAdded == 1
        assert stored(pair[0].path) == stored(pair[1].path), text
    rows = [sorted(map(repr, spark.sql(f"SELECT * FROM {t}").collect())) for t in (ours, theirs)]
    assert rows[0] == rows[1]
    history = [mica.sql(f"DESCRIBE HISTORY {t}", spark).select("operation").collect() for t in (ours, theirs)]
    assert [row.operation for row in history[0]] == [row.operation for row in history[1]]
    assert mica.sql(f"VACUUM {ours} DRY RUN", spark).columns == ["path"]


@pytest.mark.slow
def test_replace_where_takes_partitions(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, tables = delta_session, [tmp_path / "ours", tmp_path / "theirs"]
    for path, sql in zip(tables, RUNS.values(), strict=True):
        mica.Table.create(path, "id BIGINT, p INT", ["p"]).append([{"id": i, "p": i % 3} for i in range(6)])
        sql(f"INSERT INTO delta.`{path}` REPLACE WHERE p >= 1 SELECT id + 10, 2 FROM range(2)", spark)
        with pytest.raises(Exception, match=r"ROWS_OUTSIDE_OVERWRITE|DELTA_REPLACE_WHERE_MISMATCH"):
            sql(f"INSERT INTO delta.`{path}` REPLACE WHERE p = 1 VALUES (20, 2)", spark)
    ours, theirs = (sorted(mica.Table.open(path).to_arrow().to_pylist(), key=str) for path in tables)
    assert ours == theirs


@pytest.mark.slow
@pytest.mark.parametrize(("vectors", "feed"), dealt(list(product(["false", "true"], repeat=2)), 0, 3))
def test_replace_where_takes_any_predicate(
    delta_session: SparkSession, tmp_path: Path, vectors: str, feed: str
) -> None:
    spark, inserted, found, feeds, said = delta_session, [], [], [], []
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": feed}
    for path in (tmp_path / "ours", tmp_path / "theirs"):
        table = mica.Table.create(path, "id BIGINT, p INT, v VARIANT", ["p"], properties)
        for n in range(3):
            table.append([{"id": 10 * n + i, "p": i % 2, "v": {"k": i, "t": f"t{n}"}} for i in range(10)])
        for where, query in (
            ("id BETWEEN 8 AND 12", "SELECT id + 9, 5, parse_json('{}') FROM range(3)"),
            ("p = 1 AND id > 20", "SELECT 21L, 1, CAST(NULL AS VARIANT)"),
            ("v:t::string = 't1'", """SELECT id, 7, parse_json('{"k":1,"t":"t1"}') FROM range(2)"""),
            ("id < 0", "SELECT -1L, 0, CAST(NULL AS VARIANT)"),
            ("v:k::int = 3", "SELECT 1L, 1, CAST(NULL AS VARIANT) WHERE false"),
        ):
            if path.name == "ours":
                done = mica.sql(f"INSERT INTO delta.`{path}` REPLACE WHERE {where} {query}", spark).collect()
                inserted.append(done[0].num_inserted_rows)
            else:  # delta-spark's statement refuses paths
                rows = spark.sql(query).toDF("id", "p", "v").write.format("delta").mode("overwrite")
                rows.option("replaceWhere", where).save(str(path))
        table.refresh()
        found.append(sorted(map(str, spark.sql(f"SELECT id, p, to_json(v) FROM delta.`{path}`").collect())))
        metrics = [row["operation_metrics"] for row in table.history(5).to_pylist()]
        said.append([dict(one)["numDeletedRows"] for one in metrics])
        if feed == "true":
            changed = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 4)
            columns = ("_change_type", "_commit_version", "id", "p")
            feeds.append(sorted(map(str, changed.load(str(path)).select(*columns).collect())))
        assert mica.check(path).ok
    assert found[0] == found[1]
    assert feeds[:1] == feeds[1:]
    assert said[0] == said[1]
    assert inserted == [3, 1, 2, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("mapping", dealt(["none", "name"], 0))
def test_a_dynamic_overwrite_leaves_other_partitions(delta_session: SparkSession, tmp_path: Path, mapping: str) -> None:
    spark, tables = delta_session, [tmp_path / "ours", tmp_path / "theirs"]
    mode = "spark.sql.sources.partitionOverwriteMode"
    try:
        for path, sql in zip(tables, RUNS.values(), strict=True):
            spark.conf.set(mode, "static")
            ddl, properties = "id BIGINT, p TIMESTAMP, q STRING", {"delta.columnMapping.mode": mapping}
            mica.Table.create(path, ddl, ["p", "q"], properties)
            t = f"delta.`{path}`"
            first = [f"({i}, TIMESTAMP'2024-01-0{i} 00:00:00', {q})" for i in (1, 2) for q in ("'a'", "'b'", "NULL")]
            spark.sql(f"INSERT INTO {t} VALUES {', '.join(first)}")  # spelled by delta-spark
            spark.conf.set(mode, "DYNAMIC")
            sql(f"INSERT OVERWRITE {t} SELECT 0, TIMESTAMP'2024-01-01 00:00:00', 'a' WHERE false", spark)
            sql(f"INSERT OVERWRITE {t} VALUES (10, TIMESTAMP'2024-01-01 00:00:00', 'a'), (11, NULL, 'b')", spark)
            sql(f"INSERT OVERWRITE {t} (q, p, id) VALUES (NULL, TIMESTAMP'2024-01-02 00:00:00', 12)", spark)
    finally:
        spark.conf.unset(mode)
    ours, theirs = (sorted(mica.Table.open(path).to_arrow().to_pylist(), key=str) for path in tables)
    assert ours == theirs
    assert len(ours) == 7


def test_an_empty_map_or_array_has_the_type_of_its_column(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "m MAP<INT, STRING>, a ARRAY<INT>, l ARRAY<MAP<STRING, INT>>")
    mica.sql(f"INSERT INTO delta.`{table.path}` VALUES (map(), array(), array(map()))", spark)
    assert table.refresh().to_arrow().to_pylist() == [{"m": [], "a": [], "l": [[]]}]
    with pytest.raises(mica.UserError, match=r"UNSUPPORTED_TYPE.*keys have no type"):
        table.append(spark.sql("SELECT map() AS m"))


def test_what_a_with_defines_is_seen_by_the_statement_after_it(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRING COLLATE UTF8_LCASE")
    t = f"delta.`{table.path}`"
    mica.sql(f"WITH q AS (SELECT 1 AS id, 'a' AS s) INSERT INTO {t} SELECT * FROM q", spark)
    mica.sql(
        f"WITH q AS (SELECT 1 AS id) MERGE INTO {t} t USING q ON t.id = q.id WHEN MATCHED THEN UPDATE SET s = 'b'",
        spark,
    )
    mica.sql(f"WITH q AS (SELECT id + 1 AS id, s FROM {t}) INSERT INTO {t} WITH r AS (TABLE q) TABLE r", spark)
    rows = mica.Table.open(table.path).to_arrow().to_pylist()
    assert sorted(rows, key=str) == [{"id": 1, "s": "b"}, {"id": 2, "s": "b"}]
    assert {row["engineInfo"][:4] for row in mica.sql(f"DESCRIBE HISTORY {t}", spark).collect()} == {"mica"}


@pytest.mark.slow
def test_texts_are_read_for_numbers_and_times(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT, d DATE, ts TIMESTAMP, b BOOLEAN, `x.y` DECIMAL(4, 1)")
    t = f"delta.`{table.path}`"
    mica.sql(f"INSERT INTO {t} VALUES ('5', '2024-02-03', '2024-02-03 04:05:06', 'true', '1.5')", spark)
    mica.sql(f"UPDATE {t} SET d = '2025-01-01' WHERE n = 5", spark)
    row = mica.sql(f"SELECT n, d, b, `x.y`, CAST(ts AS STRING) AS ts FROM {t}", spark).collect()[0]
    assert (row.n, str(row.d), row.b, row["x.y"], row.ts) == (
        5, "2025-01-01", True, Decimal("1.5"), "2024-02-03 04:05:06",
    )  # fmt: skip
    with pytest.raises(mica.MicaError, match=r"^\[INVALID_CAST\] \[CAST_INVALID_INPUT\] The value 'five' of"):
        mica.sql(f"INSERT INTO {t} (n) VALUES ('five')", spark)
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with pytest.raises(
            mica.MicaError, match=r"^\[INVALID_CAST\] the value 'five' for the column n cannot be cast to INT$"
        ):
            mica.sql(f"INSERT INTO {t} (n) VALUES ('five')", spark)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert mica.Table.open(table.path).count() == 1


def test_a_statement_on_a_table_that_is_not_ours_is_sparks(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        mica.sql("DELETE FROM no_such_table", spark)


@pytest.mark.slow
def test_assignments_follow_ansi_without_it_too(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's store assignment: what fits is cast, what does not is an error, in any session."""
    table = mica.Table.create(tmp_path / "t", "id BIGINT, b SMALLINT, f FLOAT, d DECIMAL(4, 1)")
    t = f"delta.`{table.path}`"
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        mica.sql(f"INSERT INTO {t} VALUES (1, 2, 0.5, 2.25)", spark)
        mica.sql(f"UPDATE {t} SET b = 3, f = 1.5D", spark)
        source = "(SELECT 1L AS id, 9 AS n)"
        mica.sql(f"MERGE INTO {t} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET d = n", spark)
        for statement in (
            f"UPDATE {t} SET b = id + 70000",
            f"UPDATE {t} SET d = 12345",
            f"INSERT INTO {t} (id, b) SELECT 2, 70000",
            f"INSERT INTO {t} (id, d) SELECT 2, 12345",
            f"MERGE INTO {t} t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET b = n + 70000",
        ):
            with pytest.raises(Exception, match=r"not fit|cannot be"):
                mica.sql(statement, spark)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert table.refresh().to_arrow().to_pylist() == [{"id": 1, "b": 3, "f": 1.5, "d": Decimal("9.0")}]


@pytest.mark.slow
def test_an_insert_casts_whole_values_as_delta_spark(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    ddl = "n INT, s STRING, b BOOLEAN, f FLOAT, bin BINARY, v VARIANT, d DATE"
    ours, theirs = f"delta.`{tmp_path}/ours`", f"delta.`{tmp_path}/theirs`"
    mica.Table.create(tmp_path / "ours", ddl)
    spark.sql(f"CREATE TABLE {theirs} ({ddl}) USING delta")
    rows = """SELECT true, parse_json('5'), 1, true, 'AB', 5, DATE'2026-01-02' UNION ALL
        SELECT false, parse_json('"x"'), 0, false, NULL, 6, NULL"""
    others = """SELECT TIMESTAMP'2024-01-01 10:00:00', array(1, 2), parse_json('true'), 2, X'41', DATE'2026-01-02',
        ' 2026-01-03'"""
    more = "SELECT parse_json('7'), X'4142', '1', parse_json('0.5'), 'x', 1.5D, parse_json('\"2026-01-04\"')"
    for query in (rows, others, more):
        mica.sql(f"INSERT INTO {ours} {query}", spark)
        spark.sql(f"INSERT INTO {theirs} {query}")
    read = "SELECT n, s, b, f, bin, to_json(v), schema_of_variant(v), d FROM {} ORDER BY n"
    found = [list(map(str, spark.sql(read.format(t)).collect())) for t in (ours, theirs)]
    assert found[0] == found[1]
    assert len(found[0]) == 4
    with pytest.raises(mica.MicaError, match="DATE"):
        mica.sql(f"INSERT INTO {ours} (d) SELECT 5", spark)


BY_SOURCE = "WHEN NOT MATCHED BY SOURCE"
#: ON and clauses of a merge; in a target row with the id 2 and a source row with the id 3 a strict cast fails.
CASTS = [
    f"t.id = s.id AND t.v:a::int = 1 {BY_SOURCE} THEN DELETE",
    f"t.v:a::int = 1 AND t.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT * {BY_SOURCE} THEN DELETE",
    f"t.id = s.id AND s.k = '1' AND s.k::int = 1 AND t.v:a::int = 1 {BY_SOURCE} AND t.id = 3 THEN DELETE",
    f"t.id = s.id AND t.id > 1 AND s.k::int = 1 {BY_SOURCE} THEN DELETE",
    "t.id = s.id AND t.v:a::int = 1 WHEN MATCHED THEN DELETE",
]


@pytest.mark.slow
def test_a_merge_casts_where_spark_does(
    delta_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome(path: Path, sql: Callable[[str], Any], text: str) -> Any:
        table = mica.Table.create(path, "id INT, k STRING, v VARIANT")
        table.append([{"id": i, "k": str(i), "v": {"a": "x" if i == 2 else i}} for i in (1, 2, 3)])
        source = "SELECT id, k, parse_json('0') AS v FROM VALUES (1, '1'), (3, 'zz'), (9, '9') AS s(id, k)"
        try:
            done = sql(f"MERGE INTO delta.`{path}` t USING ({source}) s ON {text}").collect()
        except (mica.UserError, PySparkException) as e:
            return "CAST" in str(e)
        return done, sorted(table.refresh().scan(columns=["id", "k"]).to_arrow().to_pylist(), key=str)

    found = []
    for number, text in enumerate(CASTS):
        expected = outcome(tmp_path / f"theirs{number}", delta_session.sql, text)
        for few in dealt((100_000, -1), number):  # with the whole source in every task, and with a shuffle
            monkeypatch.setattr(engine, "FEW_ROWS", few)
            ours = outcome(tmp_path / f"ours{number}{few}", lambda text: mica.sql(text, delta_session), text)
            assert ours == expected, text
        found.append(expected is True)
    assert found == [False, False, False, True, True]


#: Statements in a row on a table that is partitioned by `p` and `q`.
OF_PARTITIONS = [
    "INSERT INTO {t} PARTITION (p = 5, q = 'z') VALUES (100, 's'), (101, DEFAULT)",
    "INSERT INTO {t} PARTITION (p = 5, q) VALUES (102, 's', 'qq')",
    "INSERT INTO {t} PARTITION (p, q) VALUES (103, 8, 's', 'qq')",
    "INSERT INTO {t} PARTITION (P = '7', q = 8) (s, id) SELECT 'x', 104",
    "INSERT INTO {t} PARTITION (p = -7) BY NAME SELECT 105 AS id, NULL AS q",
    "INSERT OVERWRITE {t} PARTITION (p = 1, q = 'b') SELECT 106, 's'",
    "INSERT OVERWRITE TABLE {t} PARTITION (p = NULL, q = 'a') SELECT id, s FROM {t} WHERE false",
    "INSERT WITH SCHEMA EVOLUTION OVERWRITE {t} PARTITION (p = 2) SELECT 107, 's', 'y', 3 AS n",
    "INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 108 AS id, named_struct('a', 1) AS st",
]
REFUSED = [
    "INSERT INTO {t} PARTITION (p = 'x', q = 'b') SELECT 1, 's'",
    "INSERT INTO {t} PARTITION (id = 1) SELECT 's', 2, 'q'",
    "INSERT INTO {t} PARTITION (p = 1) (id, p) VALUES (5, 3)",
    "INSERT INTO {t} PARTITION (p = 1) BY NAME SELECT 5 AS id, 3 AS p",
    "INSERT INTO {t} PARTITION (p = 1) VALUES (5, 's')",
    "INSERT INTO {t} PARTITION (p = 1, P = 2) VALUES (5, 's', 'q')",
    "INSERT INTO {t} PARTITION (p = DEFAULT) VALUES (5, 's', 'q')",
]


@pytest.mark.slow
def test_an_insert_into_partitions_and_with_new_columns(delta_session: SparkSession, tmp_path: Path) -> None:
    found = []
    for name, sql in RUNS.items():
        path = tmp_path / name
        table = mica.Table.create(path, "id BIGINT, p INT, s STRING, q STRING", ["p", "q"])
        table.append([{"id": i, "p": i % 3 or None, "q": "ab"[i % 2], "s": f"s{i}"} for i in range(12)])
        found.append([])
        for text in OF_PARTITIONS:
            sql(text.format(t=f"delta.`{path}`"), delta_session)
            table = table.refresh()
            found[-1].append((table.schema, sorted(table.to_arrow().to_pylist(), key=str)))
        for text in REFUSED:
            with pytest.raises((mica.MicaError, PySparkException)):
                sql(text.format(t=f"delta.`{path}`"), delta_session)
        assert table.refresh().version == len(OF_PARTITIONS) + 1
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("zone", dealt(["UTC", "Asia/Tokyo"], 0))
def test_an_overwritten_partition_is_that_of_the_sessions_zone(
    delta_session: SparkSession, tmp_path: Path, zone: str
) -> None:
    spark, found, before = delta_session, [], delta_session.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", zone)
        for name, sql in RUNS.items():
            path = tmp_path / name
            mica.Table.create(path, "id INT, p TIMESTAMP", ["p"])
            t = f"delta.`{path}`"
            spark.sql(
                f"INSERT INTO {t} VALUES (1, TIMESTAMP'2024-01-01 00:00:00'), (2, TIMESTAMP'2024-01-02 00:00:00')"
            )
            sql(f"INSERT OVERWRITE {t} PARTITION (p = '2024-01-01 00:00:00') VALUES (3)", spark)
            found.append(sorted(mica.Table.open(path).to_arrow().to_pylist(), key=str))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found[0] == found[1]
    assert [row["id"] for row in found[0]] == [2, 3]


#: Clauses of merges with new columns in the source.
EVOLVING = [
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
    "WHEN MATCHED THEN UPDATE SET s = s.k, n = s.n + 1 WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, k)",
    "WHEN MATCHED AND n = 700 THEN UPDATE SET *",
    "WHEN MATCHED THEN DELETE",
]


@pytest.mark.slow
def test_what_variants_and_schemas_a_statement_makes(delta_session: SparkSession, tmp_path: Path) -> None:
    found = []
    values = "named_struct('a', id, 'b', array(s, NULL), 'c', CAST(1.50 AS DECIMAL(5,2)), 'd', DATE'2024-01-01')"
    for name, sql in RUNS.items():
        found.append([])
        for number, clauses in dealt(list(enumerate(EVOLVING)), 0):
            table = mica.Table.create(tmp_path / f"{name}{number}", "id BIGINT, s STRING, v VARIANT")
            table.append([{"id": i, "s": f"s{i}"} for i in range(3)])
            source = "SELECT * FROM VALUES (1L, 7, 'u', named_struct('x', 1)), (9L, 8, 'w', NULL) AS s(id, n, k, st)"
            t = f"delta.`{table.path}`"
            text = f"MERGE WITH SCHEMA EVOLUTION INTO {t} t USING ({source}) s ON t.id = s.id {clauses}"
            sql(text, delta_session).collect()
            sql(f"UPDATE {t} SET v = to_variant_object({values}) WHERE id > 1", delta_session).collect()
            rows = delta_session.sql(f"SELECT * EXCEPT (v), to_json(v), schema_of_variant(v) FROM {t}").collect()
            found[-1].append((table.refresh().schema, sorted(map(repr, rows))))
    assert found[0] == found[1]


@pytest.mark.slow
def test_tables_are_changed_without_delta_spark(spark: SparkSession, tmp_path: Path) -> None:
    t = f"mica.`{tmp_path}/t`"
    mica.sql(f"CREATE TABLE {t} (id BIGINT, v VARIANT) USING mica", spark)
    mica.sql(f"INSERT INTO {t} SELECT id, parse_json('{{}}') FROM range(5)", spark)
    name = "some_table"
    mica.register(name, tmp_path / "t")
    mica.sql(f"ALTER TABLE {name} ADD COLUMN x INT", spark)
    assert [row.col_name for row in mica.sql(f"DESC {name}", spark).collect()] == ["id", "v", "x"]
    when = mica.Table.open(tmp_path / "t").history().to_pylist()[1]["timestamp"]
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    mica.sql(f"TRUNCATE TABLE {name}", spark)
    assert mica.sql(f"SELECT * FROM {name}", spark).count() == 0
    text = when.astimezone(ZoneInfo(zone)).replace(tzinfo=None).isoformat(" ", "milliseconds")
    done = mica.sql(f"RESTORE {name} TIMESTAMP AS OF '{text}'", spark).collect()[0]
    assert (done.num_restored_files, done.num_of_files_after_restore) == (1, 1)
    assert mica.sql(f"SELECT * FROM {name}", spark).count() == 5
    assert mica.sql(f"DESC DETAIL {name}", spark).collect()[0].numFiles == 1
    mica.sql(f"CREATE OR REPLACE TABLE {t} (n INT) USING mica AS SELECT CAST(7 AS INT) AS n", spark)
    assert mica.sql(f"SELECT * FROM {name}", spark).collect() == [(7,)]
    mica.sql(f"CREATE OR REPLACE TABLE {t} USING mica AS SELECT 7 AS n, struct(array(1) AS x) AS s", spark)
    # As delta-spark makes them of a query: none of its columns is NOT NULL.
    assert mica.Table.open(tmp_path / "t").schema == parse_ddl("n INT, s STRUCT<x: ARRAY<INT>>")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW a_temporary_view AS SELECT 1")
    with pytest.raises(mica.UserError, match="TABLE_EXISTS"):
        mica.sql("CREATE OR REPLACE TABLE a_temporary_view (n INT) USING mica", spark)
    pa_path = tmp_path / "plain"
    spark.range(3).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(str(pa_path))
    mica.sql(f"CONVERT TO DELTA parquet.`{pa_path}` PARTITIONED BY (p BIGINT)", spark)
    assert mica.Table.open(pa_path).count() == 3
    with pytest.raises(mica.UserError, match="UNKNOWN_COLUMN"):
        mica.sql(f"ALTER TABLE {name} CLUSTER BY (nope)", spark)


def test_a_tables_name_comes_before_a_column_that_is_called_so(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, t STRUCT<z: INT, x: INT>, z INT")
    table.append([{"id": 1, "t": {"z": 21, "x": 1}, "z": 100}])
    t, source = f"mica.`{tmp_path}`", "(SELECT 1 AS id, 9 AS q) AS s ON t.id = s.id WHEN MATCHED THEN"
    for text, (z, x), top in [  # as delta-spark changes the row
        (f"UPDATE {t} AS t SET t.t.z = 2, t.z = t.t.x WHERE t.x = 1", (2, 1), 1),
        (f"MERGE INTO {t} AS t USING {source} UPDATE SET t.t.z = s.q, t.x = 3", (9, 3), 1),
        (f"MERGE INTO {t} AS t USING {source} UPDATE SET t.z = s.q", (9, 3), 9),
    ]:
        mica.sql(text, spark)
        assert table.refresh().to_arrow().to_pylist() == [{"id": 1, "t": {"z": z, "x": x}, "z": top}]
    mica.sql(f"DELETE FROM {t} AS t WHERE t.x = 3 AND t.z = t.t.z", spark)
    assert table.refresh().count() == 0
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(mica.UserError, match="the table has a column 'z', no 'Z'"):
            mica.sql(f"MERGE INTO {t} AS t USING {source} UPDATE SET t.Z = 1", spark)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_name_may_be_a_parameter(spark: SparkSession, tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT")
    table.append([{"id": i} for i in range(5)])
    mica.register("named_by_parameter", tmp_path / "t")
    for name in ("named_by_parameter", f"delta.`{table.path}`"):
        args = {"name": name, "id": 3}
        assert mica.sql("SELECT id FROM IDENTIFIER(:name) WHERE id > :id", spark, args).collect() == [(4,)]
        assert mica.explain("SELECT id FROM IDENTIFIER(:name) WHERE id > 3", spark, args).scans[0].where is not None
    mica.sql("DELETE FROM IDENTIFIER(:name) WHERE id > :id", spark, args)
    assert table.refresh().count() == 4


def test_a_folder_that_is_converted_already_may_be_converted_again(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "p"))
    for _ in range(2):
        mica.sql(f"CONVERT TO DELTA parquet.`{tmp_path / 'p'}`", spark)
    assert mica.Table.open(tmp_path / "p").version == 0


def test_an_insert_of_a_tables_own_rows_reads_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, commit = f"delta.`{tmp_path / 't'}`", Transaction.commit
    mica.Table.create(tmp_path / "t", "id INT, p STRING", ["p"]).append([{"id": 1, "p": "a"}, {"id": 2, "p": "b"}])

    def after_a_delete(self: Transaction, **given: object) -> object:
        monkeypatch.setattr(Transaction, "commit", commit)
        mica.Table.open(tmp_path / "t").delete("id = 2")
        return commit(self, **given)

    own = f"UPDATE {t} SET id = (SELECT max(id) FROM {t}) WHERE p = 'a'"
    for text in (own, f"INSERT INTO {t} SELECT id + 10, p FROM {t}"):
        monkeypatch.setattr(Transaction, "commit", after_a_delete)
        with pytest.raises(mica.MicaError, match="CONCURRENT_DELETE"):
            mica.sql(text, spark)
        mica.Table.open(tmp_path / "t").append([{"id": 2, "p": "b"}])
    mica.Table.open(tmp_path / "t").delete("id = 2")
    for text in ("VALUES (3, 'c')", f"SELECT id + 10, p FROM {t} VERSION AS OF 1"):
        mica.Table.open(tmp_path / "t").append([{"id": 2, "p": "b"}])
        monkeypatch.setattr(Transaction, "commit", after_a_delete)
        mica.sql(f"INSERT INTO {t} {text}", spark)
    assert sorted(mica.Table.open(tmp_path / "t").to_arrow()["id"].to_pylist()) == [1, 3, 11, 12]
