"""Which reader stands behind a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def is_native(frame: DataFrame) -> bool:
    """Whether Spark's own Parquet reader is in the plan, and no task of mica's."""
    plan = frame._jdf.queryExecution().toString()
    return "FileScan parquet" in plan and "MapInArrow" not in plan
