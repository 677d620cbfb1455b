"""A file's shredding tree: a line for each path, with its type, the share of its values that are typed, its bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mica.pictures.page import Html, bar, code, table

#: Paths that are shown; a tree may have thousands.
SHOWN = 500

#: A step of a path: the elements of an array, or a key, and what is escaped in one.
_STEP = re.compile(r"\[\*\]|\['(?:[^'\\]|\\.)*'\]")
_ESCAPED = re.compile(r"\\(['\\])")


def picture(rows: Sequence[Mapping[str, Any]]) -> Html:
    """The tree as `inspect_file` gives it: column, path, type, typed and residual rows and bytes, parents first."""
    most = max((row["typed_bytes"] + row["residual_bytes"] for row in rows), default=0)
    lines = []
    for row in rows[:SHOWN]:
        name = label(row)
        typed, residual = row["typed_rows"], row["residual_rows"]
        whole = typed + row["other_rows"]
        size = row["typed_bytes"] + row["residual_bytes"]
        shown = Html(f'<span class="step" style="padding-left:{depth(row)}em">{code(name)}</span>')
        lines.append(
            (shown, row["type"], share(typed, whole), bar(typed, whole), f"{residual:,}", f"{size:,}", bar(size, most))
        )
    names = ("path", "type", "typed", "", "residual rows", "bytes", " ")
    made = table(names, lines, right=("typed", "residual rows", "bytes"))
    more = len(rows) - SHOWN
    return Html(f'{made}<p class="soft">and {more:,} more paths</p>') if more > 0 else made


def depth(row: Mapping[str, Any]) -> int:
    """How deep a path lies."""
    return len(_STEP.findall(row["path"]))


def label(row: Mapping[str, Any]) -> str:
    """The last step of a path; the column for the root."""
    steps = _STEP.findall(row["path"])
    if not steps:
        return str(row["column"])
    return "*" if steps[-1] == "[*]" else _ESCAPED.sub(r"\1", steps[-1][2:-2])


def share(part: int, whole: int) -> str:
    """A share as text. Rare rows matter: it is never 0 % or 100 % if there are some."""
    found = part / max(part, whole, 1)
    return ">99.9%" if 0.9995 <= found < 1 else "<0.1%" if 0 < found < 0.0005 else f"{found:.1%}"
