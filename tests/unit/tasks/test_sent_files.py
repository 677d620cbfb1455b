"""Files that are sent are the parts of `in_tasks`, also in another process."""

from __future__ import annotations

import pickle

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mica.tasks.parts import SHARED_BYTES, TASK_BYTES, in_tasks, parts_of
from mica.tasks.sent_files import sent

FILES = pa.schema(
    {"path": pa.string(), "size": pa.int64(), "partition_values": pa.map_(pa.string(), pa.string())}
    | {"deletion_vector": pa.struct({"storageType": pa.string(), "sizeInBytes": pa.int32()})}
)


@given(
    st.lists(st.none() | st.integers(0, 3) | st.integers(SHARED_BYTES - 1, 3 * TASK_BYTES), max_size=30),
    st.integers(1, 64),
)
def test_sent_files_are_those_of_tasks(sizes: list[int | None], parallelism: int) -> None:
    rows = [
        {
            "path": f"{number}.parquet",
            "size": size,
            "partition_values": [("p", None if number % 3 else str(number))],
            "deletion_vector": {"storageType": "u", "sizeInBytes": number} if number % 4 == 1 else None,
        }
        for number, size in enumerate(sizes)
    ]
    files = pa.Table.from_pylist(rows, FILES)
    tasks = sent(files, parallelism)
    wanted = in_tasks(parts_of(files), parallelism, shared=True)
    assert [list(task) for task in tasks] == wanted
    there = pickle.loads(pickle.dumps(tasks))
    assert [(len(task), task[0], task[1:]) for task in there] == [(len(task), task[0], task[1:]) for task in wanted]


def test_a_task_takes_only_its_own_files_along() -> None:
    rows = [{"path": f"{number:0100}", "size": TASK_BYTES} for number in range(500)]
    tasks = sent(pa.Table.from_pylist(rows, FILES), 4)
    assert len(pickle.dumps(tasks[7])) < 2_500 < len(pickle.dumps(tasks)) / len(tasks) * 2
