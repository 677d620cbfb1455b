"""Predicates and columns that Spark itself evaluates.

The rule: Spark runs the user's own SQL text, never generated SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def judged(frame: DataFrame, where: str | None, columns: Mapping[str, str], limit: int | None) -> DataFrame:
    """The rows of `frame` for which `where` is true, as `columns` (name → expression), up to `limit` of them."""
    from pyspark.sql import functions as sql

    if where is not None:
        frame = frame.where(where)
    frame = frame.select(*[sql.expr(text).alias(name) for name, text in columns.items()])
    return frame if limit is None else frame.limit(limit)
