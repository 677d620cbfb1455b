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
from mica.schema.hidden import METADATA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How the names of these marks begin: in no other process so.
_MARK = f"__mica_text_{uuid4().hex}_"
#: The same of rows that are in the driver already: none but who asks for their files needs the text.
_HERE = f"__mica_few_{uuid4().hex}_"
#: The plans of the last texts by their marks: of tables that are no more than marks, and over their rows.
_PLANS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}
_KEPT = 64
_LOCK, _NUMBERS = Lock(), count()


def marked(
    spark: SparkSession, rows: Any, plan: Callable[[], Any], whole: Callable[[], Any], *, here: bool = False
) -> Any:
    """The rows of a text, a Dataset of the JVM, under a mark. `plan` gives its analysed plan, with marks in the places
    of its tables, `whole` the one over all that Spark reads of these. `here`: all rows are in the driver."""
    mark = f"{_HERE if here else _MARK}{next(_NUMBERS)}"
    with _LOCK:
        _PLANS[mark] = plan, whole
        for oldest in list(_PLANS)[:-_KEPT]:
            del _PLANS[oldest]
    return named(spark, rows, [mark])


def are_known() -> bool:
    """Whether there may be such marks."""
    return bool(_PLANS)


def opened(spark: SparkSession, plan: Any, *, whole: bool = False) -> DataFrame | None:
    """A plan (`with_cached`) with the plans of texts in the places of their marks, but of those whose rows are in the
    driver; None if it has none that is known, or all of them are cached. `whole`: with those over the rows of their
    tables, of every text."""
    new = _Opening(spark, whole=whole).plan(plan) if are_known() else None
    return None if new is None else of_plan(spark, new)


class _Opening:
    def __init__(self, spark: SparkSession, *, whole: bool) -> None:
        self._spark, self._make, self._whole = spark, Maker.of(spark), whole
        self._seen: dict[str, Any] = {}

    def plan(self, java: Any) -> Any:
        """The plan, opened; None if nothing is."""
        begins = (_MARK, _HERE) if self._whole else (_MARK,)
        places = [(mark, node, _PLANS.get(mark)) for mark, node in found(java, begins)]
        pairs = [
            (node, self._make.renumbered(self._columns(mark, plans, node), node.output()))
            for mark, node, plans in places
            if plans is not None
        ]
        if not pairs:
            return None
        new = java.transformDownWithSubqueries(self._make.rule(pairs))
        new.setAnalyzed()
        return new

    def _columns(self, mark: str, plans: tuple[Callable[[], Any], Callable[[], Any]], node: Any) -> Any:
        """What a mark stands for, with the hidden column if it is asked for that: then it is over all rows."""
        found = self._text(mark, plans[self._whole])
        if int(found.output().size()) == int(node.output().size()):
            return found
        found = self._text(f"{mark}+", plans[True])
        hidden = [one for one in items(found.metadataOutput()) if str(one.name()) == METADATA]
        rows = of_plan(self._spark, self._make.project(found.output().appendedAll(self._make.seq(hidden)), found))
        return rows._jdf.queryExecution().analyzed()  # noqa: SLF001

    def _text(self, mark: str, plan: Callable[[], Any]) -> Any:
        """What a mark stands for. Catalyst wants each column of a plan once, so a text that comes again is joined with
        itself, and taken from there."""
        if mark in self._seen:
            again = of_plan(self._spark, self._seen[mark])
            return list(items(again.crossJoin(again)._jdf.queryExecution().analyzed().children()))[1]  # noqa: SLF001
        given = plan()
        found = self._seen[mark] = self.plan(given) or given
        return found
