"""Texts inside of DataFrames: a mark is an alias around the rows of a text, by which whoever runs a DataFrame that was
made of them finds what the text says.

The rule: inside of a mark are scans that read what the text alone asks for, so what nobody looks at has the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mica.engines.spark.making import Maker
from mica.engines.spark.marks import found, named, of_plan
from mica.engines.spark.nodes import items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How the names of these marks begin: in no other process so.
_MARK = f"__mica_text_{uuid4().hex}_"
#: The plans of the last texts, whose tables have marks of their own, by their marks.
_PLANS: dict[str, Callable[[], Any]] = {}
_KEPT = 64
_LOCK, _NUMBERS = Lock(), count()


def marked(spark: SparkSession, rows: Any, plan: Callable[[], Any]) -> Any:
    """The rows of a text, a Dataset of the JVM, under a mark. `plan` gives its analysed plan, with marks around its
    tables."""
    mark = f"{_MARK}{next(_NUMBERS)}"
    with _LOCK:
        _PLANS[mark] = plan
        for oldest in list(_PLANS)[:-_KEPT]:
            del _PLANS[oldest]
    return named(spark, rows, [mark])


def are_known() -> bool:
    """Whether there may be such marks."""
    return bool(_PLANS)


def opened(spark: SparkSession, plan: Any) -> DataFrame | None:
    """A plan (`with_cached`) with the plans of texts in the places of their marks; None if it has none that is known,
    or all of them are cached."""
    new = _Opening(spark).plan(plan) if are_known() else None
    return None if new is None else of_plan(spark, new)


class _Opening:
    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._make = spark, Maker.of(spark)
        self._seen: dict[str, Any] = {}

    def plan(self, java: Any) -> Any:
        """The plan, opened; None if nothing is."""
        plans = dict(_PLANS)
        places = [(mark, node) for mark, node in found(java, _MARK) if mark in plans]
        pairs = [(node, self._make.renumbered(self._text(mark, plans[mark]), node.output())) for mark, node in places]
        if not pairs:
            return None
        new = java.transformDownWithSubqueries(self._make.rule(pairs))
        new.setAnalyzed()
        return new

    def _text(self, mark: str, plan: Callable[[], Any]) -> Any:
        """What a mark stands for. Catalyst wants each column of a plan once, so a text that comes again is joined with
        itself, and taken from there."""
        if mark in self._seen:
            again = of_plan(self._spark, self._seen[mark])
            return list(items(again.crossJoin(again)._jdf.queryExecution().analyzed().children()))[1]  # noqa: SLF001
        given = plan()
        found = self._seen[mark] = self.plan(given) or given
        return found
