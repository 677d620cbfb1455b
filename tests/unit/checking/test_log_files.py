"""What of a log is damaged and not needed for the version is found by a check."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import mica


def table(path: Path) -> mica.Table:
    t = mica.Table.create(path, "id INT", data=[{"id": 1}])
    t.append([{"id": 2}])
    t.checkpoint()
    t.append([{"id": 3}])
    return t


def in_a_page(data: bytes) -> bytes:
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    paths = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == "add.path")
    at = (paths.dictionary_page_offset or paths.data_page_offset) + 40
    return data[:at] + bytes(30) + data[at + 30 :]


@pytest.mark.parametrize("damage", [lambda data: data[:-20], in_a_page, lambda _: b"x"])
def test_a_checkpoint_that_cannot_be_read_is_found(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """The commits before it gave the version, and a check found nothing wrong."""
    table(tmp_path)
    assert mica.check(tmp_path).ok
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    path.write_bytes(damage(path.read_bytes()))
    assert mica.Table.open(tmp_path).count() == 3
    (one,) = mica.check(tmp_path)
    assert (one.kind, one.file, one.path) == ("checkpoint", "_delta_log", path.name)
    assert "is not a readable checkpoint" in one.found
    assert "delete it" in one.found
    assert mica.check(tmp_path, version=0).ok
    path.unlink()
    assert mica.check(tmp_path).ok


def test_a_commit_of_no_bytes_is_noted(tmp_path: Path) -> None:
    """It reads as a version that wrote nothing, and nothing said so."""
    table(tmp_path)
    assert mica.check(tmp_path).notes == ()
    commit = tmp_path / "_delta_log" / f"{2:020d}.json"
    commit.write_bytes(b"")
    report = mica.check(tmp_path)
    assert report.ok
    (note,) = report.notes
    assert note.startswith(f"{commit} has 0 bytes: what version 2 wrote")


def test_a_folder_whose_log_is_gone_is_told_as_no_table(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    table.append([{"id": 1}])
    shutil.rmtree(tmp_path / "t" / "_delta_log")
    (file,) = (tmp_path / "t").glob("*.parquet")
    assert mica.check(tmp_path / "t").notes == (
        f"{tmp_path / 't'} has no _delta_log: its Parquet files were checked, and no table",
    )
    for files in (file, str(tmp_path / "t" / "*.parquet"), [file]):
        assert (mica.check(files).notes, mica.check(files).files) == ((), 1)
