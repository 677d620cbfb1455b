"""Pages: whatever stands in a table is text, and the page is whole."""

from __future__ import annotations

from html.parser import HTMLParser

from mica.pictures.page import Html, bar, code, document, folded, fragment, heading, paragraph, table

NASTY = "<script>alert('&\"')</script>"
VOID = {"meta", "link", "br"}


class Read(HTMLParser):
    """The tags that are open, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {"src", "href"} & {name for name, _ in attrs}, "the page asks for something"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_is_shown_is_text() -> None:
    parts = [heading(NASTY), paragraph(NASTY), code(NASTY), folded(NASTY, paragraph(1)), bar(1, 3), bar(0, 0)]
    parts.append(table((NASTY, "n"), [(NASTY, None), (code("x"), 7)], right=("n",)))
    found = Read(document(NASTY, fragment(NASTY, parts)))
    assert "script" not in found.tags
    assert found.text.count(NASTY) == 8
    assert {"table", "code", "details", "h1", "h2"} <= found.tags


def test_something_is_never_drawn_as_nothing() -> None:
    assert "width:0.0%" not in bar(1, 10**9)
    assert "width:0.0%" in bar(0, 5)
    assert isinstance(bar(1, 2), Html)
