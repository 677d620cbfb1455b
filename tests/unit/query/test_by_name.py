"""Calls by a registered name are those of the format by path, told to a writer that only notes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import mica
from mica.engines.spark.doors import NamedCall, Told
from mica.errors import UserError
from mica.query import registry
from mica.query.by_name import ANSWERS


class Noted:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    @property
    def write(self) -> Noted:
        return self

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Noted:
            self.told.append((name, *args, *([kwargs] if kwargs else [])))
            return self

        return call


#: A reader that was told nothing is `spark.table`.
_NOTHING, _WHERE = Told(), Told(options={"where": "0"})


def _asked(door: str, told: Told = _NOTHING, **given: Any) -> list[tuple[Any, ...]]:
    noted = Noted()
    ANSWERS[door](NamedCall(lambda *_: None, noted, "t", "/t", given, told))
    return noted.told


def test_what_a_call_says_is_told_to_the_format() -> None:
    assert _asked("DataFrameReader.table", _WHERE) == [("format", "mica"), ("load", "/t"), ("alias", "t")]
    given = {"format": "delta", "mode": "append", "partitionBy": ["p"], "options": {"a": 1}}
    assert _asked("DataFrameWriter.saveAsTable", **given) == [
        ("mode", "append"), ("options", {"a": 1}), ("partitionBy", ["p"]), ("format", "mica"), ("save", "/t"),
    ]  # fmt: skip
    assert _asked("DataStreamWriter.toTable", outputMode="append", queryName="q", options={"a": 1}) == [
        ("options", {"a": 1}), ("outputMode", "append"), ("queryName", "q"), ("format", "mica"), ("start", "/t"),
    ]  # fmt: skip
    for door in ("DataFrameWriter.saveAsTable", "DataStreamWriter.toTable"):
        with pytest.raises(UserError, match=r"mica or delta, since t is the table /t, got 'parquet'"):
            _asked(door, format="parquet")
        with pytest.raises(UserError, match=r"mica or delta, since t is the table /t, got 'csv'"):
            ANSWERS[door](NamedCall(lambda *_: None, Noted(), "t", "/t", {}, Told(format="csv")))


def test_a_table_that_has_the_name_is_read_at_its_version_and_follows_a_write(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT")
    mica.register("t", table)
    try:
        mica.Table.open(tmp_path).append([{"id": 1}])
        read = [("format", "mica"), ("load", "/t"), ("alias", "t")]
        assert _asked("DataFrameReader.table", _WHERE) == [("option", "versionAsOf", 0), *read]
        assert _asked("DataStreamReader.table") == read
        _asked("DataFrameWriter.saveAsTable", mode="append")
        assert table.version == 1
    finally:
        registry.forget("t")
