"""Tasks on threads: order, errors, memory, early ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.engines import local


def _batch(value: int, rows: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array([value] * rows, pa.int64())})


def test_batches_come_in_the_order_of_the_tasks_whatever_ends_first() -> None:
    first_may_go = threading.Event()

    def work(task: int) -> Iterator[pa.RecordBatch]:
        if task == 0:
            first_may_go.wait(10)
        yield _batch(task)
        yield _batch(task)
        if task == 1:
            first_may_go.set()

    found = [b.column(0)[0].as_py() for b in local.run(work, range(6), parallelism=3)]
    assert found == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("parallelism", [1, 4])
def test_the_error_of_a_task_stands_where_its_batches_would_have_come(parallelism: int) -> None:
    def work(task: int) -> Iterator[pa.RecordBatch]:
        yield _batch(task)
        if task == 2:
            raise ValueError("task 2")

    found = []
    with pytest.raises(ValueError, match="task 2"):
        found.extend(b.column(0)[0].as_py() for b in local.run(work, range(5), parallelism=parallelism))
    assert found == [0, 1, 2]


def test_a_caller_who_stops_stops_the_tasks_and_lets_them_clean_up() -> None:
    cleaned = []

    def work(task: int) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield _batch(task, 1000)
        finally:
            cleaned.append(task)

    batches = local.run(work, range(2), parallelism=2)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert 0 in cleaned


def test_what_waits_for_the_caller_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "WAITING_BYTES", 80_000)
    ahead: dict[int, int] = {}

    def work(task: int) -> Iterator[pa.RecordBatch]:
        for _ in range(50):
            yield _batch(task, 1000)
            ahead[task] = ahead.get(task, 0) + 1

    batches = local.run(work, range(2), parallelism=2)
    next(batches)
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert ahead.get(1, 0) <= 10
    assert sum(1 for _ in batches) == 99


@pytest.mark.parametrize("values", [100, 10])
@pytest.mark.parametrize("large", [False, True])
def test_rows_of_many_partitions_are_brought_together_before_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: int, large: bool
) -> None:
    """Each batch of the given rows has some of every partition; few partitions keep their files open meanwhile."""
    if large:
        monkeypatch.setattr(local, "TAKEN_BYTES", 1)
        monkeypatch.setattr(local, "SORT_BYTES", 1)
    rows = pa.table({"id": range(40_000), "p": [n % values for n in range(40_000)]})
    table = mica.Table.create(tmp_path / "t", "id BIGINT, p BIGINT", partition_by=["p"])
    assert table.append(rows).files == values
    assert table.scan("p = 7").to_arrow()["id"].to_pylist() == list(range(7, 40_000, values))
