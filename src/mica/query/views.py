"""Makes views of queries over tables of mica's: CREATE VIEW … AS, ALTER VIEW … AS.

The rule: a temporary view is one of the query's rows, made again where its tables change (`live_views.py`). A catalog
keeps a text, in which the tables have their paths. A view over no table of mica's is Spark's to make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica.engines.spark import catalog
from mica.engines.spark.doors import own_sql
from mica.engines.spark.errors import is_condition
from mica.errors import UserError
from mica.query import live_views, names
from mica.query.insert import Query
from mica.query.row_statements import behind
from mica.query.select import with_metadata
from mica.query.statement_parts import ended
from mica.query.statements import StoredView, UnkeptView, View
from mica.query.tables import tables_of
from mica.schema.hidden import METADATA
from mica.schema.spelling import spelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def reads_ours(spark: SparkSession, query: str, ctes: str = "") -> bool:
    """Whether a query reads a table of mica's, or the change feed of one."""
    found = tables_of(behind(ctes, query), spark)
    return names.FED in query or (found is not None and bool(found.views))


def make(spark: SparkSession, statement: View | UnkeptView | StoredView, query: Query) -> bool:
    """Makes the view; False if Spark is to make it. Errors: INVALID_ARGUMENT for one that Spark cannot store, and for a
    temporary one with a clause that it would not keep."""
    statement = _temporary(spark, statement) if isinstance(statement, StoredView) else statement
    if isinstance(statement, StoredView):
        named = tables_of(statement.query, spark)
        if named is None or not named.views:
            return False
        _store(spark, statement, named)
        return True
    if not reads_ours(spark, statement.query):
        if isinstance(statement, View):
            live_views.by_spark(spark, statement)
        return False
    if isinstance(statement, UnkeptView):
        raise UserError(
            "INVALID_ARGUMENT",
            "a temporary view over tables that mica reads keeps no clause beside its columns and a comment",
            hint="Write CREATE TEMPORARY VIEW w [(c, …)] [COMMENT '…'] AS …, and collations in the query: COLLATE.",
        )
    live_views.make(spark, statement, query)
    return True


def _temporary(spark: SparkSession, statement: StoredView) -> View | StoredView:
    """ALTER VIEW of a temporary view, as its creation."""
    name = statement.altered
    shared = name[:-1] == ("global_temp",) and spark.catalog.tableExists(spelled(name))
    if shared or (len(name) == 1 and catalog.is_temporary(spark, name[0])):
        return View(name[-1], (), replace=True, shared=shared, query=statement.query)
    return statement


def _store(spark: SparkSession, statement: StoredView, named: names.Named) -> None:
    """Lets Spark keep the text, with the tables by their paths under the names of the query."""

    def made(text: str, shows: bool) -> object:
        tables = (
            f"`{view}` AS (SELECT *{f', {METADATA}' * (shows and table.schema.find(METADATA) is None)} "  # noqa: S608
            f"FROM delta.`{table.path}`{f' VERSION AS OF {table.version}' * (view in named.pinned)})"
            for view, table in named.views.items()
        )
        return own_sql(spark, f"{statement.before}WITH {', '.join(tables)} SELECT * FROM ({text})")  # noqa: S608

    try:
        with_metadata(ended(named.text), made)
    except Exception as e:
        if not is_condition(e, "TABLE_OR_VIEW_NOT_FOUND") or "The table or view `delta`" not in str(e):
            raise
        raise UserError(
            "INVALID_ARGUMENT",
            "Spark cannot store a view over tables that only mica reads: its catalog keeps the text, not the tables",
            hint="Use CREATE TEMPORARY VIEW, or a session with delta-spark, which reads them by their paths.",
        ) from None
