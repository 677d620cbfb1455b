"""Files as spans: where they stand, which of them are drawn, and what the colours mean."""

from __future__ import annotations

import re

from mica.pictures.spans import DRAWN, Axis, Span, picture

AXIS = Axis("v:t", 0, 100, "0", "100", [(25, 50)])


def rects(html: str, kind: str) -> list[tuple[float, float]]:
    """Left and right ends of the rectangles of a class, of 1,000."""
    found = re.findall(rf'class="{kind}" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', html)
    return [(float(left), float(left) + float(width)) for left, width in found]


def test_a_value_that_is_asked_for_is_drawn_over_the_files_and_wide_enough_to_see() -> None:
    html = picture(Axis("v:n", 0, 100, "0", "100", [(100, 100)]), [Span(0, 100, True, "a")], 1)
    assert rects(html, "asked point") == [(996, 1000)]
    assert html.index('"kept"') < html.index('"asked point"')


def test_a_file_of_one_value_is_wide_enough_to_see_and_inside() -> None:
    html = picture(Axis("v:n", 0, 100, "0", "100"), [Span(n, n, True, "") for n in (0, 50, 100)], 3)
    assert rects(html, "kept") == [(0, 4), (498, 502), (996, 1000)]


def test_an_axis_of_ranks_says_that_it_has_no_scale() -> None:
    spans = [Span(0, 1, True, "")]
    assert "in order of value, not to scale" in picture(Axis("v:s", 0, 1, "a", "b", ranked=True), spans, 1)
    assert "not to scale" not in picture(Axis("v:n", 0, 1, "0", "1"), spans, 1)


def test_spans_stand_where_their_bounds_are() -> None:
    spans = [Span(60, 100, False, "b"), Span(0, 30, True, "<a>"), Span(None, None, True, "c")]
    html = picture(AXIS, spans, 3)
    assert rects(html, "asked") == [(250, 500)]
    assert rects(html, "kept") == [(0, 300)]
    assert rects(html, "gone") == [(600, 1000)]
    assert rects(html, "dim") == [(0, 1000)]
    assert html.index("&lt;a&gt;") < html.index("<title>b") < html.index("<title>c"), "by their lower bounds"
    assert all(word in html for word in ("read", "skipped", "without bounds", "asked for"))
    assert "are drawn" not in html


def test_of_too_many_files_some_are_drawn_and_said() -> None:
    html = picture(AXIS, [Span(i / 100, i / 100, True, "") for i in range(10_000)], 1_000_000)
    assert len(rects(html, "kept")) <= DRAWN
    assert "of 1,000,000 files are drawn" in html
    assert "skipped" not in html
