"""What files say of their paths: how values take space, and how the ranges of files meet."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.checking.evidence import gather


def test_ranges_that_do_not_meet_have_depth_1_and_others_the_files_that_they_meet(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    for file in range(5):
        rows = [{"v": {"apart": file * 100 + i, "same": i, "one": file % 2, "text": f"{i}"}} for i in range(40)]
        table.append(rows)
    found = gather(table.snapshot)
    depths = {path.steps[0]: seen.depth for path, seen in found.paths.items()}
    assert depths == {"apart": 1.0, "same": 5.0, "one": pytest.approx(2.6), "text": 5.0}
    assert (found.rows, found.files, found.total_files) == (200, 5, 5)
    assert {path.steps[0]: seen.files.total() for path, seen in found.paths.items()} == dict.fromkeys(depths, 5)
