"""The change data feed in the log: names that it needs, versions that it covers, files that hold it."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica
from mica.errors import UserError


def test_names_that_the_feed_needs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        mica.Table.create(tmp_path / "a", "_Change_Type STRING", properties={"delta.enableChangeDataFeed": "true"})
    assert raised.value.code == "INVALID_NAME"
    table = mica.Table.create(tmp_path / "b", "id INT, _commit_version INT")
    with pytest.raises(UserError) as raised:
        table.set_properties({"delta.enableChangeDataFeed": "true"})
    assert raised.value.code == "INVALID_NAME"
