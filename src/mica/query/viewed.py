"""Runs a text of Spark's over queries of mica's: each is a view for as long as Spark takes to run the text.

The rule: Spark sees a view's rows and never a table of mica's, so it runs whatever it can run over a query.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mica.engines.spark.doors import own_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def over_views(
    spark: SparkSession, pieces: Sequence[str], ours: Callable[[str], bool], query: Callable[[str], DataFrame]
) -> DataFrame | None:
    """Spark's result of a text in pieces: each second one is a query. None if none of them is one of `ours`. The text
    must be one that Spark runs at once, since the views are gone after it."""
    text: str = ""
    views: dict[str, DataFrame] = {}
    for number, piece in enumerate(pieces):
        if number % 2 and ours(piece):
            name = f"mica_{uuid.uuid4().hex}"
            views[name], piece = query(piece), f"SELECT * FROM {name}"  # noqa: PLW2901, S608 - the view for the query
        text += piece
    if not views:
        return None
    made = list[str]()
    try:
        for name, rows in views.items():
            rows.createOrReplaceTempView(name)
            made.append(name)
        return own_sql(spark, text)
    finally:
        for name in made:
            spark.catalog.dropTempView(name)
