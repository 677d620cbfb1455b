"""What an action of an enabled session's DataFrame runs: its plan with narrowed scans in the places of mica's tables.

The rule: the DataFrames are Spark's, and one that is run otherwise, or that this file does not know, has the same rows
by Spark. Only when rows are asked for is it known what they need of a table, which is then read as for a text of
`mica.sql`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mica.engines.spark import text_marks
from mica.engines.spark.errors import may_be_of_row
from mica.engines.spark.marks import MarkedPlan, marked_plan, with_cached
from mica.engines.spark.session import is_connect
from mica.query import select
from mica.query.narrowed import Narrowed
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
    known, or if Spark has to read it."""
    try:
        found, tables = _marked(frame, then)
        if found is None:
            return None
        rows = select.of_plan(frame.sparkSession, found, tables)
        if then is None:
            # Of an optimised plan Catalyst knows more columns without nulls, of a scan's columns fewer.
            vars(rows)["schema"] = frame.schema
        return rows
    except Exception:  # noqa: BLE001 - the DataFrame's own plan has the same rows
        _LOG.debug("a DataFrame is read by Spark", exc_info=True)
        return None


def explained(frame: DataFrame) -> list[Narrowed]:
    """How an action reads the tables of a DataFrame; none if Spark reads all of it."""
    found, tables = _marked(frame, lambda frame: frame)
    if found is None:
        return []
    _, places = select.planned(frame.sparkSession, found, tables)
    return [replace(place, view=PurePosixPath(place.table.path).name) for place in places]


def _marked(
    frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None = None
) -> tuple[MarkedPlan | None, Mapping[str, Table]]:
    """A DataFrame's plan, if an action narrows it, and the tables by their marks."""
    from mica.engines.spark.deferred import Deferred

    if is_connect(frame.sparkSession):
        return None, {}
    given = frame
    if isinstance(frame, Deferred):
        if then is None:  # a text is narrowed already
            return None, {}
        given = frame.unmade() or frame
    if not (known() or text_marks.are_known()):
        return None, {}
    plan = with_cached(given)
    opened = text_marks.opened(frame.sparkSession, plan)
    if opened is not None:
        given, plan = opened, with_cached(opened)
    snapshots = known()
    schemas = {mark: one.schema for mark, one in snapshots.items()}
    found = marked_plan(given, plan, schemas, then, all_known=given is not frame)
    if found is None:
        return None, {}
    used(mark for mark, _ in found.marks)
    for gone in _TABLES.keys() - snapshots.keys():
        _TABLES.pop(gone, None)
    return found, {mark: _TABLES.setdefault(mark, Table(snapshots[mark])) for mark, _ in found.marks}


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


def _kept(own: Callable[..., Any], frame: DataFrame) -> Any:
    """For `rdd`, which is one object, made once: it may be cached."""
    held = vars(frame)
    if "rdd" not in held:
        held["rdd"] = _all(own, frame)
    return held["rdd"]


_WHOLE = "collect explain foreach foreachPartition tail toArrow toJSON toLocalIterator toPandas write"
#: Who answers which method: those that run a plan.
ACTIONS: dict[str, Callable[..., Any]] = {
    **{f"DataFrame.{name}": _all for name in _WHOLE.split()},
    **{f"DataFrame.{name}": _some for name in ("first", "head", "isEmpty", "show", "take")},
    "DataFrame.count": _number,
    "DataFrame.rdd": _kept,
}
