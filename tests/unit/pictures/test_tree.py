"""A shredding tree as lines of a page."""

from __future__ import annotations

from pathlib import Path

import mica
from mica.checking.inspect import inspect_file
from mica.pictures.tree import SHOWN, depth, label, picture, share
from tests.unit.pictures.test_page import Read


def test_a_tree_shows_each_path_with_its_share(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {"n": i if i % 4 else "x", "deep": {"k": "y"}}} for i in range(100)])
    rows = inspect_file(table.file_uris()[0])
    text = Read(picture(rows)).text
    assert all(word in text for word in ("v", "n", "deep", "k", "object", "string", "100.0%", "0.0%"))
    many = [rows[0]] * (SHOWN + 7)
    assert "and 7 more paths" in picture(many)


def test_a_key_may_have_any_character() -> None:
    row = {"column": "v", "path": "$['c d']['e\"[\\''][*]"}
    assert [label(row), label({**row, "path": row["path"][:-3]}), label({**row, "path": "$"})] == ["*", "e\"['", "v"]
    assert depth(row) == 3


def test_rare_rows_are_never_rounded_away() -> None:
    assert [share(*pair) for pair in ((0, 0), (1, 10**6), (10**6 - 1, 10**6), (1, 2))] == [
        "0.0%", "<0.1%", ">99.9%", "50.0%",
    ]  # fmt: skip
