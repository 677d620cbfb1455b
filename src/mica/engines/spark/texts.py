"""Predicates and columns that Spark itself evaluates.

The rule: Spark runs the user's own SQL text, never generated SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


#: How columns are called that `nested` puts into a struct.
NESTED = "__mica_nested_"


def nested(frame: DataFrame, name: str, columns: Sequence[str]) -> DataFrame:
    """The rows with these columns, which are called `NESTED` and the name of a field, as fields of a struct `name`."""
    from pyspark.sql import functions as sql

    fields = [sql.col(column).alias(column.removeprefix(NESTED)) for column in columns]
    return frame.withColumn(name, sql.struct(*fields)).drop(*columns)


def judged(frame: DataFrame, where: str | None, columns: Mapping[str, str], limit: int | None) -> DataFrame:
    """The rows of `frame` for which `where` is true, as `columns` (name → expression), up to `limit` of them."""
    from pyspark.sql import functions as sql

    if where is not None:
        frame = frame.where(where)
    frame = frame.select(*[sql.expr(text).alias(name) for name, text in columns.items()])
    return frame if limit is None else frame.limit(limit)
