"""The columns of collated bounds in `stats_parsed`.

The rule: a checkpoint holds what the log holds: every version of every collation in some file's statistics gets a
column, whoever wrote it.

    stats_parsed
    └── statsWithCollation: struct
        └── icu.UNICODE_CI.78.3: struct
            ├── minValues: struct, the strings that some file has, nested as the schema
            └── maxValues: the same

Source: Delta RFC "Collated String Type", "Per-file Statistics"; PROTOCOL.md, "Checkpoint Schema".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
import pyarrow as pa

from mica import compute as pc
from mica.stats.collated import KEY

#: Names at one level, with the levels below; an empty tree is a string.
_Tree = dict[str, Any]


def collated_field(parts: Iterable[pa.Array]) -> pa.Field | None:
    """Returns the field of `stats_parsed` for the collated bounds of all these statistics (JSON); None without any."""
    found: _Tree = {}
    naming = (texts.filter(pc.fill_null(pc.match_substring(texts, f'"{KEY}"'), False)) for texts in parts)
    for text in (text for some in naming for text in some.to_pylist()):
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError:
            continue
        collated = document.get(KEY) if isinstance(document, dict) else None
        for key, sides in collated.items() if isinstance(collated, dict) else ():
            for side in ("minValues", "maxValues"):
                values = sides.get(side) if isinstance(sides, dict) else None
                if isinstance(values, dict):
                    _merge(found.setdefault(key, {}).setdefault(side, {}), values)
    kind = _type(found)
    return None if kind is None else pa.field(KEY, kind)


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
    """A struct of the levels below; None if empty. Key and side are never strings; the levels below may be."""
    fields = []
    for name, below in tree.items():
        kind = _type(below, depth + 1) if below or depth < 2 else pa.string()
        if kind is not None:
            fields.append(pa.field(name, kind))
    return pa.struct(fields) if fields else None
