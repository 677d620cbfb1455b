"""Texts for a terminal. The rule: names and values come from tables and files of others, so what a terminal would obey
in them (a change of its title, its colours, its screen) is shown as a sign instead. JSON is for programs, and is not
changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

#: Unicode has a picture of each control of ASCII, and none of C1's, nor of those that turn the direction of a line.
_SIGNS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"},
    0x7F: "␡",
    **dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
}


def plain(text: str) -> str:
    """The text with a sign in the place of each control but a line break and a tab."""
    return text if text.isprintable() else text.translate(_SIGNS)


@cache
def plain_console() -> type[Console]:
    """rich's console, whose own codes alone reach the terminal; rich is not loaded for commands that print JSON."""
    from rich.console import Console
    from rich.segment import Segment

    class PlainConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else plain(text), style, control)

    return PlainConsole


def console(**settings: Any) -> Console:
    """A console with these settings of rich's."""
    return plain_console()(**settings)
