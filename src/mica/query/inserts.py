"""Several INSERTs that share a FROM.

The rule: all of them read what is there before the first one, and none writes before the tables and columns of all have
been checked. What fails of a row's value may fail after another table got its rows, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mica.query import described
from mica.query.insert import Query, refuse_unfit
from mica.query.row_statements import Insert, behind
from mica.query.statements import Inserts, parse_statement
from mica.schema.ddl import spelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.table import Table


def run(
    spark: SparkSession,
    statement: Inserts,
    query: Query,
    target: Callable[[tuple[str, ...]], Table | None],
    insert: Callable[[Insert, str, Query], DataFrame | None],
) -> DataFrame | None:
    """The number of rows; None if Spark knows all tables that get some. `insert` runs one into a table of mica's."""
    if not any(target(table) is not None for table in statement.tables):
        return None
    made = dict[str, "DataFrame"]()

    def prepared(text: str) -> DataFrame:
        if text not in made:
            made[text] = query(text)
        return made[text]

    def seen(ctes: str, text: str) -> DataFrame:
        return prepared(behind(ctes, text))

    ours, theirs = list[tuple[Insert, str]](), list[str]()
    for name, text in zip(statement.tables, statement.texts, strict=True):
        one, table = parse_statement(text), target(name)
        if table is None or not isinstance(one, Insert):
            spark.table(spelled(name))  # whether it is there
            theirs.append(text)
        else:
            refuse_unfit(spark, table, one, partial(seen, one.ctes))
            ours.append((one, text))
    # Spark checks its own columns before its first row.
    done = [query(text) for text in theirs]
    done += [rows for one, text in ours if (rows := insert(one, text, prepared)) is not None]
    counts = [row[0] for rows in done for row in rows.collect()]  # one of Spark's has none
    return spark.createDataFrame(described.counts({"num_affected_rows": sum(counts), "num_inserted_rows": sum(counts)}))
