"""Files as spans of one value's range, and across them what a predicate asks for.

The rule: one row a file, in the order of its lower bound; a file without bounds may hold anything and spans the whole
width. Where there are too many files for the eye, every k-th is drawn, and the picture says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.pictures.page import Html, escaped
from mica.records import dataclass

#: Rows that are drawn.
DRAWN = 300

_HEIGHT = 360  # of the picture, in its own units
_WIDTH = 1000

#: The least width of what is asked for; so narrow, it is drawn over the files and not behind them.
_POINT = 4

#: The least width of a file: one of a single value is to be seen, and to be hit by a pointer.
_LEAST = 4


@dataclass(frozen=True)
class Span:
    """A file: its bounds as places on the axis (None: unknown), whether it is read, what a pointer over it shows."""

    low: float | None
    high: float | None
    kept: bool
    text: str


@dataclass(frozen=True)
class Axis:
    """A value's axis: its name, where it begins and ends and the texts of both, and the ranges asked for."""

    name: str
    low: float
    high: float
    low_text: str
    high_text: str
    asked: Sequence[tuple[float, float]] = ()
    #: Whether places are ranks: then a wide span may hold few values, and a narrow one many.
    ranked: bool = False


def picture(axis: Axis, spans: Sequence[Span], total: int) -> Html:
    """The spans as SVG, with a legend and the axis's ends; `total` is the number of files that they stand for."""
    known = sorted((s for s in spans if s.low is not None), key=lambda s: (s.low, s.high))
    ordered = [*known, *(s for s in spans if s.low is None)]
    step = -(-len(ordered) // DRAWN) or 1
    drawn = ordered[::step]
    row = _HEIGHT / max(len(drawn), 12)
    wide = (axis.high - axis.low) or 1.0

    def place(value: float) -> float:
        return min(max((value - axis.low) / wide, 0.0), 1.0) * _WIDTH

    shapes, points = [], []
    for low, high in axis.asked:
        left, right = place(low), place(high)
        if right - left < _POINT:
            left = min(max((left + right - _POINT) / 2, 0), _WIDTH - _POINT)
            points.append(f'<rect class="asked point" x="{left:.1f}" y="0" width="{_POINT}" height="100%"/>')
        else:
            shapes.append(f'<rect class="asked" x="{left:.1f}" y="0" width="{right - left:.1f}" height="100%"/>')
    for at, span in enumerate(drawn):
        low = axis.low if span.low is None else span.low
        high = axis.high if span.high is None else span.high
        left, right = place(low), place(high)
        if right - left < _LEAST:
            left = min(max((left + right - _LEAST) / 2, 0), _WIDTH - _LEAST)
        shapes.append(
            f'<rect class="{_kind(span)}" x="{left:.1f}" y="{(at + 0.1) * row:.2f}" '
            f'width="{max(right - left, _LEAST):.1f}" height="{max(row * 0.8, 0.8):.2f}">'
            f"<title>{escaped(span.text)}</title></rect>"
        )
    height = max(row * len(drawn), 24)
    pattern = (
        '<defs><pattern id="dim" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect width="4" height="8" fill="var(--dim)"/></pattern></defs>'
    )
    there = {_kind(span) for span in spans}
    legend = "".join(
        f'<span class="key" style="background:{colour}"></span>{label}'
        for kind, (colour, label) in _LEGEND.items()
        if kind in there
    )
    asked = '<span class="key" style="background:var(--asked)"></span>asked for' if axis.asked else ""
    note = f'<p class="soft">{len(drawn):,} of {total:,} files are drawn</p>' if len(drawn) < total else ""
    scale = " (in order of value, not to scale)" if axis.ranked else ""
    return Html(
        f'<div class="soft">{legend}{asked}</div>'
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" preserveAspectRatio="none" '
        f'style="height:{min(height, _HEIGHT):.0f}px" '
        f'role="img" aria-label="the files by {escaped(axis.name)}">{pattern}{"".join(shapes + points)}</svg>'
        f'<div class="ends"><span>{escaped(axis.low_text)}</span><span><code>{escaped(axis.name)}</code>{scale}</span>'
        f"<span>{escaped(axis.high_text)}</span></div>{note}"
    )


_LEGEND = {
    "kept": ("var(--kept)", "read"),
    "gone": ("var(--gone)", "skipped"),
    "dim": ("repeating-linear-gradient(45deg,var(--dim) 0 3px,transparent 3px 6px)", "without bounds"),
}


def _kind(span: Span) -> str:
    return "dim" if span.low is None or span.high is None else "kept" if span.kept else "gone"
