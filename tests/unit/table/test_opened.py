"""A table that several threads share: it never moves back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mica
from mica.log.snapshot import Snapshot


def test_a_refresh_that_others_overtake_does_not_hide_what_they_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    mica.Table.open(table.path).append([{"id": 1}])
    own = Snapshot.refresh

    def overtaken(snapshot: Snapshot) -> Snapshot:
        found = own(snapshot)
        monkeypatch.setattr(Snapshot, "refresh", own)
        table.append([{"id": 2}])  # as another thread may, between reading the log and moving
        return found

    monkeypatch.setattr(Snapshot, "refresh", overtaken)
    assert table.refresh().version == 2
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2]


def test_a_table_that_was_created_again_is_followed_to_a_lower_version(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    table.append([{"id": 1}])
    shutil.rmtree(tmp_path / "t")
    mica.Table.create(tmp_path / "t", "s STRING")
    assert (table.refresh().version, str(table.schema)) == (0, "s STRING")
