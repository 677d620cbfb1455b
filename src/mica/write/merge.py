"""MERGE: a source's rows update, delete and insert rows of a table.

The rule: the clauses and their meaning are delta-spark's. The keys of the source decide which files are read: a file
that cannot hold one of them by the log is not opened, unless a clause speaks of rows without a source row. A commit of
another writer that adds files which might match is a conflict.

Operations, parameters and metrics have the names of delta-spark.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica import engines
from mica.arguments import TEXT, TEXTS, TXN, takes
from mica.engines.base import Engine, Watch
from mica.engines.spark import types
from mica.errors import UserError
from mica.expressions.collations import collations_of, refuse_in_process
from mica.expressions.joined import BOTH, JoinedExpr, Side, Sides
from mica.expressions.parse import parse
from mica.expressions.tree import Column, Expr
from mica.log.conflicts import every_file
from mica.log.feed import refuse_reserved
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.arrow import to_arrow_field
from mica.schema.evolution import cast_to
from mica.schema.types import VARIANT, ArrayType, MapType, StructField, StructType
from mica.skipping.keys import KeyValues, possible
from mica.tasks.matching import Action, Assigned, Clause, MatchSpec, When
from mica.tasks.merge import MergeSpec, SharedSource, insert_rows, matched_rows, merge_files
from mica.tasks.parts import FilePart, in_tasks, parts_of
from mica.tasks.rules import Rules
from mica.tasks.write import WriteSpec, facts_schema
from mica.tasks.zones import zone_tags
from mica.variant.plain import to_variants
from mica.write import collated, flow, merge_source
from mica.write.assignment import assignable, stored, unquoted
from mica.write.change import NothingChangedError, may_keep_rows, read_files
from mica.write.facts import NO_FACTS, Facts
from mica.write.once import Txn, checked, once
from mica.write.rules import refuse_given
from mica.write.target import Commit, open_target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Bytes of inserted rows that are worth a separate task.
_INSERT_BYTES = 64 << 20


@dataclass(frozen=True)
class _Given:
    """A clause as it was given; `values` are expressions by column, None for all columns."""

    when: When
    action: Action
    condition: str | None
    values: Mapping[str, str] | None = None


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
    clauses: tuple[_Given, ...] = ()

    @takes(set=TEXTS, condition=TEXT)
    def when_matched_update(
        self,
        set: Mapping[str, str],  # noqa: A002 - the word of SQL and of delta-spark
        condition: str | None = None,
    ) -> Merge:
        """Updates a row of the target that matches: `set` maps its columns to expressions over both rows."""
        return self._with(_Given("matched", "update", condition, set))

    @takes(condition=TEXT)
    def when_matched_update_all(self, condition: str | None = None) -> Merge:
        """Updates every column of a row that matches from the source's column of that name."""
        return self._with(_Given("matched", "update", condition))

    @takes(condition=TEXT)
    def when_matched_delete(self, condition: str | None = None) -> Merge:
        """Deletes a row of the target that matches."""
        return self._with(_Given("matched", "delete", condition))

    @takes(values=TEXTS, condition=TEXT)
    def when_not_matched_insert(self, values: Mapping[str, str], condition: str | None = None) -> Merge:
        """Inserts a row for a source row that matches none: `values` maps columns to expressions over the source row;
        other columns are null, or complete by the rules of the table (defaults, identities, generated columns)."""
        return self._with(_Given("not matched", "insert", condition, values))

    @takes(condition=TEXT)
    def when_not_matched_insert_all(self, condition: str | None = None) -> Merge:
        """Inserts a source row that matches no row: every column from the source's column of that name."""
        return self._with(_Given("not matched", "insert", condition))

    @takes(set=TEXTS, condition=TEXT)
    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, str],  # noqa: A002 - as above
        condition: str | None = None,
    ) -> Merge:
        """Updates a row of the target that no source row matches; the whole table is read."""
        return self._with(_Given("not matched by source", "update", condition, set))

    @takes(condition=TEXT)
    def when_not_matched_by_source_delete(self, condition: str | None = None) -> Merge:
        """Deletes a row of the target that no source row matches; the whole table is read."""
        return self._with(_Given("not matched by source", "delete", condition))

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
        return self.done(once(self.snapshot.storage, self.snapshot, once_as, lambda: _Merge(self, once_as).commit()))

    def _with(self, clause: _Given) -> Merge:
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


