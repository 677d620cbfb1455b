"""What an action of an enabled session's DataFrame runs: its plan with narrowed scans in the places of mica's tables.

The rule: the DataFrames are Spark's, and one that is run otherwise, or that this file does not know, has the same rows
by Spark. Only when rows are asked for is it known what they need of a table, which is then read as for a text of
`mica.sql`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mica.engines.spark import hadoop, text_marks
from mica.engines.spark.errors import is_condition, may_be_of_row
from mica.engines.spark.fused import NARROWERS
from mica.engines.spark.hidden_column import OPENERS, by_hidden, is_read_by_spark, opened
from mica.engines.spark.making import Maker
from mica.engines.spark.marks import (
    ByFile,
    MarkedPlan,
    asks_for_files,
    has_marks,
    is_mark,
    marked_plan,
    marks_in,
    marks_of,
    named_in,
    of_plan,
    with_cached,
)
from mica.engines.spark.session import is_connect
from mica.query import copies, lent, select, views
from mica.query.file_names import left_to_spark
from mica.query.narrowed import Narrowed
from mica.scan.scan import Scan
from mica.schema.hidden import spelled
from mica.table import Table
from mica.table.marked import known, used

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = logging.getLogger("mica")
#: The tables of marks, with the statistics and footers that they have read: an action finds those of the one before.
_TABLES: dict[str, Table] = {}
#: Whether a method that takes a few rows runs, by others that are here too.
_RUNS: ContextVar[bool] = ContextVar("mica_runs", default=False)


def narrowed(frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None = None) -> DataFrame | None:
    """The rows of a DataFrame, or of what `then` makes of them, by narrowed scans; None if it has no table that is
    known, or if Spark has to read it. Errors: those of `_by_files`."""
    try:
        found, tables, plan = _marked(frame, then)
        if found is None:
            return _with_metadata(frame, then, plan)
        rows = select.of_plan(frame.sparkSession, found, tables)
        if then is None:
            # Of an optimised plan Catalyst knows more columns without nulls, of a scan's columns fewer.
            vars(rows)["schema"] = frame.schema
        return rows
    except ByFile as e:
        return _by_files(frame, e.others, then)
    except Exception:  # noqa: BLE001 - the DataFrame's own plan has the same rows
        _LOG.debug("a DataFrame is read by Spark", exc_info=True)
        return None


def _by_files(
    frame: DataFrame, others: Iterable[str], then: Callable[[DataFrame], DataFrame] | None
) -> DataFrame | None:
    """The rows of a DataFrame that asks for their files, as Spark's own reader has them: what is made of a text by that
    text's plan; None if the DataFrame's own plan will do. Errors: UNSUPPORTED_EXPRESSION where the kernel reads."""
    snapshots = known()
    for mark in others:
        if mark in snapshots:
            left_to_spark(Table(snapshots[mark]).scan().of_session(frame.sparkSession))
    opened = text_marks.opened(frame.sparkSession, with_cached(frame), whole=True)
    return opened if opened is None or then is None else then(opened)


def _with_metadata(
    frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None, plan: Any = None
) -> DataFrame | None:
    """The rows of a DataFrame that Spark reads as it is planned, with scans that give `_metadata` where it is asked of
    rows that the kernel reads; None if there are none. `plan`: its own (`with_cached`), if that was asked for."""
    from mica.engines.spark.deferred import Deferred

    spark, snapshots = frame.sparkSession, known()
    # What is made of a text has what that asks for.
    if is_connect(spark) or not snapshots or (then is None and isinstance(frame, Deferred)):
        return None
    if not has_marks(frame._jdf.queryExecution().analyzed() if plan is None else plan):  # noqa: SLF001
        return None
    plan = with_cached(frame) if plan is None else plan
    if asks_for_files(plan) and (new := by_hidden(spark, plan, is_mark)) is not None:
        plan = with_cached(of_plan(spark, new))
    asked = marks_of(named_in(plan), {mark: one.schema for mark, one in snapshots.items()}, hidden=True)
    make, pairs = Maker.of(spark), list[tuple[Any, Any]]()
    for mark, node, schema in asked:
        if not is_read_by_spark(node):
            rows = Table(snapshots[mark]).scan(columns=spelled(schema)).to_df(spark)
            pairs.append((node, make.renumbered(rows._jdf.queryExecution().analyzed(), node.output())))  # noqa: SLF001
    if not pairs:
        return None
    new = plan.transformDownWithSubqueries(make.rule(pairs))
    new.setAnalyzed()
    opened = of_plan(spark, new)
    return opened if then is None else then(opened)


def explained(frame: DataFrame) -> list[Narrowed]:
    """How an action reads the tables of a DataFrame; none if Spark reads all of it."""
    try:
        found, tables, _ = _marked(frame, lambda frame: frame)
    except ByFile:
        return []
    if found is None:
        return []
    _, places = select.planned(frame.sparkSession, found, tables)
    return [replace(place, view=PurePosixPath(place.table.path).name) for place in places]


def _marked(
    frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None = None
) -> tuple[MarkedPlan | None, Mapping[str, Table], Any]:
    """A DataFrame's plan, if an action narrows it, the tables by their marks, and its own plan, if it was asked for."""
    from mica.engines.spark.deferred import Deferred

    if is_connect(frame.sparkSession):
        return None, {}, None
    given = frame
    if isinstance(frame, Deferred):
        if then is None:  # a text is narrowed already
            return None, {}, None
        given = frame.unmade() or frame
    if not (known() or text_marks.are_known()):
        return None, {}, None
    plan = with_cached(given)
    own = plan if given is frame else None
    opened = text_marks.opened(frame.sparkSession, plan, whole=asks_for_files(plan))
    if opened is not None:
        given, plan = opened, with_cached(opened)
    snapshots = known()
    if asks_for_files(plan):
        with suppress(Exception):  # then it is Spark's to say, or refused
            new = by_hidden(frame.sparkSession, plan, is_mark)
            given = given if new is None else of_plan(frame.sparkSession, new)
            plan = with_cached(given)
    schemas = {mark: one.schema for mark, one in snapshots.items()}
    found = marked_plan(given, plan, schemas, then, all_known=given is not frame)
    if found is None:
        return None, {}, own
    used(mark for mark, _, _ in found.marks)
    for gone in _TABLES.keys() - snapshots.keys():
        _TABLES.pop(gone, None)
    return found, {mark: _TABLES.setdefault(mark, Table(snapshots[mark])) for mark, _, _ in found.marks}, own


