"""Tables inside of DataFrames: a mark is an alias around the rows of a table, by which whoever runs a DataFrame that
was made of it finds the table again.

The rule: a mark tells Spark nothing, so what nobody looks at gives the rows that are inside of it. Only a plan whose
rows do not depend on how they are spread, and that reads times in the session's zone, is one to be looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mica.engines.spark.hidden_column import columns_of
from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import items, leaves
from mica.records import dataclass
from mica.schema.collations import walk_collated
from mica.schema.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

#: How the names of marks begin: in no other process so, which may share Spark's JVM and its global temporary views.
MARK = f"__mica_table_{uuid4().hex}_"
#: The same of rows that are in the driver already: no action reads them again.
_HERE = f"__mica_here_{uuid4().hex}_"
#: What shows in which order, or in which file, rows are; what takes other rows of them where that changes; and metrics,
#: which Spark keeps for the plan that it was asked for.
_BY_ORDER = frozenset("Sample AttachDistributedSequence CollectMetrics First Last AnyValue".split())
_BY_FILE = frozenset("InputFileName InputFileBlockStart InputFileBlockLength".split())
_LIMITS = frozenset("GlobalLimit LocalLimit Offset Tail".split())
#: What may be between a limit and the order of its rows.
_PASSING = _LIMITS | {"Project", "SubqueryAlias", "View"}


class ByFile(Exception):  # noqa: N818 - no error
    """A plan asks for the files of rows, as Spark's own reader knows them. `others` are marks below such a question
    that have no rows of that reader inside."""

    def __init__(self, others: frozenset[str]) -> None:
        self.others = others


@dataclass(frozen=True)
class MarkedPlan:
    """An analysed plan, and the marks in it: their names, nodes and columns."""

    java: Any
    marks: tuple[tuple[str, Any, StructType], ...]


def marked(spark: SparkSession, frame: DataFrame, mark: str, names: Iterable[Sequence[str]]) -> DataFrame:
    """All rows of a table under a mark, and under names above that."""
    return framed(spark, with_names(spark, named(spark, frame._jdf, [mark]), names))  # noqa: SLF001


def framed(spark: SparkSession, rows: Any) -> DataFrame:
    """A Dataset of the JVM as a DataFrame."""
    from pyspark.sql.classic.dataframe import DataFrame

    return DataFrame(rows, spark)


def of_plan(spark: SparkSession, plan: Any) -> DataFrame:
    """An analysed plan as a DataFrame."""
    return framed(spark, Maker.of(spark).of_rows(spark._jsparkSession, plan))  # noqa: SLF001


def named(spark: SparkSession, rows: Any, name: Sequence[str]) -> Any:
    """The rows of a Dataset of the JVM under a name, by whose parts columns may be asked for."""
    return of_plan(spark, Maker.of(spark).named(rows.queryExecution().analyzed(), name))._jdf  # noqa: SLF001


def with_names(spark: SparkSession, rows: Any, names: Iterable[Sequence[str]]) -> Any:
    """The same under several names, the last one on top."""
    for name in names:
        rows = named(spark, rows, name)
    return rows


def typed(spark: SparkSession, frame: DataFrame, schema: SparkStructType) -> DataFrame:
    """The rows of a table with the types of a schema: who reads files takes each column, or field, to have nulls."""
    if frame.schema == schema:
        return frame
    make, plan = Maker.of(spark), frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    pairs = []
    own, output = frame.schema.fields, plan.output()
    for number, field in enumerate(schema.fields):
        if field == own[number]:
            continue
        column = output.apply(number)
        type_ = make.type.fromJson(field.dataType.json())
        told = column.metadata(), column.exprId(), column.qualifier()
        pairs.append((column, make.attribute_reference(column.name(), type_, field.nullable, *told)))
    found = plan.transformAllExpressions(make.rule(pairs))
    found.setAnalyzed()
    return of_plan(spark, found)


def under(spark: SparkSession, rows: Any, mark: str) -> Any:
    """The rows of a Dataset of the JVM under a mark; under one that no action looks for, if they are in the driver."""
    return named(spark, rows, [mark.replace(MARK, _HERE) if _is_here(rows) else mark])


def is_mark(name: str) -> bool:
    """Whether a name is a mark's."""
    return name.startswith((MARK, _HERE))


