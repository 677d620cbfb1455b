"""Columns of the log's tables as single arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the column as one array; a single chunk is not copied."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


#: Pieces are joined up to this many rows: an array of strings ends at 2 GiB.
MOST_JOINED = 1 << 20


def grown(table: pa.Table, more: pa.Table) -> pa.Table:
    """Returns the rows of both. The newest chunks are joined while one is not twice as large as those after it, so a
    table that grows n times has log(n) chunks."""
    batches = table.to_batches()
    tail = more.to_batches()
    count = more.num_rows
    while batches and batches[-1].num_rows < 2 * count and count <= MOST_JOINED:
        tail.insert(0, batches.pop())
        count += tail[0].num_rows
    joined = tail if len(tail) < 2 else [pa.concat_batches(tail)]
    return pa.Table.from_batches([*batches, *joined], table.schema)


def taken(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """Returns these rows; consecutive ones are not copied."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows) and (np.diff(rows) == 1).all():
        return values.slice(int(rows[0]), len(rows))
    return values.take(pa.array(rows))
