"""What texts say of a path of a Variant column in their own words: predicates and other parameters of operations in
commits, expressions of the table's metadata, and lines that an ingest could not read.

The rule: a `commitInfo` is a trace if a text of it names the column and then each key of the path, as whole words in
this order: a predicate that does may quote a value. The syntax does not matter: mica writes `v:user.email = '…'`,
delta-spark `variant_get(v#1, $.user.email, …)`. So more commits are named than hold a value, never fewer. The path that
an erase names is not a trace: it quotes nothing. An expression of the metadata (a constraint, a generated column) is a
trace if it has a literal too. A quarantined line is a trace if it has the keys so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from mica.log.actions import Metadata
from mica.properties import CONSTRAINTS
from mica.schema import json as schema_json
from mica.storage import Storage
from mica.tasks.bad_lines import QUARANTINE
from mica.variant.path import Step
from mica.write.rules import expressions

Words = list[re.Pattern[str]]

#: A character of a key may be written so (RFC 8259, section 7).
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")

#: Where a literal of an expression begins.
_LITERAL = re.compile(r"""['"]|(?<!\w)\d""")


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


def quoting(metadata: Metadata, words: Words) -> dict[str, str]:
    """The expressions of a table's metadata that may quote a value of the path, with the call that removes each."""
    return {
        text: "drop_constraint" if key == CONSTRAINTS else "drop_columns"
        for key, _, text in expressions(schema_json.loads(metadata.schema_string), metadata.configuration)
        if _LITERAL.search(text) and _holds(_plain(text), words)
    }


def quarantined(storage: Storage, steps: Sequence[Step]) -> Iterator[tuple[str, int]]:
    """The files of quarantined lines below a table's location in which some name the path, and how many."""
    words = words_of((), steps)[1:]
    for entry in storage.list(QUARANTINE):
        lines = storage.read(entry.path).split(b"\n")
        count = sum(_holds(_plain(_ESCAPE.sub(_unescaped, _line(line))), words) for line in lines)
        if count:
            yield entry.path, count


def _line(kept: bytes) -> str:
    """The line that was set aside; what is no line of ours, as it is."""
    try:
        return str(orjson.loads(kept)["text"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return kept.decode(errors="replace")


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


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
