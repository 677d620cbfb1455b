"""The answer of OPTIMIZE; its names and types beside delta-spark's in `tests/spark/test_sql_statements.py`."""

from __future__ import annotations

from pathlib import Path

import mica
from mica.query.optimized import optimized


def test_files_are_counted_and_measured(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, p INT", ["p"], {"delta.enableDeletionVectors": "true"})
    for _ in range(2):
        table.append([{"id": i, "p": p} for p in (1, 2) for i in range(10)])
    table.append([{"id": 1, "p": 3}])
    table.delete("p = 1 AND id = 1")
    before = table.snapshot
    (row,) = optimized("/p", before, table.optimize(), before.files.num_rows).to_pylist()
    found = row["metrics"]
    assert row["path"] == "/p"
    assert (found["numAddedFiles"], found["numRemovedFiles"]) == (2, 4)  # the names of before
    assert (found["numFilesAdded"], found["numFilesRemoved"], found["partitionsOptimized"]) == (2, 4, 2)
    sizes = before.files.column("size").to_pylist()
    removed = found["filesRemoved"]
    assert removed["totalFiles"] == 4
    assert removed["min"] <= removed["avg"] <= removed["max"] <= max(sizes)
    assert found["filesAdded"]["totalSize"] == found["filesAdded"]["avg"] * 2
    assert (found["totalConsideredFiles"], found["totalFilesSkipped"]) == (5, 1)
    before = table.snapshot
    (row,) = optimized("/p", before, table.optimize(), before.files.num_rows).to_pylist()
    assert row["metrics"]["numFilesRemoved"] == row["metrics"]["filesAdded"]["totalFiles"] == 0
