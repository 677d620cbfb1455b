"""Rows of many partitions wait, and come out in their order, in large batches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.schema.ddl import parse_ddl
from mica.storage import Storage
from mica.tasks import held, write
from mica.tasks.held import HeldRows
from mica.tasks.write import WriteSpec, write_files

PARTITIONS, ROWS = 70, 7_000


def batches(size: int = 500) -> list[pa.RecordBatch]:
    """Each batch has rows of every partition, and a dictionary of its own."""
    texts = pa.array([None if n % PARTITIONS == 3 else f"p{n % PARTITIONS}" for n in range(ROWS)])
    rows = pa.table({"id": range(ROWS), "p": texts, "s": texts}).to_batches(max_chunksize=size)
    return [batch.set_column(2, "s", batch["s"].dictionary_encode()) for batch in rows]


def written(path: Path, given: list[pa.RecordBatch]) -> int:
    spec = WriteSpec(storage=Storage.open(path), schema=parse_ddl("id BIGINT, p STRING, s STRING"), partition_by=("p",))
    facts = [row for batch in write_files(spec, given) for row in batch.to_pylist()]
    adds = [row for row in facts if row["kind"] == "add"]
    assert sum(row["rows"] for row in adds) == ROWS
    seven = [pq.ParquetFile(path / row["path"]).read() for row in adds if dict(row["partition_values"])["p"] == "p7"]
    assert [n for table in seven for n in table["id"].to_pylist()] == list(range(7, ROWS, PARTITIONS))
    assert {text for table in seven for text in table["s"].to_pylist()} == {"p7"}
    return len(adds)


def test_runs_of_one_form_become_one_batch() -> None:
    ids = pa.record_batch({"id": [1, 2]})
    texts = pa.record_batch({"id": ["a"]})
    rows = HeldRows()
    for batch, trees in [(ids, None), (ids, None), (ids, {("v",): pa.int64()}), (texts, None)]:
        rows.add(batch, trees)
    assert [(batch.column(0).to_pylist(), trees) for batch, trees in rows.released()] == [
        ([1, 2, 1, 2], None), ([1, 2], {("v",): pa.int64()}), (["a"], None),
    ]  # fmt: skip
    assert not rows


def test_each_partition_of_rows_that_come_mixed_is_one_file(tmp_path: Path) -> None:
    assert written(tmp_path, batches()) == PARTITIONS


def test_more_rows_than_may_wait_are_written_from_time_to_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "HELD_BYTES", sum(batch.nbytes for batch in batches()) // 3)
    assert PARTITIONS < written(tmp_path, batches()) <= 4 * PARTITIONS


def test_partitions_that_take_turns_by_batches_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch has many of them: a partition comes again whose file was finished for others."""
    monkeypatch.setattr(write, "MAX_OPEN", 10)
    assert PARTITIONS <= written(tmp_path, batches(5)) <= 2 * PARTITIONS


def test_rows_in_the_order_of_partitions_never_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("rows wait that come in order")

    monkeypatch.setattr(HeldRows, "add", refused)
    rows = pa.Table.from_batches([b.set_column(2, "s", b["s"].cast(pa.string())) for b in batches()])
    ordered = rows.sort_by([("p", "ascending"), ("id", "ascending")])
    assert written(tmp_path, ordered.combine_chunks().to_batches(max_chunksize=500)) == PARTITIONS


@pytest.mark.parametrize("feed", ["true", "false"])
def test_rows_that_an_update_moves_to_many_partitions_are_one_file_of_each(tmp_path: Path, feed: str) -> None:
    table = mica.Table.create(
        tmp_path / "t", "id BIGINT, p BIGINT, v VARIANT", partition_by=["p"],
        properties={"delta.enableChangeDataFeed": feed, "delta.enableVariantShredding": "true"},
    )  # fmt: skip
    table.append([{"id": n, "p": 0, "v": f'{{"a": {n}, "b": {{"c": "x"}}}}'} for n in range(ROWS)])
    table.update({"p": f"id % {PARTITIONS}"})
    assert len(table.files()) == PARTITIONS
    moved = table.scan("p = 7", columns={"id": "id", "a": "v:a::bigint"}).to_arrow().sort_by("id")
    assert moved["a"].to_pylist() == moved["id"].to_pylist() == list(range(7, ROWS, PARTITIONS))
    if feed == "true":
        assert len(list((tmp_path / "t" / "_change_data").rglob("*.parquet"))) == PARTITIONS
