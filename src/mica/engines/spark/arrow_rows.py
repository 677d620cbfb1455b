"""Rows of this process as a DataFrame.

The rule: a session that sets no limit to the rows of an Arrow batch has one here, without which pyspark makes no
DataFrame of an Arrow table: a statement would fail when its rows are committed and only their number is told.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: How many rows a batch has; 0 or less is no limit. And Spark's own value.
_ROWS, _USUAL = "spark.sql.execution.arrow.maxRecordsPerBatch", "10000"
_LIMITS = Lock()


def of_arrow_table(spark: SparkSession, rows: pa.Table, schema: Any = None) -> DataFrame:
    """The rows as a DataFrame, with these columns of Spark or with those that Spark takes Arrow's for."""
    with _limited(spark):
        return spark.createDataFrame(rows, schema)


@contextmanager
def _limited(spark: SparkSession) -> Iterator[None]:
    if is_connect(spark):
        yield
        return
    with _LIMITS:  # another thread may have set the limit for its own rows
        before = str(spark.conf.get(_ROWS, _USUAL))
        if int(before) <= 0:
            spark.conf.set(_ROWS, _USUAL)
            try:
                yield
            finally:
                spark.conf.set(_ROWS, before)
            return
    yield
