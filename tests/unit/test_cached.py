"""A value of one object is made once, and nobody else waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.cached import cached_property
from mica.log.snapshot import Snapshot


class _Made:
    def __init__(self, make: Callable[[], object]) -> None:
        self.make = make

    @cached_property
    def value(self) -> object:
        """What it is."""
        return self.make()


def test_a_value_is_made_once() -> None:
    made = _Made(object)
    assert made.value is made.value
    assert _Made.value.__doc__ == "What it is."


def test_threads_that_ask_at_once_get_one_value() -> None:
    both = threading.Barrier(2)

    def make() -> object:
        both.wait(10)
        return object()

    made = _Made(make)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: made.value, range(2))
    assert first is second


def test_a_scan_that_waits_for_its_store_stops_no_other_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, other = (mica.Table.create(tmp_path / name, "id BIGINT") for name in ("slow", "other"))
    for table in (slow, other):
        table.append(pa.table({"id": [1, 2]}))
    waits, goes_on, shares = threading.Event(), threading.Event(), Snapshot.stats_shares

    def stats_shares(snapshot: Snapshot, *given: object) -> object:
        if str(snapshot.storage) == slow.path:
            waits.set()
            goes_on.wait(60)
        return shares(snapshot, *given)

    monkeypatch.setattr(Snapshot, "stats_shares", stats_shares)
    with ThreadPoolExecutor(2) as pool:
        try:
            late = pool.submit(slow.scan("id = 1").count)
            assert waits.wait(10)
            assert pool.submit(other.scan("id = 1").count).result(10) == 1
        finally:
            goes_on.set()
        assert late.result(60) == 1
