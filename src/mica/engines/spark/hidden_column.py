"""`_metadata` of rows that the kernel reads, as Spark's own reader has it: a column that DataFrames find by name only.

The rule: under a mark the column is there and costs nothing, since its value is an error: whoever runs the plan puts a
scan that gives it in the place of the mark. Names of files (`input_file_name()`) are fields of it.

Source: Catalyst, `Project.hiddenOutputTag` and `AddMetadataColumns`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import items, leaves
from mica.engines.spark.types import to_spark
from mica.schema.hidden import METADATA, ROW_ID, shown
from mica.schema.types import StructType

_WHY = (
    "mica reads these rows without _metadata: where Spark keeps them (cache), take what is "
    "needed of it in a text first: SELECT *, _metadata.file_name FROM …"
)
#: What may be between a mark and who asks for the files of its rows: the same rows, of one file each.
_PASSING = frozenset("Project Filter SubqueryAlias".split())


#: Who puts scans in the places of marks: `query/frames.py`, which knows the tables.
OPENERS: list[Callable[[Any], Any]] = []


def opened(frame: Any) -> Any:
    """A DataFrame that no action of an enabled session runs, with the hidden column where it is asked for that."""
    found = (opener(frame) for opener in OPENERS)
    return next((one for one in found if one is not None), frame)


def with_hidden(spark: Any, rows: Any, schema: StructType, *, ids: bool) -> Any:
    """The rows of a table, a Dataset of the JVM, with the hidden column, if they lack it; `ids`: with those of rows."""
    plan = rows.queryExecution().analyzed()
    if schema.find(METADATA) is not None or not bool(plan.metadataOutput().isEmpty()):
        return rows
    make = Maker.of(spark)
    (column,) = to_spark(StructType(shown(schema, ids=ids).fields[-1:])).fields
    hiding = make.hiding(plan, METADATA, make.type.fromJson(column.dataType.json()), _WHY)
    return make.of_rows(spark._jsparkSession, hiding)  # noqa: SLF001


def columns_of(mark: Any, schema: StructType) -> StructType | None:
    """The columns that a plan asks of a mark of a table, with the hidden one if it does; None for others."""
    given, own = mark.output(), len(schema.fields)
    if int(given.size()) == own:
        return schema
    last = given.last()
    if int(given.size()) != own + 1 or str(last.name()) != METADATA or schema.find(METADATA) is not None:
        return None
    names = [field["name"] for field in json.loads(str(last.dataType().json()))["fields"]]
    found = shown(schema, ids=ROW_ID[1] in names)
    kind = found.fields[-1].type
    return found if isinstance(kind, StructType) and kind.names == names else None


def is_read_by_spark(mark: Any) -> bool:
    """Whether Spark's own reader has the rows under a mark, and knows their files."""
    return any(str(leaf.nodeName()) == "LogicalRelation" for leaf in leaves(mark))


def by_hidden(spark: Any, plan: Any, is_mark: Callable[[str], bool]) -> Any:
    """A plan in which `_metadata` of marks gives the names of files, to be analysed again: then the nodes between hand
    the column up. None if not all names are of marks, or Spark finds no hidden column there."""
    plan, pairs = _without_views(spark, plan), []
    for node in _every(plan):
        if "input_file_block_" in (text := str(node.expressions().mkString(" "))):
            return None
        if "input_file_name()" in text:
            name = _name_of_file(spark, node, is_mark)
            if name is None:
                return None
            pairs.append((node, node.transformExpressions(Maker.of(spark).rule([name]))))
    if not pairs:
        return None
    return plan.transformDownWithSubqueries(Maker.of(spark).rule(pairs))


def _without_views(spark: Any, plan: Any) -> Any:
    """An analysed plan with what views show in their places: a view hides the hidden column of its rows."""
    views = [(node, _shown(node)) for node in _every(plan) if _is_view(node)]
    return plan.transformDownWithSubqueries(Maker.of(spark).rule(views)) if views else plan


def _shown(view: Any) -> Any:
    """What a view shows, or the view in it that is right below: a rule looks at what it has put there no more."""
    while _is_view(view):
        view = view.child()
    return view


def _is_view(node: Any) -> bool:
    return str(node.nodeName()) == "View"


def _every(plan: Any) -> Iterator[Any]:
    yield plan
    for inner in (plan.children(), plan.subqueries()):
        for child in items(inner):
            yield from _every(child)


def _name_of_file(spark: Any, node: Any, is_mark: Callable[[str], bool]) -> tuple[Any, Any] | None:
    """Spark's question, and the field of the hidden column that answers it above one mark."""
    below = node
    while int(below.children().size()) == 1:
        below = below.children().head()
        if str(below.nodeName()) not in _PASSING:
            return None
        if str(below.nodeName()) == "SubqueryAlias" and is_mark(str(below.alias())):
            (hidden,) = [one for one in items(below.metadataOutput()) if str(one.name()) == METADATA] or [None]
            return None if hidden is None else Maker.of(spark).name_of_file(hidden)
    return None