def _all(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    if _RUNS.get():  # PySpark's `head` takes, and `take` collects, what was narrowed already
        return own(frame, *args, **kwargs)
    return own(narrowed(frame) or frame, *args, **kwargs)


def _some(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    """For a method that takes a few rows, one by default; `show` looks whether there is one more."""
    asked = [*args[:1], *(value for name, value in kwargs.items() if name in ("n", "num"))]
    rows = asked[0] if asked and asked[0] is not None else 20 if own.__name__ == "show" else 1
    if not isinstance(rows, int) or rows < 0:
        return own(frame, *args, **kwargs)
    more = rows + (own.__name__ == "show")
    found = None if _RUNS.get() else narrowed(frame, lambda frame: frame.limit(more))
    before = _RUNS.set(True)
    try:
        return own(found or frame, *args, **kwargs)
    except Exception as e:
        if found is None or not may_be_of_row(e):
            raise
        return own(frame, *args, **kwargs)  # Spark stops before it comes to a row that cannot be cast, if it may
    finally:
        _RUNS.reset(before)


def _number(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    """For `count`, which is an aggregate of the rows."""
    found = None if args or kwargs else narrowed(frame, lambda frame: frame.groupBy().count())
    return own(frame, *args, **kwargs) if found is None else found.collect()[0][0]


def _files(own: Callable[..., list[str]], frame: DataFrame) -> list[str]:
    """For `inputFiles`: of a table those that an action reads, or all, of what Spark reads otherwise its own answer."""
    if frame.isStreaming:
        return own(frame)
    given, snapshots = _opened(frame), known()
    asked = [snapshots[mark] for mark in marks_in(with_cached(given)) if mark in snapshots]
    if not asked:
        return own(frame)
    scans = [place.read for place in explained(given)] or [Table(snapshot).scan() for snapshot in asked]
    others = {*own(given)} - {uri for snapshot in asked for uri in _uris(Table(snapshot).scan())}
    return sorted(others.union(*map(_uris, scans)))


def _uris(scan: Scan) -> list[str]:
    """The files of a scan, as Spark has them."""
    paths = scan.kept.column("path").to_pylist()
    return [hadoop.encoded(hadoop.uri(*scan.source.storage.locate(path))) for path in paths]


def _opened(frame: DataFrame) -> DataFrame:
    """The DataFrame with the plan of a text in the place of its rows, if it is of one."""
    from mica.engines.spark.deferred import Deferred

    given: DataFrame = (frame.unmade() if isinstance(frame, Deferred) else None) or frame
    return text_marks.opened(frame.sparkSession, with_cached(given), whole=True) or given


def _lending(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    """For methods whose texts may have subqueries: of the names in them Spark finds no registered one, until it is lent
    to the session."""
    try:
        return own(frame, *args, **kwargs)
    except Exception as e:
        if not is_condition(e, "TABLE_OR_VIEW_NOT_FOUND"):
            raise
        text, spark = " ".join(map(str, [*args, *kwargs.values()])), frame.sparkSession
        stored = partial(views.rows_of, spark, query=spark.sql)
        return lent.run(spark, lambda: own(frame, *args, **kwargs), text, stored)


def _given(frame: DataFrame) -> DataFrame | None:
    """A DataFrame that no action looks into, with `_metadata` where it is asked of rows that the kernel reads."""
    try:
        return _with_metadata(frame, None)
    except Exception:  # noqa: BLE001 - its own plan says what is wrong
        _LOG.debug("a DataFrame is read by Spark", exc_info=True)
        return None


def _written(frame: DataFrame, stays: bool) -> DataFrame | None:
    """A DataFrame's rows as an action reads them, for who writes them; `stays`: in the tasks that read."""
    with copies.written(lambda _: stays):
        return narrowed(frame)


OPENERS.append(_given)
NARROWERS.append(_written)


def _beyond(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    """For methods that make rows no action looks into, as mica's own writes do."""
    return own(opened(frame), *args, **kwargs)


def _kept(own: Callable[..., Any], frame: DataFrame) -> Any:
    """For `rdd`, which is one object, made once: it may be cached."""
    held = vars(frame)
    if "rdd" not in held:
        held["rdd"] = _all(own, frame)
    return held["rdd"]


_WHOLE = "collect explain foreach foreachPartition tail toArrow toJSON toLocalIterator toPandas write"
TEXTS = "agg filter join select selectExpr sort withColumn withColumns"
#: Who answers which method: those that run a plan, and those that take texts.
ACTIONS: dict[str, Callable[..., Any]] = {
    **{f"DataFrame.{name}": _all for name in _WHOLE.split()},
    **{f"DataFrame.{name}": _some for name in ("first", "head", "isEmpty", "show", "take")},
    "DataFrame.count": _number,
    **{f"DataFrame.{name}": _lending for name in TEXTS.split()},
    **{f"DataFrame.{name}": _beyond for name in ("checkpoint", "localCheckpoint", "mapInArrow", "mapInPandas")},
    "DataFrame.rdd": _kept,
    "DataFrame.inputFiles": _files,
}
