"""MERGE by expressions that only Spark has.

The rule: Spark joins the rows, decides which clause changes which row, and evaluates the values that mica does not
have. A merge by the places of the table's rows follows, whose clauses take what was decided. Each kind of clause sees
the rows that it speaks of, so each is a join of its own; the source is computed once for all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from mica import compute as pc
from mica.engines.spark import types
from mica.engines.spark.texts import decided, joined
from mica.errors import UserError
from mica.expressions.joined import Sides
from mica.expressions.unparsed import for_spark
from mica.log.conflicts import every_file
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.ddl import quoted
from mica.tasks.matching import NOT_BY_SOURCE, When
from mica.write import merge_source
from mica.write.assignment import meant
from mica.write.by_spark import (
    CLAUSE,
    FILE,
    INDEX,
    VALUE,
    analysed,
    as_written,
    by_place,
    is_lacking,
    refuse_value,
    rows_with_places,
)
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.merge_clauses import SEES, MergeClause, place_in
from mica.write.once import Txn
from mica.write.own_rows import own_reads
from mica.write.running_merge import RunningMerge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.engines.spark.engine import Spark
    from mica.write.merge import Merge


class MergeBySpark(RunningMerge):
    """One execution of a merge; `refused` is why mica does not evaluate its texts.

    Errors: `refused`, if Spark does not know what mica does not, or if the table gets columns; those of Spark for the
    texts.
    """

    def __init__(self, given: Merge, txn: Txn | None, refused: UserError) -> None:
        if given.evolves:
            raise refused
        asking = _Asking(given, refused)
        try:
            super().__init__(asking.merge(), txn)
        except BaseException:
            asking.engine.forget(asking.source)
            raise
        self.given, self.asking = given, asking

    def commit(self) -> Commit:
        """As a merge; then the source is freed."""
        try:
            with as_written(self.given.source_alias, self.asking.texts):
                return super().commit()
        finally:
            self.asking.engine.forget(self.asking.source)

    def _commit(self, rows: pa.RecordBatch | DataFrame) -> Commit:
        wanted = any(one.when == NOT_BY_SOURCE for one in self.given.clauses)
        self.rows_of = _counted(rows) if wanted else {}
        return super()._commit(rows)

    def _describe(self, predicate: Any, source_rows: int) -> None:
        del source_rows  # those of the rows that change
        super()._describe(predicate, self.asking.source.count())
        self.target.reads = (every_file, *own_reads(self.given.source, self.snapshot, self.engine))

    def _metrics(self, facts: Facts) -> dict[str, int]:
        found = super()._metrics(facts)
        for number, count in self.rows_of.items():
            clause = self.given.clauses[number]
            if clause.when == NOT_BY_SOURCE:
                done = f"{clause.action.capitalize()}d"
                found[f"numTargetRowsMatched{done}"] -= count
                found[f"numTargetRowsNotMatchedBySource{done}"] += count
        return found


class _Asking:
    """What Spark is asked of both sides."""

    def __init__(self, given: Merge, refused: UserError) -> None:
        self.given, self.refused, self.schema = given, refused, given.snapshot.schema
        found = merge_source.of(given.source, given.spark, self.schema)
        self.engine, self.columns = cast("Spark", found.engine), found.schema
        rows = self.engine.spread(found.rows, found.schema) if isinstance(found.rows, pa.Table) else found.rows
        self.source = self.engine.kept(rows, found.schema.names)
        ansi, timezone = self.engine.settings()
        source = TableSource(given.snapshot)
        self.sides = Sides(
            self.schema, found.schema, given.target_alias, given.source_alias, given.snapshot.partition_columns, ansi,
            timezone, source.readable,
        )  # fmt: skip
        self.scan = Scan(source, None, None, None, ansi, timezone)
        #: The texts by the columns of their values.
        self.texts: dict[str, str] = {}
        self.values: dict[int, dict[str, str]] = {
            number: {name: text for name, text in (one.values or {}).items() if self._is_sparks(one.when, name, text)}
            for number, one in enumerate(given.clauses)
        }

    def _is_sparks(self, when: When, name: str, text: str) -> bool:
        """Whether a value is Spark's. Rows without a source row have one in the merge that follows, beside whose
        columns a bare name would be ambiguous."""
        place = place_in(self.sides, name)
        said = meant(text, place, self.schema)
        return said is text if when == NOT_BY_SOURCE else is_lacking(lambda: self.sides.bind(said, SEES[when], said))

    def merge(self) -> Merge:
        """The merge by places."""
        given, alias = self.given, self.given.source_alias
        texts = [given.on, *(one.condition for one in given.clauses if one.condition is not None)]
        texts += [text for values in self.values.values() for text in values.values()]
        places = rows_with_places(self.scan, self._session, texts, self.refused)
        target, source = places.alias(given.target_alias), self.source.alias(alias)
        sides: dict[When, tuple[DataFrame, DataFrame, str]] = {
            "matched": (target, source, "inner"),
            "not matched": (source, target, "left_anti"),
            NOT_BY_SOURCE: (target, source, "left_anti"),
        }
        rows = places.select(FILE, INDEX).limit(0)  # so that there are places, if all clauses insert
        with analysed(self.refused, self._names):
            for when, (left, right, how) in sides.items():
                if self._clauses(when):
                    found = self._decided(when, joined(left, right, for_spark(given.on), how))
                    rows = rows.unionByName(found, allowMissingColumns=True)
            schema = types.from_spark(rows.schema)
        clauses = []
        for number, one in enumerate(given.clauses):
            told = {name: f"{VALUE}{number}_{place}" for place, name in enumerate(self.values[number])}
            self.texts |= {column: self.values[number][name] for name, column in told.items()}
            for name, column in told.items():
                refuse_value(place_in(self.sides, name), self.values[number][name], schema.field(column).type)
            when = "matched" if one.when == NOT_BY_SOURCE else one.when
            condition = f"{quoted(alias)}.{CLAUSE} = {number}"
            clauses.append(replace(one, when=when, condition=condition, values=one.values and {**one.values, **told}))
        # A merge has one kind of clause without a condition at most: here each has one.
        return replace(given, source=rows, on=by_place(given.target_alias, alias), clauses=tuple(clauses))

    @property
    def _session(self) -> SparkSession:
        return self.engine.session

    @property
    def _names(self) -> list[str]:
        sides = ((self.given.target_alias, self.schema), (self.given.source_alias, self.columns))
        return [f"{alias}.{name}" for alias, schema in sides for name in schema.names]

    def _clauses(self, when: When) -> dict[int, MergeClause]:
        return {number: one for number, one in enumerate(self.given.clauses) if one.when == when}

    def _decided(self, when: When, rows: DataFrame) -> DataFrame:
        """The rows of a kind that a clause changes, and what it needs of them."""
        clauses = self._clauses(when)
        conditions = {n: one.condition and for_spark(one.condition) for n, one in clauses.items()}
        values = {
            f"{VALUE}{n}_{place}": (n, for_spark(text))
            for n in clauses
            for place, text in enumerate(self.values[n].values())
        }
        own = (
            []
            if when == NOT_BY_SOURCE
            else [f"{quoted(self.given.source_alias)}.{quoted(c)}" for c in self.columns.names]
        )
        kept = [*own, *([] if when == "not matched" else [FILE, INDEX])]
        found = decided(rows, CLAUSE, conditions, values, kept)
        only = list(clauses.values())
        if when == "matched" and len(only) == 1 and only[0].action == "delete" and only[0].condition is None:
            return found.dropDuplicates([FILE, INDEX])  # which source row deletes a row makes no difference
        return found


def _counted(rows: pa.RecordBatch | DataFrame) -> dict[int, int]:
    """How many rows each clause changes."""
    if isinstance(rows, pa.RecordBatch):
        return {one["values"]: one["counts"] for one in pc.value_counts(rows.column(CLAUSE)).to_pylist()}
    return dict(rows.groupBy(CLAUSE).count().collect())