class _Merge:
    """One execution of a merge."""

    def __init__(self, given: Merge, txn: Txn | None) -> None:
        self.began = time.monotonic()
        self.given, self.snapshot = given, given.snapshot
        is_frame = types.is_frame(given.source)
        data = given.source
        if given.spark is not None and hasattr(data, "to_df") and not is_frame:
            data, is_frame = data.to_df(given.spark), True  # a Scan or a Table is read where the merge runs
        self.engine = engines.of(data if is_frame else given.spark)
        ansi, timezone = self.engine.settings(True, "UTC")
        snapshot = self.snapshot
        self.target = open_target(snapshot.storage, snapshot.schema, (), mode="append", properties={},
                                  snapshot=snapshot)  # fmt: skip
        self.target.applications = dict([txn] if txn is not None else ())
        self.table = TableSource(snapshot)
        self.scan = Scan(self.table, None, None, None, ansi, timezone)
        table = snapshot.schema
        self.batch: pa.RecordBatch | None
        if is_frame:
            schema = merge_source.frame_schema(data)
            self.batch = merge_source.collected(self.engine, data, schema, table)
        else:
            schema, self.batch = merge_source.rows_of(data, table)
        self.sides = Sides(
            table, schema, given.target_alias, given.source_alias, snapshot.partition_columns, ansi, timezone
        )
        self.rules = self.target.rules(ansi, timezone)
        clauses = tuple(_clause(self.sides, clause, self.rules) for clause in given.clauses)
        for clause in clauses:
            refuse_given(table, clause.values, str(snapshot.storage))
        self.match = MatchSpec(self.sides.condition(given.on), clauses, timezone)
        self._refuse_collations()

    def _refuse_collations(self) -> None:
        on = self.sides.predicate(self.given.on).bound
        for bound in [on, *(one.bound for clause in self.match.clauses for one in clause.expressions())]:
            refuse_in_process(bound.expr)

    def commit(self) -> Commit:
        """Reads, writes and commits; commits nothing if nothing changes."""
        if self.batch is None:
            raise UserError(
                "INVALID_ARGUMENT", "the source is too large for one batch", hint="Merge it in several parts."
            )
        source = SharedSource(self.match, self.batch)
        rows = source.rows
        known = [KeyValues.of(key, values) for key, values in zip(self.match.on.keys, rows.key_values, strict=True)]
        predicate = None if self.match.numbers("not matched by source") else possible(self.match.on, known)
        kept = self._kept(predicate)
        self._describe(predicate, self.batch.num_rows)
        spec = MergeSpec(
            replace(self.scan.spec(), predicate=predicate),
            replace(self.target.write_spec({}), rules=self.rules),
            self.match,
            may_keep_rows(self.table, kept),
            self._feeds(),
        )
        whole = _WithSource(spec, source, self._parts(kept))
        try:
            done, _ = flow.commit(
                self.engine, self.target, replace(spec.write, tags=zone_tags()), whole,
                observer=flow.Observer(files=self._refuse_nothing),
            )  # fmt: skip
        except NothingChangedError:
            if self.target.applications:
                return self.target.commit(NO_FACTS)
            return Commit(self.snapshot.version, 0, 0, snapshot=self.snapshot, metrics=self._metrics(NO_FACTS))
        return done

    def _kept(self, predicate: Any) -> Any:
        """The positions of the files that must be read."""
        ordering = None
        if predicate is not None and collations_of(predicate.expr):
            predicate, ordering = self.engine.read_alike(predicate), self.engine.comparator
        return self.table.plan(predicate, ordering).kept

    def _parts(self, kept: Any) -> list[FilePart]:
        parts = parts_of(self.table.files(pa.array(kept)))
        return [replace(part, number=int(number)) for part, number in zip(parts, kept, strict=True)]

    def _feeds(self) -> bool:
        """Whether changed rows are written to change files; new files alone tell what is inserted."""
        if not self.target.feeds or all(clause.action == "insert" for clause in self.match.clauses):
            return False
        refuse_reserved(self.snapshot.schema)
        return True

    def _describe(self, predicate: Any, source_rows: int) -> None:
        self.source_rows = source_rows
        target = self.target
        target.operation = "MERGE"
        target.parameters = {
            "predicate": [f"({self.given.on})"],
            **{f"{name}Predicates": _shown(self.given.clauses, when) for name, when in _KINDS.items()},
        }
        reads_all = bool(self.match.numbers("not matched by source"))
        target.reads = every_file if reads_all else read_files(self.snapshot.schema, predicate)
        target.metrics = self._metrics

    def _metrics(self, facts: Facts) -> dict[str, int]:
        sizes, vectors = (self.snapshot.files.column(name).combine_chunks() for name in ("size", "deletion_vector"))
        places, removed = facts.vectors.column("file").to_numpy(), facts.removed
        had = np.asarray(vectors.is_valid())
        inserted, copied = facts.counted("not matched insert"), facts.counted("copied")
        changed = {
            (when, action): facts.counted(f"{when} {action}")
            for when in ("matched", "not matched by source")
            for action in ("update", "delete")
        }
        updated, deleted = (
            sum(count for (_, action), count in changed.items() if action == one) for one in ("update", "delete")
        )
        return {
            "numSourceRows": self.source_rows,
            "numTargetRowsInserted": inserted,
            "numTargetRowsUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetRowsMatchedUpdated": changed["matched", "update"],
            "numTargetRowsMatchedDeleted": changed["matched", "delete"],
            "numTargetRowsNotMatchedBySourceUpdated": changed["not matched by source", "update"],
            "numTargetRowsNotMatchedBySourceDeleted": changed["not matched by source", "delete"],
            "numTargetRowsCopied": copied,
            "numOutputRows": inserted + updated + copied,
            "numTargetFilesAdded": facts.files.num_rows,
            "numTargetFilesRemoved": len(removed),
            "numTargetBytesAdded": facts.bytes,
            "numTargetBytesRemoved": pc.sum(sizes.take(pa.array(removed))).as_py() or 0,
            "numTargetChangeFilesAdded": facts.changes.num_rows,
            "numTargetDeletionVectorsAdded": len(places),
            "numTargetDeletionVectorsUpdated": int(had[places].sum()),
            "numTargetDeletionVectorsRemoved": int(had[places].sum()) + int(had[removed].sum()),
            "executionTimeMs": int((time.monotonic() - self.began) * 1000),
        }

    def _refuse_nothing(self, facts: Facts) -> None:
        if not facts.files.num_rows and not len(facts.removed) and not facts.vectors.num_rows:
            raise NothingChangedError


