"""What commits say of a path of a Variant column in their own words: predicates and other parameters of operations.

The rule: a `commitInfo` is a trace if a text of it names the column and then each key of the path, as whole words in
this order: a predicate that does may quote a value. The syntax does not matter: mica writes `v:user.email = '…'`,
delta-spark `variant_get(v#1, $.user.email, …)`. So more commits are named than hold a value, never fewer. The path that
an erase names is not a trace: it quotes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mica.variant.path import Step

Words = list[re.Pattern[str]]


def words_of(columns: Iterable[str], steps: Sequence[Step]) -> Words:
    """Returns the words to find one after the other: a name of the column, today's or a former one, then the keys."""
    names = "|".join(re.escape(_plain(column)) for column in sorted(columns))
    words = [f"(?:{names})", *(re.escape(_plain(str(step))) for step in steps)]
    return [re.compile(rf"(?<!\w){word}(?!\w)", re.IGNORECASE) for word in words]


def quotes(info: Mapping[str, Any], words: Words) -> bool:
    """Whether a commitInfo quotes the path."""
    if info.get("operation") == "ERASE" and isinstance(info.get("operationParameters"), dict):
        told = {name: text for name, text in info["operationParameters"].items() if name != "path"}
        info = {**info, "operationParameters": told}
    return any(_holds(_plain(text), words) for text in _texts(info))


def _holds(text: str, words: Words) -> bool:
    at = 0
    for word in words:
        found = word.search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


def _texts(value: Any) -> Iterator[str]:
    todo = [value]
    while todo:
        here = todo.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, dict):
            todo += [*here, *here.values()]
        elif isinstance(here, list):
            todo += here


def _plain(text: str) -> str:
    """Without backslashes: a predicate may be SQL in JSON in JSON, and each escapes."""
    return text.replace("\\", "")
