"""Nested columns of every nullability, in several row groups: pyarrow reads the rows that the kernel wrote."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.variant import kernel

#: Leaves, and how each is made of a number.
LEAVES: dict[pa.DataType, Callable[[int], object]] = {
    pa.string(): "value {}".format,
    pa.binary(): lambda number: b"%d" % number,
    pa.int64(): int,
    pa.float64(): float,
    pa.bool_(): bool,
    pa.date32(): lambda number: number % 20_000,
}


def column(shape: Random, random: Random, depth: int, present: list[bool]) -> tuple[pa.Array, bool]:
    """An array and whether it may be null. One that must not be is null at most where its parent is (`present`)."""
    nullable = shape.random() < 0.7
    share, few = shape.choice([0.01, 0.5, 0.98, 1.0]), shape.choice([2, 30, 1 << 20])
    kind = shape.choice(["leaf", "struct", "struct", "list"]) if depth else "leaf"
    here = [random.random() < share if nullable else shown or random.random() < 0.5 for shown in present]
    absent = pa.array([not shown for shown in here], pa.bool_())
    if kind == "struct":
        parts = [column(shape, random, depth - 1, here) for _ in "ab"]
        fields = [pa.field(f"f{at}", array.type, nullable=may) for at, (array, may) in enumerate(parts)]
        return pa.StructArray.from_arrays([array for array, _ in parts], fields=fields, mask=absent), nullable
    if kind == "list":
        sizes = [random.randrange(4) if shown else 0 for shown in here]
        elements, may = column(shape, random, depth - 1, [True] * sum(sizes))
        ends = pa.array(accumulate(sizes, initial=0), pa.int32())
        of = pa.list_(pa.field("element", elements.type, nullable=may))
        return pa.ListArray.from_arrays(ends, elements, of, mask=absent), nullable
    leaf = shape.choice(list(LEAVES))
    values = [LEAVES[leaf](random.randrange(few)) if shown else None for shown in here]
    return pa.array(values, leaf), nullable


@pytest.mark.parametrize("seed", range(12))
def test_pyarrow_reads_what_was_written(tmp_path: Path, seed: int) -> None:
    random, shape = Random(seed), Random(-seed - 1)
    drawn = shape.getstate()
    batches = []
    for _ in range(3):
        shape.setstate(drawn)
        present = [True] * random.randrange(50, 900)
        columns = [column(shape, random, 3, present) for _ in range(4)]
        schema = pa.schema([pa.field(f"c{at}", array.type, nullable=may) for at, (array, may) in enumerate(columns)])
        batches.append(pa.record_batch([array for array, _ in columns], schema=schema))
    path, rows = tmp_path / "x.parquet", random.choice([200, 1000, 65_536])
    writer = kernel.FileWriter(batches[0].schema, path=str(path), row_group_rows=rows, page_rows=97)
    for batch in batches:
        writer.write(batch)
    writer.close()
    assert pq.read_table(path).to_pylist() == pa.Table.from_batches(batches).to_pylist()
