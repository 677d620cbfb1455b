"""CHAR and VARCHAR columns of delta-spark's tables mean in mica what they mean there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.format.source import register
from tests.oracle import conf
from tests.support import dealt, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TYPES = """id INT, c CHAR(5), d CHAR(3), v VARCHAR(4), s STRUCT<c: CHAR(4), v: VARCHAR(2)>,
    a ARRAY<CHAR(3)>, m MAP<CHAR(2), VARCHAR(3)>"""
_ROWS = """(1, 'x', 'x', 'x   ', named_struct('c', 'x', 'v', 'y '), array('a', 'bb'), map('k', 'v')),
    (2, 'é', 'é', 'é', named_struct('c', 'é', 'v', 'é'), array('é', NULL), NULL),
    (3, NULL, 'q', NULL, NULL, NULL, NULL)"""

WHERE = [
    "c = 'x'", "c = 'x       '", "c <=> 'x'", "c IN ('x', 'q')", "c IN ('x', d)", "c IN ('x', NULL)", "c NOT IN ('x')",
    "c = d", "d IN (c)", "c = v", "v = 'x'", "v = 'x   '", "c < 'x '", "c >= 'x'", "c LIKE 'x'", "c LIKE 'x%'",
    "'x' = c",
    "c = concat('x', '')", "c BETWEEN 'x' AND 'x'", "c NOT BETWEEN 'a' AND 'x'", "length(c) = 5", "concat(c, '') = 'x'",
    "s.c = 'x'", "s.c = c", "s.v = 'y'", "a[0] = 'a'", "array_contains(a, 'a  ')", "c = lower(d)", "NOT c = 'x'",
    "CAST(c AS STRING) = 'x'", "trim(c) = 'x'", "nullif(c, 'x') IS NULL", "CASE c WHEN 'x' THEN true END",
    "struct(c) = struct('x')", "c = 'x' OR c = 'q'", "c = rpad('x', 5)", "rpad(d, 5, 'xy') = 'x  xy'",
]  # fmt: skip
#: Those that the scan of a text is asked for, as Catalyst rewrote them.
PUSHED = ("c = 'x'", "c IN ('x', 'q')", "c IN ('x', NULL)", "c BETWEEN 'x' AND 'x'", "c NOT BETWEEN 'a' AND 'x'",
          "c LIKE 'x'", "s.c = 'x'", "nullif(c, 'x') IS NULL")  # fmt: skip
QUERIES = [
    "SELECT count(*), max(c), min(d) FROM {t} WHERE c = 'x'",
    "SELECT x.id, y.id FROM {t} x JOIN {t} y ON x.c = y.d ORDER BY 1",
    "SELECT id FROM {t} JOIN (SELECT 'x' AS k) ON c = k",
    "SELECT id FROM (SELECT id, c AS k FROM {t}) WHERE k = 'x'",
    "SELECT concat('[', c, ']'), count(*) FROM {t} GROUP BY c ORDER BY 1",
    "SELECT id FROM {t} x WHERE EXISTS (SELECT 1 FROM {t} o WHERE o.d = x.c AND o.id = 1)",
]


@pytest.mark.slow
def test_predicates_and_queries(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    register(spark)
    spark.sql(f"CREATE TABLE {t} ({_TYPES}) USING delta")
    spark.sql(f"INSERT INTO {t} VALUES {_ROWS}")
    table = mica.Table.open(tmp_path / "t")
    spark.read.format("mica").load(str(tmp_path / "t")).createOrReplaceTempView("by_format")
    table.to_df(spark).createOrReplaceTempView("by_frame")
    ways: dict[str, Callable[[str], Any]] = {
        "sql": lambda text: mica.sql(text.format(t=t), spark),
        "format": lambda text: spark.sql(text.format(t="by_format")),
        "frame": lambda text: spark.sql(text.format(t="by_frame")),
    }
    values = {f"p{number}": where for number, where in enumerate(WHERE)}
    every = ", ".join(f"{where} AS {name}" for name, where in values.items())
    for number, text in enumerate((f"SELECT id, c, s, a, m, {every} FROM {{t}} ORDER BY id", *QUERIES)):
        wanted = spark.sql(text.format(t=t)).collect()
        for name, way in dealt([*ways.items()], number, 3 if number else 1):
            assert way(text).collect() == wanted, (name, text)
    told = spark.sql(f"SELECT id, {every} FROM {t} ORDER BY id").collect()
    computed = table.scan(columns={"id": "id", **values}).to_arrow().sort_by("id").to_pylist()
    assert computed == [row.asDict() for row in told]
    for name, where in values.items():
        matching = [row.id for row in told if row[name]]
        assert sorted(table.scan(where).to_arrow().column("id").to_pylist()) == matching, where
        if where in PUSHED:
            found = mica.sql(f"SELECT id FROM {t} WHERE {where} ORDER BY id", spark).collect()
            assert [row.id for row in found] == matching, where


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "value"), [("legacy.charVarcharAsString", "true"), ("readSideCharPadding", "false")]
)
def test_sessions_that_pad_less(delta_session: SparkSession, tmp_path: Path, setting: str, value: str) -> None:
    """The columns had their blanks whatever the session said, so that `c LIKE 'x'` lost rows."""
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {t} ({_TYPES}) USING delta")
    stored = "(4, 'x    ', 'x  ', 'x', named_struct('c', 'x   ', 'v', 'y '), array('a  '), map('k ', 'v'))"
    spark.sql(f"INSERT INTO {t} VALUES {_ROWS}, {stored}")
    table = mica.Table.open(tmp_path / "t")
    values = {f"p{number}": where for number, where in enumerate(WHERE)}
    every = ", ".join(f"{where} AS {name}" for name, where in values.items())
    with conf(spark, {f"spark.sql.{setting}": value}):
        told = spark.sql(f"SELECT id, c, s, {every} FROM {t} ORDER BY id").collect()
        table.to_df(spark).createOrReplaceTempView("bare_frame")
        for found in (
            mica.sql(f"SELECT id, c, s, {every} FROM {t}", spark),
            spark.sql(f"SELECT id, c, s, {every} FROM bare_frame"),
            table.scan(columns={"id": "id", "c": "c", "s": "s", **values}).to_df(spark),
        ):
            assert found.orderBy("id").collect() == told
        for name, where in values.items():
            if where in PUSHED:
                for found in (
                    mica.sql(f"SELECT id FROM {t} WHERE {where}", spark),
                    table.scan(where, columns=["id"]).to_df(spark),
                ):
                    assert sorted(row.id for row in found.collect()) == [row.id for row in told if row[name]], where


STATEMENTS = [
    "UPDATE {t} SET v = 'n' WHERE c = 'x'",
    "INSERT INTO {t} (id, c, a) VALUES (4, 'new', array('1', NULL, '22'))",
    "UPDATE {t} SET c = 'z', s = named_struct('c', 'q', 'v', 'r') WHERE c IN ('é', 'q')",
    "DELETE FROM {t} WHERE c LIKE 'new%'",
]
TOO_LONG = [
    "INSERT INTO {t} (id, c) VALUES (9, 'x     ')",
    "INSERT INTO {t} (id, s) VALUES (9, named_struct('c', '12345', 'v', '1'))",
    "INSERT INTO {t} (id, s) VALUES (9, named_struct('c', '1', 'v', 'r  '))",
    "INSERT INTO {t} (id, a) VALUES (9, array('1', '1234'))",
    "INSERT INTO {t} (id, m) VALUES (9, map('k', 'long'))",
    "UPDATE {t} SET d = 'long' WHERE id = 1",
]


@pytest.mark.slow
def test_statements(delta_session: SparkSession, tmp_path: Path) -> None:
    spark = delta_session
    ours, theirs = (f"delta.`{tmp_path / name}`" for name in ("ours", "theirs"))
    for t in (ours, theirs):
        spark.sql(f"CREATE TABLE {t} ({_TYPES}) USING delta")
        # One file: delta-spark skips a file whose greatest text is 'x' where a statement looks for 'x    '.
        spark.sql(f"INSERT INTO {t} SELECT /*+ COALESCE(1) */ * FROM VALUES {_ROWS}")
    for text in STATEMENTS:
        mica.sql(text.format(t=ours), spark)
        spark.sql(text.format(t=theirs))
        assert stored(tmp_path / "ours") == stored(tmp_path / "theirs"), text
    rows = [spark.sql(f"SELECT * FROM {t} ORDER BY id").collect() for t in (ours, theirs)]
    assert rows[0] == rows[1]
    for text in dealt(TOO_LONG, 0):
        with pytest.raises(Exception, match="CONSTRAINT_VIOLATED"):
            mica.sql(text.format(t=ours), spark)
        with pytest.raises(Exception, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
            spark.sql(text.format(t=theirs))


def test_char_columns_that_mica_made(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    mica.sql(f"CREATE TABLE {t} (id INT, c CHAR(3)) USING mica", spark)
    mica.sql(f"INSERT INTO {t} VALUES (1, 'x')", spark)
    for sql in (lambda text: mica.sql(text, spark), spark.sql):
        assert [tuple(row) for row in sql(f"SELECT * FROM {t} WHERE c = 'x'").collect()] == [(1, "x  ")]


@pytest.mark.slow
def test_lengths_that_delta_spark_declared_are_kept(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {t} (s VARCHAR(3)) USING delta")
    for statement in (f"INSERT INTO {t} VALUES ('four')", f"INSERT INTO {t} SELECT 'a    '"):
        for sql in (lambda text: mica.sql(text, spark), spark.sql):
            with pytest.raises(Exception, match=r"CONSTRAINT_VIOLATED|DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
                sql(statement)
    mica.sql(f"INSERT INTO {t} VALUES ('abc')", spark)
    assert [row.s for row in spark.sql(f"SELECT * FROM {t}").collect()] == ["abc"]


@pytest.mark.slow
def test_collations_and_names_that_need_backticks_keep_lengths(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t, properties = delta_session, f"delta.`{tmp_path / 't'}`", {"delta.columnMapping.mode": "name"}
    columns = "c CHAR(3) COLLATE UNICODE_CI, s STRUCT<`a:b`: CHAR(2), é: VARCHAR(2), x: CHAR(2)>"
    table = mica.Table.create(tmp_path / "t", columns, properties=properties)
    table.append([{"c": "X", "s": {"a:b": "y", "é": "z", "x": "1"}}])
    table.rename_column("s.x", "order by")
    wanted = [("X  ", ("y ", "z", "1 "))]
    for sql in (lambda text: mica.sql(text, spark), spark.sql):
        assert [tuple(row) for row in sql(f"SELECT * FROM {t} WHERE c = 'x'").collect()] == wanted
        for row in ("'four', NULL", "'x', named_struct('a:b', '123', 'é', '', 'order by', '')"):
            with pytest.raises(Exception, match=r"CONSTRAINT_VIOLATED|DELTA_EXCEED_CHAR_VARCHAR_LIMIT"):
                sql(f"INSERT INTO {t} VALUES ({row})")


@pytest.mark.slow
def test_fields_that_delta_spark_renamed_keep_their_lengths(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {t} (s STRUCT<x: CHAR(3)>) USING delta TBLPROPERTIES ('delta.columnMapping.mode'='name')")
    spark.sql(f"INSERT INTO {t} VALUES (named_struct('x', 'x'))")
    spark.sql(f"ALTER TABLE {t} RENAME COLUMN s.x TO `first-name`")
    table = mica.Table.open(tmp_path / "t")
    assert table.to_arrow().to_pylist() == [{"s": {"first-name": "x  "}}]
    table.add_columns("s.n INT")  # delta-spark's own text has no place for it
    assert [row.s.asDict() for row in spark.sql(f"SELECT * FROM {t}").collect()] == [{"first-name": "x  ", "n": None}]


@pytest.mark.slow
def test_spark_makes_delta_tables_of_rows_that_mica_reads(delta_session: SparkSession, tmp_path: Path) -> None:
    """A VARCHAR had no length in a scan's output, and one in the plan above it, which Spark's optimiser refuses."""
    spark, t = delta_session, f"delta.`{tmp_path / 't'}`"
    spark.sql(f"CREATE TABLE {t} ({_TYPES}) USING delta")
    spark.sql(f"INSERT INTO {t} VALUES {_ROWS}")
    made = []
    for name, run in (("ours", lambda text: mica.sql(text, spark)), ("theirs", spark.sql)):
        run(f"CREATE TABLE made_{name} USING delta LOCATION '{tmp_path / name}' AS SELECT *, id + 1 AS n FROM {t}")
        spark.sql(f"DROP TABLE made_{name}")
        rows = spark.read.format("delta").load(str(tmp_path / name))
        made.append((rows.schema.json(), sorted(map(repr, rows.collect()))))
    assert made[0] == made[1]
    assert '"varchar(4)"' in made[0][0]


@pytest.mark.slow
def test_a_partition_of_a_char_has_one_name(delta_session: SparkSession, tmp_path: Path) -> None:
    """A rewrite named it with the blanks that readers see: an overwrite of the partition left its old rows."""
    spark, t = delta_session, f"delta.`{tmp_path}`"
    spark.sql(f"CREATE TABLE {t} (id INT, k CHAR(4)) USING delta PARTITIONED BY (k)")
    for number in (1, 2):
        spark.sql(f"INSERT INTO {t} VALUES ({number}, 'x')")
    for text in (f"OPTIMIZE {t}", f"UPDATE {t} SET id = 3 WHERE id = 1", f"INSERT INTO {t} VALUES (4, 'x'), (5, NULL)"):
        mica.sql(text, spark)
    texts = mica.Table.open(tmp_path).files().column("partition_values").to_pylist()
    assert {value for row in texts for _, value in row} == {"x", None}
    with conf(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        for run, number in ((spark.sql, 9), (lambda text: mica.sql(text, spark), 8)):
            run(f"INSERT OVERWRITE {t} VALUES ({number}, 'x')")
            assert spark.sql(f"SELECT id, k FROM {t} WHERE k IS NOT NULL").collect() == [(number, "x   ")]
