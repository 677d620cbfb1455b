"""Sorts the rows of tasks in other tasks; the engine between them moves blocks, and never sees a row.

The rule: a block has rows of one range of the job (`tasks/ranges.py`), packed as one value. The engine brings the
blocks of a file to one task, in the order of their ranges; that task unpacks a range at a time, sorts it and passes it
on. So memory is bounded by the rows that a task gathers and by one range. A range that is far larger than planned is
mostly of rows with equal keys, whose order is free: it is sorted in pieces.

Spark's own sort makes rows of its own of each batch, and batches again, which took most of the time.

    rows ── cut ──▶ (file, range, block) ── by file, sorted by range ──▶ arranged ──▶ write_files
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from mica.arrays import arrow_array
from mica.records import dataclass
from mica.tasks.batches import Arranged
from mica.tasks.packed import packed, unpacked
from mica.tasks.ranges import RANGE_BYTES, Ranges, sort_indices
from mica.tasks.spill import ranged

Batches = Iterable[pa.RecordBatch]

#: The columns of blocks: numbers of the file and of the range, and the rows.
FILE, RANGE, ROWS = "file", "range", "rows"
BLOCKS = pa.schema(
    [pa.field(FILE, pa.int32(), False), pa.field(RANGE, pa.int32(), False), pa.field(ROWS, pa.binary(), False)]
)

#: What is so much larger than a range is sorted in pieces.
PIECE_BYTES = 3 * RANGE_BYTES


@dataclass(frozen=True)
class Cut:
    """A task whose rows come in blocks; a file has `each` ranges."""

    task: Callable[[Any], Batches]
    found: Ranges
    keys: tuple[str, ...]
    each: int

    def __call__(self, given: Any) -> Iterator[pa.RecordBatch]:
        """The blocks of an input."""
        for number, rows in ranged(self.task(given), self.found, self.keys):
            values = ([number // self.each], pa.int32()), ([number], pa.int32()), ([packed(rows)], pa.binary())
            yield pa.record_batch([arrow_array(*value) for value in values], schema=BLOCKS)


@dataclass(frozen=True)
class Sorted:
    """A task for the rows in the blocks of a file, sorted by `by` (name, descending), without the columns `drop`."""

    task: Callable[[Batches], Batches]
    by: tuple[tuple[str, bool], ...]
    drop: tuple[str, ...]

    def __call__(self, blocks: Batches) -> Batches:
        """What the task makes of the rows."""
        return self.task(arranged(blocks, self.by, self.drop))


def arranged(blocks: Batches, by: Sequence[tuple[str, bool]], drop: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows in blocks that come range by range."""
    single = (block.slice(at, 1) for block in blocks for at in range(block.num_rows))
    for _, some in itertools.groupby(single, lambda block: block.column(RANGE)[0].as_py()):
        waiting, size = list[pa.RecordBatch](), 0
        for rows in unpacked(block.select([ROWS]) for block in some):
            waiting.append(rows)
            size += rows.nbytes
            if size >= PIECE_BYTES:
                yield from _sorted(waiting, by, drop)
                waiting, size = [], 0
        if waiting:
            yield from _sorted(waiting, by, drop)


def _sorted(
    batches: list[pa.RecordBatch], by: Sequence[tuple[str, bool]], drop: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    rows = pa.Table.from_batches(batches)
    batches.clear()
    return Arranged(rows.drop_columns(list(drop)), sort_indices(rows, by)).batches()
