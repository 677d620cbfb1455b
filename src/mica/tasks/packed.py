"""Rows of any types as values of one binary column, in which an engine moves them between this process and its tasks.

The rule: what is unpacked is what was packed, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

PACKED = pa.schema([pa.field("rows", pa.binary())])


def packed(rows: pa.Table) -> bytes:
    """The rows as one value: an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue().to_pybytes())


def packing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of each batch as one value."""
    for batch in batches:
        yield pa.record_batch([pa.array([packed(pa.Table.from_batches([batch]))], pa.binary())], schema=PACKED)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows in these values."""
    for batch in batches:
        for value in batch.column(0):
            with pa.ipc.open_stream(value.as_buffer()) as rows:
                yield from rows
