"""Rows of this process as a DataFrame.

The rule: a session that sets no limit to the rows of an Arrow batch has one here, without which pyspark makes no
DataFrame of an Arrow table: a statement would fail when its rows are committed and only their number is told.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.session import is_connect, with_setting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: How many rows a batch has; 0 or less is no limit. And Spark's own value.
_ROWS, _USUAL = "spark.sql.execution.arrow.maxRecordsPerBatch", "10000"
_LIMITS = Lock()


def of_arrow_table(spark: SparkSession, rows: pa.Table, schema: Any = None) -> DataFrame:
    """The rows as a DataFrame, with these columns of Spark or with those that Spark takes Arrow's for."""
    if not is_connect(spark):
        with _LIMITS:  # another thread may have set the limit for its own rows
            if int(str(spark.conf.get(_ROWS))) <= 0:
                with with_setting(spark, _ROWS, _USUAL):
                    return spark.createDataFrame(rows, schema)
    return spark.createDataFrame(rows, schema)
