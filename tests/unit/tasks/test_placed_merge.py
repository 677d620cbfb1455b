"""Changes of placed rows: their tasks, and that a row changes once. The merges are in tests/spark/test_by_spark.py."""

from __future__ import annotations

from mica.tasks.parts import FilePart
from mica.tasks.placed_merge import in_few_tasks


def test_files_keep_their_order_in_not_too_many_tasks() -> None:
    for sizes in ([], [5], [1 << 20] * 7, [64 << 20] * 1000, [0] * 300, [1 << 30, 1] * 200):
        parts = [FilePart(f"{number}", size, number=number) for number, size in enumerate(sizes)]
        tasks = in_few_tasks(parts, 2)
        assert [part for some in tasks for part in some] == parts
        assert len(tasks) <= 2 * 16 * 2  # a group may be as large as its last file
        assert all(tasks)
    assert len(in_few_tasks([FilePart("a", 1 << 26)] * 20, 2)) == 20
