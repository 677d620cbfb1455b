"""The page around the pictures: one HTML text that needs no network, no script and no font of its own.

The rule: values come in as Python has them and are escaped here, once. A part of a page is an `Html`, which is not
escaped again. Colours are those of Okabe and Ito, which colour-blind people tell apart; where a colour says something,
a pattern or a word says it too. The page follows the reader's light or dark mode and the width of a phone.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.resources import files


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


_STYLE = (files("mica.pictures") / "page.css").read_text(encoding="utf-8")

_DOCUMENT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<style>body{{margin:0}}@media(prefers-color-scheme:dark){{body{{background:#0d1117}}}}</style>
</head><body>{body}</body></html>
"""


def escaped(value: object) -> Html:
    """The value as HTML."""
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def fragment(title: str, parts: Iterable[Html]) -> Html:
    """A page's inside with its style, as notebooks take it."""
    return Html(f'<style>{_STYLE}</style><div class="mica"><h1>{escaped(title)}</h1>{"".join(parts)}</div>')


def document(title: str, body: Html) -> str:
    """A whole page."""
    return _DOCUMENT.format(title=escaped(title), body=body)


def heading(text: str) -> Html:
    """A section's title."""
    return Html(f"<h2>{escaped(text)}</h2>")


def paragraph(text: object, *, soft: bool = False) -> Html:
    """A line of text."""
    return Html(f"<p{' class=soft' if soft else ''}>{escaped(text)}</p>")


def code(text: str) -> Html:
    """A text of a program."""
    return Html(f"<code>{escaped(text)}</code>")


def bar(part: float, whole: float) -> Html:
    """How much a part is of the whole; something is never drawn as nothing."""
    share = part / whole if whole else 0.0
    width = max(share * 100, 0.5) if part else 0
    return Html(
        f'<div class="bar" role="img" aria-label="{share:.1%}"><i style="width:{min(width, 100):.1f}%"></i></div>'
    )


def table(names: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> Html:
    """Rows of values under names; the columns in `right` hold numbers."""
    classes = [" class=n" if name in right else "" for name in names]
    head = "".join(f"<th{own}>{escaped(name)}</th>" for name, own in zip(names, classes, strict=True))
    lines = (
        "".join(
            f"<td{own}>{escaped('' if value is None else value)}</td>" for value, own in zip(row, classes, strict=True)
        )
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return Html(f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def folded(summary: str, inside: Html) -> Html:
    """A part that is shown when it is asked for."""
    return Html(f"<details><summary>{escaped(summary)}</summary>{inside}</details>")
