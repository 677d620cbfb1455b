"""What an action of an enabled session's DataFrame runs: its plan with narrowed scans in the places of mica's tables.

The rule: the DataFrames are Spark's, and one that is run otherwise, or that this file does not know, has the same rows
by Spark. Only when rows are asked for is it known what they need of a table, which is then read as for a text of
`mica.sql`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import parts_of
from mica.engines.spark.marks import MARK, marked, marked_plan
from mica.query import select
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger("mica")
#: The tables of the last marks: another one is read by Spark.
_TABLES: dict[str, Table] = {}
_KEPT = 64
_LOCK, _NUMBERS = Lock(), count()


def of_table(spark: SparkSession, table: Table, name: str) -> DataFrame:
    """All rows of a table at its version now, so that actions find it again; under its name, as Spark's tables are."""
    from mica.engines.spark.deferred import Deferred

    frame = table.to_df(spark)
    if isinstance(frame, Deferred):
        return frame  # few rows, which are read whole
    return marked(spark, frame, _mark(table), parts_of(spark, name))


def _mark(table: Table) -> str:
    with _LOCK:
        known = next((mark for mark, one in _TABLES.items() if one.snapshot is table.snapshot), None)
        # One that was registered may move to another version.
        mark = known or f"{MARK}{next(_NUMBERS)}"
        _TABLES[mark] = _TABLES.pop(mark, None) or Table(table.snapshot)
        for oldest in list(_TABLES)[:-_KEPT]:
            del _TABLES[oldest]
    return mark


def narrowed(frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None = None) -> DataFrame | None:
    """The rows of a DataFrame, or of what `then` makes of them, by narrowed scans; None if it has no table that is
    known, or if Spark has to read it."""
    from mica.engines.spark.deferred import Deferred

    if not _TABLES or isinstance(frame, Deferred):
        return None
    try:
        views = dict(_TABLES)
        found = marked_plan(frame, views, then)
        return None if found is None else select.of_plan(frame.sparkSession, found.java, found.marks, views)
    except Exception:  # noqa: BLE001 - the DataFrame's own plan has the same rows
        _LOG.debug("a DataFrame is read by Spark", exc_info=True)
        return None


def _all(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    return own(narrowed(frame) or frame, *args, **kwargs)


def _some(own: Callable[..., Any], frame: DataFrame, *args: Any, **kwargs: Any) -> Any:
    """For a method that takes a few rows, one by default; `show` looks whether there is one more."""
    asked = [*args[:1], *(value for name, value in kwargs.items() if name in ("n", "num"))]
    rows = asked[0] if asked and asked[0] is not None else 20 if own.__name__ == "show" else 1
    if not isinstance(rows, int):
        return own(frame, *args, **kwargs)
    more = rows + (own.__name__ == "show")
    return own(narrowed(frame, lambda frame: frame.limit(more)) or frame, *args, **kwargs)


def _number(own: Callable[..., Any], frame: DataFrame) -> Any:
    """For `count`, which is an aggregate of the rows."""
    found = narrowed(frame, lambda frame: frame.groupBy().count())
    return own(frame) if found is None else found.collect()[0][0]


#: Who answers which method: those that run a plan.
ACTIONS = {
    **dict.fromkeys(
        "collect explain foreach foreachPartition tail toArrow toLocalIterator toPandas write".split(), _all
    ),
    **dict.fromkeys("first head isEmpty show take".split(), _some),
    "count": _number,
}
