"""What a session's parser and catalog say about the tables of a text.

The rule: only a name that leads to a Delta table is resolved here; Spark resolves the rest, or says what is wrong. A
Spark Connect session is asked by statements: it has no JVM, and no parser that could be asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mica.engines.spark.session import is_connect
from mica.records import dataclass
from mica.schema.ddl import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: The providers of Delta tables, and the catalog that mica reads them of.
_PROVIDERS = ("delta", "mica")
_CATALOG = "spark_catalog"


@dataclass(frozen=True)
class Parsed:
    """A text as Spark's parser reads it, before any name is resolved."""

    tree: str
    #: The names of its tables, in the text's spelling, parts joined by dots; those of CTEs too.
    names: list[str]
    #: Those of them that are read at a version or time.
    travelled: frozenset[str]


def relations(spark: SparkSession, text: str) -> Parsed:
    """The tables that a text names. Errors: Spark's own for a text that does not parse."""
    tree = str(_state(spark).sqlParser().parsePlan(text).treeString())
    found = re.findall(r"('RelationTimeTravel )?'UnresolvedRelation \[(.*?)\], \[", tree)
    names = [(name.replace(", ", "."), bool(travels)) for travels, name in found]
    return Parsed(tree, list(dict.fromkeys(name for name, _ in names)), frozenset(n for n, travels in names if travels))


def is_temporary(spark: SparkSession, name: str) -> bool:
    """Whether the session has a temporary view of this name; on Spark Connect a table or view of any kind."""
    if is_connect(spark):
        return spark.catalog.tableExists(quoted(name))
    return bool(_state(spark).catalog().getTempView(name).isDefined())


def delta_location(spark: SparkSession, name: str) -> str | None:
    """The path of a Delta table of the session's catalog; None for anything else."""
    if is_connect(spark):
        return _described_location(spark, name)
    catalog = _state(spark).catalog()
    try:
        identifier = _state(spark).sqlParser().parseTableIdentifier(name)
        if catalog.isTempView(identifier) or not catalog.tableExists(identifier):
            return None
        found = catalog.getTableMetadata(identifier)
        if found.provider().isEmpty() or str(found.provider().get()).lower() not in _PROVIDERS:
            return None
        return str(found.location().toString())
    except Exception:  # noqa: BLE001 - a name of another catalog: Spark reads it, or says what is wrong
        return None


def _described_location(spark: SparkSession, name: str) -> str | None:
    spelled = name if "`" in name else ".".join(map(quoted, name.split(".")))
    try:
        # The class's own `sql`: after `mica.enable` the session's would ask here again, without end.
        rows = type(spark).sql(spark, f"DESCRIBE TABLE EXTENDED {spelled}").collect()
    except Exception:  # noqa: BLE001 - no table, or one of another catalog: Spark reads it, or says what is wrong
        return None
    heads = [number for number, row in enumerate(rows) if row[0] == "# Detailed Table Information"]
    found = {row[0]: row[1] for row in rows[heads[-1] :]} if heads else {}
    ours = found.get("Catalog") == _CATALOG and str(found.get("Provider")).lower() in _PROVIDERS
    return found.get("Location") if ours else None


def arguments(spark: Any, args: Any) -> Any:
    """The values of a text's parameters, as the JVM's `SparkSession.sql` takes them."""
    from pyspark.sql import functions

    lit: Any = functions.lit

    if isinstance(args, Mapping):
        return {name: lit(value)._jc for name, value in args.items()}  # noqa: SLF001
    values = [lit(value)._jc for value in args or ()]  # noqa: SLF001
    return spark.sparkContext._jvm.PythonUtils.toArray(values)  # noqa: SLF001


def _state(spark: Any) -> Any:
    return spark._jsparkSession.sessionState()  # noqa: SLF001
