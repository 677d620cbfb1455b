"""Overwrites the rows for which a predicate is true (delta-spark's `replaceWhere`).

The rule: these rows are deleted as by a DELETE, and the new rows are added, in one commit; the predicate must be true
for every new row. Where partition columns alone decide, whole files are removed and none is read. Change files, if the
commit has any, have the new rows too, because readers of the feed then ignore the data files (PROTOCOL.md, "Add CDC
File").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa

from mica.engines.base import Engine
from mica.expressions.bind import bind
from mica.records import dataclass
from mica.tasks.parts import in_tasks
from mica.tasks.rules import RowCheck, Rules
from mica.tasks.write import WriteSpec
from mica.write import flow
from mica.write.change import Change
from mica.write.facts import Facts
from mica.write.target import Target, write_metrics

#: Metrics of a delete that delta-spark reports for an overwrite too.
_METRICS = (
    "numRemovedFiles", "numRemovedBytes", "numCopiedRows", "numDeletedRows", "numAddedChangeFiles",
)  # fmt: skip


class Replacement(Change):
    """The delete of the rows that new ones replace; see `Change` for how they are found. It makes `target` the target
    of the whole overwrite."""

    is_all = False

    def __init__(self, target: Target, engine: Engine, where: str, timezone: str = "UTC") -> None:
        super().__init__(target, engine, where, timezone=timezone)
        self._parts = self._split()
        self._deleting, self.feeds = self._task(self._parts), self._writes_changes(self._parts)
        target.reads = (self.reads,)
        target.replaces, target.metrics = where, self._overwritten
        bound = bind(where, target.schema, ansi=self.scan.ansi, timezone=self.scan.timezone)
        self._check = RowCheck("the predicate of the overwrite", where, bound, "overwrite")

    def rules(self, rules: Rules) -> Rules:
        """The rules of the table, and that of the overwrite."""
        return replace(rules, checks=(*rules.checks, self._check))

    def source(self, rows: flow.RowSource) -> flow.RowSource:
        """The new rows, and then the rows of rewritten files that stay."""
        rest = flow.FromTasks(self._deleting, in_tasks(self._parts, self.engine.parallelism))
        return _Both(rows, rest, partial(self.target.rewriting_spec, timezone=self.scan.timezone))

    def _overwritten(self, facts: Facts) -> dict[str, int]:
        deleted = self._metrics(facts)
        return {**write_metrics(facts), **{name: deleted[name] for name in _METRICS}}


@dataclass(frozen=True)
class _Both(flow.RowSource):
    """New rows, and the rest of the files that they replace rows of."""

    new: flow.RowSource
    rest: flow.RowSource
    rewriting: Callable[[WriteSpec], WriteSpec]

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """The facts of both. The table's rules are for new rows."""
        yield from self.new.run(engine, spec)
        yield from self.rest.run(engine, self.rewriting(replace(spec, rules=Rules())))
