"""Keys of a Variant that differ only in case are different keys, as in Spark's casts to structs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import mica
from mica.schema.arrow import variant_field

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENTS = [
    '{"a": 1, "A": 10, "o": [{"k": 1, "K": "x"}, {"K": "y"}]}', '{"A": "7", "b": 2}', '{"a": null, "o": {"k": 3}}',
    "[1]", "null", '{"a": 5, "o": []}',
]  # fmt: skip
CASTS = [
    "try_variant_get({v}, '$', 'struct<a:int,A:int>')",
    "try_variant_get({v}, '$', 'struct<A:string,a:bigint,B:int,b:int>')",
    "try_variant_get({v}, '$.o', 'array<struct<K:string,k:int>>')",
    "try_variant_get({v}, '$.o', 'struct<K:string,k:int>')",
    "TRY_CAST({v} AS STRUCT<A: VARCHAR(9), a: STRING>)",
    "cast(try_variant_get({v}, '$', 'struct<a:int,A:int>') AS STRUCT<x: BIGINT, y: STRING>)",
]


@pytest.mark.parametrize("shredded", ["struct<a: bigint, A: bigint, o: array<struct<k: int, K: string>>>", None])
def test_casts_to_structs_know_keys_by_case(spark: SparkSession, tmp_path: Path, shredded: str | None) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    ids = pa.array(range(len(DOCUMENTS)), pa.int32())
    schema = pa.schema([pa.field("id", pa.int32()), variant_field("v")])
    rows = pa.table([ids, mica.variant.from_json(DOCUMENTS)], schema=schema)
    table.append(rows, shredding=None if shredded is None else {"v": shredded})
    given = ", ".join(f"({i}, '{text}')" for i, text in enumerate(DOCUMENTS))
    columns = ", ".join(f"{cast.format(v='v')} AS c{i}" for i, cast in enumerate(CASTS))
    expected = spark.sql(
        f"SELECT {columns} FROM (SELECT id, parse_json(j) AS v FROM VALUES {given} AS t(id, j)) ORDER BY id"
    )
    asked = {"id": "id"} | {f"c{i}": cast.format(v="v") for i, cast in enumerate(CASTS)}
    scan = table.scan(columns=asked)
    theirs = [_plain(tuple(row)) for row in expected.collect()]
    assert [
        _plain(tuple(row.values())[1:]) for row in sorted(scan.to_arrow().to_pylist(), key=lambda r: r["id"])
    ] == theirs
    assert [_plain(tuple(row)[1:]) for row in scan.to_df(spark).orderBy("id").collect()] == theirs
    mica.register("keys_by_case", table.path)
    assert [
        _plain(tuple(row)) for row in mica.sql(f"SELECT {columns} FROM keys_by_case ORDER BY id", spark).collect()
    ] == theirs


@pytest.mark.parametrize("name", ["a", "A"])
def test_a_field_of_two_that_differ_only_in_case_is_refused(spark: SparkSession, tmp_path: Path, name: str) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append([{"v": {"a": 1, "A": 2}}])
    taken = f"cast(v AS STRUCT<a: INT, A: INT>).{name}"
    with pytest.raises(mica.errors.UserError, match="AMBIGUOUS_COLUMN"):
        table.scan(columns={"x": taken})
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE_TO_FIELDS"):
        spark.sql(f"SELECT {taken} FROM (SELECT parse_json('null') AS v)")


def _plain(value: Any) -> Any:
    """Structs and rows as tuples of their values."""
    if isinstance(value, dict):
        return tuple(map(_plain, value.values()))
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else _tupled(value)


def _tupled(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def test_keys_with_backslashes_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    keys = ["\n", r"\n", r"a\b", r"a\\b", "a\tb", "A", r"\u0041", "\\", r"\\", r"\%", "%"]
    table = mica.Table.create(tmp_path / "t", "id INT, v VARIANT")
    table.append([{"id": i, "v": {key: i}} for i, key in enumerate(keys)])
    mica.register("keys_in_quotes", table.path)
    for path in (r"['\n']", r"['a\b']", r"['a\\b']", "['a\tb']", r"['\u0041']", r"['\\']", r"['\%']"):
        query = f"SELECT id FROM keys_in_quotes WHERE v:{path} IS NOT NULL"
        (expected,) = [row[0] for row in mica.sql(query, spark).collect()]
        for where in (f"v:{path} IS NOT NULL", f"v:{path}::int >= 0"):
            assert table.scan(columns=["id"], where=where).to_arrow().column(0).to_pylist() == [expected], path
