"""Queries in UPDATE, DELETE and MERGE give what they give in delta-spark, or in a query of Spark's."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from mica.write.change import Change
from mica.write.commit import Commit
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_an_update_takes_values_of_queries(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, places = delta_session, [f"delta.`{tmp_path / name}`" for name in ("ours", "theirs")]
    types = ["INT", "STRING", "DECIMAL(5,2)", "TIMESTAMP", "BINARY", "DATE", "DOUBLE", "BOOLEAN", "TIMESTAMP_NTZ"]
    names = [f"c{i}" for i in range(len(types))]
    values = """-7, 'it''s \\\\ (x', 1.25, TIMESTAMP'2024-10-27 00:30:00.000001Z', X'00FF', DATE'2024-02-29', 0.1D,
                true, TIMESTAMP_NTZ'2024-10-27 02:30:00'"""
    columns = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    for t, run in zip(places, (lambda text: mica.sql(text, spark), spark.sql), strict=True):
        run(f"CREATE TABLE {t} (id INT, {columns}) USING {'mica' if t == places[0] else 'delta'}")
        run(f"INSERT INTO {t} (id) VALUES (1), (2)")
        run(f"INSERT INTO {t} SELECT 3, {values}")
        assigned = ", ".join(f"{name} = (SELECT max({name}) FROM {t} WHERE id = 3)" for name in names)
        run(f"UPDATE {t} x SET {assigned} WHERE x.id = 1")
        run(f"UPDATE {t} x SET c0 = x.id + (SELECT max(x.id) FROM {t} x) * 2, c1 = (SELECT c1 FROM {t} WHERE false)")
        run(f"MERGE INTO {t} USING (SELECT 2 AS id) s ON {t}.id = s.id WHEN MATCHED THEN UPDATE SET c0 = (SELECT 9)")
    ours, theirs = (sorted(map(tuple, spark.sql(f"SELECT * FROM {t}").collect())) for t in places)
    assert ours == theirs
    for wrong, why in (
        (f"(SELECT max(o.id) FROM {places[1]} o WHERE o.id = x.id)", "MERGE INTO"),
        (f"(SELECT id FROM {places[1]})", "more than one row"), ("(SELECT 1, 2)", "2 columns"),
        ("(SELECT array(1))", "plain types"),
    ):  # fmt: skip
        with pytest.raises(mica.UserError) as caught:
            mica.sql(f"UPDATE {places[0]} x SET c0 = {wrong}", spark)
        assert why in f"{caught.value} {caught.value.hint}"


def test_a_text_of_a_query_keeps_its_collation(spark: SparkSession, tmp_path: Path) -> None:
    t = f"delta.`{tmp_path / 't'}`"
    mica.sql(f"CREATE TABLE {t} (a STRING, c STRING COLLATE UTF8_LCASE, n INT) USING mica", spark)
    mica.sql(f"INSERT INTO {t} VALUES ('abc', 'abc', 0), ('ABC', 'x', 0)", spark)
    mica.sql(f"UPDATE {t} SET n = CASE WHEN 'abc' = (SELECT 'ABC' COLLATE UTF8_LCASE) THEN 1 ELSE 2 END", spark)
    mica.sql(f"UPDATE {t} SET n = n + 1 WHERE c IN (SELECT 'ABC' COLLATE UTF8_LCASE)", spark)
    assert sorted(row.n for row in mica.sql(f"SELECT n FROM {t}", spark).collect()) == [1, 2]
    with pytest.raises(mica.UserError, match="COLLATION_MISMATCH"):  # as strong as that of a column, as in Spark
        mica.sql(f"DELETE FROM {t} WHERE c = (SELECT 'x' COLLATE UTF8_BINARY_RTRIM)", spark)


#: Conditions with queries of another table and of the same one.
CONDITIONS = (
    "id IN (SELECT id FROM asked)", "id NOT IN (SELECT id FROM asked WHERE id > 0)", "id NOT IN (SELECT id FROM asked)",
    "s IN (SELECT s FROM asked WHERE false)", "s NOT IN (SELECT s FROM asked WHERE false)",
    "NOT s IN (SELECT s FROM asked WHERE false)", "at IN (SELECT at FROM asked)", "b IN (SELECT b FROM asked)",
    "v:u::string IN (SELECT DISTINCT s FROM asked) OR id = (SELECT max(id) FROM asked)",
    "x IN (SELECT x FROM asked) AND b NOT IN (SELECT b FROM asked WHERE b IS NOT NULL AND id <> 4)",
    "d IN (SELECT d FROM asked)", "id < (SELECT id FROM asked WHERE false)",
    "id > (SELECT avg(id) FROM changed WHERE id > 0) AND id IN (SELECT id FROM changed WHERE s <> 's5')",
    "c = (SELECT 'a')", "c IN (SELECT s FROM texts)", "c NOT IN (SELECT s FROM texts)", "c <> (SELECT 'a')",
    "id IN (WITH w AS (SELECT 3 AS a UNION ALL SELECT 4) SELECT a FROM w)",
    "EXISTS (SELECT id, s FROM asked WHERE id > 4) AND id > 2", "exists (SELECT 1 FROM asked WHERE id > 99)",
    "NOT EXISTS (SELECT * FROM changed WHERE id = 99) AND id IN (SELECT id FROM asked) OR id = 1",
    "id = CASE WHEN EXISTS (SELECT 1 FROM changed c WHERE c.id = id) THEN (SELECT 2) ELSE 3 END",
)  # fmt: skip


def _row(id_: int) -> dict[str, object]:
    text = None if id_ == 2 else f"s{id_}"
    at = dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC) + dt.timedelta(hours=abs(id_) % 24)
    value = None if text is None else text.encode()
    return {"id": id_, "s": text, "at": at, "d": Decimal(id_ % 100) / 4, "x": id_ / 10, "b": value}


@pytest.mark.slow
def test_queries_in_conditions_choose_the_rows_that_spark_chooses(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id BIGINT, s STRING, at TIMESTAMP, d DECIMAL(5,2), x DOUBLE, b BINARY"
    changed = mica.Table.create(tmp_path / "changed", f"{columns}, c CHAR(3), v VARIANT")
    changed.append([{**_row(i), "c": "abc"[: 1 + i % 3], "v": {"u": f"s{i + 1}"}} for i in (*range(7), -(2**63))])
    asked = mica.Table.create(tmp_path / "asked", columns)
    asked.append([*map(_row, range(3, 6)), {"x": math.nan}])
    mica.register("changed", changed.path)
    mica.register("asked", asked.path)
    texts = mica.Table.create(tmp_path / "texts", "s STRING")
    texts.append([{"s": text} for text in ("a", "ab", "ab ", "abc")])
    mica.register("texts", texts.path)
    every = [row.id for row in mica.sql("SELECT id FROM changed", spark).collect()]
    for condition in dealt(CONDITIONS, 0):
        wanted = sorted(row.id for row in mica.sql(f"SELECT id FROM changed WHERE {condition}", spark).collect())
        (done,) = mica.sql(f"DELETE FROM changed WHERE {condition}", spark).collect()
        left = changed.refresh().to_arrow().column("id").to_pylist()
        assert (sorted(left), done.num_affected_rows) == (sorted({*every} - {*wanted}), len(wanted)), condition
        mica.sql("RESTORE changed TO VERSION AS OF 1", spark)
    (done,) = mica.sql("UPDATE changed SET s = 'new' WHERE c IN (SELECT s FROM texts)", spark).collect()
    found = changed.refresh().scan("s = 'new'").to_arrow().column("c").to_pylist()
    assert ({*found}, done.num_affected_rows) == ({"ab ", "abc"}, len(found))
    for wrong, why in (
        ("id IN (SELECT a.id FROM asked a WHERE a.s = changed.s)", "MERGE INTO"),
        ("NOT EXISTS (SELECT 1 FROM asked a WHERE a.id = changed.id)", "columns of the changed table cannot be used"),
        ("id IN (SELECT id, s FROM asked)", "2 columns"), ("id IN (SELECT id FROM range(10001))", "MERGE INTO"),
        ("nope NOT IN (SELECT 1 WHERE false)", "nope"),
    ):  # fmt: skip
        with pytest.raises(mica.UserError) as caught:
            mica.sql(f"DELETE FROM changed WHERE {wrong}", spark)
        assert why in f"{caught.value} {caught.value.hint}", wrong
    matched = "changed.id = asked.id WHEN MATCHED AND changed.id IN (SELECT 4) THEN DELETE"
    (done,) = mica.sql(f"MERGE INTO changed USING asked ON {matched}", spark).collect()
    assert done.num_deleted_rows == 1


def test_a_query_may_have_read_what_others_add(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit meanwhile, of rows that WHERE excludes, is a conflict only if a query gave a value."""
    table, t = mica.Table.create(tmp_path, "id INT, n INT"), f"delta.`{tmp_path}`"
    table.append([{"id": 1, "n": 0}])
    commit = Change.commit

    def late(self: Change) -> Commit:
        mica.Table.open(tmp_path).append([{"id": 50, "n": 9}])
        return commit(self)

    monkeypatch.setattr(Change, "commit", late)
    mica.sql(f"UPDATE {t} SET n = n + 1 WHERE id = 1", spark)
    for text in (
        f"UPDATE {t} SET n = (SELECT max(n) FROM {t}) WHERE id = 1",
        f"DELETE FROM {t} WHERE id = 1 AND n < (SELECT max(n) FROM {t})",
    ):
        with pytest.raises(mica.ConflictError):
            mica.sql(text, spark)
    assert table.refresh().scan("id = 1").to_arrow().to_pylist() == [{"id": 1, "n": 1}]
