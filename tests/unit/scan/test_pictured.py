"""An explanation as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mica
from tests.unit.pictures.test_page import Read
from tests.unit.pictures.test_spans import rects


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> mica.Table:
    """Ten files of ten numbers each, and one without them."""
    path = tmp_path_factory.mktemp("pictured") / "t"
    made = mica.Table.create(path, "id BIGINT, v VARIANT, s STRING")
    for first in range(0, 100, 10):
        rows = [{"id": i, "v": {"n": i, "kind": "k"}, "s": f"{i:03}"} for i in range(first, first + 10)]
        made.append(rows)
    made.append([{"id": None, "v": {"kind": "k"}, "s": None}])
    return made


@pytest.mark.parametrize("value", ["id", "v:n::bigint", "s"])
def test_a_page_shows_what_the_plan_knew(table: mica.Table, value: str) -> None:
    low, high = ("'020'", "'039'") if value == "s" else (20, 39)
    report = table.scan(where=f"{value} >= {low} AND {value} < {high}").explain()
    html = report.to_html()
    assert report._repr_html_() in html
    page = Read(html)
    assert "The files by" in page.text
    name = value.partition("::")[0]
    assert ("in order of value, not to scale" in page.text) is (value == "s")
    for said in (
        f"no row can satisfy {value} >= {low}",
        f"where {value} >=",
        name,
        "skipped files (",
        "are bounds"[4:],
    ):
        assert said in page.text
    ((left, right),) = rects(html, "asked")
    kept = rects(html, "kept")
    assert len(kept) == 2
    assert len(rects(html, "gone")) == 8
    assert left <= kept[0][0] < kept[-1][1] <= right + 30


def test_what_is_unknown_is_said(table: mica.Table) -> None:
    report = table.scan(where="v:kinds::bigint = 5 AND v:kind::string = 'k'").explain()
    assert "kept 11 files: they have no bounds of v:kinds; the nearest path that has is v:kind" in str(report)
    assert report.to_dict()["files"]["kept_because"] == [{"reason": "they have no bounds of v:kinds", "files": 11}]
    assert "without bounds" not in report.to_html(), "nothing is drawn along a value without bounds"
    assert "are drawn" not in table.scan().explain().to_html()


def test_a_table_and_a_scan_are_pages_in_a_notebook(table: mica.Table) -> None:
    page = Read(table._repr_html_())
    assert {"table", "h1"} <= page.tags
    assert all(word in page.text for word in ("VARIANT", "101", "enableVariantShredding"))
    assert "numOutputRows 10" in page.text, "its history"
    assert "How its files are shredded" in page.text
    shown = Read(table.scan("id < 20")._repr_html_()).text
    assert "What is read" in shown
    assert "by the footers of 2 files" in shown
    assert "object" in shown


def test_a_report_of_an_ingest_is_a_page_too(tmp_path: Path) -> None:
    lines = [json.dumps({"a": i if i % 2 else "x", "<b>": 1}) for i in range(50)]
    (tmp_path / "in.json").write_text("\n".join(lines))
    report = mica.ingest_json(tmp_path / "in.json", tmp_path / "t", shredding="a: infer, *: skip")
    text = Read(report.to_html()).text
    assert all(said in text for said in ("50 rows in 1 file", "Paths without a column", "v:a", "rule *: skip"))
    assert report._repr_html_() in report.to_html()
