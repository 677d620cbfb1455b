"""A cast that Spark may not ask for in every row fails in those where it asks, as in Spark, and in no others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica
from tests.support import dealt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.parametrize("type_", dealt(["INT", "DOUBLE", "DATE", "BOOLEAN", "DECIMAL(5,2)", "TIMESTAMP"], 0))
def test_a_binary_that_is_no_text_is_no_null(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    values = """SELECT 0 AS id, to_variant_object(named_struct('b', X'FF00')) AS v UNION ALL
                SELECT 1, to_variant_object(named_struct('b', X'4142')) UNION ALL
                SELECT 2, parse_json('{"b": null}') UNION ALL SELECT 3, parse_json('{"c": 1}') UNION ALL
                SELECT 4, NULL"""
    t = f"delta.`{tmp_path / 't'}`"
    mica.sql(f"CREATE TABLE {t} (id INT, v VARIANT) USING mica", spark)
    mica.sql(f"INSERT INTO {t} {values}", spark)
    for asked in (
        f"SELECT CASE WHEN id >= {{n}} THEN string(v:b::{type_}) END AS x FROM {{t}}",
        f"SELECT l.v:b::{type_} AS x FROM {{t}} l JOIN {{t}} r ON l.id = r.id AND r.id >= {{n}}",
    ):
        for n in (0, 1):
            for table in (t, f"({values})"):
                with pytest.raises(Exception, match=r"INVALID_VARIANT_CAST|INVALID_CAST"):
                    mica.sql(asked.format(t=table, n=n), spark).collect()
    found = mica.sql(f"SELECT CASE WHEN id >= 2 THEN v:b::{type_} END AS x FROM {t} ORDER BY id", spark).collect()
    assert [row.x for row in found] == [None] * 5