def marks_in(java: Any) -> Iterator[str]:
    """The marks in a plan, also those of rows that are in the driver."""
    return (mark.replace(_HERE, MARK) for mark, _ in found(java, (MARK, _HERE)))


def _is_here(rows: Any) -> bool:
    return all(str(leaf.nodeName()) == "LocalRelation" for leaf in leaves(rows.queryExecution().analyzed()))


def marked_plan(
    frame: DataFrame,
    plan: Any,
    known: Mapping[str, StructType],
    then: Callable[[DataFrame], DataFrame] | None = None,
    *,
    all_known: bool = False,
) -> MarkedPlan | None:
    """The plan (`with_cached`) of a DataFrame, or that of what `then` makes of its rows, if it has marks of tables that
    are known (or of no others), and scans in their places give the same rows. Raises ByFile for one that asks for the
    files of marked rows."""
    java, text = plan, str(plan.toJSON())
    if any(name in text for name in _BY_FILE):
        _raise_by_file(json.loads(text))
    asks = MARK in text or (_HERE in text and marks_of(named_in(java), known, hidden=True))
    if not asks or bool(java.isStreaming()) or not bool(java.deterministic()):
        return None
    whole, zone = json.loads(text), str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    for nodes in _trees(whole):
        names = [_name(one) for one in nodes]
        zones = {one["timeZoneId"] for one in nodes if one.get("timeZoneId") is not None}
        if not _BY_ORDER.isdisjoint(names) or zones - {zone} or not _takes_the_same(names, nodes):
            return None
    if then is not None:
        java = with_cached(then(frame))
    every = named_in(java)
    marks = marks_of(every, known)
    others = {name for name, _ in every if name.startswith(MARK)} - {mark for mark, _, _ in marks}
    if not marks or (all_known and others):
        return None
    # Spark (4.2.1) hands collated strings to Arrow functions from some plans only, and fails in others.
    if any(any(walk_collated(schema)) for _, _, schema in marks) and _runs_python(whole):
        return None
    return MarkedPlan(java, marks)


def has_marks(java: Any) -> bool:
    """Whether there is any, as far as a plan's text says."""
    text = str(java.toJSON())
    return MARK in text or _HERE in text


def named_in(java: Any) -> Sequence[tuple[str, Any]]:
    """The marks in a plan, those of rows that are in the driver under a name of their own, and their nodes."""
    return tuple(found(java, (MARK, _HERE)))


def marks_of(
    named: Iterable[tuple[str, Any]], known: Mapping[str, StructType], *, hidden: bool = False
) -> tuple[tuple[str, Any, StructType], ...]:
    """The marks of known tables, their nodes and columns; of rows that are in the driver those that are asked for
    `_metadata`, which is not there. `hidden`: only such, of all rows that the kernel reads."""
    marks = []
    for name, node in named:
        mark = name.replace(_HERE, MARK)
        schema = columns_of(node, known[mark]) if mark in known else None
        asks = schema is not None and len(schema.fields) > len(known[mark].fields)
        if schema is not None and (asks or (name == mark and not hidden)):
            marks.append((mark, node, schema))
    return tuple(marks)


def with_cached(frame: DataFrame) -> Any:
    """The plan, in which what is cached now is not read again. Asked for it, the DataFrame itself would keep to what is
    cached now, after `cache` or `unpersist`, too: Spark's own `show` and `count` ask another one."""
    java = frame._jdf.queryExecution().commandExecuted()  # noqa: SLF001
    again = Maker.of(frame.sparkSession).of_rows(frame.sparkSession._jsparkSession, java)  # noqa: SLF001
    return again.queryExecution().withCachedData()


