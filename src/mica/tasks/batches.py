"""Splits and joins batches by size, and takes their rows in another order.

The rule: no batch is larger than Arrow's builders and memory allow, nor so small that its handling costs more than its
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from mica.variant.kernel import R

#: Batches are split at this many bytes: builders fail at 2 GiB, and memory should stay flat.
MAX_BYTES = 64 << 20

#: Small batches are joined up to so many rows or bytes.
JOINED_ROWS = 16_384
JOINED_BYTES = 8 << 20

#: So many small batches are held as they came.
HELD = 64


def cut(batch: R, max_bytes: int = MAX_BYTES) -> Iterator[R]:
    """The rows of the batch in pieces of about `max_bytes`."""
    if batch.num_rows <= 1 or _fits(batch, max_bytes):
        yield batch
        return
    half = batch.num_rows // 2
    yield from cut(batch.slice(0, half), max_bytes)
    yield from cut(batch.slice(half), max_bytes)


def _fits(batch: R, max_bytes: int) -> bool:
    # `nbytes` counts a buffer for each column that has it, and takes longer than to know the most that it can be.
    if isinstance(batch, pa.RecordBatch) and batch.get_total_buffer_size() * batch.num_columns <= max_bytes:
        return True
    return bool(batch.nbytes <= max_bytes)


class Arranged:
    """The rows of a table at these places, taken as they are asked for: a table of them would need its memory again."""

    def __init__(self, rows: pa.Table, places: pa.Array) -> None:
        # Of columns in chunks Arrow copies all for each take.
        self._rows, self._places = rows.combine_chunks(), places
        self.num_rows, self.nbytes = len(places), self._rows.nbytes

    def batches(self, start: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows from `start` to `end`, in this order."""
        end = self.num_rows if end is None else end
        for at in range(start, end, JOINED_ROWS):
            yield from self._rows.take(self._places.slice(at, min(JOINED_ROWS, end - at))).to_batches()


def joined(
    batches: Iterable[pa.RecordBatch], least_rows: int = JOINED_ROWS, least_bytes: int = JOINED_BYTES
) -> Iterator[pa.RecordBatch]:
    """The rows in batches that are not small; all have the same schema."""
    waiting: list[pa.RecordBatch] = []
    few: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        few.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size >= least_bytes or rows >= least_rows:
            yield _one([*waiting, *few])
            waiting, few, rows, size = [], [], 0, 0
        elif len(few) >= HELD:
            # A batch of a row, read from a file, holds the memory of thousands until it is copied.
            waiting.append(_one(few))
            few = []
    if waiting or few:
        yield _one([*waiting, *few])


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
