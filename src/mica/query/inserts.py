"""Several INSERTs that share a FROM.

The rule: all of them read what is there before the first one, and none writes before the tables and columns of all have
been checked. Those of Spark run first. What fails of a row's value may fail after another table got its rows, as in
Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mica.engines.spark.arrow_rows import of_arrow_table
from mica.query import described
from mica.query.insert import Query, refuse_unfit
from mica.query.row_statements import Insert, behind
from mica.query.statements import Inserts, parse_statement
from mica.query.tables import target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(
    spark: SparkSession,
    statement: Inserts,
    query: Query,
    insert: Callable[[Insert, Query, str], DataFrame | None],
) -> DataFrame | None:
    """The number of rows; None if Spark knows all tables that get some. `insert` runs one into a table of mica's."""
    if not any(target(spark, table) is not None for table in statement.tables):
        return None
    made = dict[str, "DataFrame"]()

    def prepared(text: str) -> DataFrame:
        if text not in made:
            made[text] = query(text)
        return made[text]

    def seen(ctes: str, text: str) -> DataFrame:
        return prepared(behind(ctes, text))

    ours, theirs = list[tuple[Insert, str]](), list[str]()
    for text in statement.texts:
        one = parse_statement(text)
        table = target(spark, one.table) if isinstance(one, Insert) else None
        if table is None or not isinstance(one, Insert):
            theirs.append(text)
            if str(query(f"EXPLAIN {text}").collect()[0][0]).startswith("Error"):
                query(text)  # which raises
        else:
            refuse_unfit(spark, table, one, partial(seen, one.ctes))
            ours.append((one, text))
    if theirs:  # a table of Spark's is read before it gets rows
        made |= {text: rows.localCheckpoint() for text, rows in made.items()}
    done = [query(text) for text in theirs]
    done += [found for one, text in ours if (found := insert(one, prepared, text)) is not None]
    counts = [row[0] for rows in done for row in rows.collect()]  # one of Spark's has none
    return of_arrow_table(spark, described.counts({"num_affected_rows": sum(counts), "num_inserted_rows": sum(counts)}))
