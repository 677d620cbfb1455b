"""Makes views of queries over tables of mica's: CREATE VIEW … AS, ALTER VIEW … AS.

The rule: a temporary view is one of the query's rows, made again where its tables change (`live_views.py`). A catalog
keeps a text, in which with delta-spark the tables have their paths; mica reads it where a query names the view
(`tables.py`). A view over no table of mica's is Spark's to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mica.engines.spark import catalog, metastore, stored_views
from mica.engines.spark.doors import own_sql
from mica.engines.spark.session import has_delta, is_connect
from mica.errors import UserError
from mica.query import live_views, names, registry
from mica.query.insert import Query
from mica.query.lent import is_hidden
from mica.query.located import known_as
from mica.query.row_statements import behind
from mica.query.select import shown_in, with_metadata
from mica.query.statement_parts import ended
from mica.query.tables import tables_of, view_of
from mica.query.view_statements import RenameView, StoredView, UnkeptView, View
from mica.schema.hidden import METADATA
from mica.schema.spelling import quoted, spelled

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def reads_ours(spark: SparkSession, query: str, ctes: str = "") -> bool:
    """Whether a query reads a table of mica's, or the change feed of one."""
    found = tables_of(behind(ctes, query), spark)
    return names.FED in query or (found is not None and bool(found.views))


def make(spark: SparkSession, statement: View | UnkeptView | StoredView, query: Query) -> bool:
    """Makes the view; False if Spark is to make it. Errors: INVALID_ARGUMENT for one that cannot be stored, and for a
    temporary one with a clause that it would not keep."""
    statement = _temporary(spark, statement) if isinstance(statement, StoredView) else statement
    if isinstance(statement, StoredView):
        if statement.unless and _table_of(spark, statement.name) is not None:
            return True
        refuse_table(spark, statement.name, "Choose another name")
        if names.FED in statement.query:
            raise UserError(
                "INVALID_ARGUMENT",
                f"the view {spelled(statement.name)} cannot be stored over table_changes, which Spark does not know",
                hint="CREATE TEMPORARY VIEW, or CREATE TABLE … AS, keeps the changes that there are now.",
            )
        named = tables_of(statement.query, spark, in_views=not has_delta(spark))
        if named is None or not named.views:
            return False
        if has_delta(spark) and named.views.keys() == named.catalogued.keys():
            return False  # which finds all of them by their names
        (_stored_by_paths if has_delta(spark) else _stored)(spark, statement, named)
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
    name = statement.name if statement.alters else ()
    shared = name[:-1] == ("global_temp",) and spark.catalog.tableExists(spelled(name))
    if shared or (len(name) == 1 and catalog.is_temporary(spark, name[0])):
        return View(name[-1], (), replace=True, shared=shared, query=statement.query)
    return statement


def is_stored(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Whether a name is that of a stored view over tables of mica's."""
    return view_of(spark, parts) is not None


def rows_of(spark: SparkSession, name: str, query: Query) -> DataFrame | None:
    """The rows of such a view; None for any other name."""
    return query(f"TABLE {quoted(name)}") if is_stored(spark, (name,)) else None


def refuse_stored(spark: SparkSession, parts: tuple[str, ...]) -> None:
    """Refuses a stored view where a table is meant."""
    found = view_of(spark, parts)
    if found is not None:
        tables = ", ".join(sorted({table.path for table in found.views.values()}))
        raise UserError("INVALID_ARGUMENT", f"{spelled(parts)} is a view, and no table", hint=f"It reads {tables}.")


def _table_of(spark: SparkSession, parts: tuple[str, ...]) -> str | None:
    """The place of the table that has a name in a database, which Spark's catalog may not know."""
    known = None if has_delta(spark) else known_as(spark, parts)
    if known is None or (len(known) == 1 and (registry.is_everywhere(known[0]) or is_hidden(spark, known[0]))):
        return None
    return registry.place_of(".".join(known))


def refuse_table(spark: SparkSession, parts: tuple[str, ...], instead: str) -> None:
    """Refuses the name of a table where a view is meant."""
    place = _table_of(spark, parts)
    if place is not None:
        raise UserError("TABLE_EXISTS", f"{spelled(parts)} is the table {place}, and no view", hint=f"{instead}.")


def rename(spark: SparkSession, statement: RenameView) -> bool:
    """Gives a stored view over tables of mica's another name; others are Spark's. Errors: TABLE_EXISTS; Spark's own."""
    refuse_table(spark, statement.name, f"ALTER TABLE {spelled(statement.name)} RENAME TO …")
    if len(statement.name) == 1 and catalog.is_temporary(spark, statement.name[0]):
        return False
    refuse_table(spark, statement.new, "Choose another name")
    if not is_stored(spark, statement.name):
        return False
    stored_views.rename(spark, spelled(statement.name), spelled(statement.new))
    return True


def _refuse_itself(spark: SparkSession, name: str, read: Mapping[str, stored_views.Definition]) -> None:
    """Refuses a view that would read itself, maybe by way of others, as Spark does (RECURSIVE_VIEW)."""
    for one in read.values():
        if str(one.entry.qualifiedName()) == name:
            raise UserError.bad_value("the query of the view", name, "a query that does not read the view itself")
        _refuse_itself(spark, name, one.views)


def _stored(spark: SparkSession, statement: StoredView, named: names.Named) -> None:
    """Keeps the text as it was written, for `tables_of` to read. Errors: INVALID_ARGUMENT for names that other sessions
    would not find, for a view that reads itself, and on Spark Connect."""
    if is_connect(spark):
        raise UserError(
            "INVALID_ARGUMENT",
            "on Spark Connect a view cannot be stored over tables that only mica reads: it keeps a text for the server",
            hint="Use CREATE TEMPORARY VIEW.",
        )
    own = stored_views.stored(spark, spelled(statement.name))
    if own is not None:
        _refuse_itself(spark, own.name, named.stored)
    alone = [name for name in named.own if registry.is_everywhere(name)] if metastore.is_ours(spark) else []
    if alone:
        raise UserError(
            "INVALID_ARGUMENT",
            f"other sessions find the view in the metastore, and not {alone[0]}, which mica.register has here alone",
            hint=f"Name the table by its path, or enter it: CREATE TABLE {alone[0]} USING mica LOCATION '…'.",
        )
    text, inner = ended(statement.query).strip(), {name: one.entry.schema() for name, one in named.stored.items()}

    def made(text_of_query: str, shows: bool) -> None:
        columns = {view: shown_in(table, text_of_query, shows) for view, table in named.own.items()}
        stored_views.store(spark, statement.before, text_of_query, text, {**columns, **inner})

    with_metadata(ended(named.text), made)


def _stored_by_paths(spark: SparkSession, statement: StoredView, named: names.Named) -> None:
    """Lets Spark keep the text, with the tables by their paths under the names of the query: delta-spark reads them."""

    def made(text: str, shows: bool) -> object:
        tables = (
            f"`{view}` AS (SELECT *{f', {METADATA}' * (shows and table.schema.find(METADATA) is None)} "  # noqa: S608
            f"FROM delta.`{table.path}`{f' VERSION AS OF {table.version}' * (view in named.pinned)})"
            for view, table in named.views.items()
        )
        return own_sql(spark, f"{statement.before}WITH {', '.join(tables)} SELECT * FROM ({text})")  # noqa: S608

    with_metadata(ended(named.text), made)
