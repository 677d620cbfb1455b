"""Schemas that change, in turn with delta-spark: files have other names, places and types, the rows are the same."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.errors import MicaError
from mica.schema.types import INTEGER
from tests.oracle import conf
from tests.support import CAMPAIGN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = 200 if CAMPAIGN else 7
START = (
    "id INT, p INT, s STRUCT<x: INT, y: ARRAY<STRUCT<z: STRING>>, m: MAP<STRING, STRUCT<k: INT>>>, v VARIANT, t STRING"
)


def by_spark(spark: SparkSession, path: Path) -> list[str]:
    frame = spark.read.format("delta").load(str(path))
    return sorted(row[0] for row in frame.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))").collect())


def by_mica(spark: SparkSession, path: Path) -> list[str]:
    frame = mica.Table.open(path).to_df(spark)
    return sorted(row[0] for row in frame.selectExpr("to_json(struct(*), map('ignoreNullFields', 'false'))").collect())


def in_process(path: Path) -> int:
    return mica.Table.open(path).to_arrow().num_rows


def row(number: int, names: list[str]) -> dict[str, Any]:
    """A row for the columns that are there."""
    inner = {"x": number, "y": [{"z": f"z{number}"}], "m": {"k": {"k": number}}}
    known = {"id": number, "p": number % 2, "s": inner, "v": {"a": number}, "t": f"t{number}"}
    return {name: value for name, value in known.items() if name in names}


class Changes:
    """Random changes by either writer; each tells whether it applies."""

    def __init__(self, spark: SparkSession, path: Path, rng: random.Random) -> None:
        self.spark, self.path, self.rng, self.fresh = spark, path, rng, 0

    @property
    def table(self) -> mica.Table:
        return mica.Table.open(self.path)

    def sql(self, text: str) -> None:
        self.spark.sql(text.replace("TABLE", f"TABLE delta.`{self.path}`", 1))

    def append(self, ours: bool) -> None:
        self.fresh += 1
        names = self.table.schema.names
        if ours:
            self.table.append([row(self.fresh, names)], schema_evolution=True)
        else:
            mentioned = [n for n in ("id", "t") if n in names] or names[:1]
            values = {"id": str(self.fresh), "t": f"'s{self.fresh}'"}
            shown = ", ".join(values.get(n, "NULL") for n in mentioned)
            self.spark.sql(f"INSERT INTO delta.`{self.path}` ({', '.join(mentioned)}) VALUES ({shown})")

    def add(self, ours: bool) -> None:
        self.fresh += 1
        if ours:
            into = self.rng.choice(
                [None, *(["s", "s.y.element", "s.m.value"] if "s" in self.table.schema.names else [])]
            )
            self.table.add_columns(f"c{self.fresh} INT", into=into, first=self.rng.random() < 0.3)
        else:
            self.sql(f"ALTER TABLE ADD COLUMNS (c{self.fresh} STRING FIRST)")

    def rename(self, ours: bool) -> None:
        self.fresh += 1
        top = self.rng.choice([n for n in self.table.schema.names if n != "s"])
        if ours:
            self.table.rename_column(top, f"r{self.fresh}")
        else:
            self.sql(f"ALTER TABLE RENAME COLUMN {top} TO r{self.fresh}")

    def drop(self, ours: bool) -> None:
        names = [n for n in self.table.schema.names if n != "s" and n not in self.table.partition_by]
        if len(names) < 3:
            return
        if ours:
            self.table.drop_columns([self.rng.choice(names)])
        else:
            self.sql(f"ALTER TABLE DROP COLUMN {self.rng.choice(names)}")

    def widen(self, ours: bool) -> None:
        narrow = [f.name for f in self.table.schema.fields if f.type == INTEGER]
        if not narrow:
            return
        if ours:
            self.table.alter_column(narrow[0], type="BIGINT")
        else:
            self.sql(f"ALTER TABLE ALTER COLUMN {narrow[0]} TYPE BIGINT")

    def change(self, ours: bool) -> None:
        first = self.table.schema.names[0]
        if ours:
            self.table.delete(f"{first} IS NULL AND 1 = 0")
            self.table.optimize()
        else:
            self.sql(f"ALTER TABLE ALTER COLUMN {first} COMMENT 'first'")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(4 if CAMPAIGN else 1))
def test_in_turn(delta_session: SparkSession, tmp_path: Path, rng: random.Random, number: int) -> None:
    spark, path, mode = delta_session, tmp_path / str(number), rng.choice(["name", "id"])
    properties = {"delta.columnMapping.mode": mode, "delta.enableTypeWidening": "true", "delta.checkpointInterval": "4"}
    if rng.random() < 0.5:
        mica.Table.create(path, START, ["p"], properties=properties)
    else:
        shown = ", ".join(f"'{k}' = '{v}'" for k, v in properties.items())
        spark.sql(f"CREATE TABLE delta.`{path}` ({START}) USING delta PARTITIONED BY (p) TBLPROPERTIES ({shown})")
    changes = Changes(spark, path, rng)
    changes.append(True)
    told = []
    for _ in range(STEPS):
        what = rng.choice(["append", "append", "add", "rename", "drop", "widen", "change"])
        ours = rng.random() < 0.5
        told.append((what, ours))
        getattr(changes, what)(ours)
        if what in ("append", "change"):
            assert by_mica(spark, path) == by_spark(spark, path), told
            assert in_process(path) == len(by_spark(spark, path))
    assert by_mica(spark, path) == by_spark(spark, path), told
    assert mica.check(path).ok, told


@pytest.mark.slow
def test_a_table_gets_mapping_later(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = mica.Table.create(path, "id INT, s STRUCT<x: INT>")
    table.append([{"id": 1, "s": {"x": 1}}])
    table.set_properties({"delta.columnMapping.mode": "name"}).rename_column("id", "key").rename_column("s.x", "y")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, named_struct('y', 2))")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN s TO z")
    table.refresh().append([{"key": 3, "z": {"y": 3}}])
    expected = [{"key": n, "z": {"y": n}} for n in (1, 2, 3)]
    assert sorted(table.to_arrow().to_pylist(), key=lambda r: r["key"]) == expected
    assert [
        r.asDict(recursive=True) for r in spark.read.format("delta").load(str(path)).orderBy("key").collect()
    ] == expected
    assert len(table.scan("z.y = 3").plan.kept) == 1


@pytest.mark.slow
def test_dropped_features(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    table = mica.Table.create(path, "id INT, p INT, s STRUCT<x: INT>, v VARIANT", ["p"], properties)
    for part in range(2):
        table.append([{"id": part * 4 + i, "p": part, "s": {"x": i}, "v": {"a": i}} for i in range(4)])
    table.rename_column("s", "t").delete("id % 4 = 1")
    before = by_spark(spark, path)
    table.drop_feature("columnMapping").drop_feature("deletionVectors").drop_feature("variantShredding")
    assert by_spark(spark, path) == before == by_mica(spark, path)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT 100, 1, named_struct('x', 1), parse_json('{{}}')")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 0")
    assert by_mica(spark, path) == by_spark(spark, path)
    history = table.refresh().version - 2
    assert spark.sql(f"SELECT * FROM delta.`{path}` VERSION AS OF {history - 3}").count() == len(before)


WIDER = [("b", "INT"), ("f", "DOUBLE"), ("d", "TIMESTAMP_NTZ"), ("n", "DECIMAL(10,4)"), ("l.element", "BIGINT"),
         ("m.key", "BIGINT"), ("m.value", "DOUBLE"), ("b", "BIGINT")]  # fmt: skip


@pytest.mark.slow
def test_wider_types(delta_session: SparkSession, tmp_path: Path) -> None:
    spark, path = delta_session, tmp_path / "t"
    table = mica.Table.create(path, "b BYTE, f FLOAT, d DATE, n DECIMAL(5,2), l ARRAY<SHORT>, m MAP<INT, FLOAT>",
                              properties={"delta.enableTypeWidening": "true"})  # fmt: skip
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        spark.sql(f"INSERT INTO delta.`{path}` SELECT 1, 0.7, DATE'2020-01-01', 1.25, array(1S), map(1, 0.1F)")
        table.refresh()
        for column, type_ in WIDER:
            table.alter_column(column, type=type_)
        spark.sql(
            f"INSERT INTO delta.`{path}` SELECT 5000000000, 0.7D, TIMESTAMP_NTZ'2020-01-01 01:00:00', 1.2345, "
            "array(5000000000), map(5000000000, 0.1D)"
        )
        assert by_mica(spark, path) == by_spark(spark, path)
    with pytest.raises(MicaError) as caught:
        table.alter_column("b", type="INT")
    assert caught.value.code == "INCOMPATIBLE_TYPE"
