"""Rows that mica's tasks read and Spark only renames are written by these tasks, as if they came through Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import mica
from mica.engines.spark import engine, fused, reader
from mica.query import copies, here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = """id BIGINT, n INT, b BOOLEAN, y TINYINT, f FLOAT, m DECIMAL(18,2), w DECIMAL(38,4), s STRING, c CHAR(4),
    l STRING COLLATE UTF8_LCASE, x BINARY, dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, v VARIANT,
    st STRUCT<a: INT, v: VARIANT, m: DECIMAL(9,1)>, a ARRAY<STRUCT<k: STRING>>, mp MAP<STRING, INT>, `odd #1` INT"""

#: Every column is null in some rows.
ROWS = """SELECT id, nullif(int(id % 7), 3) n, nullif(id % 2 = 0, id % 5 = 0) b, tinyint(nullif(id % 100, 4)) y,
    float(if(id % 9 = 0, NULL, if(id % 9 = 1, 'NaN', '-0.5'))) f, nullif(decimal(id / 7), 0)::decimal(18,2) m,
    (nullif(id, 8) * -123456789012.5)::decimal(38,4) w, nullif('é' || id, 'é5') s,
    if(id % 3 = 0, NULL, 'x' || id % 9) c,
    if(id % 4 = 0, NULL, 'Ä' || id) l, nullif(binary('b' || id), binary('b6')) x,
    date_add(DATE'1500-01-01', int(nullif(id, 9) * 997)) dt, timestamp_micros(nullif(id, 10) * -9876543210123) ts,
    if(id % 3 = 1, NULL, TIMESTAMP_NTZ'2024-02-29 23:59:59.999999') tn,
    parse_json(nullif('{"k": "' || id || '", "n": [1, {"d": 1.5}]}', '{"k": "4", "n": [1, {"d": 1.5}]}')) v,
    if(id % 8 = 0, NULL, named_struct('a', int(id), 'v', parse_json('[' || id || ']'), 'm', 1.5::decimal(9,1))) st,
    if(id % 5 = 0, NULL, array(named_struct('k', 'y'), NULL)) a, if(id % 6 = 0, NULL, map('q', int(id))) mp,
    int(nullif(id % 4, 2)) `odd #1`"""


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of three files, one of which has rows that are deleted."""
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path_factory.mktemp("fused") / "source", DDL, properties=properties)
    for start in (0, 600, 1200):
        table.append(spark.sql(f"{ROWS} FROM range({start}, {start + 600})"))
    table.delete("id IN (41, 655)")
    return table.path


@pytest.fixture
def source(made: str, by_tasks: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table in a statement, as if it were large."""
    monkeypatch.setattr(here, "rows", lambda *_: None)
    return f"delta.`{made}`"


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that Spark's own reader may read whole."""
    table = mica.Table.create(tmp_path_factory.mktemp("fused") / "plain", "id BIGINT, s STRING, m DECIMAL(18,2)")
    for start in (0, 900):
        table.append(spark.sql(f"SELECT id, s, m FROM ({ROWS} FROM range({start}, {start + 900}))"))
    return table.path


def rows_of(path: Path) -> list[str]:
    """The rows, each as a text: NaN is itself there."""
    return sorted(map(str, mica.Table.open(path).scan().to_arrow().to_pylist()))


#: Names and places, and what mica's scans evaluate.
MOVED = [
    "INSERT INTO {t} SELECT * FROM {s}",
    "INSERT INTO {t} SELECT * FROM {s} WHERE id NOT BETWEEN 7 AND 90",
    "INSERT OVERWRITE {t} SELECT * FROM {s} WHERE n IS NOT NULL AND id > 50",
    "INSERT INTO {t} (m, `odd #1`, id, n) SELECT m, n, id, `odd #1` FROM {s} WHERE id > 70",
    "INSERT INTO {t} (s, c) SELECT v:k::string, c FROM {s}",
    "INSERT INTO {t} BY NAME SELECT st, a AS a, mp, w, ts AS ts FROM {s}",
    "INSERT INTO {t} (n, `odd #1`) SELECT n AS one, n AS other FROM {s}",
    "INSERT INTO {t} (id, s) SELECT id, 'id#5' FROM {s}",
]

#: What Spark evaluates; a name such as `-n` of Catalyst is no column's.
COMPUTED = [
    "INSERT INTO {t} (id, b) SELECT -id, NOT b FROM {s}",
    "INSERT INTO {t} (id, s) SELECT id, upper(s) FROM {s}",
    "INSERT INTO {t} (id, m) SELECT id, m + 1 FROM {s}",
    "INSERT INTO {t} (id) SELECT count(*) FROM {s}",
    "INSERT INTO {t} (id, n) SELECT one.id, other.n FROM {s} one JOIN {s} other USING (id)",
    "INSERT INTO {t} (id, s) SELECT id, s FROM {s} UNION ALL SELECT id, s FROM {s}",
]


@pytest.mark.slow
@pytest.mark.parametrize(("text", "is_fused"), [*((one, True) for one in MOVED), *((one, False) for one in COMPUTED)])
def test_rows_are_those_that_pass_through_spark(
    spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool], monkeypatch: pytest.MonkeyPatch,
    text: str, is_fused: bool,
) -> None:  # fmt: skip
    for name in ("here", "there"):
        if name == "there":
            monkeypatch.setattr(engine, "fused", lambda *_: None)
        mica.Table.create(tmp_path / name, DDL)
        mica.sql(text.format(t=f"delta.`{tmp_path / name}`", s=source), spark)
    assert fusions == [is_fused]
    assert rows_of(tmp_path / "here") == rows_of(tmp_path / "there") != []
    assert mica.check(mica.Table.open(tmp_path / "here"), spark=spark).ok


