"""Runs a query with narrowed scans in the places of its tables.

The rule: Spark runs the text. A scan evaluates a conjunct instead of Spark only if mica reads it exactly as Spark does;
it skips files by a conjunct that Spark evaluates again (a comparison by a collation); everything else is Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.engines.spark.catalyst import Node, Query, Relation
from mica.errors import MicaError
from mica.expressions.bind import bind
from mica.query.pushed import Pushed, implied, translate
from mica.scan.scan import Scan
from mica.schema.ddl import quote_if_needed
from mica.schema.types import VARIANT, StructType, contains
from mica.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Narrowed:
    """One place of a table in a query, and how it is read."""

    view: str
    table: Table
    scan: Scan
    #: The conjuncts that the scan evaluates, those by which it only skips files, and those that only Spark evaluates,
    #: with the reason.
    evaluated: tuple[str, ...]
    skipping: tuple[str, ...]
    left: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    reader: str


def run(spark: SparkSession, text: str, views: Mapping[str, Table], args: Any = None) -> DataFrame:
    """The rows of a query over these tables. Errors: Spark's own for the text."""
    frame, _ = narrowed(spark, text, views, args)
    return frame


def narrowed(
    spark: SparkSession, text: str, views: Mapping[str, Table], args: Any = None
) -> tuple[DataFrame, list[Narrowed]]:
    """The query over narrowed scans, and the scans."""
    query = Query(spark, text, {view: table.schema for view, table in views.items()}, args)
    ansi, timezone = engines.of(spark).settings(True, "UTC")  # the session decides
    chosen = [_Place(relation, views[relation.view], spark, ansi, timezone) for relation in query.relations]
    query.decide()
    given_back = [place.leave_to_spark() for place in chosen]
    if any(given_back):
        query.decide()
    found = [place.read() for place in chosen]
    return query.with_scans([frame for frame, _ in found]), [place for _, place in found]


class _Place:
    """How one relation is read; sets `relation.dropped`."""

    def __init__(self, relation: Relation, table: Table, spark: SparkSession, ansi: bool, timezone: str) -> None:
        self.relation, self.table, self.spark = relation, table, spark
        self.options: dict[str, Any] = {"ansi": ansi, "timezone": timezone}
        self.evaluated: dict[int, Pushed] = {}
        self.skipping: dict[int, Pushed] = {}
        self.left: list[tuple[str, str]] = []
        for number, node in enumerate(relation.conjuncts):
            self._take(number, node)
        relation.dropped = frozenset(self.evaluated)
        for number in list(self.evaluated):
            others = [relation.conjuncts[other] for other in self.evaluated if other != number]
            if implied(relation.conjuncts[number], others):
                del self.evaluated[number]

    def leave_to_spark(self) -> bool:
        """Gives the conjuncts back if all that is read are plain columns: Spark's own reader is faster on those."""
        relation = self.relation
        read = StructType(tuple(self.table.schema.field(name) for name in relation.needed))
        variants = relation.extractions or contains(read, VARIANT)
        if variants or not self.evaluated or not all(_plain(relation.conjuncts[number]) for number in self.evaluated):
            return False
        self.skipping |= self.evaluated
        self.evaluated = {}
        relation.dropped = frozenset()
        return True

    def _take(self, number: int, node: Node) -> None:
        found = translate(node)
        if found is None:
            self.left.append((str(self.relation.expressions[number].toString()), "not an expression of mica's"))
            return
        try:
            bound = bind(found.text, self.table.schema, partition_columns=self.table.partition_by, **self.options)
        except MicaError as e:
            self.left.append((found.text, e.message.splitlines()[0]))
            return
        if engines.of(self.spark).read_alike(bound) is not bound:
            self.left.append((found.text, "it depends on a time zone's rules, which Spark has in another version"))
        elif found.collated or (found.strict and len(self.evaluated) < number):
            # A cast that fails must not fail for a row that an earlier conjunct, Spark's, excludes.
            self.skipping[number] = found
        else:
            self.evaluated[number] = found

    def read(self) -> tuple[DataFrame, Narrowed]:
        relation = self.relation
        every = [p.text for p in [*self.evaluated.values(), *self.skipping.values()]]
        source = self.table.scan(" AND ".join(every) or None, spark=self.spark, **self.options)
        plan = source.plan
        where = " AND ".join(p.text for p in self.evaluated.values()) or None
        plain = list(relation.needed)
        if not relation.extractions and where is None:
            names = plain or [_cheapest(self.table)]
            scan = self.table.scan(None, names, **self.options)
            reader = "Spark" if all(n in self.table.schema.names for n in names) else "mica"
        else:
            columns = {name: quote_if_needed(name) for name in plain}
            columns |= {_unlike(columns, i): e.sql for i, e in enumerate(relation.extractions)}
            scan = self.table.scan(where, columns or {"one": "true"}, **self.options)
            reader = "mica"
        shown = replace(scan, where=source.where, planned=plan, spark=self.spark)
        scan = replace(scan, planned=plan)
        frame = scan.to_df(self.spark)
        return frame, Narrowed(
            relation.view,
            self.table,
            shown,
            tuple(p.text for p in self.evaluated.values()),
            tuple(p.text for p in self.skipping.values()),
            tuple(self.left),
            (*plain, *(e.sql for e in relation.extractions)),
            reader,
        )


def _plain(node: Node) -> bool:
    return node.name != "VariantGet" and node.type != "VARIANT" and all(map(_plain, node.children))


def _unlike(columns: Mapping[str, str], number: int) -> str:
    name = f"extracted_{number}"
    while name.lower() in {c.lower() for c in columns}:
        name += "_"
    return name


def _cheapest(table: Table) -> str:
    """A column whose rows are only counted."""
    kinds = {f.name: len(str(f.type)) for f in table.schema.fields}
    return min(kinds, key=lambda name: kinds[name])
