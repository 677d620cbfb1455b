"""Edits statistics in place: one part changes, everything else stays as it is.

The rule: an unchanged number keeps its spelling, digit for digit: a bound of DECIMAL(38) would change if it were parsed
as a double.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import orjson


def read(text: str | None) -> dict[str, Any]:
    """Parses a file's statistics, with numbers kept as texts; unreadable statistics become an empty document."""
    if text is None:
        return {}
    try:
        found = json.loads(text, parse_float=_verbatim, parse_int=_verbatim, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def values(text: str | None) -> dict[str, Any]:
    """Parses a file's statistics for reading only, with Python numbers; empty if they cannot be read."""
    try:
        found = None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def at(tree: Any, names: Iterable[str]) -> Any:
    """Returns the value at a path of names; None if there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def put(tree: dict[str, Any], names: Sequence[str], value: Any) -> None:
    """Sets the value at a path of names; objects on the way are made."""
    for name in names[:-1]:
        tree = tree.setdefault(name, {})
    tree[names[-1]] = value


def write(document: dict[str, Any]) -> str:
    """Returns the text of the document."""
    return orjson.dumps(document).decode()


def _verbatim(number: str) -> orjson.Fragment:
    return orjson.Fragment(number.encode())
