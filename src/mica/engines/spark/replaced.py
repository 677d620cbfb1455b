"""Puts scans in the places of the tables of a plan.

The rule: what is replaced is the relation, the conjuncts above it that the scan evaluates itself, extractions from
Variants and structs, which become columns of the scan, and an aggregate that takes rows in groups (`folds`). All other
nodes stay Catalyst's own. Catalyst finds the nodes itself, by equality: a map is one of its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalyst import Extraction, Plan, Query, Relation, every
from mica.engines.spark.folds import Folded
from mica.engines.spark.nodes import items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_scans(query: Query, frames: Sequence[DataFrame], folded: Mapping[int, Folded]) -> DataFrame:
    """The query over these frames, one for each relation: its needed columns, then its extractions; or those of its
    place in `folded` (number of a relation → what is folded above it)."""
    from pyspark.sql import DataFrame

    plan = _Replacing(query, frames, folded).plan()
    java = query.make.dataset.ofRows(query.spark._jsparkSession, plan)  # noqa: SLF001
    frame = DataFrame(java, query.spark)
    return frame if frame.columns == query.names else frame.toDF(*query.names)


class _Replacing:
    def __init__(self, query: Query, frames: Sequence[DataFrame], folded: Mapping[int, Folded]) -> None:
        self.query, self.make = query, query.make
        self.frames = list(zip(query.relations, frames, strict=True))
        self.folded = folded
        self._leaves: dict[tuple[int, Extraction], Any] = {}

    def plan(self) -> Any:
        nodes: list[tuple[Any, Any]] = []
        for number, (relation, frame) in enumerate(self.frames):
            if number in self.folded:
                nodes.append(self.folded[number].replaced(self.make, _analysed(frame)))
            else:
                nodes += self._places(relation, frame)
        root, plans = self.query.root, list(every(self.query.root))
        gone = {id(plan) for fold in self.folded.values() for plan in fold.plans}
        pairs = [pair for plan in plans if id(plan) not in gone for pair in self._expressions(plan)]
        nodes += [pair for plan in plans if id(plan) not in gone for pair in self._passing(plan)]
        java = root.java.transformDownWithSubqueries(self.make.rule(nodes))
        if pairs:
            java = java.transformAllExpressionsWithSubqueries(self.make.rule(pairs))
        java.setAnalyzed()
        return java

    def _places(self, relation: Relation, frame: DataFrame) -> Iterator[tuple[Any, Any]]:
        """The relation, and its filter if the scan evaluates a part of it."""
        scan = self._scan(relation, frame)
        if relation.filter is not None and relation.dropped:
            kept = [e.java for i, e in enumerate(relation.expressions) if i not in relation.dropped]
            new = self.make.filter(self.make.all_of(kept), scan) if kept else scan
            yield relation.filter.java, new
        yield relation.node, scan

    def _expressions(self, plan: Plan) -> Iterator[tuple[Any, Any]]:
        """The extractions of a node, each with its column."""
        if not plan.references & self.query.roots.keys():
            return
        relation = self.query.dropped(plan)
        kept = plan.expressions
        if relation is not None:
            kept = [e for i, e in enumerate(relation.expressions) if i not in relation.dropped]
        for tree in kept:
            for old, number, extraction in self.query.extracted(tree):
                column = self._leaf(number, extraction)
                yield old.java, self.make.negated(column) if old.name == "IsNotNull" else column

    def _passing(self, plan: Plan) -> Iterator[tuple[Any, Any]]:
        """A list of columns that passes on a Variant or struct passes its extractions on instead."""
        roots, whole = self.query.roots, self.query.whole
        if plan.name != "Project" or not plan.references & roots.keys():
            return
        found: list[Any] = []
        for item in plan.expressions:
            again = item.renamed
            root = None if again is None else roots.get(again[0])
            found += [item.java] if again is None or root is None or root in whole else self._passed(*again, root)
        yield plan.java, self.make.project(self.make.seq(found), plan.java.child())

    def _leaf(self, carrier: int, extraction: Extraction) -> Any:
        """The attribute that stands for an extraction from a column of this id."""
        key = (carrier, extraction)
        if key not in self._leaves:
            self._leaves[key] = self.make.attribute(extraction.sql, extraction.type)
        return self._leaves[key]

    def _passed(self, source: int, target: int, root: int) -> list[Any]:
        """The extractions of a column in a list of columns, under its old name or a new one."""
        relation, column = self.query.carriers[root]
        own = [e for e in relation.extractions if e.column == column]
        if source == target:
            return [self._leaf(source, e) for e in own]
        return [self.make.alias(self._leaf(source, e), e.sql, self._leaf(target, e).exprId()) for e in own]

    def _scan(self, relation: Relation, frame: DataFrame) -> Any:
        """A relation's scan, under the names and ids of the relation."""
        plan = _analysed(frame)
        columns = list(items(plan.output()))
        own = {relation.columns[i]: a for i, a in zip(relation.columns, items(relation.node.output()), strict=True)}
        numbers = {name: number for number, name in relation.columns.items()}
        found = [self.make.alias(c, n, own[n].exprId()) for c, n in zip(columns, relation.needed, strict=False)]
        for column, e in zip(columns[len(relation.needed) :], relation.extractions, strict=False):
            found.append(self.make.alias(column, e.sql, self._leaf(numbers[e.column], e).exprId()))
        return self.make.project(self.make.seq(found), plan)


def _analysed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001
