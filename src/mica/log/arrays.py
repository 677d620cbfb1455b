"""Columns of the log's tables as single arrays."""

from __future__ import annotations

import pyarrow as pa


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Returns the column as one array; a single chunk is not copied."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
