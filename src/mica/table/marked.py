"""The tables inside of an enabled session's DataFrames.

The rule: a mark (`engines/spark/marks.py`) stands for a table at one version, which is known as long as it is one of
the last that were opened or asked for. A table that is forgotten is read by Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any

from mica.engines.spark.doors import is_enabled
from mica.engines.spark.hidden_column import with_hidden
from mica.engines.spark.making import Maker
from mica.engines.spark.marks import MARK, framed, marked, of_plan, under, with_names
from mica.log.row_tracking import materialized
from mica.log.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.table.opened import OpenedTable

#: The tables of the last marks, of each place at its last versions, those of the latest use last.
_KNOWN: dict[str, Snapshot] = {}
_KEPT, _VERSIONS = 64, 4
NEWEST = ("__mica_newest",)
_LOCK, _NUMBERS = Lock(), count()


def of_table(spark: SparkSession, frame: DataFrame, snapshot: Snapshot, *names: Sequence[str]) -> DataFrame:
    """All rows of a table, so that actions find it again; under the parts of its name, as Spark's tables are, and under
    `NEWEST` below that if they were asked for as those of no version: a view of them stands for the table."""
    from mica.engines.spark.deferred import Deferred

    ids = _tracks(snapshot)
    if not isinstance(frame, Deferred):
        rows = framed(spark, with_hidden(spark, frame._jdf, snapshot.schema, ids=ids))  # noqa: SLF001
        return marked(spark, rows, mark_of(snapshot), names)

    def made(rows: Any) -> Any:
        rows = with_hidden(spark, rows, snapshot.schema, ids=ids)
        rows = under(spark, rows, mark_of(snapshot))  # of small files, which may have many rows, or few that are here
        return with_names(spark, rows, names)

    return frame.then(made)


def in_place(spark: SparkSession, table: OpenedTable, columns: Any, *, found_again: bool = False) -> Any:
    """The plan of all rows of a table in the columns of another plan, so that actions of an enabled session find it,
    or whoever says so. The hidden column comes last: Catalyst forgets it where columns get other ids."""
    rows, snapshot = table.scan().to_df(spark)._jdf, table.snapshot  # noqa: SLF001
    plan = Maker.of(spark).renumbered(rows.queryExecution().analyzed(), columns)
    if not (found_again or is_enabled(spark)):
        return plan
    found = with_hidden(spark, of_plan(spark, plan)._jdf, snapshot.schema, ids=_tracks(snapshot))  # noqa: SLF001
    return under(spark, found, mark_of(snapshot)).queryExecution().analyzed()


def _tracks(snapshot: Snapshot) -> bool:
    return materialized(snapshot.metadata) is not None


def known() -> Mapping[str, Snapshot]:
    """The tables by their marks."""
    return dict(_KNOWN)


def used(marks: Iterable[str]) -> None:
    """Keeps the tables of these marks longer than others: somebody asked for their rows."""
    with _LOCK:
        _KNOWN.update({mark: _KNOWN.pop(mark) for mark in marks if mark in _KNOWN})


def mark_of(snapshot: Snapshot) -> str:
    """The mark of a table, which is one of the last ones now."""
    with _LOCK:
        for mark, one in _KNOWN.items():
            if _is_same(one, snapshot):
                _KNOWN[mark] = _KNOWN.pop(mark)
                return mark
        others = [mark for mark, one in _KNOWN.items() if str(one.storage) == str(snapshot.storage)]
        for oldest in {*others[: 1 - _VERSIONS], *list(_KNOWN)[: 1 - _KEPT]}:
            del _KNOWN[oldest]
        mark = f"{MARK}{next(_NUMBERS)}"
        _KNOWN[mark] = snapshot
    return mark


def _is_same(one: Snapshot, other: Snapshot) -> bool:
    """Whether they are one version of one table, which may have been opened twice, with the same rights."""
    return one is other or (
        (one.version, one.fingerprint, str(one.storage)) == (other.version, other.fingerprint, str(other.storage))
        and one.storage.options == other.storage.options
    )
