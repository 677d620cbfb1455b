"""How a merge runs: with the whole source in every task, with a shuffle of the keys of both sides, where ON has no
equality with a block of a large source in each task, or, where the places of rows are known, with nothing to match.

The rule: all ways match and write by the same functions (`tasks.merge`), and report the same facts.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.engines.base import Engine
from mica.engines.spark.engine import by_keys, by_number, gathered
from mica.records import dataclass
from mica.schema.types import StructType
from mica.skipping.keys import KeyValues
from mica.tasks.blocked_merge import match_block, settled
from mica.tasks.matching import MatchSpec
from mica.tasks.merge import MergeSpec, SharedSource, insert_rows, matched_rows, merge_files
from mica.tasks.parts import FilePart, in_tasks
from mica.tasks.placed_merge import CLAUSE, FILE, INDEX, TASK, in_few_tasks, once_each, placed_inserts
from mica.tasks.shuffled_merge import (
    SUMMARY,
    Settled,
    ShuffleSpec,
    change_files,
    match_rows,
    source_rows,
    summarize,
    target_key_rows,
)
from mica.tasks.write import WriteSpec
from mica.write import collated, flow

if TYPE_CHECKING:
    from mica.engines.spark.engine import Spark

#: Bytes of inserted rows that are worth a separate task, or so many where nobody knows their bytes, and bytes of source
#: rows that one task holds in memory.
_INSERT_BYTES, _INSERT_ROWS = 64 << 20, 250_000
_BUCKET_BYTES = 64 << 20


@dataclass(frozen=True)
class WithSource(flow.RowSource):
    """Every task has the whole source: first the files are merged, then what matched nothing is inserted."""

    spec: MergeSpec
    source: SharedSource
    parts: Sequence[FilePart]

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """Facts of both."""
        schema, ends = collated.reported(spec)
        merging = replace(self.spec, write=spec)
        rows = self.source.batch
        matched = np.zeros(rows.num_rows, np.bool_)
        if self.parts:
            inputs = in_tasks(self.parts, engine.parallelism)
            task = partial(merge_files, merging, self.source)
            for batch in engine.run(task, inputs, schema, ends=ends):
                told = pc.equal(batch.column("kind"), "matched")
                for packed in pc.filter(batch.column("vector"), told).to_pylist():
                    matched |= matched_rows(packed, rows.num_rows)
                yield batch
        if not merging.match.numbers("not matched") or matched.all():
            return
        free = rows.filter(arrow_array(~matched))
        count = max(1, min(engine.parallelism, free.nbytes // _INSERT_BYTES))
        edges = [free.num_rows * i // count for i in range(count + 1)]
        slices = [free.slice(start, end - start) for start, end in itertools.pairwise(edges)]
        yield from engine.run(partial(insert_rows, merging), slices, schema, ends=ends)


def summary_of(engine: Engine, frame: Any, match: MatchSpec, schema: StructType) -> tuple[int, int, list[KeyValues]]:
    """The rows and bytes of a DataFrame, and the values of its keys."""
    found = pa.Table.from_batches(engine.write(frame, partial(summarize, match, schema), SUMMARY), SUMMARY)
    parts = [pickle.loads(packed) for packed in found.column("keys").to_pylist()]  # noqa: S301 - our own tasks' bytes
    keys = match.on.keys
    known = [KeyValues.joined(key, [part[i] for part in parts if part[i]]) for i, key in enumerate(keys)]
    rows, size = (pc.sum(found.column(name)).as_py() or 0 for name in ("rows", "bytes"))
    return rows, size, known


@dataclass(frozen=True)
class Shuffled(flow.RowSource):
    """The rows of the source and the keys of the target meet by key, or blocks of the source meet the whole target;
    then changes meet the files that they change."""

    spec: MergeSpec
    #: A DataFrame of the source, computed once; its columns; its bytes.
    frame: Any
    columns: StructType
    size: int
    parts: Sequence[FilePart]

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """Facts of one job."""
        on = cast("Spark", engine)
        merging = _merging(on, replace(self.spec, write=spec), self.columns, self.parts, self.size // _INSERT_BYTES)
        buckets = max(engine.parallelism, -(-self.size // _BUCKET_BYTES))
        if merging.match.on.keys:
            changes = self._met(on, merging, buckets)
        else:
            changes = on.mapped(self.frame.repartition(buckets), partial(match_block, merging), merging.changes)
        yield from _changed(on, merging, changes, None if merging.match.on.keys else settled)

    def _met(self, on: Spark, merging: ShuffleSpec, buckets: int) -> Any:
        """The changes that are found where the keys of both sides meet."""
        rows = [on.mapped(self.frame, partial(source_rows, merging), merging.rows)]
        if self.parts:
            reading = in_tasks(self.parts, on.parallelism, shared=True)
            rows.append(on.made(partial(target_key_rows, merging), reading, merging.rows))
        met = by_keys(rows, merging.keys, buckets, ["side"])
        return on.mapped(met, partial(match_rows, merging), merging.changes)


@dataclass(frozen=True)
class Placed(flow.RowSource):
    """Changes of rows whose places are known, and rows to insert."""

    spec: MergeSpec
    #: DataFrames with the columns of `tasks.placed_merge` and those of the source: rows to change, and rows to insert.
    changed: Any
    inserted: Any
    #: The columns of the source, and how many rows it has.
    columns: StructType
    count: int
    parts: Sequence[FilePart]

    def run(self, engine: Engine, spec: WriteSpec) -> Iterator[pa.RecordBatch]:
        """Facts of one job."""
        on = cast("Spark", engine)
        merging = _merging(on, replace(self.spec, write=spec), self.columns, self.parts, self.count // _INSERT_ROWS)
        gather = partial(gathered, into="source", columns=self.columns, where=(CLAUSE, merging.needing))
        changes = gather(self.changed, {TASK: "task", FILE: "file", INDEX: "row", CLAUSE: "clause"})
        if self.inserted is not None:
            rows = gather(self.inserted, {CLAUSE: "clause"})
            changes = changes.unionAll(on.mapped(rows, partial(placed_inserts, merging), merging.changes))
        yield from _changed(on, merging, changes, once_each)


def _merging(on: Spark, spec: MergeSpec, columns: StructType, parts: Sequence[FilePart], inserting: int) -> ShuffleSpec:
    """What is the same for all tasks of a shuffle; about so many of them insert rows, as far as it has cores."""
    files = tuple(map(tuple, in_few_tasks(parts, on.parallelism)))
    return ShuffleSpec(spec, columns, files, max(1, min(4 * on.parallelism, inserting)))


def _changed(on: Spark, merging: ShuffleSpec, changes: Any, settle: Settled | None) -> Iterator[pa.RecordBatch]:
    """Facts of the files, to whose tasks the changes go."""
    schema, ends = collated.reported(merging.merge.write)
    moved = by_number(changes, "task", len(merging.files) + merging.inserting, ["file", "row"])
    yield from on.write(moved, partial(change_files, merging, settle), schema, ends=ends)
