"""Rows that are sorted on local disk are all there, in order, and memory holds one range at a time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import mica
from mica.engines import local
from mica.engines.base import MadeRows, Order
from mica.errors import StorageError
from mica.schema.ddl import parse_ddl
from mica.tasks import ranges, spill
from mica.tasks.packed import packing

SCHEMA = parse_ddl("p STRING, id INT, k DOUBLE")


def rows(number: int) -> list[pa.RecordBatch]:
    rng = random.Random(number)
    made = [{"p": rng.choice(["a", "b", None]), "id": number * 1000 + i, "k": rng.choice([None, rng.random() * 100])}
            for i in range(1000)]  # fmt: skip
    return pa.Table.from_pylist(made, pa.schema([("p", pa.string()), ("id", pa.int32()), ("k", pa.float64())])
                                ).to_batches(max_chunksize=100)  # fmt: skip


def sampled(number: int) -> list[pa.RecordBatch]:
    return list(packing(ranges.weighted([batch.column("p"), batch.column("k")], np.ones(batch.num_rows))
                        for batch in rows(number)[:3]))  # fmt: skip


@pytest.mark.parametrize("sample", [sampled, None])
def test_threads_sort_on_disk_as_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sample: Any) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(spill, "GATHERED_BYTES", 5_000)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 10_000)
    made = MadeRows(rows, range(8), SCHEMA, size=400_000, files=4, sample=sample)
    order = Order(("p",), (("k", True),))
    shares: list[list[dict[str, Any]]] = []

    def write(batches: Any) -> Any:
        shares.append([row for batch in batches for row in batch.to_pylist()])
        return [pa.record_batch({"n": pa.array([len(shares[-1])])})]

    counts = {}
    for most in (1 << 30, 0):
        shares.clear()
        monkeypatch.setattr(local, "SORT_BYTES", most)
        done = list(local.IN_PROCESS.write(made, write, pa.schema([("n", pa.int64())]), order=order))
        assert sum(batch.column("n")[0].as_py() for batch in done) == 8000
        counts[most] = sorted(row["id"] for share in shares for row in share)
        assert all(set(row) == {"p", "id"} for share in shares for row in share)
    assert counts[0] == counts[1 << 30] == list(range(8000))
    assert len(shares) == (4 if sample else 1)
    by_id = {row["id"]: row for number in range(8) for batch in rows(number) for row in batch.to_pylist()}
    for share in shares:
        keys = [(row["p"] is not None, row["p"] or "", by_id[row["id"]]["k"] is None, -(by_id[row["id"]]["k"] or 0))
                for row in share]  # fmt: skip
        assert keys == sorted(keys)
    assert list(tmp_path.iterdir()) == []


def test_a_sorted_ingest_that_spills_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "a.json"
    source.write_text("".join(f'{{"a": {i * 7919 % 5000}}}\n' for i in range(5000)))
    monkeypatch.setattr(local, "SORT_BYTES", 0)
    mica.ingest_json(source, tmp_path / "t", sort_by=["v:a::int"])
    found = mica.Table.open(tmp_path / "t").scan(columns={"a": "v:a::int"}).to_arrow().column("a").to_pylist()
    assert found == sorted(found) == list(range(5000))


def test_a_full_disk_has_its_code(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as raised:
        spill.spill(rows(1), ranges.EVERYTHING, ["k"], str(tmp_path / "no" / "x.arrow"))
    assert raised.value.code == "NOT_FOUND"
