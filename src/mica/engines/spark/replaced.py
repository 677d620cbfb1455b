"""Puts scans in the places of the tables of a plan.

The rule: what is replaced is the relation, the conjuncts above it that the scan evaluates itself, extractions from
Variants and structs, which become columns of the scan, an aggregate that takes rows in groups (`folds`), and a query
that the scan computes whole (`computed`). All other nodes stay Catalyst's own. Catalyst finds the nodes itself, by
equality: a map is one of its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mica.engines.spark.catalyst import Plan, Relation, every
from mica.engines.spark.computed import Computed
from mica.engines.spark.folds import Folded
from mica.engines.spark.needs import Extraction, Needs
from mica.engines.spark.nodes import ids, names_of
from mica.records import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Rows:
    """What stands in a relation's place: its needed columns, then its extractions; or those of a fold, or a query."""

    frame: DataFrame
    folded: Folded | Computed | None = None
    #: Whether they are all groups of the fold, each once.
    gathered: bool = False
    #: Whether they are few, and here already.
    few: bool = False


def with_scans(needs: Needs, rows: Sequence[Rows]) -> Any:
    """The query over these rows, one for each relation, as a Dataset of the JVM."""
    query, plan = needs.query, _Replacing(needs, rows).plan()
    java = query.make.of_rows(query.spark._jsparkSession, plan)  # noqa: SLF001
    return java if names_of(java.schema()) == query.names else java.toDF(query.make.seq(query.names))


class _Replacing:
    def __init__(self, needs: Needs, rows: Sequence[Rows]) -> None:
        self.needs, self.query, self.make = needs, needs.query, needs.query.make
        self.rows = list(zip(self.query.relations, rows, strict=True))
        self._leaves: dict[tuple[int, Extraction], Any] = {}

    def plan(self) -> Any:
        nodes: list[tuple[Any, Any]] = []
        for relation, rows in self.rows:
            if rows.folded is not None:
                nodes.append(rows.folded.replaced(self.make, self._analysed(rows), gathered=rows.gathered))
            else:
                nodes += self._places(relation, rows)
        root, plans = self.query.root, list(every(self.query.root))
        nodes += [(plan.java, self.make.one_row) for plan in plans if plan.name == "OneRowRelation"]
        nodes += [(plan.java, self.make.apart(plan.java)) for plan in plans if _repeats(plan)]
        gone = {id(plan) for _, rows in self.rows if rows.folded is not None for plan in rows.folded.plans}
        pairs = [pair for plan in plans if id(plan) not in gone for pair in self._expressions(plan)]
        nodes += [pair for plan in plans if id(plan) not in gone for pair in self._passing(plan)]
        java = root.java.transformDownWithSubqueries(self.make.rule(nodes))
        if pairs:
            java = java.transformAllExpressionsWithSubqueries(self.make.rule(pairs))
        java.setAnalyzed()
        return java

    def _places(self, relation: Relation, rows: Rows) -> Iterator[tuple[Any, Any]]:
        """The relation, and its filter if the scan evaluates a part of it."""
        scan = self._scan(relation, rows)
        if relation.filter is not None and self.needs.evaluated[relation]:
            kept = [tree.java for tree in self.needs.left(relation)]
            new = self.make.filter(self.make.all_of(kept), scan) if kept else scan
            yield relation.filter.java, new
        yield relation.node, scan

    def _expressions(self, plan: Plan) -> Iterator[tuple[Any, Any]]:
        """The extractions of a node, each with its column."""
        if not plan.references & self.needs.roots.keys():
            return
        relation = self.query.filtered(plan)
        for tree in plan.expressions if relation is None else self.needs.left(relation):
            for old, number, extraction in self.needs.extracted(tree):
                column = self._leaf(number, extraction)
                if extraction.failing is not None:
                    column = self.make.checked(column, self._leaf(number, extraction.failing), extraction.type)
                if old.name == "GetStructField":
                    column = column.withMetadata(old.java.metadata())  # a field's comment is that of the column
                yield old.java, self.make.negated(column) if old.name == "IsNotNull" else column

    def _passing(self, plan: Plan) -> Iterator[tuple[Any, Any]]:
        """A list of columns that passes on a Variant or struct passes its extractions on instead."""
        roots, whole = self.needs.roots, self.needs.whole
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
        relation, column = self.needs.carriers[root]
        own = [e for e in self.needs.extractions[relation] if e.column == column]
        if source == target:
            return [self._leaf(source, e) for e in own]
        return [self.make.alias(self._leaf(source, e), e.sql, self._leaf(target, e).exprId()) for e in own]

    def _analysed(self, rows: Rows) -> Any:
        plan = rows.frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        return self.make.in_one(plan) if rows.few else plan

    def _scan(self, relation: Relation, rows: Rows) -> Any:
        """A relation's scan, under the names and ids of the relation."""
        output = self._needed(relation)
        numbers = {name: number for number, name in relation.columns.items()}
        leaves = [self._leaf(numbers[e.column], e) for e in self.needs.extractions[relation]]
        if leaves:
            output = output.appendedAll(self.make.seq(leaves))
        return self.make.renumbered(self._analysed(rows), output, first=True)

    def _needed(self, relation: Relation) -> Any:
        """The relation's columns that are needed, with as few calls as they, or the others, are."""
        own, names, needed = relation.node.output(), list(relation.columns.values()), self.needs.columns[relation]
        wanted, places = set(needed), {name: at for at, name in enumerate(names)}
        rest = [name for name in names if name not in wanted]
        if len(rest) < len(needed) and [name for name in names if name in wanted] == list(needed):
            return own.diff(self.make.seq([own.apply(places[name]) for name in rest])) if rest else own
        return self.make.seq([own.apply(places[name]) for name in needed])


def _repeats(plan: Plan) -> bool:
    """Whether a node gives columns for each row by ids that columns below it have."""
    return plan.name == "Generate" and not ids(plan.java.generatorOutput()).isdisjoint(plan.children[0].output)
