"""Listings: the files of the log by version, and one error for a table that is a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mica.errors import StorageError
from mica.log.history import history
from mica.log.listing import list_log, log_entries, read_listing
from mica.log.snapshot import exists, load
from mica.storage import Entry, Storage
from tests.unit.log.tables import append, create


def test_names_decide_what_files_are() -> None:
    names = [f"{0:020d}.json", f"{0:020d}.{1:020d}.compacted.json", f"{1:020d}.checkpoint.parquet", f"{1:020d}.crc"]
    found = read_listing([Entry(f"_delta_log/{name}", 1, 5) for name in [*names, "_last_checkpoint", "notes.txt"]])
    assert list(found.commits) == [0]
    assert [one.name.end for one in found.compactions[0]] == [1]
    assert [one.kind for one in found.checkpoints[1]] == ["checkpoint"]
    assert found.latest == 1


def test_a_listing_may_begin_with_a_version(tmp_path: Path) -> None:
    append(append(create(tmp_path), "a").snapshot, "b")
    storage = Storage.open(tmp_path)
    assert sorted(list_log(storage).commits) == [0, 1, 2]
    assert sorted(list_log(storage, 1).commits) == [1, 2]
    assert [entry.path for entry in log_entries(storage, 2)] == [f"_delta_log/{2:020d}.json"]


def test_a_folder_without_a_log_has_an_empty_listing(tmp_path: Path) -> None:
    assert list_log(Storage.open(tmp_path)).latest == -1


@pytest.mark.parametrize(("name", "way_out"), [("a.json", "mica.ingest_json"), ("a.parquet", "Name the folder")])
@pytest.mark.parametrize("asked", [list_log, load, exists, history])
def test_a_table_that_is_a_file_is_the_same_error_everywhere(
    tmp_path: Path, asked: Callable[[Storage], object], name: str, way_out: str
) -> None:
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(StorageError, match="is a file, and a table is a folder") as caught:
        asked(Storage.open(tmp_path / name))
    assert caught.value.code == "NOT_A_DIRECTORY"
    assert way_out in str(caught.value.hint)
