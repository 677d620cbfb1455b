"""Many data files to read, in tasks that are sent to other processes.

The rule: the files of a task are rows of Arrow, and become `FilePart`s where they are read: here none is made of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import pyarrow as pa

from mica.arrays import arrow_array
from mica.cached import cached_property
from mica.tasks.parts import FilePart, bytes_of_task, grouped, parts_of, shares_of

#: Files are few, if they are not more: their parts cost little, and are kept.
FEW = 1_000


class SentFiles(Sequence[FilePart]):
    """The files of a task."""

    def __init__(self, files: pa.RecordBatch) -> None:
        self._batch = files

    @cached_property
    def _parts(self) -> list[FilePart]:
        return parts_of(pa.Table.from_batches([self._batch]))

    @overload
    def __getitem__(self, at: int) -> FilePart: ...
    @overload
    def __getitem__(self, at: slice) -> list[FilePart]: ...
    def __getitem__(self, at: int | slice) -> FilePart | list[FilePart]:
        return self._parts[at]

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def __iter__(self) -> Iterator[FilePart]:
        return iter(self._parts)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled, a slice would bring the files of all tasks along; of a stream it is cut out.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._batch.schema) as out:
            out.write_batch(self._batch)
        return _read, (sink.getvalue().to_pybytes(),)


def _read(data: bytes) -> SentFiles:
    (batch,) = pa.ipc.open_stream(data)
    return SentFiles(batch)


def sent(files: pa.Table, parallelism: int) -> list[SentFiles]:
    """The files (as `parts_of` takes them) in tasks, as `in_tasks` packs and shares their parts."""
    sizes = files.column("size").fill_null(0).to_pylist()
    per_task = bytes_of_task(sum(sizes), parallelism)
    counts = np.array([shares_of(size, per_task) for size in sizes], np.int64)
    number = np.repeat(np.arange(len(sizes)), counts)
    part = np.arange(len(number)) - np.repeat(np.cumsum(counts) - counts, counts)
    parts = counts[number]
    if len(number) > len(sizes):
        files = files.take(arrow_array(number))
    for name, values in (("number", number), ("part", part), ("parts", parts)):
        files = files.append_column(name, arrow_array(values))
    (batch,) = files.combine_chunks().to_batches() or [None]
    weights = [sizes[file] // count for file, count in zip(number.tolist(), parts.tolist(), strict=True)]
    tasks = grouped(range(len(weights)), weights.__getitem__, per_task)
    return [] if batch is None else [SentFiles(batch.slice(task[0], len(task))) for task in tasks]
