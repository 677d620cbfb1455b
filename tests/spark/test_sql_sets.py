"""EXCEPT ALL and INTERSECT ALL over constants give the rows that Spark gives."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 3 AS c FROM {0} EXCEPT ALL SELECT id FROM {0} WHERE 1 > 2", [(3,), (3,)]),
        ("SELECT 3 AS c, 'a' AS d FROM {0} EXCEPT ALL SELECT id, 'b' FROM {0} WHERE 1 > 2", [(3, "a"), (3, "a")]),
        ("SELECT 3 AS c FROM {0} INTERSECT ALL SELECT id FROM {0} WHERE 1 > 2", []),
    ],
)
def test_bags_of_constants_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, text: str, rows: list[tuple[object, ...]]
) -> None:
    """Spark's optimiser gives columns of two nodes the same ids, and broke its plan where it saw that again."""
    table = mica.Table.create(tmp_path / "t", "id INT")
    table.append([{"id": 1}, {"id": 2}])
    mica.register("bags", table)
    table.to_df(spark).createOrReplaceTempView("bags_of_spark")
    assert sorted(spark.sql(text.format("bags_of_spark")).collect()) == rows
    assert sorted(mica.sql(text.format("bags"), spark).collect()) == rows
