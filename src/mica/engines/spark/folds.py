"""Finds aggregates right above a table that can take rows in groups: `count(*)` by a path need not see every row.

The rule: between the aggregate and the table are only lists of columns, and conditions that the scan evaluates; every
expression over the table's columns is one of mica's; and the aggregate says the same of rows that are alike, given how
many they are (`count`, `min`, `max`, anything DISTINCT). All else takes rows one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from mica.engines.spark.catalyst import Plan, Query, Relation, every
from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import Node, Tree, items, node
from mica.tasks.fold import Fold, Measure

#: The text of an expression of a relation whose values are the scan's; None if it is not one.
Texts = Callable[[Relation, Node, str], "str | None"]


@dataclass
class Folded:
    """An aggregate whose rows come in groups."""

    relation: Relation
    #: The aggregate, and what is between it and the relation.
    aggregate: Plan
    plans: list[Plan]
    #: The columns of the scan: name → expression over the table.
    columns: dict[str, str] = field(default_factory=dict)
    #: Name → the column that it is above the scan; None for an expression.
    keys: dict[str, Any] = field(default_factory=dict)
    measures: dict[tuple[str, str], str] = field(default_factory=dict)
    _columns: set[int] = field(default_factory=set)
    #: Expressions of the aggregate that become keys, and functions with their measures.
    _as_keys: list[tuple[Any, str]] = field(default_factory=list)
    _as_measures: list[tuple[Any, Any, str, str]] = field(default_factory=list)

    @property
    def fold(self) -> Fold:
        """What the scan does."""
        measures = [Measure(name, function, column) for (function, column), name in self.measures.items()]
        return Fold(tuple(self.keys), tuple(measures))

    def column(self, text: str) -> str:
        """The scan's column of an expression."""
        known = next((name for name, other in self.columns.items() if other == text), None)
        return self._new(text) if known is None else known

    def key(self, tree: Tree, text: str) -> None:
        """An expression whose values are told from each other. A column keeps its id."""
        if tree.is_column:
            if tree.number not in self._columns:
                self._columns.add(tree.number)
                self.keys[self._new(text)] = tree.java
            return
        name = next((n for n, own in self.keys.items() if own is None and self.columns[n] == text), None)
        if name is None:
            name = self._new(text)
            self.keys[name] = None
        self._as_keys.append((tree.java, name))

    def _new(self, text: str) -> str:
        name = f"c{len(self.columns)}"
        self.columns[name] = text
        return name

    def measure(self, tree: Tree, argument: Tree | None, function: str, column: str = "") -> None:
        """An aggregate function of rows that are alike."""
        name = self.measures.setdefault((function, column), f"m{len(self.measures)}")
        self._as_measures.append((tree.java, None if argument is None else argument.java, function, name))

    def replaced(self, make: Maker, scan: Any) -> tuple[Any, Any]:
        """The aggregate, and the one over the folded scan."""
        columns = dict(zip([*self.keys, *self.measures.values()], items(scan.output()), strict=True))
        made: dict[str, Any] = {}
        listed = []
        for name, column in columns.items():
            own = self.keys.get(name)
            counts = any(n == name and f in ("rows", "count") for (f, _), n in self.measures.items())
            made[name] = own if own is not None else make.attribute(name, column.dataType().sql(), nullable=not counts)
            listed.append(make.alias(column, name, made[name].exprId()))
        pairs = [(java, made[name]) for java, name in self._as_keys]
        for java, argument, function, name in self._as_measures:
            if function in ("rows", "count"):
                pairs.append((java, make.summed(made[name])))
            else:
                pairs.append((java, java.transform(make.rule([(argument, made[name])]))))
        project = make.project(make.seq(listed), scan)
        java = self.aggregate.java
        changed = java.transformExpressions(make.rule(pairs)) if pairs else java
        return java, changed.withNewChildren(make.seq([project]))


def find(query: Query, texts: Texts) -> Iterator[Folded]:
    """The aggregates of a query that may take rows in groups."""
    for plan in every(query.root):
        if plan.name == "Aggregate":
            found = _chain(query, plan)
            if found is not None and _reads(found, texts):
                yield found


def _chain(query: Query, aggregate: Plan) -> Folded | None:
    plans, plan = [aggregate], aggregate.children[0]
    while plan.name == "Project" and not plan.subplans:
        plans.append(plan)
        plan = plan.children[0]
    filtered = query.dropped(plan)
    if filtered is not None:
        plans.append(plan)
        plan = plan.children[0]
    relation = query.relation_of(plan)
    if relation is None or relation.places > 1 or aggregate.subplans:
        return None
    if len(relation.dropped) < len(relation.expressions):
        return None
    return Folded(relation, aggregate, plans)


class _Refused(Exception):  # noqa: N818 - it ends the search, and no caller sees it
    pass


def _reads(found: Folded, texts: Texts) -> bool:
    """Fills in the keys and measures; False if a part of the aggregate needs rows one by one."""
    defined = {
        tree.number: tree.children[0]
        for plan in found.plans
        if plan.name == "Project"
        for tree in plan.expressions
        if tree.name == "Alias"
    }

    def known(number: int) -> str | Tree | None:
        return found.relation.columns.get(number) or defined.get(number)

    def translated(tree: Tree) -> str | None:
        return texts(found.relation, node(tree, known), tree.type)

    def text(tree: Tree) -> str:
        one = translated(tree)
        if one is None:
            raise _Refused
        return one

    def walk(tree: Tree) -> None:
        if tree.name == "AggregateExpression":
            aggregated(tree)
        elif tree.name == "Alias":
            walk(tree.children[0])
        elif tree.name != "Literal":
            one = translated(tree)
            if one is not None:
                found.key(tree, one)
            elif not tree.children:
                raise _Refused
            else:
                for child in tree.children:
                    walk(child)

    def aggregated(tree: Tree) -> None:
        if len(tree.children) > 1:  # FILTER
            raise _Refused
        (what,) = tree.children
        if bool(tree.java.isDistinct()):
            for argument in what.children:
                found.key(argument, text(argument))
        elif what.name == "Count" and all(argument.text is not None for argument in what.children):
            found.measure(tree, None, "rows")
        elif what.name in ("Count", "Min", "Max") and len(what.children) == 1:
            (argument,) = what.children
            found.measure(tree, argument, what.name.lower(), found.column(text(argument)))
        else:
            raise _Refused

    grouped = int(found.aggregate.java.groupingExpressions().size())
    try:
        for number, tree in enumerate(found.aggregate.expressions):
            if number < grouped:
                found.key(tree, text(tree))
            else:
                walk(tree)
    except _Refused:
        return False
    return bool(found.columns) or bool(found.measures)
