"""The expressions of one statement see one moment."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import mica
from mica import moment


@pytest.fixture(autouse=True)
def a_clock_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a second later."""
    seconds = iter(range(1_700_000_000, 1_800_000_000))
    monkeypatch.setattr(time, "time_ns", lambda: next(seconds) * 1_000_000_000)


def test_a_statement_has_its_moment() -> None:
    first = moment.now()
    assert moment.now() > first
    with moment.one_moment():
        held = moment.now()
        with moment.one_moment():
            assert moment.now() == held
        with moment.one_moment(first):
            assert moment.now() == first
        assert moment.now() == held
    assert moment.now() > held


def test_what_a_statement_sets_agrees(tmp_path: Path) -> None:
    defaults = "a TIMESTAMP DEFAULT now(), b TIMESTAMP DEFAULT current_timestamp()"
    columns = f"id INT, {defaults}, m BIGINT GENERATED ALWAYS AS (unix_micros(a))"
    made = mica.Table.create(tmp_path / "made", columns, data=[{"id": 1}])
    assert made.scan(where="a = b").count() == 1
    table = mica.Table.create(tmp_path / "t", columns)
    table.add_constraint("no_future", "a <= current_timestamp()")
    agree = {"agree": "a = b AND m = unix_micros(a)"}
    table.append([{"id": 1}, {"id": 2}])
    assert table.scan(columns=agree).to_arrow()["agree"].to_pylist() == [True, True]
    table.update({"a": "now()", "b": "current_timestamp()"}, where="a < now()")
    assert table.scan(columns=agree).to_arrow()["agree"].to_pylist() == [True, True]
    merge = table.merge([{"id": 1}, {"id": 3}], "target.id = source.id")
    merge = merge.when_matched_update({"a": "now()", "b": "now()"})
    merge.when_not_matched_insert({"id": "source.id", "a": "now()"}).execute()
    assert table.scan(columns=agree).to_arrow()["agree"].to_pylist() == [True] * 3


def test_a_scan_sees_the_moment_in_which_it_was_made(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT")
    table.append([{"id": 1}])
    scan = table.scan(where="now() = current_timestamp()", columns={"a": "now()", "b": "current_timestamp()"})
    assert scan.to_arrow() == scan.to_arrow()
    assert scan.to_arrow()["a"] == scan.to_arrow()["b"]
    assert scan.head()["a"] != scan.head()["a"], "a new question"
    kept = mica.dataset(tmp_path / "t", columns={"a": "now()"})
    assert kept.to_table() != kept.to_table()
