"""Which files of a version are not there: each is asked for by its own name, a listing only spares questions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.log.missing_files import missing
from mica.storage.local import LocalStorage


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    found = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.enableDeletionVectors": "true"})
    for n in range(3):
        found.append([{"id": 2 * n}, {"id": 2 * n + 1}])
    found.delete("id IN (0, 2)")
    return found


def test_files_and_vectors(table: mica.Table) -> None:
    files = table.snapshot.files
    assert missing(table.snapshot, files) == []
    (vector,) = Path(table.path).glob("deletion_vector*.bin")
    vector.unlink()
    Path(table.path, files["path"][2].as_py()).unlink()
    at = {one.at: (one.is_data_missing, one.is_vector_missing) for one in missing(table.snapshot, files)}
    held = files["deletion_vector"].is_valid().to_pylist()
    assert at == {n: (n == 2, has) for n, has in enumerate(held) if has or n == 2}
    assert {one.vector for one in missing(table.snapshot, files) if one.is_vector_missing} == {str(vector)}
    # One of the files alone: the position is that among those asked for.
    assert [one.at for one in missing(table.snapshot, files.slice(2))] == [0]


def test_only_what_no_listing_has_is_asked_for(table: mica.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [entry.path for entry in table.snapshot.storage.list()]
    asked = []

    def exists(_: LocalStorage, name: str) -> bool:
        asked.append(name)
        return False

    monkeypatch.setattr(LocalStorage, "exists", exists)
    files = table.snapshot.files
    assert missing(table.snapshot, files, pa.array(names)) == []
    assert asked == []
    left = [name for name in names if name != files["path"][1].as_py()]
    assert [one.at for one in missing(table.snapshot, files, pa.array(left))] == [1]
    assert asked == [files["path"][1].as_py()]