def _trees(
    given: Any, part: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = list
) -> Iterator[list[dict[str, Any]]]:
    """The trees of a plan as Catalyst writes it, or a part of each: each is the list of its nodes, every one before
    those below it, whose fields have the trees of expressions, and these those of subqueries."""
    if isinstance(given, list) and given and all(isinstance(one, dict) and "class" in one for one in given):
        given = part(given)
        yield given
    for inner in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from _trees(inner, part)


def _runs_python(plan: Any) -> bool:
    """Whether a plan has functions of Python, beside those by which the rows of tables are read inside of marks."""
    return any(_name(one) == "PythonUDF" for nodes in _trees(plan, _outside) for one in nodes)


def _outside(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The nodes of a tree without those below marks."""
    found, below = list[dict[str, Any]](), 0
    for one in nodes:
        if below:
            below += int(one["num-children"]) - 1
        else:
            found.append(one)
            below = int(str((one.get("identifier") or {}).get("name", "")).startswith(MARK))
    return found


def asks_for_files(plan: Any) -> bool:
    """Whether a plan asks for the files of rows."""
    return not bool(plan.deterministic()) and any(name in str(plan.toJSON()) for name in _BY_FILE)


def _raise_by_file(whole: Any) -> None:
    """Raises ByFile if a plan asks for the files of marked rows."""
    by_file = [below for nodes in _trees(whole) for below in _below_by_file(nodes)]
    if any(mark for below in by_file for mark in _marks(below)):
        raise ByFile(frozenset(mark for below in by_file for mark in _marks(below, without="LogicalRelation")))


def _below_by_file(nodes: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The nodes below each one that asks for the files of its rows."""
    for place, node in enumerate(nodes):
        asked = (_name(one) for part in node.values() for tree in _trees(part) for one in tree)
        if not _BY_FILE.isdisjoint(asked):
            yield _subtree(nodes, place)


def _subtree(nodes: list[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    """The nodes of a tree from one on that are below it, and itself."""
    end, open_ = place, 1
    while open_:
        open_ += int(nodes[end]["num-children"]) - 1
        end += 1
    return nodes[place:end]


def _marks(nodes: list[dict[str, Any]], *, without: str = "") -> Iterator[str]:
    """The marks in a tree; only those that have no node `without` below them."""
    for place, node in enumerate(nodes):
        name = str((node.get("identifier") or {}).get("name", "")).replace(_HERE, MARK)
        if name.startswith(MARK) and without not in map(_name, _subtree(nodes, place)):
            yield name


def _name(node: Mapping[str, Any]) -> str:
    return str(node["class"]).rpartition(".")[2]


def _takes_the_same(names: list[str], nodes: list[dict[str, Any]]) -> bool:
    """Whether what takes a few rows takes the same ones in any order: the first of sorted rows, one of equal rows."""
    for place, name in enumerate(names):
        below = [*names[place + 1 :], ""]
        if name in _LIMITS and not (name == "GlobalLimit" and below[0] == "LocalRelation"):  # `Maker.unfolded`
            cut = next((one for one in nodes[place + 1 :] if _name(one) not in _PASSING), {})
            if not cut.get("global"):  # of rows that are sorted within partitions others are the first
                return False
        if name == "Deduplicate":
            child = nodes[place + 1]
            if below[0] != "Project" or len(child["projectList"]) != len(nodes[place]["keys"]):
                return False
    return True


def found(java: Any, begins: str | tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """The nodes of a plan and of its subqueries whose names begin so, with these; not what is inside of them."""
    name = str(java.alias()) if str(java.nodeName()) == "SubqueryAlias" else ""
    if name.startswith(begins):
        yield name, java
        return
    for inner in (java.children(), java.subqueries()):
        for child in items(inner):
            yield from found(child, begins)
