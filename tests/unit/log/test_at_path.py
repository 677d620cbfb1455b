"""A path may say which version is meant, unless a table is at the path as it is given."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import mica
from mica.errors import UserError
from mica.log.at_path import at_path


@pytest.fixture
def path(tmp_path: Path) -> str:
    table = mica.Table.create(tmp_path / "events", "id BIGINT")
    table.append([{"id": 1}])
    return table.path


def test_a_path_names_a_version_or_a_time(path: str) -> None:
    assert [(str(s), asked) for s, asked in map(at_path, [path, f"{path}@v1/", f"{path}@V0"])] == [
        (path, None), (path, 1), (path, 0),
    ]  # fmt: skip
    assert at_path(f"{path}@20260131123000250")[1] == datetime(2026, 1, 31, 12, 30, 0, 250_000)  # noqa: DTZ001
    assert at_path(Path(f"{path}@v1"))[1] == 1
    for other in ("@1", "@v", "@v1/x", "@2026013112300025"):
        assert at_path(path + other)[1] is None


def test_a_table_at_the_path_itself_comes_first(path: str) -> None:
    mica.Table.create(f"{path}@v0", "other STRING")
    assert mica.Table.open(f"{path}@v0").schema.names == ["other"]


def test_open_takes_such_a_path(path: str) -> None:
    assert [mica.Table.open(f"{path}@v{n}").count() for n in (0, 1)] == [0, 1]
    table = mica.Table.open(path)
    last = datetime.fromtimestamp(table.snapshot.timestamp / 1000, UTC)
    at = last.strftime("%Y%m%d%H%M%S%f")[:17]
    assert mica.Table.open(f"{path}@{at}").version == 1
    with pytest.raises(UserError) as caught:
        mica.Table.open(f"{path}@20200101000000000")
    assert caught.value.code == "TIMESTAMP_OUT_OF_RANGE"
    for ending, given, code in (("@v9", {}, "VERSION_NOT_FOUND"), ("@v1", {"version": 1}, "INVALID_ARGUMENT"),
                                ("@20261331000000000", {}, "INVALID_ARGUMENT")):  # fmt: skip
        with pytest.raises(UserError) as caught:
            mica.Table.open(path + ending, **given)
        assert caught.value.code == code


def test_a_path_without_a_table_names_the_place_that_was_looked_at(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none is not a Delta table") as caught:
        mica.Table.open(tmp_path / "none@v1")
    assert caught.value.code == "TABLE_NOT_FOUND"
