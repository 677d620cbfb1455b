"""DELETE and UPDATE by expressions that only Spark has.

The rule: Spark tells the place and the new values of each row that matches, and a merge of placed rows follows. Parts
of the condition that mica has (`a AND b`) skip files before, and values that mica has stay its own.

Operations and metrics have the names of delta-spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mica import engines
from mica.engines.spark import types
from mica.engines.spark.texts import decided
from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.unparsed import conjuncts, for_spark
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.spelling import unquoted
from mica.tasks.placed_merge import CLAUSE
from mica.write.assignment import meant, place_of
from mica.write.by_spark import VALUE, analysed, as_written, is_lacking, is_sparks, refuse_value, rows_with_places
from mica.write.change import describe, metrics_of, read_by_queries, read_files
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.merge import Merge
from mica.write.merge_clauses import MergeClause
from mica.write.once import Txn
from mica.write.placed_merge import PLACES, PlacedMerge, PlacedRows
from mica.write.rules import refuse_given

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The names of the two sides of the merge, which no column has.
_ROW, _CHANGE = "__mica_row", "__mica_change"


class ChangeBySpark(PlacedMerge):
    """One delete (`values` is None) or update; `refused` is why mica does not evaluate its texts.

    Errors: `refused`, if Spark does not know what mica does not; those of Spark for the texts.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        txn: Txn | None,
        spark: SparkSession,
        where: str | None,
        values: Mapping[str, str] | None,
        refused: UserError,
    ) -> None:
        refuse_given(snapshot.schema, map(unquoted, values or ()), str(snapshot.storage))
        self.where, self.deletes = where, values is None
        asking = _Asking(snapshot, spark, where)
        self.known = asking.known
        said = {name: asking.meant(name, text) for name, text in (values or {}).items()}
        asked = {name: text for name, text in said.items() if asking.is_sparks(text)}
        changed = asking.rows(list(asked.values()), refused)
        rows = PlacedRows(changed, None, changed.drop(*PLACES), 0, asking.known.plan.kept)
        for (name, text), found in zip(asked.items(), types.from_spark(rows.source.schema).fields[1:], strict=True):
            refuse_value(place_of(snapshot.schema, name), text, found.type)
        told = {name: f"{VALUE}{number}" for number, name in enumerate(asked)}
        self.texts = {column: asked[name] for name, column in told.items()}
        clause = MergeClause("matched", "delete" if self.deletes else "update", None, values and {**values, **told})
        super().__init__(Merge(snapshot, rows.source, "true", _CHANGE, _ROW, spark, clauses=(clause,)), rows, txn)

    def commit(self) -> Commit:
        """As a merge."""
        own = {name: name for name in self.snapshot.schema.names}
        with as_written(_CHANGE, self.texts), as_written(_ROW, own):
            return super().commit()

    def _feeds(self, *, all_vectors: bool) -> bool:
        """As `Change` does: a reader of the feed needs no change files of a delete by deletion vectors alone."""
        return super()._feeds(all_vectors=all_vectors) and not (self.deletes and all_vectors)

    def _describe(self, predicate: Any, source_rows: int) -> None:
        super()._describe(predicate, source_rows)
        describe(self.target, self.where, deletes=self.deletes)
        known = read_files(self.snapshot, self.known.predicate, self.engine, is_all=True)
        self.target.reads = (known, *read_by_queries())

    def _metrics(self, facts: Facts) -> dict[str, int]:
        changed = facts.counted("matched delete" if self.deletes else "matched update")
        return metrics_of(self.snapshot, self.target, facts, changed, deletes=self.deletes, began=self.began)


class _Asking:
    """What Spark is asked of a version."""

    def __init__(self, snapshot: Snapshot, spark: SparkSession, where: str | None) -> None:
        self.snapshot, self.spark, self.where = snapshot, spark, where
        self.source = TableSource(snapshot)
        ansi, timezone = engines.of(spark).settings()
        self.options: dict[str, Any] = {"ansi": ansi, "timezone": timezone}
        parts = [] if where is None else conjuncts(where)
        mine = [self._is_mine(part) for part in parts]
        #: By all parts that mica has, which skip files. Those before all others choose rows, too: a part behind may
        #: fail for rows that one of Spark's leaves out.
        self.known = self._scan([part for part, is_mine in zip(parts, mine, strict=True) if is_mine])
        if self.known.predicate is not None:  # Spark evaluates parts behind its own, by its database of time zones
            known = engines.of(spark).skips_by(self.known.predicate)
            self.known = replace(self.known, planned=self.known.planned_by(known))
        first = self._scan(parts[: [*mine, False].index(False)])
        self.read = replace(first, planned=self.known.plan)

    def _scan(self, parts: list[str]) -> Scan:
        return Scan(self.source, " AND ".join(f"({part})" for part in parts) or None, None, None, **self.options)

    def _is_mine(self, part: str) -> bool:
        # A name without a column may be that of a variable of the session, beside which mica lacks the rest.
        lacking = is_lacking(lambda: self._scan([part]), "UNKNOWN_COLUMN")
        return not lacking and self._scan([part]).collations == ()

    def meant(self, name: str, text: str) -> str:
        """The text of a value of the named column or field."""
        return meant(text, place_of(self.source.schema, name), self.source.schema)

    def is_sparks(self, text: str) -> bool:
        """Whether mica does not evaluate a value. Errors: what else is wrong with it."""
        return is_sparks(lambda: bind_value(text, self.source.readable, **self.options).expr)

    def rows(self, values: list[str], refused: UserError) -> DataFrame:
        """The places of the rows that match, and these values."""
        where = [] if self.where is None else [self.where]
        frame = rows_with_places(self.snapshot, self.read, self.spark, [*where, *values], refused)
        shown = {f"{VALUE}{number}": (0, for_spark(text)) for number, text in enumerate(values)}
        with analysed(refused, self.source.schema.names):
            for text in where:
                frame = frame.where(for_spark(text))
            found = decided(frame, CLAUSE, {0: None}, shown, PLACES)
            return types.without_mixed(found)  # Connect analyses it now
