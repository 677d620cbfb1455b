"""The user's own text for the history."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.log.user_metadata import user_metadata


def test_only_commits_of_the_block_have_the_text(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    with user_metadata("nightly"):
        table.append([{"id": 1}])
        with user_metadata("inner"):
            table.set_properties({"a": "b"})
        with pytest.raises(mica.UserError), user_metadata("failed"):
            table.append([{"unknown": 1}])
        table.delete()
    table.append([{"id": 2}])
    texts = table.history().column("user_metadata").to_pylist()
    assert texts == [None, "nightly", "inner", "nightly", None]
