"""Writes in process: rows in the order of their files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.engines import local


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
