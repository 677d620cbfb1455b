"""Listings: the files of the log by version, and one error for a table that is a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mica.errors import StorageError
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.history import history
from mica.log.listing import list_log, log_entries, read_listing
from mica.log.paths import commit_name
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


@dataclass(frozen=True)
class _Late:
    """A store whose first listing lacks some versions, as if they were committed while it was made."""

    storage: Storage
    lacks: tuple[int, ...]
    asked: list[None] = field(default_factory=list)

    def list(self, prefix: str, **options: Any) -> Iterator[Entry]:
        lacks = () if self.asked else [commit_name(version) for version in self.lacks]
        self.asked.append(None)
        return (entry for entry in self.storage.list(prefix, **options) if entry.path not in lacks)

    def stat(self, name: str) -> Entry:
        return self.storage.stat(name)


@pytest.mark.parametrize(("start", "lacks"), [(None, (0,)), (None, (1, 2)), (None, (2,)), (1, (1,)), (1, (2,))])
def test_a_commit_that_was_made_while_the_log_was_listed_is_asked_for(
    tmp_path: Path, start: int | None, lacks: tuple[int, ...]
) -> None:
    create(tmp_path)
    for name in "abc":
        append(load(Storage.open(tmp_path)), name)
    storage = _Late(Storage.open(tmp_path), lacks)
    assert sorted(list_log(storage, start).commits) == list(range(start or 0, 4))  # type: ignore[arg-type]
    assert len(storage.asked) == 1


@pytest.mark.parametrize(("start", "gone", "asked"), [(None, 1, 2), (1, 1, 2), (None, 3, 1), (1, 3, 1), (3, 3, 1)])
def test_a_commit_that_is_gone_is_looked_for_once_more(tmp_path: Path, start: int, gone: int, asked: int) -> None:
    create(tmp_path)
    for name in "abc":
        append(load(Storage.open(tmp_path)), name)
    storage = _Late(Storage.open(tmp_path), ())
    (tmp_path / commit_name(gone)).unlink()
    kept = [version for version in range(start or 0, 4) if version != gone]
    assert sorted(list_log(storage, start).commits) == kept  # type: ignore[arg-type]
    assert len(storage.asked) == asked


def test_a_log_that_begins_with_a_checkpoint_is_listed_once(tmp_path: Path) -> None:
    create(tmp_path)
    for name in "abc":
        append(load(Storage.open(tmp_path)), name)
    write_checkpoint(load(Storage.open(tmp_path), 2))
    storage = _Late(Storage.open(tmp_path), ())
    for gone in range(3):
        (tmp_path / commit_name(gone)).unlink()
    assert sorted(list_log(storage).commits) == sorted(list_log(storage, 2).commits) == [3]  # type: ignore[arg-type]
    assert len(storage.asked) == 2


def test_a_folder_without_a_log_has_an_empty_listing(tmp_path: Path) -> None:
    assert list_log(Storage.open(tmp_path)).latest == -1


@pytest.mark.parametrize(
    ("name", "way_out"),
    [("a.json", "mica.ingest_json"), ("a.parquet", "It is in no table"), ("t/_delta_log/0.json", "Name the folder")],
)
@pytest.mark.parametrize("asked", [list_log, load, exists, history])
def test_a_table_that_is_a_file_is_the_same_error_everywhere(
    tmp_path: Path, asked: Callable[[Storage], object], name: str, way_out: str
) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(StorageError, match="is a file, and a table is a folder") as caught:
        asked(Storage.open(tmp_path / name))
    assert caught.value.code == "NOT_A_DIRECTORY"
    assert way_out in str(caught.value.hint)


def test_a_log_that_is_a_file_is_told_as_that(tmp_path: Path) -> None:
    """The table was said to be a file, whose rows should be put into a table."""
    (tmp_path / "_delta_log").write_bytes(b"")
    with pytest.raises(StorageError, match="_delta_log is a file, and a log is a folder") as caught:
        list_log(Storage.open(tmp_path))
    assert caught.value.code == "NOT_A_DIRECTORY"