#: Statements over a table that Spark's own reader may read, and whether mica's tasks do, since they write its rows.
COPIES = [
    ("INSERT INTO {t} SELECT * FROM {s}", True),
    ("INSERT OVERWRITE {t} SELECT a.id, a.s, a.m FROM (SELECT * FROM {s}) a", True),
    ("INSERT INTO {t} BY NAME SELECT m, id FROM {s}", True),
    ("INSERT INTO {t} (s, id) SELECT s, id AS n FROM {s}", True),
    ("WITH one AS (SELECT s, id FROM {s}) INSERT INTO {t} (s, id) SELECT * FROM one", True),
    ("CREATE OR REPLACE TABLE {t} USING mica AS SELECT m, id AS k FROM {s}", True),
    ("INSERT INTO {t} (id, s) SELECT id + 1, 'x' || s FROM {s}", True),
    ("INSERT INTO {t} (id, s) SELECT id, upper(s) FROM {s}", False),
    ("INSERT INTO {t} (id, s) SELECT 7, s FROM {s}", True),
    ("INSERT INTO {t} (id, s) SELECT int(id), s FROM {s}", False),
    ("INSERT INTO {t} (id, s) SELECT id, s FROM {s} ORDER BY id DESC", False),
    ("CREATE OR REPLACE TABLE {t} USING mica PARTITIONED BY (p) AS SELECT id, s AS p FROM {s}", False),
]


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("text", "is_copied"), COPIES)
def test_who_writes_a_copy_reads_it(
    spark: SparkSession, tmp_path: Path, plain: str, by_tasks: None, fusions: list[bool],
    monkeypatch: pytest.MonkeyPatch, text: str, is_copied: bool,
) -> None:  # fmt: skip
    monkeypatch.setattr(here, "rows", lambda *_: None)
    by_spark: list[Any] = []
    own = reader.native
    monkeypatch.setattr(reader, "native", lambda *given: by_spark.append(1) or own(*given))
    statement = text.format(t=f"delta.`{tmp_path / 'here'}`", s=f"delta.`{plain}`")
    mica.Table.create(tmp_path / "here", "id BIGINT, s STRING, m DECIMAL(18,2)")
    mica.sql(statement, spark)
    assert (fusions, not by_spark) == ([is_copied], is_copied)
    if not is_copied:
        return
    monkeypatch.setattr(copies, "are_stored", lambda _: False)
    mica.Table.create(tmp_path / "there", "id BIGINT, s STRING, m DECIMAL(18,2)")
    mica.sql(statement.replace(str(tmp_path / "here"), str(tmp_path / "there")), spark)
    assert by_spark
    assert rows_of(tmp_path / "here") == rows_of(tmp_path / "there") != []
    assert mica.Table.open(tmp_path / "here").schema == mica.Table.open(tmp_path / "there").schema


