"""The source of files that came from commits: their statistics and their whole lines.

The rule: a table that is kept through n commits has log(n) sources (`arrays.staying`), so a question to all sources
stays one to a few.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import from_numpy, to_numpy
from mica.log.arrays import staying
from mica.records import dataclass

_SOURCE, _ROW = "source", "row"


@dataclass(frozen=True)
class LineSource:
    """The adds of some commits, oldest first."""

    all_lines: pa.Array  # large_binary
    add_rows: np.ndarray  # the line of each add
    stats: pa.Array  # string, one per add

    def lines(self, rows: np.ndarray) -> pa.Array:
        """Returns the whole lines of some adds."""
        return pc.take(self.all_lines, from_numpy(self.add_rows[rows]))


def with_source(
    files: pa.Table, sources: Sequence[Any], source: LineSource
) -> tuple[pa.Table, tuple[Any, ...], int, int]:
    """Adds a source. Returns the files with the sources that they have now, the sources, and for the files of the new
    one its number and the row of its first add."""
    sizes = [len(one.add_rows) if isinstance(one, LineSource) else math.inf for one in sources]
    kept = staying(sizes, len(source.add_rows))
    if kept == len(sources):
        return files, (*sources, source), kept, 0
    joined = [*sources[kept:], source]
    starts = np.cumsum([0, *(len(one.add_rows) for one in joined)])
    return _renumbered(files, kept, starts), (*sources[:kept], _joined(joined)), kept, int(starts[-2])


def _joined(sources: Sequence[LineSource]) -> LineSource:
    """Only lines of adds are kept: no other line of a source is ever asked for."""
    lines = [pc.take(one.all_lines, from_numpy(one.add_rows)) for one in sources]
    together = pa.concat_arrays(lines)
    stats = pa.concat_arrays([one.stats for one in sources])
    return LineSource(together, np.arange(len(together)), stats)


def _renumbered(files: pa.Table, first: int, starts: np.ndarray) -> pa.Table:
    """The files of the sources from `first` on become files of `first`; `starts` are the rows of their old sources."""
    batches = files.to_batches()
    for at, batch in enumerate(batches):
        numbers = to_numpy(batch.column(_SOURCE))
        moved = numbers >= first
        if not moved.any():
            continue
        rows = to_numpy(batch.column(_ROW)) + np.where(moved, starts[np.maximum(numbers - first, 0)], 0)
        columns = batch.columns
        columns[batch.schema.get_field_index(_SOURCE)] = from_numpy(np.minimum(numbers, first).astype(np.int32))
        columns[batch.schema.get_field_index(_ROW)] = from_numpy(rows.astype(np.int32))
        batches[at] = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    return pa.Table.from_batches(batches, files.schema)
