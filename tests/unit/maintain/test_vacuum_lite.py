"""A lite vacuum deletes what the log says was removed, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import mica
from mica.maintain.vacuum import vacuum

_FAR = 4_000_000_000.0


def _files(path: Path) -> set[str]:
    found = (str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
    return {name for name in found if not name.startswith("_delta_log/")}


@pytest.mark.parametrize("checkpoint", [False, True])
def test_only_what_the_log_removes_goes(tmp_path: Path, checkpoint: bool) -> None:
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    properties["delta.deletedFileRetentionDuration"] = "interval 0 seconds"  # a checkpoint forgets the tombstones
    table = mica.Table.create(tmp_path, "id INT, p STRING", ["p"], properties=properties)
    table.append([{"id": number, "p": "a b"} for number in range(9)])
    table.update({"id": "10"}, "id = 3")  # a vector, and a change file
    table.overwrite([{"id": 9, "p": "x"}])
    left = {"left.parquet", "p=x/left.parquet", "deletion_vector_left.bin", f".{'0123456789abcdef' * 2}.tmp"}
    for name in left:
        (tmp_path / name).write_bytes(b"?")
        os.utime(tmp_path / name, (1, 1))
    if checkpoint:
        table.checkpoint()
    shown = vacuum(table.snapshot, lite=True, dry_run=True, clock=lambda: _FAR)
    done = vacuum(table.snapshot, lite=True, clock=lambda: _FAR)
    assert shown.to_dict()["deleted"] == done.to_dict()["deleted"]
    kinds = {("changes" if path.startswith("_change_data/") else path[-3:]) for path in done.to_dict()["deleted"]}
    assert kinds == {"changes", "bin", "uet"}
    (live,) = table.files().column("path").to_pylist()
    assert _files(tmp_path) == {live, *left}
    assert table.refresh().count() == 1
    assert vacuum(table.snapshot, lite=True, clock=lambda: _FAR).files == 0
    assert vacuum(table.snapshot, clock=lambda: _FAR).files == 3
    assert _files(tmp_path) == {live}


def test_the_retention_holds(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    table.append([{"id": 1}])
    table.overwrite([{"id": 2}])
    assert table.vacuum(lite=True).files == 0
    assert table.vacuum(0, lite=True, enforce_retention=False).files == 1
