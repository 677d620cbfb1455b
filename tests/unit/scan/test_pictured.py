"""An explanation as a page."""

from __future__ import annotations

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
    report = table.scan(where="v:nn::bigint = 5 AND v:kind::string = 'k'").explain()
    assert "kept 11 files: they have no bounds of v:nn; the nearest path that has is v:n" in str(report)
    assert report.to_dict()["files"]["kept_because"] == [{"reason": "they have no bounds of v:nn", "files": 11}]
    assert "without bounds" not in report.to_html(), "nothing is drawn along a value without bounds"
    assert "are drawn" not in table.scan().explain().to_html()


def test_a_table_and_a_scan_are_pages_in_a_notebook(table: mica.Table) -> None:
    page = Read(table._repr_html_())
    assert {"table", "h1"} <= page.tags
    assert all(word in page.text for word in ("VARIANT", "101", "enableVariantShredding"))
    assert "What is read" in Read(table.scan()._repr_html_()).text
