"""Finds aggregates right above a table that can take rows in groups: `count(*)` by a path need not see every row.

The rule: between the aggregate and the table are only lists of columns, and conditions that the scan evaluates; every
expression over the table's columns is one of mica's; and the aggregate says the same of rows that are alike, given how
many they are (`count`, `min`, `max`, anything DISTINCT). All else takes rows one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from itertools import chain
from typing import Any

from mica.engines.spark.catalyst import Plan, Relation, every
from mica.engines.spark.making import Maker
from mica.engines.spark.needs import Needs
from mica.engines.spark.nodes import Known, Node, Tree, items, node
from mica.records import dataclass
from mica.tasks.fold import Fold, Measure
from mica.tasks.gather import First, Gather

#: The text of an expression of a relation whose values are the scan's; None if it is not one.
Texts = Callable[[Relation, Node, str], "str | None"]

#: Types by whose order groups may be cut before Spark sorts them.
_ORDERED = frozenset("TINYINT SMALLINT INT BIGINT DATE TIMESTAMP TIMESTAMP_NTZ STRING".split())

#: Functions whose values of several groups are added.
_COUNTS = ("rows", "count")


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
    #: Which of the groups the query takes.
    first: First | None = None
    _columns: dict[int, str] = field(default_factory=dict)
    #: The keys that are not only arguments of a DISTINCT.
    _groups: set[str] = field(default_factory=set)
    #: Expressions of the aggregate that become keys, and functions with their measures.
    _as_keys: list[tuple[Any, str]] = field(default_factory=list)
    _as_measures: list[tuple[Any, Any, str, str]] = field(default_factory=list)
    #: Functions with DISTINCT: whether it is `count`, and its arguments.
    _distinct: list[tuple[Any, bool, tuple[str, ...]]] = field(default_factory=list)

    @property
    def fold(self) -> Fold:
        """What tasks do: rows with the same keys are one, as far as they see them."""
        measures = [Measure(name, function, column) for (function, column), name in self.measures.items()]
        return Fold(tuple(self.keys), tuple(measures))

    @property
    def gather(self) -> Gather:
        """What one process does, which sees all rows."""
        if not self._final:
            return Gather(self.fold, tuple(self.keys))
        groups = tuple(name for name in self.keys if name in self._groups)
        names = dict.fromkeys(columns for _, _, columns in self._distinct)
        distinct = {self._counting(columns): columns for columns in names}
        return Gather(self.fold, groups, distinct, self.first)

    @property
    def _final(self) -> bool:
        """Whether groups may come with the numbers of their different values: each of these must come once."""
        others = {frozenset(columns) - self._groups for _, _, columns in self._distinct}
        return len(others) < 2 and all(counts for _, counts, _ in self._distinct)

    @staticmethod
    def _counting(columns: tuple[str, ...]) -> str:
        return f"d_{'_'.join(columns)}"

    def column(self, text: str) -> str:
        """The scan's column of an expression."""
        known = next((name for name, other in self.columns.items() if other == text), None)
        return self._new(text) if known is None else known

    def key(self, tree: Tree, text: str) -> None:
        """An expression by whose values groups are told from each other."""
        self._groups.add(self._key(tree, text))

    def distinct(self, tree: Tree, arguments: list[tuple[Tree, str]], *, counts: bool) -> None:
        """A function of the different values of expressions."""
        self._distinct.append((tree.java, counts, tuple(self._key(*argument) for argument in arguments)))

    def _key(self, tree: Tree, text: str) -> str:
        """An expression whose values are told from each other. A column keeps its id."""
        if tree.is_column:
            if tree.number not in self._columns:
                self._columns[tree.number] = self._new(text)
                self.keys[self._columns[tree.number]] = tree.java
            return self._columns[tree.number]
        name = next((n for n, own in self.keys.items() if own is None and self.columns[n] == text), None)
        if name is None:
            name = self._new(text)
            self.keys[name] = None
        self._as_keys.append((tree.java, name))
        return name

    def _new(self, text: str) -> str:
        name = f"c{len(self.columns)}"
        self.columns[name] = text
        return name

    def measure(self, tree: Tree, function: str, argument: Tree | None = None, text: str = "") -> None:
        """An aggregate function of rows that are alike, or of an expression of them, which has this text."""
        column = self.column(text) if text else ""
        name = self.measures.setdefault((function, column), f"m{len(self.measures)}")
        self._as_measures.append((tree.java, None if argument is None else argument.java, function, name))

    def cut(self, count: int, order: Tree) -> None:
        """The query takes the first groups in this order (a SortOrder of a value of the aggregate); if it is one that
        the groups have."""
        if count < 1 or not self._final or not order.children[0].is_column:
            return
        outputs = {
            tree.number: tree for tree in self.aggregate.expressions if tree.name in ("Alias", "AttributeReference")
        }
        output = outputs.get(order.children[0].number)
        if output is None or order.children[0].type not in _ORDERED:
            return
        value = output.children[0] if output.name == "Alias" else output
        sides = value.children if value.name == "Subtract" and value.type == "BIGINT" else (value,)
        names = [self._named(side) for side in sides]
        if all(names):
            down = str(order.java.direction().sql()) == "DESC"
            nulls_first = str(order.java.nullOrdering().sql()) == "NULLS FIRST"
            self.first = First(count, str(names[0]), names[1] if len(names) > 1 else None, down, nulls_first)

    def _named(self, tree: Tree) -> str | None:
        """The column of the groups that a value of the aggregate is."""
        if tree.is_column:
            return self._columns.get(tree.number)
        known = [(java, name) for java, _, _, name in self._as_measures]
        known += [(java, self._counting(columns)) for java, _, columns in self._distinct]
        known += [(java, name) for java, name in self._as_keys if name in self._groups]
        return next((name for java, name in known if tree.java.equals(java)), None)

    def replaced(self, make: Maker, scan: Any, *, gathered: bool) -> tuple[Any, Any]:
        """The aggregate, and the one over the folded or gathered scan."""
        final = gathered and self._final
        columns = self._named_columns(make, scan, final)
        project = make.project(make.seq([alias for _, alias in columns.values()]), scan)
        changes = self._changes(make, {name: column for name, (column, _) in columns.items()}, final)
        java = self.aggregate.java
        changed = java.transformExpressions(make.rule(changes)) if changes else java
        return java, changed.withNewChildren(make.seq([project]))

    def _named_columns(self, make: Maker, scan: Any, final: bool) -> dict[str, tuple[Any, Any]]:
        """Name → the column above the scan, and the scan's own column under its name and id."""
        gather = self.gather
        distinct = tuple(gather.distinct) if final else ()
        counts = {name for (function, _), name in self.measures.items() if function in _COUNTS} | set(distinct)
        names = [*(gather.keys if final else self.keys), *self.measures.values(), *distinct]
        found = {}
        for name, own in zip(names, items(scan.output()), strict=True):
            column = self.keys.get(name)
            if column is None:
                column = make.attribute(name, own.dataType().sql(), nullable=name not in counts)
            found[name] = column, make.alias(own, name, column.exprId())
        return found

    def _changes(self, make: Maker, columns: Mapping[str, Any], final: bool) -> list[tuple[Any, Any]]:
        """The expressions of the aggregate that are others over groups, with these."""
        found = [(java, columns[name]) for java, name in self._as_keys if name in columns]
        if final:
            found += [(java, make.summed(columns[self._counting(names)])) for java, _, names in self._distinct]
        for java, argument, function, name in self._as_measures:
            if function in _COUNTS:
                found.append((java, make.summed(columns[name])))
            else:
                found.append((java, java.transform(make.rule([(argument, columns[name])]))))
        return found


