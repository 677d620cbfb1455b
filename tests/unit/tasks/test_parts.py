"""Files in tasks: all of them, in their order, of about equal weight; and where a file is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import mica
from mica.storage import Storage
from mica.tasks.parts import MAX_SHARES, SHARED_BYTES, TASK_BYTES, FilePart, grouped, in_tasks, parts_of

SIZES = st.lists(st.integers(0, 3 * TASK_BYTES), max_size=40)


def files_of(sizes: list[int]) -> list[FilePart]:
    return [FilePart(str(number), size, number=number) for number, size in enumerate(sizes)]


@given(SIZES, st.integers(1, 64))
def test_each_file_is_in_one_task_in_its_order(sizes: list[int], parallelism: int) -> None:
    tasks = in_tasks(files_of(sizes), parallelism)
    assert [part for task in tasks for part in task] == files_of(sizes)
    assert all(tasks)


@given(st.lists(st.integers(0, 100), max_size=60), st.integers(1, 300))
def test_no_task_is_more_than_half_an_item_beyond_its_share(weights: list[int], per_task: int) -> None:
    for task in grouped(weights, lambda weight: weight, per_task):
        assert sum(task[:-1]) + task[-1] // 2 <= per_task or len(task) == 1


@given(SIZES, st.integers(1, 64))
def test_large_files_are_shared_and_every_share_is_there_once(sizes: list[int], parallelism: int) -> None:
    shares: dict[int, list[FilePart]] = {}
    for part in (part for task in in_tasks(files_of(sizes), parallelism, shared=True) for part in task):
        shares.setdefault(part.number, []).append(part)
    assert sorted(shares) == list(range(len(sizes)))
    for number, own in shares.items():
        assert [(part.part, part.parts) for part in own] == [(i, len(own)) for i in range(len(own))]
        assert len(own) == 1 or sizes[number] > SHARED_BYTES
        assert len(own) <= MAX_SHARES


def test_equal_work_is_shared_evenly() -> None:
    assert [sum(task) for task in grouped([3] * 12, lambda size: size, 12)] == [12, 12, 12]
    assert [len(task) for task in grouped([10, 1, 1, 10, 1, 1], lambda size: size, 12)] == [3, 3]


def test_files_of_no_size_are_read_together() -> None:
    assert len(in_tasks(files_of([0] * 5), 4)) == 1
    assert in_tasks([], 4) == []


def test_a_file_of_the_log_is_located_by_its_decoded_name(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "p STRING, n INT", ["p"])
    table.append(pa.table({"p": ["a b:c/d%"], "n": pa.array([1], pa.int32())}))
    (part,) = parts_of(table.snapshot.files, of_log=True)
    place, rel = table.snapshot.storage.locate(part.path)
    assert place is table.snapshot.storage
    assert (part.partition, place.size(rel)) == ({"p": "a b:c/d%"}, part.size)


def test_a_name_with_a_colon_is_below_the_table(tmp_path: Path) -> None:
    storage = Storage.open(str(tmp_path))
    for name in ("a:b.parquet", "x=1:2/f.parquet"):
        assert storage.locate(name) == (storage, name)
