"""Rows that an engine moves in blocks come sorted, file by file, and memory holds one range at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from mica.tasks import blocks, ranges, spill
from mica.tasks.packed import packing

KEYS = ("p", "k")
BY = (("p", False), ("k", True))


def rows(number: int) -> Iterator[pa.RecordBatch]:
    rng = random.Random(number)
    for _ in range(10):
        found = [{"p": rng.choice(["a", "b", None]), "id": number, "k": rng.randrange(50)} for _ in range(100)]
        yield pa.RecordBatch.from_pylist(found, pa.schema([("p", pa.string()), ("id", pa.int32()), ("k", pa.int64())]))


def plan(count: int) -> ranges.Ranges:
    sample = [ranges.weighted([b.column("p"), b.column("k")], np.ones(b.num_rows)) for n in range(4) for b in rows(n)]
    found = ranges.plan(pa.concat_tables(sample), count, [True])
    assert found is not None
    return found


def moved(found: ranges.Ranges, each: int) -> dict[int, list[pa.RecordBatch]]:
    """The blocks of each file, in the order that an engine brings them in."""
    made = [block for number in range(4) for block in blocks.Cut(rows, found, KEYS, each)(number)]
    assert all(block.schema == blocks.BLOCKS for block in made)
    whole = pa.Table.from_batches(made).sort_by(blocks.RANGE)
    files = sorted(set(whole.column(blocks.FILE).to_pylist()))
    return {n: whole.filter(pa.compute.equal(whole.column(blocks.FILE), n)).to_batches() for n in files}


@pytest.mark.parametrize(("count", "each"), [(1, 1), (4, 1), (12, 3)])
def test_the_files_have_all_rows_in_order(monkeypatch: pytest.MonkeyPatch, count: int, each: int) -> None:
    monkeypatch.setattr(spill, "GATHERED_BYTES", 5_000)
    found = plan(count) if count > 1 else ranges.EVERYTHING
    shares: list[list[dict[str, object]]] = []

    def write(batches: blocks.Batches) -> blocks.Batches:
        shares.append([row for batch in batches for row in batch.to_pylist()])
        return packing([])

    files = moved(found, each)
    for some in files.values():
        list(blocks.Sorted(write, BY, ("k",))(some))
    assert len(files) == -(-len(found) // each)
    assert all(set(row) == {"p", "id"} for share in shares for row in share)
    parts = [part for some in files.values() for part in blocks.arranged(some, BY, ())]
    keys = [(row["p"] is not None, row["p"] or "", -row["k"]) for part in parts for row in part.to_pylist()]
    assert keys == sorted(keys)
    assert [row["p"] for share in shares for row in share] == [row["p"] for part in parts for row in part.to_pylist()]
    ids = sorted(row["id"] for part in parts for row in part.to_pylist())
    assert ids == sorted(row["id"] for n in range(4) for batch in rows(n) for row in batch.to_pylist())


def test_a_range_of_equal_keys_is_no_more_in_memory_than_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "GATHERED_BYTES", 2_000)
    monkeypatch.setattr(blocks, "PIECE_BYTES", 6_000)
    held: list[int] = []
    own = blocks.sort_indices
    monkeypatch.setattr(blocks, "sort_indices", lambda rows, by: held.append(rows.nbytes) or own(rows, by))
    (some,) = moved(ranges.EVERYTHING, 1).values()
    assert sum(part.num_rows for part in blocks.arranged(some, BY, ("k",))) == 4000
    assert len(held) > 4
    assert max(held) < 12_000
