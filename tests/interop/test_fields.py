"""Fields of structs set alone, in updates and merges: delta-spark and mica make the same rows of one table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from tests.support import dealt, stored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "id INT, s STRUCT<x: INT, y: STRING, t: STRUCT<a: DOUBLE, b: ARRAY<INT>>>, `a b` STRUCT<`c.d`: INT, e: INT>"
ROWS = """
    (1, named_struct('x', 1, 'y', 'é', 't', named_struct('a', 1.5, 'b', array(1))), named_struct('c.d', 1, 'e', 2)),
    (2, NULL, NULL), (3, named_struct('x', NULL, 'y', 'z', 't', NULL), named_struct('c.d', NULL, 'e', 3)),
    (4, named_struct('x', 4, 'y', NULL, 't', named_struct('a', NULL, 'b', NULL)), NULL)
"""


def made(spark: SparkSession, path: Path) -> tuple[mica.Table, str]:
    """The table twice: mica's, and delta-spark's by its name in SQL."""
    properties = "'delta.columnMapping.mode' = 'name'"
    for name in ("mica", "delta"):
        spark.sql(f"CREATE TABLE delta.`{path / name}` ({DDL}) USING delta TBLPROPERTIES ({properties})")
        spark.sql(f"INSERT INTO delta.`{path / name}` VALUES {ROWS}")
    return mica.Table.open(path / "mica"), f"delta.`{path / 'delta'}`"


def same(spark: SparkSession, table: mica.Table, other: str) -> list[Any]:
    found = sorted((tuple(row) for row in spark.read.format("delta").load(table.path).collect()), key=repr)
    assert found == sorted((tuple(row) for row in spark.table(other).collect()), key=repr)
    own = table.to_df(spark).select("id", "s", "a b").collect()
    assert sorted(map(tuple, own), key=repr) == found
    return found


@pytest.mark.slow
def test_the_same_rows(delta_session: SparkSession, tmp_path: Path) -> None:
    """In a table whose columns have other names in files, of which one is renamed."""
    spark = delta_session
    table, other = made(spark, tmp_path)
    table.rename_column("s.t.a", "a2")
    spark.sql(f"ALTER TABLE {other} RENAME COLUMN s.t.a TO a2")
    table.update({"s.x": "id + 10", "S.T.A2": "s.x", "`a b`.`c.d`": "7"}, "id <> 3")
    spark.sql(f"UPDATE {other} SET s.x = id + 10, S.T.a2 = s.x, `a b`.`c.d` = 7 WHERE id <> 3")
    found = same(spark, table, other)
    assert found[1][1].asDict(recursive=True) == {"x": 12, "y": None, "t": {"a2": None, "b": None}}
    rows = "(1, 'one', array(9)), (2, 'two', NULL), (5, 'five', array(5))"
    source = spark.sql(f"SELECT * FROM VALUES {rows} AS (id, y, b)")
    source.createOrReplaceTempView("fields")
    merge = table.merge(source, "target.id = source.id").when_matched_update(
        {"target.s.y": "source.y", "s.t.b": "b", "`a b`.e": "target.s.x"}
    )
    merge.when_not_matched_by_source_update({"s.t": "NULL", "s.x": "0"}, "id = 4").execute()
    spark.sql(
        f"MERGE INTO {other} t USING fields s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.s.y = s.y, t.s.t.b = s.b, "
        "t.`a b`.e = t.s.x WHEN NOT MATCHED BY SOURCE AND t.id = 4 THEN UPDATE SET t.s.t = NULL, t.s.x = 0"
    )
    same(spark, table, other)


#: Values whose parts have other types than the column's, or none.
NESTED = {
    "l": ["array(1, id)", "array()", "array(NULL, 2S)", "array(1.7)", "array(99999999999999999999)", "NULL",
          "array(array(1))", "if(id > 1, array(id), array(NULL))"],
    "m": ["map('a', id)", "map()", "map('a', NULL)", "map('a', 'b')"],
    "s": ["named_struct('x', id, 'y', 5)", "named_struct('x', 1L, 'Y', NULL)", "named_struct('x', NULL, 'y', 'a')",
          "named_struct('x', 'one', 'y', 'a')", "named_struct('x', 1)",
          "named_struct('y', 5, 'x', id)", "struct(NULL AS Y, 1L AS X)", "named_struct('y', 5, 'z', id)",
          "if(id > 1, named_struct('y', 5, 'x', id), NULL)", "named_struct('x', 1, 'y', 'a', 'z', 2)"],
    "n": ["array(named_struct('a', id, 'b', array(1L)))", "array(named_struct('a', NULL, 'b', array()), NULL)",
          "array()", "array(named_struct('a', 1, 'b', array(70000)))",
          "array(named_struct('b', array(1L), 'a', id), NULL)", "array(named_struct('b', array(1L), 'c', id))"],
    "d": ["array(DATE'2020-01-01')", "array(TIMESTAMP'2020-01-01 05:00:00')", "array(true)"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("column", dealt([*NESTED], 0))
def test_nested_values_are_stored_part_by_part(delta_session: SparkSession, tmp_path: Path, column: str) -> None:
    """What delta-spark stores mica stores too, but for texts, which mica wants cast; what it refuses mica refuses."""
    spark = delta_session
    ddl = (
        "id INT, l ARRAY<BIGINT>, m MAP<STRING, BIGINT>, s STRUCT<x: BIGINT, y: STRING>, "
        "n ARRAY<STRUCT<a: DOUBLE, b: ARRAY<SMALLINT>>>, d ARRAY<TIMESTAMP_NTZ>"
    )
    table, other = mica.Table.create(tmp_path / "mica", ddl), f"delta.`{tmp_path / 'delta'}`"
    spark.sql(f"CREATE TABLE {other} ({ddl}) USING delta")
    table.append([{"id": 1}, {"id": 2}])
    spark.sql(f"INSERT INTO {other} (id) VALUES (1), (2)")
    taken = 0
    for text in NESTED[column]:
        try:
            spark.sql(f"UPDATE {other} SET {column} = {text}")
        except Exception:  # noqa: BLE001 - Spark's, of any kind
            with pytest.raises(mica.MicaError):
                table.update({column: text})
            continue
        table.update({column: text})
        taken += 1
        assert stored(table.path) == stored(tmp_path / "delta"), text
    assert taken >= 2
    theirs = sorted((tuple(row) for row in spark.table(other).collect()), key=repr)
    assert sorted((tuple(row) for row in table.refresh().to_df(spark).collect()), key=repr) == theirs
