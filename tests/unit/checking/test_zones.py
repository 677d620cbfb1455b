"""Files whose times after 2037 may be those of another year's rules are named by a check."""

from __future__ import annotations

from pathlib import Path

import pytest

import mica

MOSCOW = '{{"t": "{}-07-15 12:00:00"}}\n'


def ingest(folder: Path, *years: str) -> Path:
    (folder / "e.ndjson").write_text("".join(MOSCOW.format(year) for year in years))
    columns = {"t": "v:t::timestamp", "n": "v:t::timestamp_ntz"}
    mica.ingest_json(folder / "e.ndjson", folder / "t", columns=columns, timezone="Europe/Moscow")
    return folder / "t"


def forget(table: Path) -> None:
    """As mica wrote it before files said by which rules their times were made."""
    for commit in (table / "_delta_log").glob("*.json"):
        text = commit.read_text()
        commit.write_text(text.replace(f',"mica.zones":"{mica.variant.kernel.zones()}"', ""))


@pytest.mark.parametrize("years", [["2030", "2040"], ["2038"], ["2040", "9999"], ["2040", "12345"]])
def test_only_files_from_before_are_named_and_only_for_late_times(tmp_path: Path, years: list[str]) -> None:
    table = ingest(tmp_path, *years)
    assert mica.check(table).notes == ()
    forget(table)
    report = mica.check(table)
    assert report.ok
    (note,) = report.notes
    assert note.startswith("t has times after 2037")
    assert next(table.glob("*.parquet")).name in note


def test_times_that_the_old_rules_covered_are_not_named(tmp_path: Path) -> None:
    table = ingest(tmp_path, "1999", "2037")
    forget(table)
    assert mica.check(table).notes == ()


def test_an_ingest_takes_the_last_rules(tmp_path: Path) -> None:
    rows = mica.Table.open(ingest(tmp_path, "2040", "2400")).scan(columns=["t"]).to_arrow()["t"]
    assert [t.isoformat() for t in rows.to_pylist()] == ["2040-07-15T09:00:00+00:00", "2400-07-15T09:00:00+00:00"]
    asked = "t = timestamp'2040-07-15 12:00:00'"
    assert mica.Table.open(tmp_path / "t").scan(where=asked, timezone="Europe/Moscow").count() == 1
