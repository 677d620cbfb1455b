"""Sorts rows that do not fit in memory, on local disk.

The rule: memory is bounded by the rows that a task gathers and by one range at a time. Each task cuts what it gathers
by the ranges of the job (`tasks/ranges.py`) and appends a batch per range to its own file; whoever writes a range reads
its batches of all files, sorts them and passes them on. Rows are never compared across ranges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Protocol

import numpy as np
import pyarrow as pa

from mica.arrays import arrow_array, to_numpy
from mica.records import dataclass
from mica.storage.local import local_errors
from mica.tasks.batches import Arranged
from mica.tasks.ranges import sort_indices

#: Bytes that a task gathers before it cuts them.
GATHERED_BYTES = 64 << 20


class Numbering(Protocol):
    """What says to which range rows belong: `Ranges`, `Partitions`."""

    def of(self, columns: Sequence[pa.Array]) -> pa.Array:
        """The number of the range of each row."""


@dataclass
class Spilled:
    """The file of one task: which of its batches belong to which range."""

    path: str
    batches: dict[int, list[int]] = field(default_factory=dict)


def spill(rows: Iterable[pa.RecordBatch], found: Numbering, keys: Sequence[str], path: str) -> Spilled:
    """Writes the rows to a file by range; `keys` are the columns of the ranges. Errors: DISK_FULL, IO."""
    spilled = Spilled(path)
    writer: pa.RecordBatchWriter | None = None
    numbers = itertools.count()
    with local_errors(path):
        try:
            for number, part in ranged(rows, found, keys):
                if writer is None:
                    options = pa.ipc.IpcWriteOptions(compression="lz4")
                    writer = pa.ipc.new_file(path, part.schema, options=options)
                writer.write_batch(part)
                spilled.batches.setdefault(number, []).append(next(numbers))
        finally:
            if writer is not None:
                writer.close()
    return spilled


def ranged(
    rows: Iterable[pa.RecordBatch], found: Numbering, keys: Sequence[str]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows by range, each with its number; a range comes again for each `GATHERED_BYTES` of all rows."""
    waiting, size = list[pa.RecordBatch](), 0
    for batch in itertools.chain(rows, [None]):
        if batch is not None:
            waiting.append(batch)
            size += batch.nbytes
            if size < GATHERED_BYTES:
                continue
        if waiting:
            yield from _cut(pa.Table.from_batches(waiting), found, keys)
            waiting, size = [], 0


def _cut(rows: pa.Table, found: Numbering, keys: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each range, as one batch."""
    rows = rows.combine_chunks()
    numbers = to_numpy(found.of([rows.column(name).combine_chunks() for name in keys]))
    if (numbers == numbers[0]).all():
        yield from ((int(numbers[0]), batch) for batch in rows.to_batches())
        return
    order = np.argsort(numbers, kind="stable")
    edges = np.concatenate([[0], np.flatnonzero(np.diff(numbers[order])) + 1, [len(order)]])
    for start, end in itertools.pairwise(edges.tolist()):
        for batch in rows.take(arrow_array(order[start:end])).to_batches():
            yield int(numbers[order[start]]), batch


def sorted_rows(
    files: Sequence[Spilled], numbers: Iterable[int], by: Sequence[tuple[str, bool]], drop: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The rows of these ranges, each sorted by `by` (name, descending), without the columns `drop`."""
    for number in numbers:
        parts = []
        for file in files:
            if number in file.batches:
                with local_errors(file.path), pa.memory_map(file.path) as source:
                    reader = pa.ipc.open_file(source)
                    parts += [reader.get_batch(at) for at in file.batches[number]]
        if parts:
            rows = pa.Table.from_batches(parts)
            yield from Arranged(rows.drop_columns(list(drop)), sort_indices(rows, by)).batches()


def as_spilled(file: Spilled) -> Iterator[pa.RecordBatch]:
    """The rows of one file, range by range, each in the order in which they came."""
    if not file.batches:
        return
    with local_errors(file.path), pa.memory_map(file.path) as source:
        reader = pa.ipc.open_file(source)
        for places in file.batches.values():
            for at in places:
                yield reader.get_batch(at)
