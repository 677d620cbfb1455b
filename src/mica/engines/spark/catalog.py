"""What a session's parser and catalog say about the tables of a text.

The rule: only a name that leads to a Delta table is resolved here; Spark resolves the rest, or says what is wrong. A
Spark Connect session is asked by statements: it has no JVM, and no parser that could be asked.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mica import late
from mica.engines.spark.doors import own_sql
from mica.engines.spark.java import java_class
from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import items
from mica.engines.spark.session import active, is_connect, with_setting, without_sql_log
from mica.records import dataclass
from mica.schema.spelling import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: The providers of Delta tables; a path may follow them in place of a name.
PROVIDERS = ("delta", "mica")
#: The catalog that mica reads them of, which may stand before any name.
CATALOG = "spark_catalog"
#: It, before a name of two parts.
_IN_CATALOG = re.compile(rf"(?i)\s*`?{CATALOG}`?\s*\.(?=.*\.)")

#: How long Spark prints plans, and how one ends that is longer.
_LONGEST, _CUT = "spark.sql.maxPlanStringLength", re.compile(r"\.\.\. \d+ more characters$|^Truncated plan of")
_COMMANDS = re.compile(r"(?m)^[\s:+|-]*'?(?:Insert|MergeInto|UpdateTable|DeleteFrom|CreateTable|ReplaceTable)")
#: A table as a stream in the tree of a text's plan.
_STREAMED = re.compile(r"'UnresolvedRelation \[.*?\], \[.*?\], true")


@dataclass(frozen=True)
class Parsed:
    """What a text says of tables, before any name is resolved."""

    #: Their names, in the text's spelling, parts joined by dots; Spark's parser gives those of CTEs too.
    names: list[str]
    #: Those of them that are read at a version or time.
    travelled: frozenset[str]
    #: Whether it changes tables or makes them.
    changes: bool = False
    #: Whether it reads one of them as a stream (`FROM STREAM name`).
    streams: bool = False


def parsed(spark: SparkSession, text: str) -> Any:
    """Spark's plan of a text, before any name is resolved. Its parser evaluates VALUES, by the settings of the thread's
    active session: another thread may have none."""
    with active(spark):
        return _state(spark).sqlParser().parsePlan(text)


def relations(spark: SparkSession, text: str) -> Parsed:
    """The tables that a text names. Errors: Spark's own for a text that does not parse."""
    plan = parsed(spark, text)
    tree = str(plan.treeString())
    if _CUT.search(tree):
        with with_setting(spark, _LONGEST, str(1 << 30)):
            tree = str(plan.treeString())
    found = re.findall(r"('RelationTimeTravel )?'UnresolvedRelation \[(.*?)\], \[", tree)
    names = [(name.replace(", ", "."), bool(travels)) for travels, name in found]
    travelled = frozenset(name for name, travels in names if travels)
    known = list(dict.fromkeys(name for name, _ in names))
    return Parsed(known, travelled, _COMMANDS.search(tree) is not None, _STREAMED.search(tree) is not None)


def is_temporary(spark: SparkSession, name: str) -> bool:
    """Whether the session has a temporary view of this name."""
    if is_connect(spark):
        rows = _described(spark, quoted(name))
        return rows is not None and not _details(rows)
    return bool(session_catalog(spark).getTempView(name).isDefined())


def temporary(spark: SparkSession, name: str) -> Any:
    """The session's temporary view of this name; None without one, and on Spark Connect."""
    if is_connect(spark):
        return None
    found = session_catalog(spark).getRawTempView(name)
    return found.get() if found.isDefined() else None


