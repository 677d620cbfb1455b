"""Rows that mica's own tasks make for Spark, and that Spark does no more than rename: who wants them has them there.

The rule: where the plan of rows is names and places over one job of tasks (`jobs.over_tasks`), what is made of the rows
is made in those tasks. Else the JVM makes rows of its own of each batch, and batches of these again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.engines.spark import jobs
from mica.engines.spark.batches import ForSpark
from mica.engines.spark.hidden_column import opened
from mica.engines.spark.java import java_class
from mica.engines.spark.marks import with_cached
from mica.engines.spark.nodes import items
from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType as SparkStructType

#: A column, one by another name, and a decimal of its unscaled numbers (`decimals.made`), as Catalyst shows them. Names
#: are words here: `-n#5` is computed.
_COLUMN = re.compile(r"(?:\w+#(?P<of>\d+)L? AS )?\w+#(?P<id>\d+)L?")
_DECIMAL = re.compile(r"MakeDecimal\(\w+#(?P<of>\d+)L?,(?P<digits>\d+),(?P<scale>\d+)\) AS \w+#(?P<id>\d+)L?")
_ID = re.compile(r"#(\d+)L?$", re.MULTILINE)

#: Spark's plans for a job of tasks, and for what names and arranges columns.
_TASKS, _NAMES = "MapInArrow", ("Project", "SubqueryAlias")

#: Who knows the tables in a DataFrame, and reads its rows by narrowed scans: asked for rows that are about to be
#: written, and whether by the tasks that read them. None for rows that only Spark can read.
NARROWERS: list[Callable[[Any, bool], Any]] = []


@dataclass(frozen=True)
class _Column:
    """A column by its id, that of the column below which it is, and precision and scale where it is a decimal of its
    numbers."""

    id: int
    of: int
    digits: tuple[int, int] | None


@dataclass(frozen=True)
class Fused:
    """What `then` makes of the rows that a task makes; they are some of its columns, by other names."""

    rows: ForSpark
    places: Sequence[int]
    names: Sequence[str]
    then: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]

    def __call__(self, given: Any) -> Iterable[pa.RecordBatch]:
        """What becomes of the rows of a task."""
        places, names = list(self.places), list(self.names)
        return self.then(batch.select(places).rename_columns(names) for batch in self.rows(given))


def narrowed(rows: DataFrame, *, stays: bool) -> DataFrame:
    """The rows of a DataFrame that are about to be written; `stays`: where they are read."""
    found = (narrower(rows, stays) for narrower in NARROWERS)
    return next((one for one in found if one is not None), rows)


def fused(
    rows: DataFrame, then: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]], schema: SparkStructType
) -> DataFrame | None:
    """A DataFrame of what `then` makes of the rows of each task that makes them. None if anything was computed of them
    since, if a cache keeps them, or without a plan, as in a client of Connect."""
    plan, columns = _origin(rows)
    if not columns or plan.nodeName() != _TASKS:
        return None
    made, job = _columns(plan.output()), _job(rows.sparkSession, plan)
    if made is None or job is None:
        return None
    function, tasks = job
    place = {column.id: at for at, column in enumerate(made)}
    found = [(place[column.of], column.digits) for column in columns]
    if any(digits != function.numbers.get(at) for at, digits in found):
        return None
    of_rows = Fused(replace(function, numbers={}), [at for at, _ in found], rows.columns, then)
    return jobs.over_tasks(rows.sparkSession, of_rows, tasks, schema)


def _origin(rows: DataFrame) -> tuple[Any, list[_Column]]:
    """The plan below all that does no more than rename columns of the rows, and its columns, which are theirs: none if
    anything is computed of them, and without a plan."""
    if getattr(rows, "_jdf", None) is None:
        return None, []
    frame: Any = opened(rows)
    cache = frame.sparkSession._jsparkSession.sharedState().cacheManager()  # noqa: SLF001
    plan = frame._jdf.queryExecution().analyzed() if cache.isEmpty() else with_cached(frame)  # noqa: SLF001
    columns = _columns(plan.output())
    while columns is not None and plan.nodeName() in _NAMES:
        columns = _below(plan, columns)
        plan = plan.child()
    return plan, columns or []


def _below(plan: Any, columns: Sequence[_Column]) -> list[_Column] | None:
    """The columns that these are of what a node is made of."""
    if plan.nodeName() != "Project":
        return list(columns)
    found = _columns(plan.projectList())
    if found is None or not _are_read(plan, found):
        return None
    by_id = {column.id: column for column in found}
    return [replace(c, of=by_id[c.of].of, digits=c.digits or by_id[c.of].digits) for c in columns]


def _are_read(project: Any, found: Sequence[_Column]) -> bool:
    """Whether what a projection shows as columns are those: Catalyst shows the text `'id#5'` like the column `id#5`."""
    read = {int(number) for number in _ID.findall(str(project.references().mkString("\n")))}
    times = Counter(column.of for column in found)
    doubtful = (at for at, column in enumerate(found) if times[column.of] > 1 or column.of not in read)
    return all(_asked(project.projectList().apply(at)) is not None for at in doubtful)


def _columns(columns: Any) -> list[_Column] | None:
    """Columns of a plan; None if one of them is computed."""
    texts = str(columns.mkString("\n")).split("\n")  # one call, and not some for each column
    if len(texts) != columns.size():
        return None
    found = [_shown(text) or _asked(columns.apply(at)) for at, text in enumerate(texts)]
    return None if None in found else [column for column in found if column is not None]


def _shown(text: str) -> _Column | None:
    """The column that Catalyst shows so; None if a name in it is no word."""
    match = _COLUMN.fullmatch(text) or _DECIMAL.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    digits = (int(part["digits"]), int(part["scale"])) if "digits" in part else None
    return _Column(int(part["id"]), int(part["of"] or part["id"]), digits)


def _asked(column: Any) -> _Column | None:
    """A column of the JVM; None if it is computed."""
    of = column.child() if column.nodeName() == "Alias" else column
    if of.nodeName() != "AttributeReference":
        return None
    return _Column(int(column.exprId().id()), int(of.exprId().id()), None)


def _job(spark: SparkSession, plan: Any) -> tuple[ForSpark, Sequence[Any]] | None:
    """What makes the rows of a scan, and its tasks; None of a `mapInArrow` of someone else."""
    (udf,) = (one for one in items(plan.expressions()) if one.nodeName() == "PythonUDF")
    found = jobs.tasks_of(bytes(udf.func().command().toArray(java_class(spark, "scala.reflect.ClassTag").Byte())))
    return found if found is not None and isinstance(found[0], ForSpark) else None