def test_the_rules_of_a_table_hold(spark: SparkSession, tmp_path: Path, source: str, fusions: list[bool]) -> None:
    """Numbers of rows do not repeat, and an error of a task is mica's."""
    path = tmp_path / "t"
    mica.Table.create(path, "i BIGINT GENERATED ALWAYS AS IDENTITY, id BIGINT, d BIGINT DEFAULT 7, p INT", ["p"])
    mica.sql(f"INSERT INTO delta.`{path}` (id) SELECT id FROM {source}", spark)
    rows = mica.Table.open(path).to_arrow().to_pylist()
    assert (len(rows), len({row["i"] for row in rows}), {row["d"] for row in rows}) == (1798, 1798, {7})
    mica.Table.create(tmp_path / "small", "id BIGINT").add_constraint("small", "id < 100")
    with pytest.raises(mica.UserError) as raised:
        mica.sql(f"INSERT INTO delta.`{tmp_path / 'small'}` SELECT id FROM {source}", spark)
    assert raised.value.code == "CONSTRAINT_VIOLATED"
    assert fusions == [True, True]


@pytest.mark.slow
def test_a_frame_is_written_where_it_is_read(
    spark: SparkSession, tmp_path: Path, made: str, by_tasks: None, fusions: list[bool]
) -> None:
    table = mica.Table.open(made)
    other = mica.Table.create(tmp_path / "t", "k STRING, id BIGINT")
    frame = table.scan(columns={"id": "id", "k": "v:k::string"}).to_df(spark)
    other.append(frame)
    kept = frame.cache()
    try:
        other.append(kept)  # the cache has them
    finally:
        kept.unpersist()
    other.append(spark.range(5).mapInArrow(lambda batches: (b for b in batches), "id BIGINT"))  # someone else's job
    other.append(frame.repartition(1))
    assert fusions == [True, False, False, False]
    rows = other.to_arrow()
    assert (rows.num_rows, pa.compute.sum(rows["id"]).as_py()) == (5399, 3 * (sum(range(1800)) - 41 - 655) + 10)


def test_a_text_that_looks_like_a_column_is_none(
    spark: SparkSession, tmp_path: Path, plain: str, by_tasks: None, fusions: list[bool]
) -> None:
    """Catalyst shows both alike."""
    frame = mica.Table.open(plain).scan(columns={"id": "id", "s": "s"}, where="id < 3").to_df(spark)
    shown = str(frame._jdf.queryExecution().analyzed().output().apply(1))
    assert shown.startswith("s#")
    other = mica.Table.create(tmp_path / "t", "id BIGINT, s STRING, k STRING")
    for texts in ([f"'{shown}' AS s"], [f"'{shown}' AS s", "s AS k"], ["'no#0' AS s"]):
        other.overwrite(frame.selectExpr("id", *texts))
        assert set(other.to_arrow()["s"].to_pylist()) == {texts[0].split("'")[1]}
    assert fusions == [False] * 3


@pytest.mark.slow
@pytest.mark.usefixtures("compiled", "by_tasks")
def test_a_frame_of_an_enabled_session_is_read_as_actions_read_it(
    spark: SparkSession, tmp_path: Path, plain: str, fusions: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is appended skips files, and whole tables are written where they are read; what is cached, or computed by
    Spark, is as Spark has it."""
    monkeypatch.setattr(here, "rows", lambda *_: None)
    mica.enable(spark)
    try:
        for name in ("here", "there"):
            if name == "there":
                monkeypatch.setattr(fused, "NARROWERS", [])
            target = mica.Table.create(tmp_path / name, "id BIGINT, s STRING, m DECIMAL(18,2)")
            frame = mica.Table.open(plain).to_df(spark)
            kept = frame.where("id < 10").cache()
            for rows in (
                frame,
                frame.where("id >= 900 AND s IS NOT NULL").select("s", "id"),
                frame.where("length(s) = 3").selectExpr("id", "upper(s) AS s"),
                frame.repartition(3).where("id < 20"),
                frame.join(frame.select("id"), "id").where("id < 5"),
                frame.orderBy("id").limit(7),
                kept,
            ):
                target.append(rows)
            kept.unpersist()
            source = frame.where("id BETWEEN 800 AND 950 OR s IS NULL").selectExpr(
                "id - 5 AS id", "concat(s, 'x') AS s"
            )
            target.merge(source, "source.id = target.id AND target.m IS NULL").when_matched_delete().execute()
    finally:
        mica.disable(spark)
    assert fusions[:2] == [True, True]
    assert not any(fusions[2:])
    assert rows_of(tmp_path / "here") == rows_of(tmp_path / "there") != []
