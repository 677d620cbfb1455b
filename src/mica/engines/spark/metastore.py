"""The entries of Delta tables in a session's metastore, as delta-spark writes and reads them.

The rule: an entry says where a table is, and whether its files go with its name; all else is in the table's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import CATALOG, delta_table, location_of, session_catalog
from mica.engines.spark.session import has_delta, is_connect
from mica.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


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
    found = delta_table(spark, _identifier(spark, database, name))
    if found is None:
        return None
    return TableEntry(location_of(spark, found), str(found.tableType().name()) == "MANAGED")


def enter(spark: SparkSession, database: str, name: str, made: TableEntry) -> None:
    """Gives a name to a table; one that has an entry keeps it."""
    jvm = _jvm(spark)
    types = jvm.org.apache.spark.sql.catalyst.catalog
    kind = types.CatalogTableType.MANAGED() if made.managed else types.CatalogTableType.EXTERNAL()
    place, columns = _at(jvm, types.CatalogStorageFormat.empty(), made.place), jvm.org.apache.spark.sql.types
    given = _identifier(spark, database, name), kind, place, columns.StructType(), jvm.scala.Some("delta")
    table = types.CatalogTable
    whole = table(*given, *_defaults(table, "apply", _rest(jvm, "CatalogTable", len(given))))
    session_catalog(spark).createTable(whole, True, False)


def moved(spark: SparkSession, database: str, name: str, place: str) -> None:
    """Lets a name lead to the table at another place."""
    jvm, catalog = _jvm(spark), session_catalog(spark)
    found = catalog.getTableMetadata(_identifier(spark, database, name))
    rest = _defaults(found, "copy", _rest(jvm, "CatalogTable", 3))
    catalog.alterTable(found.copy(found.identifier(), found.tableType(), _at(jvm, found.storage(), place), *rest))


def renamed(spark: SparkSession, database: str, name: str, new: str) -> None:
    """Gives a table another name in its database; the folder of a managed one may move with it, as Hive decides."""
    session_catalog(spark).renameTable(_identifier(spark, database, name), _identifier(spark, database, new))


def leave(spark: SparkSession, database: str, name: str) -> None:
    """Takes a name away; of a managed table the metastore deletes what is left in its folder."""
    session_catalog(spark).dropTable(_identifier(spark, database, name), True, False)


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001


def _identifier(spark: SparkSession, database: str, name: str) -> Any:
    jvm = _jvm(spark)
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(name, jvm.scala.Some(database))


def _at(jvm: Any, storage: Any, place: str) -> Any:
    """The same storage at another place."""
    uri = jvm.org.apache.hadoop.fs.Path(place).toUri()
    return storage.copy(jvm.scala.Some(uri), *_defaults(storage, "copy", _rest(jvm, "CatalogStorageFormat", 1)))


def _rest(jvm: Any, case_class: str, given: int) -> range:
    """The places of a case class's parameters behind the first ones, which versions of Spark add to."""
    found = jvm.java.lang.Class.forName(f"org.apache.spark.sql.catalyst.catalog.{case_class}")
    (constructor,) = found.getConstructors()
    return range(given + 1, int(constructor.getParameterCount()) + 1)


def _defaults(made: Any, method: str, places: Sequence[int]) -> list[Any]:
    """What Scala gives to parameters that nobody names; the first is 1."""
    return [getattr(made, f"{method}$default${place}")() for place in places]
