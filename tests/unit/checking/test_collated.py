"""Collated bounds in a check: their spelling, and the rows by the comparator that is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from tests.table_log import edit

KEY = "spark.UTF8_LCASE.78.3"


def table_with(path: Path, change: Callable[[dict[str, Any]], None]) -> mica.Table:
    """One file of `b` and `C`, whose collated statistics are changed in the log."""
    table = mica.Table.create(path, "n INT, s STRING COLLATE UTF8_LCASE")
    table.append(pa.table({"n": pa.array([1, 2], pa.int32()), "s": ["b", "C"]}))
    edit(path, change)
    return mica.Table.open(path)


def test_bounds_that_hold_are_no_violation(tmp_path: Path) -> None:
    report = mica.check(table_with(tmp_path / "t", lambda _: None))
    assert (list(report), report.notes) == ([], ())


def test_rows_beyond_a_bound_are_named(tmp_path: Path) -> None:
    def change(stats: dict[str, Any]) -> None:
        assert stats["statsWithCollation"] == {KEY: {"minValues": {"s": "b"}, "maxValues": {"s": "C"}}}
        stats["statsWithCollation"][KEY] = {"minValues": {"s": "BB"}, "maxValues": {"s": "c"}}

    (found,) = mica.check(table_with(tmp_path / "t", change))
    assert (found.kind, found.path) == ("collated_bound", "s")
    assert found.found == f"the minimum by {KEY} is 'BB', but a row holds 'b'"


@pytest.mark.parametrize(
    ("collated", "path", "why"),
    [
        ([1], "statsWithCollation", "not an object"),
        ({"spark.UTF8_LCASE": {}}, "statsWithCollation.spark.UTF8_LCASE", "has no version"),
        ({"UTF8": {}}, "statsWithCollation.UTF8", "not a collation identifier"),
        ({KEY: {}, KEY.lower(): {}}, f"statsWithCollation.{KEY.lower()}", "differ only in case"),
        ({KEY: {"minValues": [1]}}, f"statsWithCollation.{KEY}.minValues", "not an object"),
        ({KEY: {"minValues": {"n": "a"}}}, f"statsWithCollation.{KEY}.minValues", "n is not a string column"),
        ({KEY: {"maxValues": {"s": 5}}}, f"statsWithCollation.{KEY}.maxValues.s", "not text"),
    ],
)
def test_what_is_spelled_wrongly_is_named(tmp_path: Path, collated: Any, path: str, why: str) -> None:
    def change(stats: dict[str, Any]) -> None:
        stats["statsWithCollation"] = collated

    (found,) = mica.check(table_with(tmp_path / "t", change))
    assert (found.kind, found.path) == ("collated_statistics", path)
    assert why in found.found


def test_bounds_of_a_dropped_column_are_sound(tmp_path: Path) -> None:
    schema, mapped = "id INT, s STRING COLLATE UTF8_LCASE", {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", schema, properties=mapped)
    table.append([{"id": 1, "s": "a"}])
    assert "statsWithCollation" in (tmp_path / "t" / "_delta_log" / f"{1:020}.json").read_text()
    table.drop_columns(["s"])
    assert mica.check(table).ok
    assert mica.repair(table).version is None


def test_what_cannot_be_judged_is_a_note(tmp_path: Path) -> None:
    def change(stats: dict[str, Any]) -> None:
        bounds = {"minValues": {"s": "z"}, "maxValues": {"s": "a"}}
        stats["statsWithCollation"] = {"icu.de.78.3": bounds, "icu.de.77.1": bounds, "ICU.de_DE.78.3": bounds}

    report = mica.check(table_with(tmp_path / "t", change))
    assert report.ok
    assert len(report.notes) == 3
    assert "icu.de.78.3, which need a Spark session" in report.notes[0]
    assert "icu.de.77.1, which another engine made" in report.notes[1]


def test_a_file_that_is_gone_does_not_end_the_check(tmp_path: Path) -> None:
    table = table_with(tmp_path / "t", lambda _: None)
    next((tmp_path / "t").glob("*.parquet")).unlink()
    assert [found.kind for found in mica.check(table)] == ["missing_file"]
