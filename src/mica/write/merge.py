"""MERGE: a source's rows update, delete and insert rows of a table.

The rule: a merge is put together clause by clause, and refuses what no merge can be; then it runs (`running_merge`), or
Spark evaluates its texts, if only Spark can (`merge_by_spark`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from mica.arguments import EXPRESSIONS, TEXT, TXN, takes
from mica.engines.spark.types import is_frame
from mica.errors import UserError, delta_names
from mica.errors.delta_names import with_names_of
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.schema.special import DEFAULT
from mica.write import merge_source
from mica.write.by_spark import or_by_spark
from mica.write.commit import Commit
from mica.write.merge_clauses import MergeClause, with_defaults
from mica.write.merge_source import MergeSource
from mica.write.once import Txn, checked, once
from mica.write.running_merge import RunningMerge
from mica.write.target import target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@with_names_of(delta_names.MERGE)
@dataclass(frozen=True)
class Merge:
    """A merge in preparation, see `Table.merge`. Each clause returns a new one; `execute` runs it.

    Expressions and conditions are texts. Those for matched rows name columns of both sides (`target.n + source.n`),
    those for rows to insert the source's, those for rows without a source row the target's. A bare name is accepted if
    it is not ambiguous. Values are cast as those of `Table.update`; a bare column of the source (`source.v`) is also
    converted as by `Table.append`, so JSON texts become Variants.
    """

    snapshot: Snapshot = field(repr=False)
    source: Any = field(repr=False)
    on: str
    source_alias: str = "source"
    target_alias: str = "target"
    spark: SparkSession | None = field(default=None, repr=False)
    #: Called with the commit.
    done: Callable[[Commit], Commit] = field(default=lambda commit: commit, repr=False)
    clauses: tuple[MergeClause, ...] = ()
    #: Whether the table gets columns of the source that clauses set.
    evolves: bool = False

    @takes(set=EXPRESSIONS, condition=TEXT)
    def when_matched_update(
        self,
        set: Mapping[str, str],  # noqa: A002 - the word of SQL and of delta-spark
        condition: str | None = None,
    ) -> Merge:
        """Updates a row of the target that matches: `set` maps its columns, or fields of structs (`s.x`), to
        expressions over both rows."""
        return self._with(MergeClause("matched", "update", condition, set))

    @takes(condition=TEXT)
    def when_matched_update_all(self, condition: str | None = None) -> Merge:
        """Updates every column of a row that matches from the source's column of that name."""
        return self._with(MergeClause("matched", "update", condition))

    @takes(condition=TEXT)
    def when_matched_delete(self, condition: str | None = None) -> Merge:
        """Deletes a row of the target that matches."""
        return self._with(MergeClause("matched", "delete", condition))

    @takes(values=EXPRESSIONS, condition=TEXT)
    def when_not_matched_insert(self, values: Mapping[str, str], condition: str | None = None) -> Merge:
        """Inserts a row for a source row that matches none: `values` maps columns to expressions over the source row;
        other columns are null, or complete by the rules of the table (defaults, identities, generated columns)."""
        return self._with(MergeClause("not matched", "insert", condition, values))

    @takes(condition=TEXT)
    def when_not_matched_insert_all(self, condition: str | None = None) -> Merge:
        """Inserts a source row that matches no row: every column from the source's column of that name."""
        return self._with(MergeClause("not matched", "insert", condition))

    @takes(set=EXPRESSIONS, condition=TEXT)
    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, str],  # noqa: A002 - as above
        condition: str | None = None,
    ) -> Merge:
        """Updates a row of the target that no source row matches; the whole table is read."""
        return self._with(MergeClause("not matched by source", "update", condition, set))

    @takes(condition=TEXT)
    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Merge:
        """Deletes a row of the target that no source row matches; the whole table is read."""
        return self._with(MergeClause("not matched by source", "delete", condition))

    @takes(txn=TXN)
    def execute(self, *, txn: Txn | None = None) -> Commit:
        """Runs the merge; its commit has the metrics of delta-spark's history. If nothing changes, nothing is
        committed, but for the version of a `txn`, which is as in `Table.append`.

        Errors: those of `Table.update`; AMBIGUOUS_MERGE with the keys if several source rows would change the same
        row; AMBIGUOUS_COLUMN; ConflictError if another writer changed the files that were read, or added rows that
        might match. The table is then unchanged.
        """
        if not self.clauses:
            raise UserError(
                "INVALID_ARGUMENT", "the merge has no clause", hint="Call when_matched_update(…) or another one first."
            )
        once_as = checked(txn)
        return self.done(once(self.snapshot.storage, self.snapshot, once_as, lambda: self._running(once_as).commit()))

    def _running(self, txn: Txn | None) -> RunningMerge:
        on_spark = self.spark is not None or is_frame(self.source)
        # Once: a stream has no rows for a second reader.
        source = merge_source.of(self.source, self.spark, self.snapshot.schema)
        given = self._with_sparks_defaults(source) if on_spark and not self.evolves else self

        def by_spark(refused: UserError) -> RunningMerge:
            from mica.write.merge_by_spark import MergeBySpark

            return MergeBySpark(given, txn, source, refused)

        return or_by_spark(lambda: RunningMerge(given, txn, source), by_spark, on_spark=on_spark)

    def _with_sparks_defaults(self, source: MergeSource) -> Merge:
        """This merge, whose inserts set the columns with defaults that mica cannot evaluate: Spark is asked for values,
        and not for what rows lack."""
        table = self.snapshot.schema
        if not any(DEFAULT in f.metadata for f in table.fields):
            return self
        unknown = target_of(self.snapshot, None).rules(*source.engine.settings()).unknown
        aliases = (self.target_alias, self.source_alias)
        return replace(
            self, clauses=tuple(with_defaults(one, table, source.schema, aliases, unknown) for one in self.clauses)
        )

    def _with(self, clause: MergeClause) -> Merge:
        if clause.values is not None and not clause.values:
            raise UserError.bad_value("values", dict(clause.values), "a dict of at least one column to its expression")
        before = [given for given in self.clauses if given.when == clause.when]
        if before and before[-1].condition is None:
            raise UserError(
                "INVALID_ARGUMENT",
                f"a clause for rows that are {clause.when} follows one without a condition, which takes them all",
                hint="Only the last clause of a kind may be without a condition.",
            )
        return replace(self, clauses=(*self.clauses, clause))
