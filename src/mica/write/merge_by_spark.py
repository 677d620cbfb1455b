"""MERGE by expressions that only Spark has.

The rule: Spark joins the rows, decides which clause changes which row, and evaluates the values that mica does not
have. A merge of placed rows follows, whose clauses take what was decided. Each kind of clause sees the rows that it
speaks of: pairs of rows, what is left of the source without those in pairs, and what is left of the table, which is a
join of its own. The source and the pairs are computed once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from mica.engines.spark import types
from mica.engines.spark.texts import decided, joined, numbered, with_numbers, without
from mica.errors import UserError
from mica.expressions.joined import Sides
from mica.expressions.unparsed import for_spark, names
from mica.log.conflicts import every_file
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.spelling import quoted
from mica.tasks.matching import NOT_BY_SOURCE, When
from mica.tasks.placed_merge import CLAUSE
from mica.write.assignment import meant
from mica.write.by_spark import VALUE, analysed, as_written, is_sparks, refuse_own, refuse_value, rows_with_places
from mica.write.commit import Commit
from mica.write.merge_clauses import SEES, MergeClause, place_in
from mica.write.once import Txn
from mica.write.own_rows import own_reads
from mica.write.placed_merge import PLACES, PlacedMerge, PlacedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.engines.spark.engine import Spark
    from mica.write.merge import Merge
    from mica.write.merge_source import MergeSource


#: The column with the number of a row of the source.
_ROW = "__mica_row"


class MergeBySpark(PlacedMerge):
    """One execution of a merge; `refused` is why mica does not evaluate its texts.

    Errors: `refused`, if Spark does not know what mica does not, or if the table gets columns; those of Spark for the
    texts.
    """

    def __init__(self, given: Merge, txn: Txn | None, source: MergeSource, refused: UserError) -> None:
        if given.evolves:
            raise refused
        began, asking = time.monotonic(), _Asking(given, source, refused)
        try:
            super().__init__(*asking.merge(), txn)
        except BaseException:
            asking.forget()
            raise
        self.given, self.asking, self.began = given, asking, began  # the pairs are found already

    def commit(self) -> Commit:
        """As a merge; then the source is freed."""
        try:
            with as_written(self.given.source_alias, self.asking.texts):
                return super().commit()
        finally:
            self.asking.forget()

    def _describe(self, predicate: Any, source_rows: int) -> None:
        super()._describe(predicate, source_rows)
        self.target.reads = (every_file, *own_reads(self.given.source, self.snapshot, self.engine))


class _Asking:
    """What Spark is asked of both sides."""

    def __init__(self, given: Merge, found: MergeSource, refused: UserError) -> None:
        self.given, self.refused, self.schema = given, refused, given.snapshot.schema
        self.engine, self.columns = cast("Spark", found.engine), found.schema
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
            number: {
                name: meant(text, place_in(self.sides, name), self.schema)
                for name, text in (one.values or {}).items()
                if self._is_sparks(one.when, name, text)
            }
            for number, one in enumerate(given.clauses)
        }
        rows = self.engine.spread(found.rows, found.schema) if isinstance(found.rows, pa.Table) else found.rows
        self.named = self._named()
        refuse_own(self.named)
        self.source = self.engine.kept(with_numbers(rows, _ROW), [*self.named, _ROW])
        self.kept = [self.source]

    def _named(self) -> list[str]:
        """The columns of the source that the texts may name: the others are neither computed nor kept."""
        given, schema = self.given, self.schema
        words = names(given.on)
        for one in given.clauses:
            whole = one.action != "delete" and one.values is None  # its columns are named by the table
            said = [names(text) for text in (one.condition, *(one.values or {}).values()) if text is not None]
            for some in (*said, {f.name.lower() for f in schema.fields} if whole else set[str]()):
                words = None if words is None or some is None else words | some
        return [name for name in self.columns.names if words is None or name.lower() in words]

    def _is_sparks(self, when: When, name: str, text: str) -> bool:
        """Whether a value is Spark's. Rows without a source row have one in the merge that follows, beside whose
        columns a bare name would be ambiguous."""
        place = place_in(self.sides, name)
        said = meant(text, place, self.schema)
        if when == NOT_BY_SOURCE:
            return said is text
        return is_sparks(lambda: self.sides.bind(said, SEES[when], said).bound.expr)

    def merge(self) -> tuple[Merge, PlacedRows]:
        """The merge of placed rows."""
        given = self.given
        texts = [given.on, *(one.condition for one in given.clauses if one.condition is not None)]
        texts += [text for values in self.values.values() for text in values.values()]
        places = rows_with_places(given.snapshot, self.scan, self._session, texts, self.refused)
        with analysed(self.refused, self._names):
            changed, inserted = self._changes(places)
            changed, inserted = types.without_mixed(changed), inserted and types.without_mixed(inserted)
            whole = changed if inserted is None else changed.unionByName(inserted, allowMissingColumns=True)
            source = whole.drop(*PLACES)
            schema = types.from_spark(source.schema)
        clauses = []
        for number, one in enumerate(given.clauses):
            told = {name: f"{VALUE}{number}_{place}" for place, name in enumerate(self.values[number])}
            self.texts |= {column: self.values[number][name] for name, column in told.items()}
            for name, column in told.items():
                refuse_value(place_in(self.sides, name), self.values[number][name], schema.field(column).type)
            condition = one.condition and "true"
            clauses.append(replace(one, condition=condition, values=one.values and {**one.values, **told}))
        count = self.engine.counted(self.source)  # a job, before which the texts are refused
        rows = PlacedRows(changed, inserted, source, count, self.scan.plan.kept)
        return replace(given, clauses=tuple(clauses)), rows

    def _changes(self, places: DataFrame) -> tuple[DataFrame, DataFrame | None]:
        """The rows that change, and those to insert."""
        on, alias = for_spark(self.given.on), self.given.source_alias
        target, source = places.alias(self.given.target_alias), self.source.alias(alias)
        changed = decided(places.limit(0), CLAUSE, {0: None}, {}, PLACES)  # that there are such columns
        pairs = inserted = None
        if self._clauses("matched"):
            every = self._decided("matched", joined(target, source, on, "inner"))
            if self._clauses("not matched"):
                pairs = every = self.engine.kept(every, every.columns)
                self.kept.append(pairs)
            changed = changed.unionByName(numbered(every, CLAUSE).drop(_ROW), allowMissingColumns=True)
        if self._clauses("not matched"):
            free = joined(source, target, on, "left_anti") if pairs is None else without(self.source, pairs, _ROW)
            inserted = numbered(self._decided("not matched", free.alias(alias)), CLAUSE)
        if self._clauses(NOT_BY_SOURCE):
            found = self._decided(NOT_BY_SOURCE, joined(target, source, on, "left_anti"))
            changed = changed.unionByName(numbered(found, CLAUSE), allowMissingColumns=True)
        return changed, inserted

    def forget(self) -> None:
        """Frees what was kept."""
        for frame in self.kept:
            self.engine.forget(frame)

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
        """The rows of a kind with the clauses that change them, and what these need of them."""
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
            else [f"{quoted(self.given.source_alias)}.{quoted(name)}" for name in self.named]
        )
        kept: dict[When, Sequence[str]] = {"matched": [*PLACES, _ROW], "not matched": [], NOT_BY_SOURCE: PLACES}
        return decided(rows, CLAUSE, conditions, values, [*own, *kept[when]])
