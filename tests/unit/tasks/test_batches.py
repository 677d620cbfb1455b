"""Batches of a good size."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import pyarrow as pa

from mica.tasks.batches import HELD, JOINED_ROWS, joined


def test_few_small_batches_are_held_while_they_are_joined() -> None:
    """To optimize 2,000 files of a row took 1 GB: each batch held the memory that it was read into."""
    alive = list[weakref.ref[pa.RecordBatch]]()
    most = 0

    def given() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for n in range(1000):
            batch = pa.record_batch({"n": [n]})
            alive.append(weakref.ref(batch))
            most = max(most, sum(one() is not None for one in alive))
            yield batch

    found = list(joined(given()))
    assert most <= HELD + 2
    assert pa.Table.from_batches(found)["n"].to_pylist() == list(range(1000))
    assert len(found) == 1


def test_joined_batches_have_enough_rows() -> None:
    given = (pa.record_batch({"n": [n] * 100}) for n in range(500))
    found = list(joined(given))
    assert [batch.num_rows >= JOINED_ROWS for batch in found] == [True] * (len(found) - 1) + [False]
    assert pa.Table.from_batches(found)["n"].to_pylist() == [n for n in range(500) for _ in range(100)]
