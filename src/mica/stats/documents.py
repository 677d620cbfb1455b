"""Edits statistics in place: one part changes, everything else stays as it is.

The rule: an unchanged number keeps its spelling, digit for digit: a bound of DECIMAL(38) would change if it were parsed
as a double.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import orjson

from mica import late


def read(text: str | None) -> dict[str, Any]:
    """Parses a file's statistics, with numbers kept as texts; unreadable statistics become an empty document."""
    return _parsed(text, _verbatim, _verbatim)


def values(text: str | None) -> dict[str, Any]:
    """Parses a file's statistics for reading only, with exact numbers (int and Decimal); empty if they cannot be
    read."""
    return _parsed(text, int, Decimal)


def as_object(found: Any) -> dict[str, Any]:
    """Returns a JSON object as it is; anything else, which no statistics have there, becomes an empty one."""
    return found if isinstance(found, dict) else {}


def at(tree: Any, names: Iterable[str]) -> Any:
    """Returns the value at a path of names; None if there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def put(tree: dict[str, Any], names: Sequence[str], value: Any) -> None:
    """Sets the value at a path of names; objects on the way are made, in place of what is no object."""
    for name in names[:-1]:
        inner = tree[name] = as_object(tree.get(name))
        tree = inner
    tree[names[-1]] = value


def remove(tree: Any, names: Sequence[str]) -> None:
    """Removes the value at a path of names, if there is one."""
    parent = at(tree, names[:-1])
    if isinstance(parent, dict):
        parent.pop(names[-1], None)


def write(document: dict[str, Any]) -> str:
    """Returns the text of the document, without strings that are no text: halves of characters, as in `"\\ud800"`."""
    try:
        return orjson.dumps(document).decode()
    except TypeError:
        return orjson.dumps(_texts(document)).decode()


def _texts(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _texts(one) for name, one in value.items() if _is_text(name) and _is_text(one)}


def _is_text(value: Any) -> bool:
    return not isinstance(value, str) or not _HALF.search(value)


_HALF = late.pattern("[\ud800-\udfff]")


def _parsed(text: Any, whole: Callable[[str], Any], real: Callable[[str], Any]) -> dict[str, Any]:
    try:
        return as_object(json.loads(text, parse_int=whole, parse_float=real, parse_constant=lambda _: None))
    except (TypeError, ValueError, ArithmeticError, RecursionError):  # the first of what is no text
        return {}


def _verbatim(number: str) -> orjson.Fragment:
    return orjson.Fragment(number.encode())
