"""The entries of Delta tables in a session's metastore, as delta-spark writes and reads them.

The rule: an entry says where a table is, and whether its files go with its name; all else is in the table's log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import CATALOG, delta_table, location_of, name_in, session_catalog
from mica.engines.spark.making import copied
from mica.engines.spark.session import has_delta, is_connect
from mica.records import dataclass

if TYPE_CHECKING:
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
    found = delta_table(spark, name_in(spark, database, name))
    if found is None:
        return None
    return TableEntry(location_of(spark, found), str(found.tableType().name()) == "MANAGED")


def enter(spark: SparkSession, database: str, name: str, made: TableEntry) -> None:
    """Gives a name to a table; one that has an entry keeps it."""
    jvm = _jvm(spark)
    types = jvm.org.apache.spark.sql.catalyst.catalog
    kind = types.CatalogTableType.MANAGED() if made.managed else types.CatalogTableType.EXTERNAL()
    place, columns = _at(jvm, types.CatalogStorageFormat.empty(), made.place), jvm.org.apache.spark.sql.types
    given = name_in(spark, database, name), kind, place, columns.StructType(), jvm.scala.Some("delta")
    session_catalog(spark).createTable(
        types.CatalogTable(*given, *_defaults(jvm, types.CatalogTable, len(given))), True, False
    )


def moved(spark: SparkSession, database: str, name: str, place: str) -> None:
    """Lets a name lead to the table at another place."""
    catalog = session_catalog(spark)
    found = catalog.getTableMetadata(name_in(spark, database, name))
    catalog.alterTable(copied(found, storage=_at(_jvm(spark), found.storage(), place)))


def renamed(spark: SparkSession, database: str, name: str, new: str) -> None:
    """Gives a table another name in its database; the folder of a managed one may move with it, as Hive decides."""
    session_catalog(spark).renameTable(name_in(spark, database, name), name_in(spark, database, new))


def leave(spark: SparkSession, database: str, name: str) -> None:
    """Takes a name away; of a managed table the metastore deletes what is left in its folder."""
    session_catalog(spark).dropTable(name_in(spark, database, name), True, False)


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001


def _at(jvm: Any, storage: Any, place: str) -> Any:
    """The same storage at another place."""
    return copied(storage, locationUri=jvm.scala.Some(jvm.org.apache.hadoop.fs.Path(place).toUri()))


def _defaults(jvm: Any, case_class: Any, given: int) -> list[Any]:
    """What Scala gives to a case class's parameters behind the first ones, which versions of Spark add to."""
    (constructor,) = jvm.java.lang.Class.forName(case_class._fqn).getConstructors()  # noqa: SLF001
    places = range(given + 1, int(constructor.getParameterCount()) + 1)
    return [getattr(case_class, f"apply$default${place}")() for place in places]
