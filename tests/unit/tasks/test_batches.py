"""Batches of a good size."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from mica.arrays import arrow_array
from mica.tasks.batches import HELD, JOINED_ROWS, Arranged, joined


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


def test_rows_are_taken_in_another_order_a_batch_at_a_time() -> None:
    count = 3 * JOINED_ROWS + 7
    chunk = [{"n": n, "s": None if n % 7 == 0 else {"t": f"text {n}", "l": [n, None]}} for n in range(count)]
    rows = pa.concat_tables([pa.Table.from_pylist(chunk[:1000]), pa.Table.from_pylist(chunk[1000:])])
    places = arrow_array(np.random.default_rng(7).permutation(count)[: 2 * JOINED_ROWS + 3])
    arranged, expected = Arranged(rows, places), rows.take(places).combine_chunks()
    assert arranged.num_rows == len(places)
    sizes = [batch.num_rows for batch in arranged.batches()]
    assert sizes == [JOINED_ROWS, JOINED_ROWS, 3]
    assert pa.Table.from_batches(arranged.batches()).combine_chunks() == expected
    assert pa.Table.from_batches(arranged.batches(5, 9), rows.schema).combine_chunks() == expected.slice(5, 4)
    assert [*arranged.batches(9, 9)] == []
