"""Rows of any types as values of one binary column, in which an engine moves them between this process and its tasks.

The rule: what is unpacked is what was packed, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from mica.arrays import arrow_array

PACKED = pa.schema([pa.field("rows", pa.binary())])


def packed(rows: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as one value: an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write(rows)
    return bytes(sink.getvalue().to_pybytes())


def packing(batches: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[pa.RecordBatch]:
    """The rows of each batch as one value."""
    for batch in batches:
        yield pa.record_batch([arrow_array([packed(batch)], pa.binary())], schema=PACKED)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in these values."""
    for batch in batches:
        for value in batch.column(0):
            with pa.ipc.open_stream(value.as_buffer()) as rows:
                yield from rows


def collected(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """All rows in these values, which have the same columns; None without a row."""
    found = [rows for rows in unpacked(batches) if rows.num_rows]
    return pa.Table.from_batches(found) if found else None
