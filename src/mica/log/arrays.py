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


def taken(values: pa.Array, rows: np.ndarray) -> pa.Array:
    """Returns these rows; consecutive ones are not copied."""
    if len(rows) and int(rows[-1]) - int(rows[0]) + 1 == len(rows) and (np.diff(rows) == 1).all():
        return values.slice(int(rows[0]), len(rows))
    return values.take(pa.array(rows))