@dataclass(frozen=True)
class _WithSource(flow.RowSource):
    """Every task has the whole source: first the files are merged, then what matched nothing is inserted."""

    spec: MergeSpec
    source: SharedSource
    parts: Sequence[FilePart]

    def run(self, engine: Engine, spec: WriteSpec, watch: Watch | None) -> Iterator[pa.RecordBatch]:
        """Facts of both."""
        schema, ends = facts_schema(spec.collated), collated.wanted(spec.collated)
        merging = replace(self.spec, write=spec)
        rows = self.source.batch
        matched = np.zeros(rows.num_rows, np.bool_)
        if self.parts:
            inputs = in_tasks(self.parts, engine.parallelism)
            task = partial(merge_files, merging, self.source)
            for batch in engine.run(task, inputs, schema, ends=ends, watch=watch):
                told = pc.equal(batch.column("kind"), "matched")
                for packed in batch.column("vector").filter(told).to_pylist():
                    matched |= matched_rows(packed, rows.num_rows)
                yield batch
        if not merging.match.numbers("not matched") or matched.all():
            return
        free = rows.filter(pa.array(~matched))
        count = max(1, min(engine.parallelism, free.nbytes // _INSERT_BYTES))
        edges = [free.num_rows * i // count for i in range(count + 1)]
        slices = [free.slice(start, end - start) for start, end in itertools.pairwise(edges)]
        yield from engine.run(partial(insert_rows, merging), slices, schema, ends=ends, watch=watch)


_KINDS: Mapping[str, When] = {
    "matched": "matched",
    "notMatched": "not matched",
    "notMatchedBySource": "not matched by source",
}

#: The sides that the expressions of a clause see.
_SEES: Mapping[When, tuple[Side, ...]] = {
    "matched": BOTH,
    "not matched": ("source",),
    "not matched by source": ("target",),
}


def _shown(clauses: Sequence[_Given], when: When) -> list[dict[str, str]]:
    """The clauses of a kind as delta-spark's history has them."""
    return [
        {**({} if one.condition is None else {"predicate": f"({one.condition})"}), "actionType": one.action}
        for one in clauses
        if one.when == when
    ]


def _clause(sides: Sides, given: _Given, rules: Rules) -> Clause:
    sees = _SEES[given.when]
    condition = None if given.condition is None else sides.predicate(given.condition, sees)
    values: dict[str, Assigned] = {}
    if given.action != "delete":
        for column, text, value in _values(sides, given, rules):
            values[column.name] = _assigned(sides, column, text, value, sees)
    return Clause(given.when, given.action, condition, values)


def _values(sides: Sides, given: _Given, rules: Rules) -> Iterator[tuple[StructField, str, Expr]]:
    """The columns that a clause sets, with the texts and trees of their values."""
    table = sides.target
    if given.values is None:
        absent = [name for name in table.names if sides.source.find(name) is None]
        missing = [name for name in absent if name not in rules.supplied]
        if missing:
            raise UserError(
                "MISSING_COLUMN",
                f"the source has no column {', '.join(map(repr, missing))}, which {given.action}_all needs",
                hint=f"Add the column, or name the columns: when_…_{given.action}({{…}}).",
            )
        for f in table.fields:
            if f.name in absent:
                continue  # the rules of the table complete it
            yield f, f"{sides.source_alias}.{f.name}", Column((sides.source_alias, f.name))
        return
    seen: set[str] = set()
    for name, text in given.values.items():
        f = _column(sides, name)
        if f.name in seen:
            raise UserError("DUPLICATE_COLUMN", f"the column {f.name!r} is set twice", column=f.name)
        seen.add(f.name)
        yield f, text, parse(text)


def _column(sides: Sides, name: str) -> StructField:
    """The column of the target that a key of `set` or `values` names, with or without the target's alias."""
    alias, _, rest = name.partition(".")
    own = [name, unquoted(name), *([rest, unquoted(rest)] if alias.lower() == sides.target_alias.lower() else [])]
    found = next((f for f in map(sides.target.find, own) if f is not None), None)
    if found is None:
        raise UserError.unknown_column(name, sides.target.names)
    return found


def _assigned(sides: Sides, column: StructField, text: str, value: Expr, sees: tuple[Side, ...]) -> Assigned:
    given = sides.bind(value, sees, text)
    own = given.bound.type
    if own != column.type and not assignable(own, column.type, ansi=sides.ansi) and _converts(given, value, column):
        cast_to(to_arrow_field(StructField(column.name, own)), column, column.name, to_variants)  # refuses what differs
        return Assigned(given, column, plain=True)
    return Assigned(sides.bind(stored(value, own, column, text, ansi=sides.ansi), sees, text), column)


def _converts(given: JoinedExpr, value: Expr, column: StructField) -> bool:
    """Whether a value is converted as an append's: a column of the source, or structs, lists and maps."""
    nested = StructType | ArrayType | MapType
    of_source = isinstance(value, Column) and given.sides == ("source",)
    return (of_source and column.type == VARIANT) or (
        isinstance(column.type, nested) and isinstance(given.bound.type, nested)
    )
