"""Changes of rows through a temporary view of `format("mica")`, as delta-spark takes them through one of its own.

The rule: a view stands for a table only if it shows all of its columns and rows as they are, at the newest version.
After a change the view is made again: Spark would go on with the version that it read first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mica.engines.spark import catalog
from mica.format.options import Options
from mica.log.at_path import at_path
from mica.records import dataclass
from mica.schema.ddl import quoted
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Options that choose no rows, columns or versions; settings of the store have a prefix.
_HARMLESS = {"path", "pushfilters", "timezone"}


@dataclass(frozen=True)
class ViewedTable:
    """The table that a temporary view shows, and the options of the view."""

    name: str
    table: Table
    options: dict[str, str]

    def show_again(self, spark: SparkSession) -> None:
        """Lets the view show the newest version."""
        spark.read.format("mica").options(**self.options).load().createOrReplaceTempView(quoted(self.name))


def viewed(spark: SparkSession, parts: tuple[str, ...]) -> ViewedTable | None:
    """The table of a view; None if the name is not such a view's. Errors: those of `Table.open`."""
    found = catalog.source_of_view(spark, parts[0], "mica") if len(parts) == 1 else None
    if found is None:
        return None
    given, columns = found
    if any(name.lower() not in _HARMLESS and not name.startswith("storage.") for name in given):
        return None
    options = Options.of(given)
    if at_path(options.path, options.storage)[1] is not None:
        return None
    table = Table.open(options.path, storage_options=options.storage)
    return ViewedTable(parts[0], table, given) if columns == table.schema.names else None
