"""The columns that collated bounds take in `stats_parsed`.

The rule: every version of every collation that some file's statistics name has its place, whoever wrote it; a
checkpoint says what the log says.

    stats_parsed
    └── statsWithCollation: struct
        └── icu.UNICODE_CI.78.3: struct
            ├── minValues: struct, the strings that some file has, nested as the schema
            └── maxValues: the same

Source: Delta RFC "Collated String Type", "Per-file Statistics"; PROTOCOL.md, "Checkpoint Schema".
"""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

NAME = "statsWithCollation"

#: Names at one level, with what stands below; an empty one is a string.
_Tree = dict[str, Any]


def collated_field(texts: pa.Array) -> pa.Field | None:
    """The field of `stats_parsed` that holds the collated bounds of all these statistics (JSON); None without any."""
    found: _Tree = {}
    some = texts.filter(pc.fill_null(pc.match_substring(texts, f'"{NAME}"'), False))
    for text in some.to_pylist():
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        collated = document.get(NAME) if isinstance(document, dict) else None
        for key, sides in collated.items() if isinstance(collated, dict) else ():
            for side in ("minValues", "maxValues"):
                values = sides.get(side) if isinstance(sides, dict) else None
                if isinstance(values, dict):
                    _merge(found.setdefault(key, {}).setdefault(side, {}), values)
    kind = _type(found)
    return None if kind is None else pa.field(NAME, kind)


def _merge(tree: _Tree, values: dict[str, Any]) -> None:
    todo = [(tree, values)]
    while todo:
        here, there = todo.pop()
        for name, value in there.items():
            if isinstance(value, dict):
                todo.append((here.setdefault(name, {}), value))
            elif isinstance(value, str):
                here.setdefault(name, {})


def _type(tree: _Tree, depth: int = 0) -> pa.DataType | None:
    """A struct of what is below; None where nothing is: key and side are no strings, what is below them may be."""
    fields = []
    for name, below in tree.items():
        kind = _type(below, depth + 1) if below or depth < 2 else pa.string()
        if kind is not None:
            fields.append(pa.field(name, kind))
    return pa.struct(fields) if fields else None