def find(needs: Needs, texts: Texts) -> Iterator[Folded]:
    """The aggregates of a query that may take rows in groups."""
    plans = list(every(needs.query.root))
    limited = {id(below): (count, order) for plan in plans for below, count, order in _limited(plan)}
    for plan in plans:
        if plan.name == "Aggregate":
            found = _chain(needs, plan)
            asks = None if found is None else _Asks(found, texts).all()
            if found is None or not asks:
                continue
            for ask in asks:
                ask(found)
            if id(plan) in limited:
                found.cut(*limited[id(plan)])
            yield found


def _limited(plan: Plan) -> Iterator[tuple[Plan, int, Tree]]:
    """The aggregate that a node sorts and cuts: how many rows are left, and the first part of the order."""
    if plan.name != "LocalLimit" or plan.children[0].name != "Sort":
        return
    sort = plan.children[0]
    count, order, below = plan.expressions[0].text, sort.expressions[0], sort.children[0]
    if below.name == "Aggregate" and count is not None and bool(getattr(sort.java, "global")()):
        yield below, int(count), order


def _chain(needs: Needs, aggregate: Plan) -> Folded | None:
    found = below(needs, aggregate)
    return None if found is None else Folded(found[0], aggregate, found[1])


def below(needs: Needs, top: Plan) -> tuple[Relation, list[Plan]] | None:
    """The relation below a node that has one child, and the nodes from this one to it; None if there are others than
    lists of columns and conditions that the scan evaluates."""
    plans, plan = [top], top.children[0]
    while plan.name == "Project" and not plan.subplans:
        plans.append(plan)
        plan = plan.children[0]
    filtered = needs.query.filtered(plan)
    if filtered is not None:
        plans.append(plan)
        plan = plan.children[0]
    relation = needs.query.relation_of(plan)
    if relation is None or relation.places > 1 or top.subplans or needs.left(relation):
        return None
    return relation, plans


