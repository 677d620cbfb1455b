"""One execution of a merge.

The rule: the clauses and their meaning are delta-spark's. The keys of the source decide which files are read: a file
that cannot hold one of them by the log is not opened, unless a clause speaks of rows without a source row. A commit of
another writer that adds files which might match is a conflict.

Operations, parameters and metrics have the names of delta-spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, to_numpy
from mica.collation.alike import Alike
from mica.expressions.bind import BoundExpr
from mica.expressions.collations import (
    SESSION,
    collations_of,
    for_change,
    in_process,
    judged_in_process,
    refuse_in_process,
)
from mica.expressions.joined import Side, Sides
from mica.log.conflicts import every_file
from mica.log.feed import refuse_reserved
from mica.scan.readable import refuse_unreadable
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.new_columns import bare
from mica.schema.types import StructType
from mica.skipping.keys import MOST_IN_FILES, KeyValues, possible
from mica.tasks.matching import NOT_BY_SOURCE, MatchSpec, When
from mica.tasks.merge import MergeSpec, SharedSource
from mica.tasks.shuffled_merge import STRINGS, source_strings
from mica.write import flow, merge_source
from mica.write.bytewise import distinct_strings
from mica.write.change import may_keep_rows, read_files
from mica.write.commit import Commit
from mica.write.facts import Facts, bytes_of, no_facts
from mica.write.merge_clauses import KINDS, SEES, assigned_of, bound, shown
from mica.write.merge_jobs import Shuffled, WithSource, summary_of
from mica.write.once import Txn
from mica.write.own_rows import own_reads
from mica.write.target import target_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mica.engines.spark.engine import Spark
    from mica.write.merge import Merge
    from mica.write.merge_source import MergeSource


class RunningMerge:
    """One execution of a merge; `source` is what `merge_source.of` made of its source, if that is done already."""

    #: The sides that the expressions of each kind of clause see.
    seen: Mapping[When, tuple[Side, ...]] = SEES
    #: How a session is got, which compares strings that tasks of this process cannot.
    session = SESSION

    def __init__(self, given: Merge, txn: Txn | None, source: MergeSource | None = None) -> None:
        self.began = time.monotonic()
        self.given, self.snapshot = given, given.snapshot
        self.target = target_of(self.snapshot, txn)
        self.source = merge_source.of(given.source, given.spark, self.snapshot.schema) if source is None else source
        self.engine, schema = self.source.engine, self.source.schema
        ansi, timezone = self.engine.settings()
        readable = TableSource(self.snapshot).readable  # new columns have no name in expressions
        if given.evolves:
            new = assigned_of(schema, given.clauses, given.target_alias, self.snapshot.schema)
            self.target = self.target.evolved(bare(new))
            # Its files are read as those of a table that has the columns already.
            self.snapshot = replace(self.snapshot, protocol=self.target.protocol, metadata=self.target.metadata)
        snapshot = self.snapshot
        self.table = TableSource(snapshot)
        self.scan = Scan(self.table, None, None, None, ansi, timezone)
        self.sides = Sides(
            snapshot.schema, schema, given.target_alias, given.source_alias, snapshot.partition_columns, ansi, timezone,
            readable,
        )  # fmt: skip
        clauses = tuple(
            bound(self.sides, one, self.table.row_ids, evolves=given.evolves, seen=self.seen) for one in given.clauses
        )
        self.match = MatchSpec(self.sides.condition(given.on), clauses, timezone)
        self._check()
        named = {leaf.column[0] for leaf in self.match.source_leaves}
        fields = tuple(replace(f, nullable=True) for f in schema.fields if f.name in named) or schema.fields[:1]
        self.columns = StructType(fields)

    def _check(self) -> None:
        """Refuses comparisons by collation that need Spark, and ids of rows that are not tracked."""
        refuse_unreadable(self.scan.source, [*self.match.key_leaves, *self.match.leaves("target")])
        on, said = self.match.on, [one for clause in self.match.clauses for one in clause.expressions()]
        alone = [one for one in (on.target, on.source) if one is not None]
        way_out = for_change(self.engine.comparator, self.session)
        joined = [one.bound for one in (*said, on.rest) if one is not None]
        for whole in [*alone, *joined, *(side for key in on.keys for side in (key.target, key.source))]:
            refuse_in_process(whole.expr, way_out)
        for key in on.keys:
            if key.collation is not None and not self.engine.comparator.judges(key.collation):
                in_process("", key.collation, way_out)

    def _alike(self, rows: pa.RecordBatch | DataFrame) -> None:
        """Asks the engine's comparator which strings of both sides are equal, by the collations of keys that tasks do
        not have."""
        keys = list(self.match.on.keys)
        asked = [i for i, key in enumerate(keys) if key.collation and not judged_in_process(key.collation)]
        if not asked:
            return
        task = partial(source_strings, self.match, self.columns)
        given = task([rows]) if isinstance(rows, pa.RecordBatch) else self.engine.write(rows, task, STRINGS)
        source = pa.Table.from_batches(given, STRINGS)
        for number in asked:
            key, own = keys[number], source.filter(pc.equal(source.column("key"), number)).column("string")
            target = distinct_strings(self.engine, self.scan.spec(), self.table.rewritten(), key.target)
            strings = pc.drop_null(pc.unique(pa.chunked_array([*own.chunks, target], pa.string())))
            classes = self.engine.comparator.classes(strings, str(key.collation))
            keys[number] = replace(key, collation=None, alike=Alike(strings, classes))
        self.match = replace(self.match, on=replace(self.match.on, keys=tuple(keys)))

    def commit(self) -> Commit:
        """Reads, writes and commits; commits nothing if nothing changes."""
        with self.source.taken(self.columns, keyed=bool(self.match.on.keys)) as rows:
            return self._commit(rows)

    def _commit(self, rows: pa.RecordBatch | DataFrame) -> Commit:
        self._alike(rows)
        keys, source = self.match.on.keys, None
        if isinstance(rows, pa.RecordBatch):
            source = SharedSource(self.match, rows)
            count = rows.num_rows
            usable = arrow_array(source.rows.usable)
            values = [pc.filter(found, usable) for found in source.rows.key_values]
            known = [KeyValues.of(key, found) for key, found in zip(keys, values, strict=True)]
        else:
            count, size, known = summary_of(self.engine, rows, self.match, self.columns)
            if keys and cast("Spark", self.engine).fits(count, size):  # a shuffle of the table's keys takes longer
                source = SharedSource(self.match, self.source.all_of(rows, self.columns))
        predicate = filtering = None
        if not self.match.numbers(NOT_BY_SOURCE):
            predicate = possible(self.match.on, known)
            filtering = possible(self.match.on, known, MOST_IN_FILES)
        kept = self._kept(predicate)
        self.planned = time.monotonic()
        self._describe(predicate, count)

        def whole(spec: MergeSpec) -> flow.RowSource:
            parts = self.table.rewritten(kept)
            if source is not None:
                return WithSource(spec, source, parts)
            return Shuffled(spec, rows, self.columns, size, parts)

        return self._run(kept, filtering, whole)

    def _run(
        self, kept: NDArray[np.int64], filtering: BoundExpr | None, whole: Callable[[MergeSpec], flow.RowSource]
    ) -> Commit:
        """Changes files, those at `kept` at most, and commits. `filtering` is true for the rows that may change."""
        write = replace(self.target.write_spec(), rules=self.target.rules(self.scan.ansi, self.scan.timezone))
        if not any(c.action == "insert" or c.values.keys() & {*self.table.partition_by} for c in self.match.clauses):
            write = self.target.rewriting_spec(write, self.scan.timezone)
        vectors = may_keep_rows(self.table, kept)
        feeds = self._feeds(all_vectors=len(vectors) == len(kept))
        read = replace(self.scan.rewriting(), predicate=filtering)
        spec = MergeSpec(read, write, self.match, vectors, feeds)
        done = flow.commit_changes(self.engine, self.target, spec.write, whole(spec))
        return done if done.metrics else replace(done, metrics=self._metrics(no_facts()))

    def _kept(self, predicate: Any) -> Any:
        """The positions of the files that must be read."""
        ordering = None
        if predicate is not None and collations_of(predicate.expr):
            predicate, ordering = self.engine.skips_by(predicate), self.engine.comparator
        return self.table.plan(predicate, ordering).kept

    def _feeds(self, *, all_vectors: bool) -> bool:
        """Whether changed rows are written to change files; new files alone tell what is inserted. `all_vectors`: every
        file may get a deletion vector."""
        del all_vectors
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
            **{f"{name}Predicates": shown(self.given.clauses, when) for name, when in KINDS.items()},
        }
        reads_all = bool(self.match.numbers(NOT_BY_SOURCE))
        # Any other source may read the table; strings that others add are in no list of those that are equal.
        is_all = isinstance(self.given.source, pa.Table | pa.RecordBatch | list | tuple)
        is_all = is_all and all(key.alike is None for key in self.match.on.keys)
        of_target = every_file if reads_all else read_files(self.snapshot, predicate, self.engine, is_all)
        target.reads = (of_target, *own_reads(self.given.source, self.snapshot, self.engine))
        target.metrics = self._metrics

    def _metrics(self, facts: Facts) -> dict[str, int]:
        vectors = self.snapshot.files.column("deletion_vector").combine_chunks()
        places, removed = to_numpy(facts.vectors.column("file")), facts.removed
        had = to_numpy(pc.is_valid(vectors))
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
            "numTargetBytesRemoved": bytes_of(self.snapshot.files, removed),
            "numTargetChangeFilesAdded": facts.changes.num_rows,
            "numTargetDeletionVectorsAdded": len(places),
            "numTargetDeletionVectorsUpdated": int(had[places].sum()),
            "numTargetDeletionVectorsRemoved": int(had[places].sum()) + int(had[removed].sum()),
            **self._times(),
        }

    def _times(self) -> dict[str, int]:
        """delta-spark's times, in ms: finding the files that the source's keys can be in, then reading them, matching
        and writing, which mica does in one pass."""
        now = time.monotonic()
        spans = {
            "executionTimeMs": now - self.began,
            "scanTimeMs": self.planned - self.began,
            "rewriteTimeMs": now - self.planned,
        }
        return {name: int(span * 1000) for name, span in spans.items()}
