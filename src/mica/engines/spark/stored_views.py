"""Views that a session's catalog keeps as texts, over tables that mica reads.

The rule: Spark makes the entry and reads it, with the settings, the database and the columns that it keeps there. Only
the tables that the text names are given to it, in a clone of the session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import CATALOG, entry, parsed, parsed_name, session_catalog
from mica.engines.spark.cloned_session import cloned, without_rows
from mica.engines.spark.java import java_class
from mica.engines.spark.making import Maker, copied
from mica.engines.spark.nodes import items
from mica.engines.spark.session import active, has_delta, is_connect
from mica.records import dataclass
from mica.schema.spelling import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.schema.types import StructType

#: Where an entry tells the temporary views that its text may name, as lists of their parts.
_REFERRED = "view.referredTempViewNames"
#: Where it tells the class of the catalog of its making: that of delta-spark may not be here.
_CATALOG = f"view.sqlConfig.spark.sql.catalog.{CATALOG}"


@dataclass(frozen=True)
class StoredText:
    """A view as the catalog has it: its whole name, its text, and the database in which that was written."""

    name: str
    text: str
    database: str
    entry: Any


@dataclass(frozen=True)
class Definition:
    """A stored view whose text names `tables` that are given to Spark, and other such `views`."""

    text: str
    entry: Any
    tables: tuple[str, ...]
    views: Mapping[str, Definition]

    def texts(self, name: str) -> dict[str, str]:
        """The texts that name its tables and those of the views in it, by what each is known by in a text that has this
        name for the view: `view.table`."""
        found = {f"{name}.{table}": self.text for table in self.tables}
        for inner, one in self.views.items():
            found |= one.texts(f"{name}.{inner}")
        return found


def stored(spark: SparkSession, name: str) -> StoredText | None:
    """The view of a name; None for any other name, and on Spark Connect."""
    if is_connect(spark):
        return None
    found = entry(spark, name)
    if found is None or str(found.tableType().name()) != "VIEW" or found.viewText().isEmpty():
        return None
    catalog, *database = [*map(str, items(found.viewCatalogAndNamespace())), ""]
    if catalog != CATALOG:
        return None  # of Hive, or over tables of another catalog
    return StoredText(str(found.qualifiedName()), str(found.viewText().get()), ".".join(database[:-1]), found)


def stored_names(spark: SparkSession) -> list[str]:
    """The names of the views of the current database whose tables Spark may not know."""
    if is_connect(spark) or has_delta(spark):
        return []
    views = session_catalog(spark)
    return [str(one.table()) for one in items(views.listViews(views.getCurrentDatabase(), "*"))]


def store(spark: SparkSession, before: str, query: str, text: str, columns: Mapping[str, StructType | Any]) -> None:
    """Makes the view of a statement that begins with `before`. Spark analyses its query over tables of these columns (a
    schema of mica's, or one of Spark's), and keeps `text`. Errors: Spark's own."""
    make, session = Maker.of(spark), spark._jsparkSession  # noqa: SLF001
    heads = ", ".join(f"{quoted(name)} AS (SELECT 1)" for name in columns)
    plan = parsed(spark, f"{before}WITH {heads} SELECT * FROM ({query}\n)")  # noqa: S608 - parsed alone
    named = plan.query()
    rows = [
        copied(one, _2=make.named(without_rows(spark, session, schema).queryExecution().analyzed(), [name]))
        for one, (name, schema) in zip(items(named.cteRelations()), columns.items(), strict=True)
    ]
    is_altered = isinstance(plan.originalText(), str)
    query_plan = copied(named, cteRelations=make.seq(rows))
    with active(spark):
        made = copied(plan, query=query_plan, originalText=text if is_altered else make.some(text))
        make.of_rows(session, made)


def rename(spark: SparkSession, name: str, new: str) -> None:
    """Gives a view another name in its database. Errors: Spark's for a name that is there, and for another database."""
    session_catalog(spark).renameTable(parsed_name(spark, name), parsed_name(spark, new))


def define(
    spark: SparkSession,
    clone: Any,
    name: str,
    view: Definition,
    give: Callable[[Any, str, str], None],
    before: str = "",
) -> None:
    """Makes the temporary view of a stored one in a clone of the session. `give` makes that of a table in another
    clone, by its name in the text and what it is known by."""
    make, own, within = Maker.of(spark), cloned(spark), f"{before}{name}."
    for table in view.tables:
        give(own, table, f"{within}{table}")
    for inner, one in view.views.items():
        define(spark, own, inner, one, give, within)
    referred = json.dumps([[one] for one in (*view.tables, *view.views)])
    properties = {_REFERRED: referred, **({} if has_delta(spark) else {_CATALOG: None})}
    as_text = make.text_view(view.entry, name, view.text, properties)
    own.sessionState().catalog().createTempView(name, as_text, True)
    plan = own.table(quoted(name)).queryExecution().analyzed()
    if "EVOLUTION" in str(view.entry.viewSchemaMode()):
        _evolved(spark, view.entry, plan)
    make.of_rows(clone, plan).createOrReplaceTempView(quoted(name))


def _evolved(spark: SparkSession, entry: Any, plan: Any) -> None:
    """Brings the columns of a view that evolves up to date in the catalog, as Spark does where it reads one."""
    with active(spark):
        java_class(spark, "org.apache.spark.sql.execution.datasources.ViewSyncSchemaToMetaStore").apply(
            copied(plan.child(), desc=entry, isTempView=False)
        )
