"""What files say of their paths: how values take space, and how the ranges of files meet."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.checking.evidence import gather
from mica.schema.types import LONG, STRING


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


def test_a_column_with_a_dot_is_not_mixed_with_the_field_of_a_struct(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a STRUCT<b: VARIANT>, `a.b` VARIANT")
    table.append([{"a.b": {"x": i}, "a": {"b": {"x": f"{i} EUR"} if i % 2 else {"z": i}}} for i in range(100)])
    rows = {str(path): (seen.type, seen.total) for path, seen in gather(table.snapshot).paths.items()}
    assert rows == {"`a.b`:x": (LONG, 100), "a.b:x": (STRING, 50), "a.b:z": (LONG, 50)}
