"""Statistics as documents that are changed in one place and otherwise stay as they are.

The rule: a number that nobody changes keeps its spelling, digit for digit: a bound of DECIMAL(38) that became a double
on the way would be another bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson


def read(text: str | None) -> dict[str, Any]:
    """A file's statistics, numbers as pieces of text; what cannot be read is begun anew."""
    if text is None:
        return {}
    try:
        found = json.loads(text, parse_float=_verbatim, parse_int=_verbatim, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def values(text: str | None) -> dict[str, Any]:
    """A file's statistics for those who write nothing: numbers are Python's; empty where they cannot be read."""
    try:
        found = None if text is None else orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def at(tree: Any, names: Iterable[str]) -> Any:
    """What stands at a path of names; None where nothing does, or no object leads there."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def write(document: dict[str, Any]) -> str:
    """The text of the document."""
    return orjson.dumps(document).decode()


def _verbatim(number: str) -> orjson.Fragment:
    return orjson.Fragment(number.encode())
