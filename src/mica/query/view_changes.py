"""Changes of rows through a temporary view of a table, as delta-spark takes them through one of its own.

The rule: a view stands for a table only if it shows all of its columns and rows as they are, at the newest version.
After a change the view is made again: Spark would go on with the version that it read first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mica.engines.spark import catalog
from mica.errors import UserError
from mica.format.options import Options
from mica.log.at_path import at_path
from mica.query import live_views, registry
from mica.query.located import known_as
from mica.query.tables import target
from mica.records import dataclass
from mica.schema.spelling import quoted
from mica.table import Table, marked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Options that choose no rows, columns or versions; settings of the store have a prefix.
_HARMLESS = {"path", "pushfilters", "timezone"}


@dataclass(frozen=True)
class ViewedTable:
    """The table that a temporary view shows, and what makes its rows anew."""

    name: str
    table: Table
    rows: Callable[[], DataFrame]

    def show_again(self) -> None:
        """Lets the view show the newest version."""
        rows = self.rows()
        live_views.replaced(rows.sparkSession, self.name, partial(rows.createOrReplaceTempView, quoted(self.name)))


def viewed(spark: SparkSession, parts: tuple[str, ...], *, inserts: bool = False) -> ViewedTable | None:
    """The table of a view; None if the name is not such a view's, and where Spark `inserts` by itself. Errors: those of
    `Table.open`; INVALID_ARGUMENT for a view of one version."""
    if len(parts) > 1:
        return None
    asked = catalog.name_of_view(spark, parts[0], marked.NEWEST)
    if asked is None and not inserts:
        asked = live_views.shows(spark, parts[0])
    if asked is not None:
        # A view by the name of its own table hides that.
        table = target(spark, asked) or (registry.registered(asked[0]) if known_as(spark, asked) == asked else None)
        return None if table is None else ViewedTable(parts[0], table, partial(_rows, spark, table, asked))
    found = None if inserts else catalog.source_of_view(spark, parts[0], "mica")
    if found is None:
        return None
    given, columns = found
    if any(name.lower() not in _HARMLESS and not name.startswith("storage.") for name in given):
        return None
    options = Options.of(given)
    if at_path(options.path, options.storage)[1] is not None:
        return None
    table = Table.open(options.path, storage_options=options.storage)
    if columns != table.schema.names:
        return None
    return ViewedTable(parts[0], table, lambda: spark.read.format("mica").options(**given).load())


def refuse_temporary(spark: SparkSession, parts: tuple[str, ...]) -> None:
    """Refuses a temporary view that stands for no table where one is meant. Errors: INVALID_ARGUMENT."""
    tables = live_views.reads(spark, parts[0]) if len(parts) == 1 else []
    if tables:
        message = f"{parts[0]} is a temporary view that does not show the whole of one table"
        raise UserError("INVALID_ARGUMENT", message, hint=f"Name a table. The view reads {', '.join(tables)}.")


def _rows(spark: SparkSession, table: Table, name: tuple[str, ...]) -> DataFrame:
    return marked.of_table(spark, table.to_df(spark), table.snapshot, marked.NEWEST, name)
