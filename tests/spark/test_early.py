"""The early layout on Spark: DataFrames in and out, expressions as before shredding, and conversion as a job."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from mica.checking.inspect import inspect_file
from tests.early import EXPRESSIONS, TEXT, foreign, values, variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("by_tasks")

SHREDDING = {"v": "struct<a: decimal(9,2), b: struct<a: bigint, c: string>, l: array<bigint>, d: double, o: boolean>"}


def value(rng: random.Random, depth: int = 0) -> Any:
    kinds: list[Any] = [rng.randint(-999, 999), 123, 1.25, str(rng.randint(0, 99)), "x", None, True, 0.5e300]
    if depth < 2:
        kinds += [[value(rng, depth + 1) for _ in range(rng.randint(0, 3))]]
        kinds += [{k: value(rng, depth + 1) for k in "abcdlo" if rng.random() < 0.4}]
    return rng.choice(kinds)


@pytest.fixture
def documents(rng: random.Random) -> list[str | None]:
    """Mostly objects of one shape, with anything in any place."""
    rows: list[str | None] = []
    for i in range(400):
        row = {k: value(rng) for k in ("a", "b", "l", "d", "o", "z") if rng.random() < 0.7}
        if rng.random() < 0.7:
            row |= {"a": i, "b": {"c": f"s{i}"}, "l": [i, i + 1]}
        rows.append(rng.choice([json.dumps(row)] * 8 + [None, json.dumps(value(rng))]))
    return rows


@pytest.mark.slow
def test_expressions_are_the_same_before_and_after(
    spark: SparkSession, tmp_path: Path, documents: list[str | None], rng: random.Random
) -> None:
    texts = spark.createDataFrame([(i, text) for i, text in enumerate(documents)], "i int, t string")
    frame = texts.selectExpr("i", "parse_json(t) as v").repartition(3)
    folders = {layout: str(tmp_path / layout) for layout in ("standard", "early")}
    for layout, folder in folders.items():
        mica.write_parquet(frame, folder, layout=layout, shredding=SHREDDING)
    asked = [*rng.sample(EXPRESSIONS, 60), "to_json(v)", "cast(v as string)"]
    selected = ["i", *(f"{expression} as e{n}" for n, expression in enumerate(asked))]
    expected = frame.selectExpr(*selected).orderBy("i").collect()
    for folder in folders.values():
        scan = mica.read_parquet(folder)
        assert scan.to_df(spark).selectExpr(*selected).orderBy("i").collect() == expected
    # mica's own answers, in process and on Spark, are one.
    columns = {"i": "i", "s": "cast(v as string)", "n": "try_variant_get(v, '$.a', 'decimal(12,3)')"}
    found = [mica.read_parquet(folder, columns=columns).to_arrow().sort_by("i") for folder in folders.values()]
    assert found[0] == found[1]
    on_spark = mica.read_parquet(folders["early"], columns=columns).to_df(spark).orderBy("i").toArrow()
    assert on_spark.to_pydict() == found[0].to_pydict()


def test_where_finds_what_spark_finds(spark: SparkSession, tmp_path: Path, documents: list[str | None]) -> None:
    frame = spark.createDataFrame([(text,) for text in documents], "t string").selectExpr("parse_json(t) as v")
    mica.write_parquet(frame, tmp_path / "early", layout="early", shredding=SHREDDING)
    for where in ("try_variant_get(v, '$.a', 'int') = 123", "try_variant_get(v, '$.b.c', 'string') >= 's3'"):
        expected = frame.where(where).count()
        assert expected
        assert mica.read_parquet(tmp_path / "early", where=where).count() == expected
        assert mica.read_parquet(tmp_path / "early", where=where).to_df(spark).count() == expected


@pytest.mark.parametrize("columns", [None, ["v"], {"c": "v:b.c::string"}])
def test_a_collation_in_the_predicate_leaves_early_files_early(
    spark: SparkSession, tmp_path: Path, documents: list[str | None], columns: Any
) -> None:
    frame = spark.createDataFrame([(text,) for text in documents], "t string").selectExpr("parse_json(t) as v")
    mica.write_parquet(frame, tmp_path / "early", layout="early", shredding=SHREDDING)
    where = "try_variant_get(v, '$.b.c', 'string') COLLATE {} < 'S15'"
    for collation in ("UNICODE_CI", "UTF8_LCASE"):
        expected = frame.where(where.format(collation)).count()
        assert expected
        scan = mica.read_parquet(tmp_path / "early", where=where.format(collation), columns=columns)
        assert scan.to_df(spark).count() == len(scan.to_df(spark).collect()) == expected


def test_a_schema_that_is_not_given_is_inferred(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(500).selectExpr("parse_json(concat('{\"a\":', id, ',\"l\":[', id, ']}')) as v")
    mica.write_parquet(frame, tmp_path / "early", layout="early", untyped="where needed")
    for file in (tmp_path / "early").iterdir():
        types = {(row["path"], row["type"]) for row in inspect_file(str(file))}
        assert {("$['a']", "bigint"), ("$['l'][*]", "bigint")} <= types
    assert sorted(v["a"] for v in values(tmp_path / "early")) == list(range(500))


def test_a_conversion_is_a_job(spark: SparkSession, tmp_path: Path, documents: list[str | None]) -> None:
    frame = spark.createDataFrame([(text,) for text in documents], "t string").selectExpr("parse_json(t) as v")
    mica.write_parquet(frame.repartition(3), tmp_path / "early", layout="early", shredding=SHREDDING)
    done = mica.convert_files(tmp_path / "early", tmp_path / "table", spark=spark)
    assert (done.rows, done.rebuilt) == (len(documents), 0)
    before = sorted(map(str, values(tmp_path / "early")))
    assert sorted(map(str, mica.Table.open(tmp_path / "table").scan().to_pandas()["v"])) == before
    again = mica.convert_files(tmp_path / "table", tmp_path / "again", layout="early", spark=spark)
    assert (again.rows, again.rebuilt) == (len(documents), 0)
    assert sorted(map(str, values(tmp_path / "again"))) == before


@pytest.mark.usefixtures("compiled")
def test_spark_reads_pages_that_moved(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is left over, so no value was decoded on the way."""
    documents = [{"a": i, "b": {"c": f"s{i % 7}"} if i % 3 else {}, "l": [i] * (i % 4)} for i in range(1000)]
    shredding = {"v": "struct<a: bigint, b: struct<c: string>, l: array<bigint>>"}
    mica.write_parquet(variants(*documents, ...), tmp_path / "e.parquet", layout="early", shredding=shredding)
    mica.convert_files(tmp_path / "e.parquet", tmp_path / "folder", to="parquet")
    frame = spark.read.parquet(str(tmp_path / "folder"))
    found = [None if row[0] is None else json.loads(row[0]) for row in frame.selectExpr("to_json(v)").collect()]
    assert found == [*documents, None]
    leaves = frame.selectExpr("variant_get(v, '$.a', 'bigint')", "variant_get(v, '$.b.c', 'string')").collect()
    assert [tuple(row) for row in leaves] == [(d["a"], d["b"].get("c")) for d in documents] + [(None, None)]


def test_a_job_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    for i in range(3):
        mica.write_parquet(variants({"a": i}), tmp_path / "src" / f"{i}.parquet", layout="early", shredding=SHREDDING)
    foreign(tmp_path / "src" / "z.parquet", [{"untyped_value": b"\x01", "object": None}], TEXT)
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.convert_files(tmp_path / "src", tmp_path / "target", to="parquet", spark=spark)
    assert "z.parquet" in str(caught.value)
    assert not [p for p in (tmp_path / "target").rglob("*") if p.is_file()]
