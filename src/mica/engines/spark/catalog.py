"""What a session's parser and catalog say about the tables of a text.

The rule: only a name that leads to a Delta table is resolved here; Spark resolves the rest, or says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    """Whether the session has a temporary view of this name."""
    return bool(_state(spark).catalog().getTempView(name).isDefined())


def delta_location(spark: SparkSession, name: str) -> str | None:
    """The path of a Delta table of the session's catalog; None for anything else."""
    catalog = _state(spark).catalog()
    try:
        identifier = _state(spark).sqlParser().parseTableIdentifier(name)
        if catalog.isTempView(identifier) or not catalog.tableExists(identifier):
            return None
        found = catalog.getTableMetadata(identifier)
        if found.provider().isEmpty() or str(found.provider().get()).lower() not in ("delta", "mica"):
            return None
        return str(found.location().toString())
    except Exception:  # noqa: BLE001 - a name of another catalog: Spark reads it, or says what is wrong
        return None


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