def temporary_now(name: str) -> Any:
    """The temporary view of this name in the active session, if there is one."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    return None if spark is None else temporary(spark, name)


def is_same_view(spark: SparkSession, one: Any, other: Any) -> bool:
    """Whether they are one view, not only alike; the other one may be of a JVM that is gone."""
    identity = Maker.of(spark).identity
    return one._gateway_client is other._gateway_client and bool(identity(one) == identity(other))  # noqa: SLF001


def temporary_table(name: str) -> Any:
    """A temporary view as `spark.catalog.listTables` gives it."""
    from pyspark.sql.catalog import Table

    return Table(name, catalog=None, namespace=[], description=None, tableType="TEMPORARY", isTemporary=True)


def table_in(database: str, name: str, description: str | None, *, managed: bool) -> Any:
    """A table of a database as `spark.catalog.getTable` gives it."""
    from pyspark.sql.catalog import Table

    kind = "MANAGED" if managed else "EXTERNAL"
    return Table(name, CATALOG, database.split("."), description, kind, isTemporary=False)


def set_temporary(spark: SparkSession, name: str, view: Any) -> None:
    """Makes a temporary view that `temporary` gave."""
    session_catalog(spark).createTempView(name, view, True)


def source_of_view(spark: SparkSession, name: str, format_name: str) -> tuple[dict[str, str], list[str]] | None:
    """The options and the columns of a Python data source that a temporary view shows as it is, without a filter or
    other columns; None for any other view, and on Spark Connect."""
    plan = _plan_of_view(spark, name)
    while plan is not None and str(plan.nodeName()) == "SubqueryAlias":
        plan = _below(plan)
    if (
        plan is None
        or not str(plan.getClass().getName()).endswith(".DataSourceV2Relation")
        or str(plan.table().name()) != format_name
    ):
        return None
    given = plan.options().asCaseSensitiveMap()
    return {str(key): str(given[key]) for key in given}, [str(one.name()) for one in items(plan.output())]


def name_of_view(spark: SparkSession, name: str, over: tuple[str, ...]) -> tuple[str, ...] | None:
    """The name that a temporary view has right over the name `over` of all of its rows and columns; None for any other
    view, and on Spark Connect."""
    plan = _plan_of_view(spark, name)
    found: tuple[str, ...] | None = None
    while plan is not None and str(plan.nodeName()) == "SubqueryAlias":
        identifier, above = plan.identifier(), found
        found, plan = (*map(str, items(identifier.qualifier())), str(identifier.name())), _below(plan)
        if found == over:
            return above
    return None


def _plan_of_view(spark: SparkSession, name: str) -> Any:
    view = temporary(spark, name)
    if view is None:
        return None
    if view.plan().isEmpty():  # Spark keeps the text of a view over views
        session: Any = spark
        plan = session._jsparkSession.table(quoted(name)).queryExecution().analyzed()  # noqa: SLF001
        return past_same(plan.child() if str(plan.nodeName()) == "SubqueryAlias" else plan)
    return past_same(view.plan().get())


def _below(alias: Any) -> Any:
    return past_same(alias.child())


def past_same(plan: Any) -> Any:
    """A plan without what is above its rows and columns and leaves them as they are: another view, and a projection on
    the same columns in the same order."""
    while str(plan.nodeName()) == "View" or (str(plan.nodeName()) == "Project" and _is_same(plan)):
        plan = plan.child()
    return plan


def _is_same(project: Any) -> bool:
    """Whether a projection gives the columns that are below it: by their ids, which a column that is computed or has
    another name does not share, or by their names under new ids, as Spark reads a view that it keeps as a text."""
    below = project.child().output()
    if str(project.output().mkString("\n")) == str(below.mkString("\n")):
        return True
    if int(below.size()) != int(project.output().size()):
        return False
    return all(
        str(given.nodeName()) == "Alias" and str(given.name()) == str(own.name()) and _uncast(given).semanticEquals(own)
        for given, own in zip(items(project.projectList()), items(below), strict=True)
    )


def _uncast(alias: Any) -> Any:
    """What an alias names, without a cast to the type that it has."""
    found = alias.child()
    casts = str(found.nodeName()) == "Cast" and found.dataType().equals(found.child().dataType())
    return found.child() if casts else found


def variables(spark: Any) -> dict[str, Any]:
    """The session's variables (DECLARE VARIABLE): their definitions by the names that the session keeps, in lower case
    unless it tells cases apart. None on Spark Connect, where the server reads them."""
    if is_connect(spark):
        return {}
    manager = _state(spark).catalogManager().tempVariableManager()
    if manager.isEmpty():
        return {}
    kept = manager.getClass().getDeclaredField("variables")  # none of its methods lists them
    kept.setAccessible(True)
    return {str(pair._1()): pair._2() for pair in items(kept.get(manager).toSeq())}  # noqa: SLF001


def functions(spark: Any) -> dict[str, str]:
    """The session's own functions by their names, with what Spark keeps of each: the views that its query names among
    it. None on Spark Connect."""
    if is_connect(spark):
        return {}
    known = session_catalog(spark)
    found = items(known.listTemporaryFunctions())
    return {str(one.funcName()): str(known.lookupFunctionInfo(one).getUsage()) for one in found}


def delta_location(spark: Any, name: str) -> str | None:
    """The path of a Delta table of the session's catalog; None for anything else."""
    if is_connect(spark):
        return _described_location(spark, name)
    found = entry(spark, name)
    if found is None or not _is_delta(found):
        return None
    try:
        return location_of(spark, found)
    except Exception:  # noqa: BLE001 - the entry has none
        return None


