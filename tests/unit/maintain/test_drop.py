"""A deleted table leaves nothing, and takes nothing that is elsewhere."""

from __future__ import annotations

from pathlib import Path

import mica
from mica.maintain.drop import drop
from mica.storage import Storage


def test_all_that_is_in_the_folder_goes(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, p INT", partition_by=["p"])
    table.append([{"id": 1, "p": 1}])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").write_text("")
    (tmp_path / "t" / "link").symlink_to(tmp_path / "other")
    drop(Storage.open(tmp_path / "t"))
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert (tmp_path / "other" / "kept").exists()
    drop(Storage.open(tmp_path / "t"))  # nothing is there any more


def test_a_store_has_no_folders(tmp_path: Path) -> None:
    """What all stores have in common: every file below the place, in each of its directories."""
    mica.Table.create(tmp_path / "t", "id INT").append([{"id": 1}])
    storage = Storage.open(tmp_path / "t")
    Storage.remove(storage)
    assert list(storage.list()) == []
