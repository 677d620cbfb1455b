"""Splits batches by size.

The rule: no batch is larger than Arrow's builders and memory allow.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

#: Batches are split at this many bytes: builders fail at 2 GiB, and memory should stay flat.
MAX_BYTES = 64 << 20


def cut(batch: pa.RecordBatch, max_bytes: int = MAX_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows of the batch in pieces of about `max_bytes`."""
    size = batch.nbytes
    if size <= max_bytes or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from cut(batch.slice(0, half), max_bytes)
    yield from cut(batch.slice(half), max_bytes)