def entry(spark: Any, name: str) -> Any:
    """What Spark's own catalog has of a table or stored view; None for anything else."""
    catalog = session_catalog(spark)
    try:
        if str(_state(spark).catalogManager().currentCatalog().name()) != CATALOG:
            return None  # a name without a catalog is one of the current catalog
        identifier = parsed_name(spark, name)
        there = not catalog.isTempView(identifier) and catalog.tableExists(identifier)
        return catalog.getTableMetadata(identifier) if there else None
    except Exception:  # noqa: BLE001 - a name of another catalog: Spark reads it, or says what is wrong
        return None


def parsed_name(spark: Any, name: str) -> Any:
    """A name of a text as Spark's own catalog takes it. Errors: Spark's for one that does not parse."""
    return _state(spark).sqlParser().parseTableIdentifier(_IN_CATALOG.sub("", name))


def name_in(spark: Any, database: str, name: str) -> Any:
    """The same of a name in a database."""
    within = java_class(spark, "scala.Some")(database)
    return java_class(spark, "org.apache.spark.sql.catalyst.TableIdentifier")(name, within)


def session_catalog(spark: Any) -> Any:
    """Spark's own catalog of a session: its views, functions, and the tables of its metastore."""
    return _state(spark).catalog()


def delta_table(spark: Any, identifier: Any) -> Any:
    """What that has of a Delta table; None for anything else."""
    catalog = session_catalog(spark)
    found = catalog.getTableMetadata(identifier) if catalog.tableExists(identifier) else None
    return found if found is not None and _is_delta(found) else None


def _is_delta(found: Any) -> bool:
    return not found.provider().isEmpty() and str(found.provider().get()).lower() in PROVIDERS


def location_of(spark: Any, found: Any) -> str:
    """The path of a table that the catalog has."""
    return _path(spark, found.location())


def _path(spark: Any, uri: Any) -> str:
    """The path of a URI, which has %20 for a blank."""
    return str(java_class(spark, "org.apache.hadoop.fs.Path")(uri).toString())


def usual_place(spark: Any, database: str, name: str) -> str:
    """The path of a table that a database of the catalog gets without a location."""
    if is_connect(spark):
        folder = late.urls.unquote(str(spark.catalog.getDatabase(database).locationUri))
        return os.path.join(folder, name.lower())  # noqa: PTH118 - it may be a URI
    return _path(spark, session_catalog(spark).defaultTablePath(name_in(spark, database, name)))


def _described_location(spark: SparkSession, name: str) -> str | None:
    found = _details(_described(spark, name if "`" in name else ".".join(map(quoted, name.split(".")))) or [])
    ours = found.get("Catalog") == CATALOG and str(found.get("Provider")).lower() in PROVIDERS
    return found.get("Location") if ours else None


def _described(spark: SparkSession, name: str) -> list[Any] | None:
    """The rows of DESCRIBE of a table or view; None if there is none, or it is one of another catalog: Spark reads it,
    or says what is wrong."""
    if "/" in name:
        return None  # a path: csv.`/data`
    try:
        with without_sql_log():
            # After `mica.enable` the session's `sql` would ask here again, without end.
            return list(own_sql(spark, f"DESCRIBE TABLE EXTENDED {name}").collect())
    except Exception:  # noqa: BLE001
        return None


def _details(rows: list[Any]) -> dict[str, str]:
    """What DESCRIBE says behind the columns; nothing of a temporary view."""
    heads = [number for number, row in enumerate(rows) if row[0] == "# Detailed Table Information"]
    return {row[0]: row[1] for row in rows[heads[-1] :]} if heads else {}


def arguments(spark: Any, args: Any) -> Any:
    """The values of a text's parameters, as the JVM's `SparkSession.sql` takes them."""
    from pyspark.sql import functions

    lit: Any = functions.lit

    if isinstance(args, Mapping):
        return {name: lit(value)._jc for name, value in args.items()}  # noqa: SLF001
    values = [lit(value)._jc for value in args or ()]  # noqa: SLF001
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toArray(values)


def _state(spark: Any) -> Any:
    return spark._jsparkSession.sessionState()  # noqa: SLF001
