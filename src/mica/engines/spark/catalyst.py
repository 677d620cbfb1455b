"""Reads Spark's optimised plan of a text: what may be pushed into each of its tables, and what Spark needs of them.

The rule: Catalyst alone decides what a text means. Each table is a relation without rows that Catalyst cannot fold away
(a `LogicalRDD`), in a clone of the session, so the user's session never sees it. `replaced` puts scans in their places.

Plans are read through py4j, which Spark Connect does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from mica.cached import cached_property
from mica.engines.spark.catalog import arguments
from mica.engines.spark.cloned_session import cloned, in_place_of, view_of
from mica.engines.spark.making import Maker
from mica.engines.spark.nodes import Node, Tree, ids, ids_of, items, leaves, node
from mica.records import dataclass
from mica.schema.ddl import quote_if_needed
from mica.schema.types import VARIANT, StructType

#: Nodes whose columns are found by id. Below other nodes columns are found by position: all of them stay.
_BY_ID = frozenset(
    "Project Filter Join Sort Aggregate LocalLimit GlobalLimit Window Sample Repartition RepartitionByExpression "
    "WindowGroupLimit Offset RebalancePartitions ResolvedHint SubqueryAlias View".split()
)
#: Nodes that pass on all rows of what is below them, and those that take no row before they have all of these.
_ALL_ROWS = frozenset("Project Sort Repartition RepartitionByExpression ResolvedHint RebalancePartitions".split())
_BLOCKING = frozenset("Sort Aggregate Window Join Repartition RepartitionByExpression".split())
#: Expressions that may not ask for their first child in a row: they ask for the second one first, or for none once
#: they have a value, or swallow what fails.
_LATE_FIRST = frozenset(
    "Divide IntegralDivide Remainder Pmod StringLocate First AnyValue MaxBy MinBy RegrSlope RegrIntercept RegrR2 "
    "TryEval".split()
)
#: Types of extracted paths that the kernel and Spark share.
_EXTRACTED = re.compile(
    r"(STRING|BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DATE|TIMESTAMP|TIMESTAMP_NTZ|DECIMAL\(\d+,\d+\))"
)


@dataclass(frozen=True)
class Extraction:
    """A column of the scan that stands for an expression over a Variant or a struct: a path as a type, a field, or
    whether it is null."""

    column: str
    #: The expression over the table's columns.
    sql: str
    type: str
    strict: bool
    #: Whether it reads a Variant.
    variant: bool
    #: For a cast that Spark may not ask for in every row: the column of the values, as texts, that cannot be cast.
    failing: Extraction | None = None

    @property
    def columns(self) -> tuple[Extraction, ...]:
        """The columns that it needs."""
        return (self,) if self.failing is None else (self, self.failing)

    @property
    def guarded(self) -> Extraction:
        """The same, failing only where Spark asks for it."""
        if not self.strict or self.type == "STRING":
            return self
        tried, kind = f"try_{self.sql}", f"'{self.type}')"
        text, binary = (tried.removesuffix(kind) + f"'{other}')" for other in ("STRING", "BINARY"))
        # A BINARY that is no text fails as any other value.
        other = f"CASE WHEN {binary} IS NOT NULL THEN 'a BINARY' END"
        failing = f"CASE WHEN {tried} IS NULL THEN coalesce({text}, {other}) END"
        return replace(
            self, sql=tried, strict=False, failing=Extraction(self.column, failing, "STRING", False, self.variant)
        )


@dataclass
class Relation:
    """One place of a table in a plan."""

    view: str
    node: Any
    #: Expression id → column, in the table's order.
    columns: dict[int, str]
    #: How often it is in the plan: Catalyst may put one node at several places.
    places: int = 1
    #: The conjuncts of the filter right above it, in Spark's order.
    conjuncts: list[Node] = field(default_factory=list)
    filter: Plan | None = None
    expressions: list[Tree] = field(default_factory=list)
    #: Which conjuncts the scan evaluates, so that Spark need not.
    dropped: frozenset[int] = frozenset()
    #: Whether structs and Variants are read whole, because Spark's own reader prunes them.
    whole_structs: bool = False
    whole_variants: bool = False
    #: What Spark needs of it: plain columns, and extractions.
    needed: list[str] = field(default_factory=list)
    extractions: list[Extraction] = field(default_factory=list)


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


class Query:
    """A plan in which `tables` (name of a view → schema) are empty relations: `views` has the name of each by the
    identity of its rows, `analysed` is a Dataset of a clone of the session."""

    def __init__(
        self,
        spark: Any,
        analysed: Any,
        views: Mapping[int, str],
        tables: Mapping[str, StructType],
        *,
        optimised: bool = True,
    ) -> None:
        self.spark = spark
        self.make = Maker.of(spark)
        self._views, self._schemas = views, dict(tables)
        self.schema = analysed.schema()
        self.names: list[str] = list(self.schema.fieldNames())
        self.found: dict[tuple[int, ...], Relation] = {}
        self._subplans: dict[tuple[int, ...], Plan] = {}
        self._analysed = plan = analysed.queryExecution().analyzed()
        if optimised and not self.is_streaming:  # of a stream each batch is optimised by itself
            plan = analysed.queryExecution().optimizedPlan()
        else:
            plan = self.make.without_names(plan)
        self.root = self._read(plan, None)
        #: Id of a Variant or struct → its relation and column.
        self.carriers: dict[int, tuple[Relation, str]] = {}
        #: Id of a carrier under any name → its id at the relation; and those that are read whole.
        self.roots: dict[int, int] = {}
        self.whole: set[int] = set()
        #: Root → what is extracted from it, and whether that is in an expression that is not evaluated for every row.
        self.uses: dict[int, dict[Extraction, bool]] = {}
        self.guarded: set[int] = set()

    @classmethod
    def of_text(
        cls, spark: Any, text: str, tables: Mapping[str, StructType], args: Any = None, *, optimised: bool = True
    ) -> Query:
        """The plan of a text that names the tables."""
        clone = _optimising(spark)
        views = {view_of(spark, clone, view, schema): view for view, schema in tables.items()}
        return cls(spark, clone.sql(text, arguments(spark, args)), views, tables, optimised=optimised)

    @classmethod
    def of_plan(
        cls, spark: Any, plan: Any, places: Sequence[tuple[str, Any]], tables: Mapping[str, StructType]
    ) -> Query:
        """An analysed plan, in which nodes are all rows of tables: `places` has the name of each."""
        make, clone, views, pairs = Maker.of(spark), _optimising(spark), dict[int, str](), list[tuple[Any, Any]]()
        for view, java in places:
            number, relation = in_place_of(spark, clone, java, view, tables[view])
            views[number] = view
            pairs.append((java, relation))
        without = plan.transformDownWithSubqueries(make.rule(pairs))
        without.setAnalyzed()
        return cls(spark, make.dataset.ofRows(clone, without), views, tables)

    def named(self, names: Mapping[str, str]) -> Any:
        """The analysed plan, its tables under these names (name of a view → name)."""
        pairs = [
            (java, self.make.named(java, [names[self._views[number]]]))
            for java in leaves(self._analysed)
            if str(java.nodeName()) == "LogicalRDD" and (number := self._identity(java.rdd())) in self._views
        ]
        plan = self._analysed.transformUpWithSubqueries(self.make.rule(pairs))
        plan.setAnalyzed()
        return plan

    def qualified(self, rows: Any) -> Any:
        """The rows, a Dataset of the JVM, whose columns may be asked for by the names of their tables, as Spark's."""
        plan, own = rows.queryExecution().analyzed(), items(self._analysed.output())
        columns = [column.withQualifier(one.qualifier()) for column, one in zip(items(plan.output()), own, strict=True)]
        plan = self.make.project(self.make.seq(columns), plan)
        return self.make.dataset.ofRows(self.spark._jsparkSession, plan)  # noqa: SLF001

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
        return list(self.found.values())

    # --- reading -----------------------------------------------------------------------------------------------------

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
        return self.found.get(self._key(plan.java)) if plan.name == "LogicalRDD" else None

    def _key(self, java: Any) -> tuple[int, ...]:
        return (self._identity(java.rdd()), *ids_of(java.output()))

    def _relation(self, java: Any, above: Plan | None) -> None:
        view = self._views.get(self._identity(java.rdd()))
        if view is None:
            return
        key = self._key(java)
        known = self.found.get(key)
        if known is not None:
            # One node below different filters.
            known.conjuncts, known.expressions, known.filter = [], [], None
            known.places += 1
            return
        found = above if above is not None and above.name == "Filter" else None
        relation = Relation(view, java, dict(zip(key[1:], self._schemas[view].names, strict=True)), filter=found)
        self.found[key] = relation
        if found is not None:
            relation.expressions = list(found.expressions[0].conjuncts())
            relation.conjuncts = [node(e, relation.columns.get) for e in relation.expressions]

    # --- what Spark needs --------------------------------------------------------------------------------------------

    def decide(self) -> None:
        """Sets what Spark needs of each relation, after `dropped` was set."""
        self.carriers = {}
        whole: set[int] = set()
        used: set[int] = set(self.root.output)
        for relation in self.relations:
            kinds = {f.name: f.type for f in self._schemas[relation.view].fields}
            for number, name in relation.columns.items():
                variant = kinds[name] == VARIANT and not relation.whole_variants
                if variant or (isinstance(kinds[name], StructType) and not relation.whole_structs):
                    self.carriers[number] = (relation, name)
        roots = {number: number for number in self.carriers}
        uses: dict[int, dict[Extraction, bool]] = {}
        self.guarded = self._not_in_every_row()
        for plan in every(self.root):
            self._uses(plan, roots, whole, used, uses)
        whole |= {roots[number] for number in used & roots.keys()} & _outputs(self.root, roots)
        self.roots, self.whole, self.uses = roots, whole, uses
        for relation in self.relations:
            relation.needed = [
                name
                for number, name in relation.columns.items()
                if number in whole or (number not in roots and number in used)
            ]
            extracted: dict[Extraction, None] = {}
            for number in relation.columns:
                if number in roots and number not in whole:
                    for extraction, conditional in uses.get(number, {}).items():
                        extracted |= dict.fromkeys((extraction.guarded if conditional else extraction).columns)
            relation.extractions = list(extracted)

    def _not_in_every_row(self) -> set[int]:
        """The nodes (`id`) whose expressions Spark may not evaluate for every row that a scan gives."""
        plans = list(every(self.root))
        lossless: set[int] = set()
        for plan in plans:
            relation = self.dropped(plan)
            passes = plan.name in _ALL_ROWS or (
                relation is not None and len(relation.dropped) == len(relation.expressions)
            )
            if not plan.children or (passes and all(id(child) in lossless for child in plan.children)):
                lossless.add(id(plan))
        found = {
            id(plan)
            for plan in plans
            if len(plan.children) > 1 or not all(id(child) in lossless for child in plan.children)
        }
        for plan in plans:
            below = list(plan.children) if plan.name in ("LocalLimit", "GlobalLimit") else []
            while below:
                one = below.pop()
                if one.name not in _BLOCKING:
                    found.add(id(one))
                    below += one.children
        return found

    def _uses(
        self,
        plan: Plan,
        roots: dict[int, int],
        whole: set[int],
        used: set[int],
        uses: dict[int, dict[Extraction, bool]],
    ) -> None:
        dropped = self.dropped(plan)
        if dropped is not None:
            expressions = [e for i, e in enumerate(dropped.expressions) if i not in dropped.dropped]
        elif plan.name not in _BY_ID and plan.children:
            passed = {number for child in plan.children for number in child.output}
            used |= passed | plan.references
            whole |= {roots[number] for number in passed & roots.keys()}
            expressions = []
        else:
            expressions = plan.expressions if plan.references & roots.keys() else []
            used |= plan.references
        guarded = id(plan) in self.guarded
        for number, tree in enumerate(expressions):
            if dropped is not None:
                used |= tree.references
            again = tree.renamed if plan.name == "Project" else None
            if again is not None and again[0] in roots:
                source, target = again
                roots[target] = roots[source]
                continue
            self._walk(tree, roots, whole, uses, conditional=guarded or (dropped is not None and number > 0))

    def dropped(self, plan: Plan) -> Relation | None:
        """The relation whose filter a node is."""
        return next((r for r in self.relations if r.filter is plan), None) if plan.name == "Filter" else None

    def limit(self, relation: Relation) -> int | None:
        """How many rows, any of those that the scan gives, are enough; None: all."""
        for plan in every(self.root):
            if plan.name != "LocalLimit" or relation.places > 1:
                continue
            below = plan.children[0]
            while below.name == "Project" and not below.subplans:
                below = below.children[0]
            if self.dropped(below) is relation and len(relation.dropped) == len(relation.expressions):
                below = below.children[0]
            count = plan.expressions[0].text
            if self.relation_of(below) is relation and count is not None:
                return int(count)
        return None

    def _walk(
        self,
        tree: Tree,
        roots: dict[int, int],
        whole: set[int],
        uses: dict[int, dict[Extraction, bool]],
        *,
        conditional: bool,
    ) -> None:
        if not tree.references & roots.keys():
            return
        found = self._extraction(tree, roots)
        if found is not None:
            number, extraction = roots[found[0]], found[1]
            known = uses.setdefault(number, {})
            known[extraction] = conditional or known.get(extraction, False)
            return
        if tree.is_column:
            whole.add(roots[tree.number])
            return
        # The second child of an aggregate is its FILTER. Most others ask for their first child in every row, and for
        # the next ones where it decides nothing: it may be null, or true, or the value that IN looks for.
        filtered = tree.name == "AggregateExpression" and len(tree.children) > 1
        within = conditional or filtered or tree.name in _LATE_FIRST
        for place, child in enumerate(tree.children):
            self._walk(child, roots, whole, uses, conditional=within or place > 0)

    def extracted(self, tree: Tree) -> Iterator[tuple[Tree, int, Extraction]]:
        """The expressions below one that columns of scans replace: with the id of the carrier as it is named there."""
        if not tree.references & self.roots.keys():
            return
        found = self._extraction(tree, self.roots)
        if found is None:
            for child in tree.children:
                yield from self.extracted(child)
        elif self.roots[found[0]] not in self.whole:
            number, extraction = found
            conditional = self.uses[self.roots[number]].get(extraction, False)
            yield tree, number, extraction.guarded if conditional else extraction

    def _extraction(self, tree: Tree, roots: Mapping[int, int]) -> tuple[int, Extraction] | None:
        """What an expression extracts from a Variant or a struct: the column's id, and the extraction."""
        name = tree.name
        if name not in ("VariantGet", "Cast", "IsNull", "IsNotNull", "GetStructField"):
            return None
        inner, failing = tree, None
        if name == "Cast":
            (inner,), failing = tree.children, tree.strict
            if inner.name != "VariantGet" or failing is None or inner.type != "VARIANT":
                return None
        place = self._field(inner if name == "GetStructField" else inner.children[0], roots)
        if place is None:
            return None
        number, at = place
        _, column = self.carriers[roots[number]]
        if name in ("IsNull", "IsNotNull"):
            variant = inner.children[0].type == "VARIANT"
            return number, Extraction(column, f"{at} IS NULL", "BOOLEAN", strict=False, variant=variant)
        if name == "GetStructField":
            return number, Extraction(column, at, tree.type, strict=False, variant="VARIANT" in tree.type)
        failing = inner.strict if failing is None else failing
        path = inner.children[1].text
        if path is None or not _EXTRACTED.fullmatch(tree.type):
            return None
        text = path.replace("\\", "\\\\").replace("'", "\\'")
        got = f"{'' if failing else 'try_'}variant_get({at}, '{text}', '{tree.type}')"
        return number, Extraction(column, got, tree.type, bool(failing), variant=True)

    def _field(self, tree: Tree, roots: Mapping[int, int]) -> tuple[int, str] | None:
        """A column, or a field of a struct: the column's id, and the name at the relation."""
        if tree.is_column:
            number = tree.number
            return (number, quote_if_needed(self.carriers[roots[number]][1])) if number in roots else None
        if tree.name != "GetStructField":
            return None
        found = self._field(tree.children[0], roots)
        return None if found is None else (found[0], f"{found[1]}.{quote_if_needed(tree.field)}")


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


def _outputs(plan: Plan, roots: Mapping[int, int]) -> set[int]:
    return {roots[number] for number in plan.output if number in roots}
