"""DELETE and UPDATE.

The rule: files that cannot match by the log are not read, files without a matching row are not rewritten, and if
partition values decide alone, no file is read. An update is a CASE expression for each column that it sets, so new
values are evaluated for matching rows only. A commit of another writer that adds files which might match is a conflict.

Operations and metrics have the names of delta-spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import NDArray, arrow_array, to_numpy
from mica.engines.base import Engine, Task
from mica.errors import UserError
from mica.expressions import conditionals
from mica.expressions.bind import BoundExpr, bind_value
from mica.expressions.collations import BYTES, for_change, refuse_in_process
from mica.expressions.parse import parse
from mica.expressions.tree import Column, Expr, Literal
from mica.log import features
from mica.log.conflicts import Bounded, FilePredicate, every_file
from mica.log.feed import refuse_reserved
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.hidden import ROW_VERSION
from mica.schema.spelling import unquoted
from mica.schema.types import BOOLEAN, LONG
from mica.skipping.partitions import holds as holds_for
from mica.skipping.partitions import is_decided, of_partitions
from mica.tasks.change import ChangeSpec, change_files
from mica.tasks.parts import FilePart, in_tasks
from mica.tasks.write import WriteSpec
from mica.write import flow
from mica.write.assignment import Place, as_bytes, meant, place_of, shown, stored_at, together
from mica.write.bytewise import Bytewise, needs_comparator
from mica.write.commit import Commit
from mica.write.facts import Facts, bytes_of
from mica.write.ingested import forgotten
from mica.write.rules import refuse_given, regenerated
from mica.write.target import Target

#: Whether queries (SQL) that what is written comes from have read the table.
_FROM_ITSELF: ContextVar[Callable[[], bool]] = ContextVar("from_itself", default=lambda: False)


@contextmanager
def from_itself(itself: Callable[[], bool]) -> Iterator[None]:
    """Inside, what is written comes from the table itself, if `itself` is true once the queries have run."""
    token = _FROM_ITSELF.set(itself)
    try:
        yield
    finally:
        _FROM_ITSELF.reset(token)


def read_by_queries() -> tuple[FilePredicate, ...]:
    """Every file, if the queries that what is written comes from have read the table."""
    return (every_file,) if _FROM_ITSELF.get()() else ()


class Change:
    """One delete (`values` is None) or update."""

    #: Whether the commit is this change and nothing else: then collations that tasks do not have may be asked of the
    #: engine's comparator (`write.bytewise`), and files of other commits are excluded by their bounds.
    is_all = True

    def __init__(
        self, target: Target, engine: Engine, where: str | None, values: Mapping[str, Any] | None = None,
        timezone: str = "UTC",
    ) -> None:  # fmt: skip
        assert target.snapshot is not None
        self.began = time.monotonic()
        self.target, self.engine, self.where, self.deletes = target, engine, where, values is None
        ansi, timezone = engine.settings(True, timezone)
        # Files are read with the new schema: a column that the commit adds is null in them.
        self.snapshot = snapshot = replace(target.snapshot, protocol=target.protocol, metadata=target.metadata)
        self.table = TableSource(snapshot)
        self.scan = Scan(self.table, where, None, None, ansi, timezone)
        self.predicate = self.scan.predicate
        self.outputs = self.own = self.scan.rewriting().outputs
        if values is not None:
            refuse_given(snapshot.schema, map(unquoted, values), str(snapshot.storage))
            self.outputs = _assigned(self.table, values, where, self.scan)
        if self.is_all:
            self._ask()
        way_out = for_change(engine.comparator) if self.is_all else BYTES  # no session compares for an overwrite
        for value in (self.predicate, *self.outputs.values()):
            if value is not None:
                refuse_in_process(value.expr, way_out)

    def _ask(self) -> None:
        """Asks the engine's comparator for what tasks cannot compare."""
        bound = [*self.outputs.values(), *([] if self.predicate is None else [self.predicate])]
        if not any(needs_comparator(self.engine, value.expr) for value in bound):
            return
        known = None if self.predicate is None else self.engine.skips_by(self.predicate)
        plan = self.table.plan(known, self.engine.comparator)
        self.scan = replace(self.scan, planned=plan)
        bytewise = Bytewise(self.engine, self.scan.spec(), self.table.rewritten(plan.kept))
        self.outputs = {name: bytewise(value) for name, value in self.outputs.items()}
        self.predicate = None if self.predicate is None else bytewise(self.predicate)

    def commit(self) -> Commit:
        """Writes the changed files and commits; commits nothing if no row matches, but for the version of a `txn`."""
        self._describe()
        parts = self._split()
        if not parts and not len(self.target.removes):
            return self.target.commit_nothing()
        return self._run(self._task(parts), parts)

    def _split(self) -> list[FilePart]:
        """The files to read; the commit removes those of which no row is left."""
        kept = self.scan.plan.kept
        gone = self._gone(kept)
        if gone is None:
            return list(self.table.rewritten(kept))
        # The other files keep every row: if they were read, change files would be asked for, which lack whole files.
        self.target.removes = kept[gone]
        return []

    def _task(self, parts: Sequence[FilePart]) -> Callable[[WriteSpec], Task]:
        """What changes these files."""
        read = replace(self.scan.spec(), outputs=self.outputs, predicate=self.predicate)
        vectors = self._vectors(parts)
        before = self.scan.outputs if self._writes_changes(parts) else None

        def task(spec: WriteSpec) -> Task:
            return partial(change_files, ChangeSpec(read, spec, self.deletes, self.own, vectors, before))

        return task

    def _vectors(self, parts: Sequence[FilePart]) -> frozenset[int]:
        """The files that may get a deletion vector."""
        return may_keep_rows(self.table, np.array([part.number for part in parts], np.int64))

    def _writes_changes(self, parts: Sequence[FilePart]) -> bool:
        """Whether the commit has change files. A reader of the feed needs none for a delete if all files are removed or
        get a deletion vector (PROTOCOL.md, "Add CDC File"). Errors: those of `refuse_reserved`."""
        if self.target.feeds:
            refuse_reserved(self.snapshot.schema)
        return self.target.feeds and not (self.deletes and len(self._vectors(parts)) == len(parts))

    def _run(self, task: Callable[[WriteSpec], Task], parts: Sequence[FilePart]) -> Commit:
        """Runs the task on these files and commits, unless no row matches."""
        source = flow.FromTasks(task, in_tasks(parts, self.engine.parallelism))
        spec = self.target.write_spec()
        if all(self.outputs[name] == self.own[name] for name in self.table.partition_by):
            spec = self.target.rewriting_spec(spec, self.scan.timezone)
        if not self.deletes:
            spec = replace(spec, rules=self.target.rules(self.scan.ansi, self.scan.timezone))
        return flow.commit_changes(self.engine, self.target, spec, source)

    def _gone(self, kept: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """The files of which every row is deleted, if partition values alone decide; None if rows must be read."""
        if not self.deletes or not is_decided(self.predicate):
            return None
        if self.predicate is None:
            return np.ones(len(kept), np.bool_)
        values = self.snapshot.files.column("partition_values").take(arrow_array(kept))
        try:
            found = holds_for(self.predicate, self.snapshot.schema, values)
        except UserError:  # a task fails on the same value, and names its file
            return None
        return np.asarray(to_numpy(found), np.bool_)

    @property
    def reads(self) -> FilePredicate:
        """The files that the change depends on."""
        return read_files(self.snapshot, self.scan.predicate, self.engine, self.is_all)

    def _describe(self) -> None:
        """Sets the commit's operation, and the files that it depends on."""
        target, where = self.target, self.where
        describe(target, where, deletes=self.deletes)
        target.reads = (self.reads, *read_by_queries())
        target.metrics = self._metrics
        if self.deletes and where is None:
            target.applications = {**forgotten(self.snapshot.app_transactions), **target.applications}

    def _metrics(self, facts: Facts) -> dict[str, int]:
        changed = facts.counted("changed")
        if len(self.target.removes):
            changed += pc.sum(self.scan.source.rows(arrow_array(self.target.removes))).as_py() or 0
        return metrics_of(self.snapshot, self.target, facts, changed, deletes=self.deletes, began=self.began)


def describe(target: Target, where: str | None, *, deletes: bool) -> None:
    """Sets the operation of the commit of a delete or an update, and its parameters."""
    # As delta-spark 4.4 shows that all rows are meant: a delete of them has a condition, an update none.
    every = ["true"] if deletes else []
    target.operation = "DELETE" if deletes else "UPDATE"
    target.parameters = {"predicate": every if where is None else [f"({where})"]}


def metrics_of(
    snapshot: Snapshot, target: Target, facts: Facts, changed: int, *, deletes: bool, began: float
) -> dict[str, int]:
    """The metrics of a delete or an update of so many rows."""
    vectors = snapshot.files.column("deletion_vector").combine_chunks()
    places = to_numpy(facts.vectors.column("file"))
    removed = np.concatenate([facts.removed, target.removes]).astype(np.int64)
    had = to_numpy(pc.is_valid(vectors))
    return {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": bytes_of(snapshot.files, removed),
        "numAddedFiles": facts.files.num_rows,
        "numAddedBytes": facts.bytes,
        "numDeletedRows" if deletes else "numUpdatedRows": changed,
        "numCopiedRows": facts.counted("copied"),
        "numAddedChangeFiles": facts.changes.num_rows,
        "numDeletionVectorsAdded": len(places),
        "numDeletionVectorsUpdated": int(had[places].sum()),
        "numDeletionVectorsRemoved": int(had[places].sum()) + int(had[removed].sum()),
        "executionTimeMs": int((time.monotonic() - began) * 1000),
    }


def fresh_versions(source: TableSource, where: str | None, **options: Any) -> dict[str, BoundExpr]:
    """The versions of rows that an update of those that match writes again: null for these, so that they come from its
    own version; nothing if the table does not track rows."""
    if source.row_ids is None:
        return {}
    condition: Expr = Literal(True, BOOLEAN) if where is None else parse(where)
    fresh = conditionals.case([(condition, Literal(None, LONG))], Column(ROW_VERSION), 0)
    return {source.row_ids[1]: bind_value(fresh, source.readable, **options)}


def may_keep_rows(source: TableSource, kept: NDArray[np.int64]) -> frozenset[int]:
    """The files that may get a deletion vector: the log must have their row count."""
    snapshot = source.snapshot
    if not features.supports(snapshot.protocol, "deletionVectors"):
        return frozenset()
    if not properties.ENABLE_DELETION_VECTORS.of(snapshot.properties):
        return frozenset()
    known = source.rows(arrow_array(kept)).is_valid()
    return frozenset(kept[to_numpy(known)].tolist())


def read_files(snapshot: Snapshot, predicate: BoundExpr | None, engine: Engine, is_all: bool) -> FilePredicate:
    """Which files might hold rows that match, as the session judges their partition values, for which each part of the
    predicate that speaks of partition columns alone is true; and their bounds, if this `is_all` that was read of the
    table: new rows, and values of queries, may come from it too.
    """
    if predicate is None:
        return every_file
    partitions, known = of_partitions(predicate), engine.skips_by(predicate)

    def might_match(files: pa.Table) -> pa.Array:
        if partitions is None:
            return every_file(files)
        try:
            return holds_for(partitions, snapshot.schema, files.column("partition_values"))
        except UserError:  # a value that the predicate fails on: whoever repeats the operation is told
            return every_file(files)

    def kept(now: Snapshot) -> NDArray[np.int64]:
        # Read as this change reads it: a column that it adds is null.
        now = replace(now, protocol=snapshot.protocol, metadata=snapshot.metadata)
        return TableSource(now).plan(known, engine.comparator).kept

    return Bounded(might_match, kept) if is_all else might_match


def _assigned(source: TableSource, values: Mapping[str, Any], where: str | None, scan: Scan) -> Mapping[str, BoundExpr]:
    """The columns after the update: CASE expressions for those that are set. Rows that change keep their ids, but not
    their versions."""
    schema, readable = source.schema, source.readable
    options: dict[str, Any] = {
        "ansi": scan.ansi,
        "timezone": scan.timezone,
        "partition_columns": scan.source.partition_by,
    }
    found = dict(scan.rewriting().outputs)
    given: list[tuple[Place, Expr]] = []
    for name, text in values.items():
        place = place_of(schema, name)
        if not isinstance(text, str):
            raise UserError.bad_value(f"the value of {shown(place)}", text, "an expression as text, such as 'n + 1'")
        text = meant(text, place, schema)  # noqa: PLW2901 - what it stands for
        own = bind_value(text, readable, **options).type
        given.append((place, stored_at(parse(text), own, place, text)))
    assigned = together(given)
    condition: Expr = Literal(True, BOOLEAN) if where is None else parse(where)
    for name, value in {**assigned, **regenerated(schema, assigned)}.items():
        own = schema.field(name).type
        new, kept = as_bytes(value, own), as_bytes(Column((name,)), own)
        changed = conditionals.case([(condition, new)], kept, 0)
        found[name] = bind_value(changed, readable, **options)
    return found | fresh_versions(source, where, **options)
