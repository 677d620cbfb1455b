"""Application transactions are forgotten after `delta.setTransactionRetentionDuration`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import mica
from mica.errors import CorruptDataError
from mica.log.applications import unexpired

HOUR = 3_600_000
KEEPS = {"delta.setTransactionRetentionDuration": "interval 2 hours"}


def test_what_is_kept() -> None:
    found = {"old": (1, 0), "new": (2, 3 * HOUR), "timeless": (3, None)}
    assert unexpired(found, {}, 4 * HOUR) == found
    assert unexpired(found, KEEPS, 4 * HOUR) == {"new": (2, 3 * HOUR)}
    assert unexpired(found, KEEPS, 5 * HOUR) == {}


def test_a_time_that_is_none_is_named_where_it_is_asked() -> None:
    found: Any = {"app": (1, "2020")}
    assert unexpired(found, {}, 0) == found
    with pytest.raises(CorruptDataError, match=r"txn\.lastUpdated '2020'"):
        unexpired(found, KEEPS, 0)


def test_expired_versions_may_be_written_again_and_leave_the_checkpoint(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties=KEEPS)
    table.append([{"id": 1}], txn=("job", 1))
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    log.write_text(log.read_text().replace('"lastUpdated":1', '"lastUpdated":'))
    assert table.append([{"id": 2}], txn=("job", 1)).repeated
    table = mica.Table.open(tmp_path)
    assert table.snapshot.app_transactions == {}
    assert not table.append([{"id": 2}], txn=("new", 7)).repeated
    table.checkpoint()
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    again = mica.Table.open(tmp_path)
    assert set(again.snapshot.state.transactions) == {"new"}
    assert again.snapshot.app_transactions == {"new": 7}
    assert again.snapshot.state.transactions["new"][1] > (time.time() - 60) * 1000
    assert not again.append([{"id": 2}], txn=("job", 1)).repeated
