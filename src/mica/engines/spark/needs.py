"""What Spark needs of the tables of a plan, whose scans evaluate some of the conjuncts above them.

The rule: a scan gives a column only if an expression that is left to Spark names it. Of a Variant or a struct it gives
the paths and fields that Spark takes out of it, each as a column, unless something asks for it whole. Where Spark may
not evaluate an expression in every row, a cast fails only in the rows in which it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from mica.engines.spark.catalyst import Plan, Query, Relation, every
from mica.engines.spark.nodes import Tree
from mica.records import dataclass
from mica.schema.spelling import quote_if_needed
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


class Needs:
    """What Spark needs of the relations of a query: `evaluated` has the numbers of the conjuncts that their scans
    evaluate. Without `extracts` scans give all columns, which Spark's own reader prunes."""

    def __init__(self, query: Query, evaluated: Mapping[Relation, frozenset[int]], *, extracts: bool = True) -> None:
        self.query, self.evaluated, self.extracts = query, evaluated, extracts
        #: Id of a Variant or struct → its relation and column.
        self.carriers = dict(pair for relation in query.relations for pair in _carriers(relation)) if extracts else {}
        #: Id of a carrier under any name → its id at the relation; and those that are read whole.
        self.roots = {number: number for number in self.carriers}
        self.whole = set[int]()
        #: Root → what is extracted from it, and whether that is in an expression that is not evaluated for every row.
        self._uses = dict[int, dict[Extraction, bool]]()
        self._used = set(query.root.output)
        guarded = self._not_in_every_row()
        for plan in every(query.root):
            self._take(plan, guarded=id(plan) in guarded)
        self._ask_whole(query.root.output)
        #: What the scan of each relation gives: columns, then extractions.
        self.columns = {r: self.asked(r) if extracts else list(r.columns.values()) for r in query.relations}
        self.extractions = {relation: self._extractions(relation) for relation in query.relations}

    def left(self, relation: Relation) -> list[Tree]:
        """The conjuncts that Spark evaluates."""
        evaluated = self.evaluated[relation]
        return [tree for number, tree in enumerate(relation.expressions) if number not in evaluated]

    def asked(self, relation: Relation) -> list[str]:
        """The columns that Spark asks for, but for those of which it only asks for extractions."""
        return [
            name
            for number, name in relation.columns.items()
            if number in self.whole or (number not in self.roots and number in self._used)
        ]

    def limit(self, relation: Relation) -> int | None:
        """How many rows, any of those that the scan gives, are enough; None: all."""
        for plan in every(self.query.root):
            if plan.name != "LocalLimit" or relation.places > 1:
                continue
            below = plan.children[0]
            while below.name == "Project" and not below.subplans:
                below = below.children[0]
            if self.query.filtered(below) is relation and not self.left(relation):
                below = below.children[0]
            count = plan.expressions[0].text
            if self.query.relation_of(below) is relation and count is not None:
                return int(count)
        return None

    def extracted(self, tree: Tree) -> Iterator[tuple[Tree, int, Extraction]]:
        """The expressions below one that columns of scans replace: with the id of the carrier as it is named there."""
        if not tree.references & self.roots.keys():
            return
        found = self._extraction(tree)
        if found is None:
            for child in tree.children:
                yield from self.extracted(child)
            return
        number, extraction = found
        root = self.roots[number]
        if root not in self.whole:
            yield tree, number, self._given(root, extraction)

    def _extractions(self, relation: Relation) -> list[Extraction]:
        roots = [number for number in relation.columns if number in self.roots and number not in self.whole]
        given = (self._given(root, one) for root in roots for one in self._uses.get(root, {}))
        return list(dict.fromkeys(column for one in given for column in one.columns))

    def _given(self, root: int, extraction: Extraction) -> Extraction:
        """What the scan gives in place of an extraction."""
        return extraction.guarded if self._uses[root].get(extraction, False) else extraction

    def _ask_whole(self, numbers: Iterable[int]) -> None:
        self.whole |= {self.roots[number] for number in numbers if number in self.roots}

    def _not_in_every_row(self) -> set[int]:
        """The nodes (`id`) whose expressions Spark may not evaluate for every row that a scan gives."""
        plans = list(every(self.query.root))
        lossless: set[int] = set()
        for plan in plans:
            relation = self.query.filtered(plan)
            passes = plan.name in _ALL_ROWS or (relation is not None and not self.left(relation))
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

    def _take(self, plan: Plan, *, guarded: bool) -> None:
        """Notes what a node needs, after all below it."""
        relation = self.query.filtered(plan)
        if relation is not None:
            for number, tree in enumerate(self.left(relation)):
                self._used |= tree.references
                self._walk(tree, conditional=guarded or number > 0)
            return
        self._used |= plan.references
        if plan.name not in _BY_ID and plan.children:
            passed = {number for child in plan.children for number in child.output}
            self._used |= passed
            self._ask_whole(passed)
        elif plan.references & self.roots.keys():
            for tree in plan.expressions:
                again = tree.renamed if plan.name == "Project" else None
                if again is not None and again[0] in self.roots:
                    self.roots[again[1]] = self.roots[again[0]]
                else:
                    self._walk(tree, conditional=guarded)

    def _walk(self, tree: Tree, *, conditional: bool) -> None:
        if not tree.references & self.roots.keys():
            return
        found = self._extraction(tree)
        if found is not None:
            number, extraction = found
            known = self._uses.setdefault(self.roots[number], {})
            known[extraction] = conditional or known.get(extraction, False)
            return
        if tree.is_column:
            self.whole.add(self.roots[tree.number])
            return
        # The second child of an aggregate is its FILTER. Most others ask for their first child in every row, and for
        # the next ones where it decides nothing: it may be null, or true, or the value that IN looks for.
        filtered = tree.name == "AggregateExpression" and len(tree.children) > 1
        within = conditional or filtered or tree.name in _LATE_FIRST
        for place, child in enumerate(tree.children):
            self._walk(child, conditional=within or place > 0)

    def _extraction(self, tree: Tree) -> tuple[int, Extraction] | None:
        """What an expression extracts from a Variant or a struct: the column's id, and the extraction."""
        name = tree.name
        if name not in ("VariantGet", "Cast", "IsNull", "IsNotNull", "GetStructField"):
            return None
        inner, failing = tree, None
        if name == "Cast":
            (inner,), failing = tree.children, tree.strict
            if inner.name != "VariantGet" or failing is None or inner.type != "VARIANT":
                return None
        place = self._field(inner if name == "GetStructField" else inner.children[0])
        if place is None:
            return None
        number, at = place
        _, column = self.carriers[self.roots[number]]
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

    def _field(self, tree: Tree) -> tuple[int, str] | None:
        """A column, or a field of a struct: the column's id, and the name at the relation."""
        if tree.is_column:
            root = self.roots.get(tree.number)
            return None if root is None else (tree.number, quote_if_needed(self.carriers[root][1]))
        if tree.name != "GetStructField":
            return None
        found = self._field(tree.children[0])
        return None if found is None else (found[0], f"{found[1]}.{quote_if_needed(tree.field)}")


def _carriers(relation: Relation) -> Iterator[tuple[int, tuple[Relation, str]]]:
    """The Variants and structs of a relation, by their ids."""
    kinds = {f.name: f.type for f in relation.schema.fields}
    for number, name in relation.columns.items():
        if kinds[name] == VARIANT or isinstance(kinds[name], StructType):
            yield number, (relation, name)
