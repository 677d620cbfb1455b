"""Which reader a DataFrame has, Spark's own or the kernel's, and that both give the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mica
from tests.oracle import conf
from tests.spark.readers import is_native

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The arguments of the scan, and whether Spark's own reader answers it.
ASKED: dict[str, tuple[dict[str, Any], bool]] = {
    "everything": ({}, True),
    "plain columns": ({"columns": ["id", "p"]}, True),
    "whole Variants by name": ({"columns": ["id", "v"]}, False),
    "an expression": ({"columns": {"id": "id", "a": "v:a::int"}}, False),
    "a predicate": ({"where": "id >= 0"}, False),
    "a limit": ({"limit": 100}, False),
}


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """Two partitions, at a place whose name Hadoop would take for a pattern."""
    path = tmp_path_factory.mktemp("reader") / "t {a,b}[1]*? ü"
    rows = spark.range(40).selectExpr(
        "id", "CAST(id % 2 AS STRING) AS p", "parse_json(concat('{\"a\":', id, '}')) AS v"
    )
    found = mica.Table.create(path, "id BIGINT, p STRING, v VARIANT", partition_by=["p"])
    found.append(rows)
    return found


def test_a_scan_is_not_refused_by_ansi_before_a_session_says_whether_it_counts(
    spark: SparkSession, table: mica.Table
) -> None:
    scan = table.scan(where="id = 'x' OR id = '7'", columns=["id"])
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        assert [row.id for row in scan.to_df(spark).collect()] == [7]
    with conf(spark, {"spark.sql.ansi.enabled": "true"}), pytest.raises(mica.UserError, match="cannot be cast"):
        scan.to_df(spark)


@pytest.mark.parametrize("name", ASKED)
def test_the_reader_and_its_rows(spark: SparkSession, table: mica.Table, name: str) -> None:
    arguments, native = ASKED[name]
    scan = table.scan(**arguments)
    frame = scan.to_df(spark)
    assert is_native(frame) is native
    shown = [f"to_json({n})" if n == "v" else n for n in frame.columns]
    here = scan.to_arrow()
    found = [mica.variant.to_json(here[n].combine_chunks()) if n == "v" else here[n] for n in here.column_names]
    expected = sorted(zip(*(column.to_pylist() for column in found), strict=True))
    assert sorted(map(tuple, frame.selectExpr(*shown).collect())) == expected
    assert len(expected) == 40


def test_many_partitions_bare_files_and_none(spark: SparkSession, table: mica.Table, tmp_path: Path) -> None:
    rows = spark.range(17).selectExpr("id", "CAST(id AS STRING) AS p", "parse_json('1') AS v")
    many = mica.Table.create(tmp_path / "many", "id BIGINT, p STRING, v VARIANT", partition_by=["p"])
    many.append(rows)
    assert many.to_df(spark).count() == 17
    assert not is_native(many.to_df(spark))
    assert not is_native(mica.read_parquet(table.file_uris()).to_df(spark))
    empty = mica.Table.create(tmp_path / "empty", "v VARIANT").to_df(spark)
    assert (empty.count(), empty.columns) == (0, ["v"])