def known(relation: Relation, plans: Iterable[Plan]) -> Known:
    """What columns above a relation are: its own, or what the lists of columns between define."""
    defined = {
        tree.number: tree.children[0]
        for plan in plans
        if plan.name == "Project"
        for tree in plan.expressions
        if tree.name == "Alias"
    }
    return lambda number: relation.columns.get(number) or defined.get(number)


#: What an expression of an aggregate asks of its groups: a key or a measure of what is found.
_Ask = Callable[[Folded], None]


class _Asks:
    """What the expressions of an aggregate ask of its groups; None if they need rows one by one."""

    def __init__(self, found: Folded, texts: Texts) -> None:
        self.aggregate, self.relation, self.texts = found.aggregate, found.relation, texts
        #: The texts of the keys.
        self.keys = set[str]()
        self.known = known(found.relation, found.plans)

    def all(self) -> list[_Ask] | None:
        """Those of the whole aggregate, in its order."""
        count, trees = int(self.aggregate.java.groupingExpressions().size()), self.aggregate.expressions
        texts = [self._text(tree) for tree in trees[:count]]
        self.keys.update(text for text in texts if text is not None)
        return _joined(chain(map(_key, trees, texts), map(self._value, trees[count:])))

    def _value(self, tree: Tree) -> list[_Ask] | None:
        if tree.name == "AggregateExpression":
            return self._function(tree)
        if tree.name == "Literal":
            return []
        text = None if tree.name == "Alias" else self._text(tree)
        if text in self.keys:
            return _key(tree, text)
        # What is computed of keys Spark computes of groups.
        return _joined(map(self._value, tree.children)) if tree.children else None

    def _function(self, tree: Tree) -> list[_Ask] | None:
        if len(tree.children) > 1:  # FILTER
            return None
        (what,) = tree.children
        if bool(tree.java.isDistinct()):
            texts = [(argument, self._text(argument)) for argument in what.children]
            known = [(argument, text) for argument, text in texts if text is not None]
            if len(known) == len(texts):
                return [partial(Folded.distinct, tree=tree, arguments=known, counts=what.name == "Count")]
        elif what.name == "Count" and all(argument.text is not None for argument in what.children):
            return [partial(Folded.measure, tree=tree, function="rows")]
        elif what.name in ("Count", "Min", "Max") and len(what.children) == 1:
            (argument,) = what.children
            text = self._text(argument)
            if text is not None:
                return [partial(Folded.measure, tree=tree, function=what.name.lower(), argument=argument, text=text)]
        return None

    def _text(self, tree: Tree) -> str | None:
        return self.texts(self.relation, node(tree, self.known), tree.type)


def _key(tree: Tree, text: str | None) -> list[_Ask] | None:
    return None if text is None else [partial(Folded.key, tree=tree, text=text)]


def _joined(parts: Iterable[list[_Ask] | None]) -> list[_Ask] | None:
    """All of these; None if one is None, and those behind it are not looked at."""
    found: list[_Ask] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found
