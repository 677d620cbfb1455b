"""What an action of an enabled session's DataFrame runs: its plan with narrowed scans in the places of mica's tables.

The rule: the DataFrames are Spark's, and one that is run otherwise, or that this file does not know, has the same rows
by Spark. Only when rows are asked for is it known what they need of a table, which is then read as for a text of
`mica.sql`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalog import parts_of
from mica.engines.spark.marks import MARK, MarkedPlan, marked, marked_plan, named
from mica.engines.spark.session import is_connect
from mica.query import select
from mica.query.narrowed import Narrowed
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = logging.getLogger("mica")
#: The tables of the last marks, of each place at its last versions, and their names: another one is read by Spark.
_TABLES: dict[str, tuple[Table, str]] = {}
_KEPT, _VERSIONS = 64, 4
_LOCK, _NUMBERS = Lock(), count()


def of_table(spark: SparkSession, table: Table, name: str) -> DataFrame:
    """All rows of a table at its version now, so that actions find it again; under its name, as Spark's tables are."""
    from mica.engines.spark.deferred import Deferred

    frame, parts = table.to_df(spark), parts_of(spark, name)
    if isinstance(frame, Deferred):  # few rows, which are read whole
        return frame.then(lambda plan: named(spark, plan, parts))
    return marked(spark, frame, _mark(table, parts[-1]), parts)


def _mark(table: Table, name: str) -> str:
    with _LOCK:
        for mark, (known, _) in _TABLES.items():
            if known.snapshot is table.snapshot:
                return mark
        mark = f"{MARK}{next(_NUMBERS)}"
        others = [other for other, (known, _) in _TABLES.items() if known.path == table.path]
        for oldest in {*others[: 1 - _VERSIONS], *list(_TABLES)[: 1 - _KEPT]}:
            del _TABLES[oldest]
        _TABLES[mark] = Table(table.snapshot), name  # one that was registered may move to another version
    return mark


def narrowed(frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None = None) -> DataFrame | None:
    """The rows of a DataFrame, or of what `then` makes of them, by narrowed scans; None if it has no table that is
    known, or if Spark has to read it."""
    try:
        found, tables = _marked(frame, then)
        return None if found is None else select.of_plan(frame.sparkSession, found, tables)
    except Exception:  # noqa: BLE001 - the DataFrame's own plan has the same rows
        _LOG.debug("a DataFrame is read by Spark", exc_info=True)
        return None


def explained(frame: DataFrame) -> list[Narrowed]:
    """How an action reads the tables of a DataFrame; none if Spark reads all of it."""
    found, tables = _marked(frame)
    if found is None:
        return []
    _, places = select.planned(frame.sparkSession, found, tables)
    return [replace(place, view=_TABLES[place.view][1]) for place in places]


def _marked(
    frame: DataFrame, then: Callable[[DataFrame], DataFrame] | None = None
) -> tuple[MarkedPlan | None, Mapping[str, Table]]:
    """A DataFrame's plan, if an action narrows it, and the tables by their marks."""
    from mica.engines.spark.deferred import Deferred

    tables = {mark: table for mark, (table, _) in _TABLES.items()}
    if not tables or is_connect(frame.sparkSession) or isinstance(frame, Deferred):
        return None, tables
    return marked_plan(frame, {mark: table.schema for mark, table in tables.items()}, then), tables


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
