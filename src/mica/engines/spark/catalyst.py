"""Reads Spark's optimised plan of a text: its nodes, and the places of its tables with the conjuncts right above them.

The rule: Catalyst alone decides what a text means. Each table is a relation without rows that Catalyst cannot fold away
(a `LogicalRDD`), in a clone of the session, so the user's session never sees it. `needs` says what Spark needs of the
tables, `replaced` puts scans in their places.

Plans are read through py4j, which Spark Connect does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mica.cached import cached_property
from mica.engines.spark.catalog import arguments, past_same
from mica.engines.spark.cloned_session import cloned, in_place_of, view_of
from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import Node, Tree, ids, ids_of, items, leaves_below, names_of, node
from mica.engines.spark.stored_views import Definition, define
from mica.records import dataclass
from mica.schema.types import StructType


@dataclass(eq=False)
class Plan:
    """A node of a logical plan."""

    java: Any
    name: str
    children: list[Plan]
    subplans: list[Plan]
    references: frozenset[int]

    @cached_property
    def expressions(self) -> list[Tree]:
        """Its expressions: of a Project the columns, of an Aggregate what it groups by and then the columns."""
        return [Tree(java) for java in items(self.java.expressions())]

    @cached_property
    def output(self) -> list[int]:
        """The ids of its columns."""
        return ids_of(self.java.output())


@dataclass(frozen=True, eq=False)
class Relation:
    """One place of a table in a plan."""

    view: str
    schema: StructType
    node: Any
    #: Expression id → column, in the table's order.
    columns: Mapping[int, str]
    #: The filter right above it, if there is one for all of its places.
    filter: Plan | None = None
    #: How often it is in the plan: Catalyst may put one node at several places.
    places: int = 1

    @cached_property
    def expressions(self) -> list[Tree]:
        """The conjuncts of its filter, in Spark's order."""
        return [] if self.filter is None else list(self.filter.expressions[0].conjuncts())

    @cached_property
    def conjuncts(self) -> list[Node]:
        """The same as plain data."""
        return [node(e, self.columns.get) for e in self.expressions]


