"""Rows of this process as DataFrames, whatever the session says of Arrow."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import mica
from tests.oracle import conf


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_numbers_of_rows_need_no_limit_of_batches(spark: SparkSession, tmp_path: Path, limit: str) -> None:
    """pyspark makes no DataFrame of an Arrow table without one: a statement failed when its rows were committed."""
    table = mica.Table.create(tmp_path, "id INT")
    with conf(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": limit}):
        assert mica.sql(f"INSERT INTO delta.`{table.path}` VALUES (1), (2)", spark).collect() == [(2, 2)]
        assert mica.sql(f"UPDATE delta.`{table.path}` SET id = 3 WHERE id = 1", spark).collect() == [(1,)]
        assert mica.sql(f"DESCRIBE HISTORY delta.`{table.path}`", spark).count() == 3
        assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == limit
