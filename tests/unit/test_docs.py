"""Pages that are printed from tables say what the tables say."""

from __future__ import annotations

import runpy

import pytest

from tests.support import ROOT

PAGES = runpy.run_path(str(ROOT / "scripts" / "docs.py"))["pages"]()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_table_prints(page: str) -> None:
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == PAGES[page], "run `make docs`"