class Query:
    """A plan in which tables are empty relations: `views` has the name and the schema of each by the identity of its
    rows, `analysed` is a Dataset of a clone of the session."""

    def __init__(
        self,
        spark: Any,
        analysed: Any,
        views: Mapping[int, tuple[str, StructType]],
        *,
        optimised: bool = True,
    ) -> None:
        self.spark = spark
        self.make = Maker.of(spark)
        self._views = views
        self.schema = analysed.schema()
        self.names: list[str] = names_of(self.schema)
        self._relations: dict[tuple[int, ...], Relation] = {}
        self._subplans: dict[tuple[int, ...], Plan] = {}
        self._analysed = plan = analysed.queryExecution().analyzed()
        if optimised and not self.is_streaming:  # of a stream each batch is optimised by itself
            plan = analysed.queryExecution().optimizedPlan()
        else:
            plan = self.make.without_names(plan)
        self.root = self._read(plan, None)

    @classmethod
    def of_text(
        cls,
        spark: Any,
        text: str,
        tables: Mapping[str, StructType],
        args: Any = None,
        *,
        optimised: bool = True,
        stored: Mapping[str, Definition],
        inner: Mapping[str, StructType],
    ) -> Query:
        """The plan of a text that names the tables, and `stored` views; `inner` are the tables of these, by what each
        is known by."""
        clone = _optimising(spark)
        views = {view_of(spark, clone, *one): one for one in tables.items()}

        def give(own: Any, view: str, key: str) -> None:
            views[view_of(spark, own, view, inner[key], key)] = key, inner[key]

        for name, one in stored.items():
            define(spark, clone, name, one, give)
        return cls(spark, clone.sql(text, arguments(spark, args)), views, optimised=optimised)

    @classmethod
    def of_plan(cls, spark: Any, plan: Any, places: Sequence[tuple[str, Any, StructType]]) -> Query:
        """An analysed plan, in which nodes are all rows of tables: `places` has the name of each, and its columns."""
        make, clone, views = Maker.of(spark), _optimising(spark), dict[int, tuple[str, StructType]]()
        pairs = list[tuple[Any, Any]]()
        for view, java, schema in places:
            number, relation = in_place_of(spark, clone, java, view, schema)
            views[number] = view, schema
            pairs.append((java, relation))
        without = plan.transformDownWithSubqueries(make.rule(pairs))
        without.setAnalyzed()
        return cls(spark, make.of_rows(clone, without), views)

    def named(self, names: Mapping[str, str]) -> Any:
        """The analysed plan, its tables under these names (name of a view → name)."""
        return self._with(lambda view, java: self.make.named(java, [names[view]]))

    def over(self, rows: Callable[[str, Any], Any]) -> Any:
        """The analysed plan over the rows of its tables: each place asks for a plan of its own, with these columns. No
        place is inside of a view, which hides `_metadata`."""
        return self._with(lambda view, java: rows(view, java.output()), views=True)

    def _with(self, made: Callable[[str, Any], Any], *, views: bool = False) -> Any:
        """The analysed plan with what is made of the places of its tables, or of the `views` that are right above."""
        pairs = [
            (above if views and str(above.nodeName()) == "View" else java, made(self._views[number][0], java))
            for above, java in leaves_below(self._analysed, self._analysed)
            if str(java.nodeName()) == "LogicalRDD" and (number := self._identity(java.rdd())) in self._views
        ]
        plan = self._analysed.transformUpWithSubqueries(self.make.rule(pairs))
        plan.setAnalyzed()
        return plan

    def qualified(self, rows: Any) -> Any:
        """The rows, a Dataset of the JVM, whose columns may be asked for by the names of their tables, as Spark's."""
        plan, own = rows.queryExecution().analyzed(), self._analysed.output()
        if not plan.outputSet().equals(self._analysed.outputSet()):
            columns = zip(items(plan.output()), items(own), strict=True)
            own = self.make.seq([column.withQualifier(one.qualifier()) for column, one in columns])
        plan = self.make.project(own, plan)
        return self.make.of_rows(self.spark._jsparkSession, plan)  # noqa: SLF001

    @property
    def is_whole(self) -> bool:
        """Whether its rows are all of one table, with all of its columns as they are."""
        plan = past_same(self._analysed)
        while str(plan.nodeName()) == "SubqueryAlias":
            plan = past_same(plan.child())
        return str(plan.nodeName()) == "LogicalRDD" and self._identity(plan.rdd()) in self._views

    @property
    def asks_time(self) -> bool:
        """Whether it asks for the time, which an optimised plan has instead."""
        return bool(self._analysed.containsPattern(self.make.current_like))

    @property
    def is_streaming(self) -> bool:
        """Whether it reads a stream."""
        return bool(self._analysed.isStreaming())

    @property
    def is_correlated(self) -> bool:
        """Whether a subquery of it names columns from outside."""
        return bool(self._analysed.containsPattern(self.make.outer))

    @property
    def relations(self) -> list[Relation]:
        """The places of the tables."""
        return list(self._relations.values())

    def _identity(self, java: Any) -> int:
        return int(self.make.identity(java))

    def _read(self, java: Any, above: Plan | None) -> Plan:
        name = str(java.nodeName())
        plan = Plan(java, name, [], [], ids(java.references()))
        if name == "LogicalRDD":
            self._relation(java, above)
            return plan
        plan.children += [self._read(child, plan) for child in items(java.children())]
        for sub in items(java.subqueries()):
            # Catalyst may put one subquery at several places.
            key = (self._identity(sub), *ids_of(sub.output()))
            if key not in self._subplans:
                self._subplans[key] = self._read(sub, None)
            plan.subplans.append(self._subplans[key])
        return plan

    def relation_of(self, plan: Plan) -> Relation | None:
        """The relation that a leaf is."""
        return self._relations.get(self._key(plan.java)) if plan.name == "LogicalRDD" else None

    def filtered(self, plan: Plan) -> Relation | None:
        """The relation whose filter a node is."""
        return next((r for r in self.relations if r.filter is plan), None) if plan.name == "Filter" else None

    def _key(self, java: Any) -> tuple[int, ...]:
        return (self._identity(java.rdd()), *ids_of(java.output()))

    def _relation(self, java: Any, above: Plan | None) -> None:
        known_as = self._views.get(self._identity(java.rdd()))
        if known_as is None:
            return
        key, (view, schema) = self._key(java), known_as
        known = self._relations.get(key)
        if known is not None:  # one node, below different filters
            self._relations[key] = replace(known, filter=None, places=known.places + 1)
            return
        found = above if above is not None and above.name == "Filter" else None
        self._relations[key] = Relation(view, schema, java, dict(zip(key[1:], schema.names, strict=True)), found)


def _optimising(spark: Any) -> Any:
    """A clone of the session whose optimiser does nothing by the size of a relation, which is not the scan's."""
    clone = cloned(spark)
    clone.conf().set("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
    return clone


def every(plan: Plan) -> Iterator[Plan]:
    """All nodes, children first."""
    for child in plan.children:
        yield from every(child)
    for sub in plan.subplans:
        yield from every(sub)
    yield plan
