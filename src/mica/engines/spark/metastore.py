"""The entries of Delta tables in a session's metastore, as delta-spark writes and reads them.

The rule: an entry says where a table is, and whether its files go with its name; all else is in the table's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import CATALOG, delta_table, location_of, name_in, session_catalog
from mica.engines.spark.java import java_class
from mica.engines.spark.making import copied
from mica.engines.spark.session import has_delta, is_connect
from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENTRIES = "org.apache.spark.sql.catalyst.catalog"


@dataclass(frozen=True)
class TableEntry:
    """What a metastore says of a table. `managed`: its files go with its name."""

    place: str
    managed: bool


def is_ours(spark: SparkSession) -> bool:
    """Whether the session has a metastore whose Delta tables nobody else reads: with delta-spark they are its own."""
    if is_connect(spark) or spark.conf.get("spark.sql.catalogImplementation", "in-memory") != "hive":
        return False
    return not has_delta(spark) and not spark.conf.get(f"spark.sql.catalog.{CATALOG}", "")


def entry(spark: SparkSession, database: str, name: str) -> TableEntry | None:
    """The entry of a Delta table; None for anything else."""
    found = delta_table(spark, name_in(spark, database, name))
    if found is None:
        return None
    return TableEntry(location_of(spark, found), str(found.tableType().name()) == "MANAGED")


def enter(spark: SparkSession, database: str, name: str, made: TableEntry) -> None:
    """Gives a name to a table; one that has an entry keeps it."""
    types, storage, table = (
        java_class(spark, f"{_ENTRIES}.Catalog{of}") for of in ("TableType", "StorageFormat", "Table")
    )
    kind = types.MANAGED() if made.managed else types.EXTERNAL()
    columns = java_class(spark, "org.apache.spark.sql.types.StructType")()
    place, provider = _at(spark, storage.empty(), made.place), java_class(spark, "scala.Some")("delta")
    given = name_in(spark, database, name), kind, place, columns, provider
    session_catalog(spark).createTable(table(*given, *_defaults(spark, table, len(given))), True, False)


def moved(spark: SparkSession, database: str, name: str, place: str) -> None:
    """Lets a name lead to the table at another place."""
    catalog = session_catalog(spark)
    found = catalog.getTableMetadata(name_in(spark, database, name))
    catalog.alterTable(copied(found, storage=_at(spark, found.storage(), place)))


def renamed(spark: SparkSession, database: str, name: str, new: str) -> None:
    """Gives a table another name in its database; the folder of a managed one may move with it, as Hive decides."""
    session_catalog(spark).renameTable(name_in(spark, database, name), name_in(spark, database, new))


def leave(spark: SparkSession, database: str, name: str) -> None:
    """Takes a name away; of a managed table the metastore deletes what is left in its folder."""
    session_catalog(spark).dropTable(name_in(spark, database, name), True, False)


def _at(spark: SparkSession, storage: Any, place: str) -> Any:
    """The same storage at another place."""
    uri = java_class(spark, "org.apache.hadoop.fs.Path")(place).toUri()
    return copied(storage, locationUri=java_class(spark, "scala.Some")(uri))


def _defaults(spark: SparkSession, case_class: Any, given: int) -> list[Any]:
    """What Scala gives to a case class's parameters behind the first ones, which versions of Spark add to."""
    (constructor,) = java_class(spark, "java.lang.Class").forName(case_class._fqn).getConstructors()  # noqa: SLF001
    places = range(given + 1, int(constructor.getParameterCount()) + 1)
    return [getattr(case_class, f"apply$default${place}")() for place in places]
