"""How files shred their Variants: the trees of their footers, put together.

The rule: footers alone are read, and of many files some, evenly taken. Rows and bytes of a path are summed over them;
where files type it differently, each type is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mica.errors import MicaError
from mica.scan.source import Source
from mica.schema.spelling import spelled
from mica.schema.types import variant_columns
from mica.stats.columns import physical_names
from mica.tasks.parts import FilePart
from mica.variant import kernel

#: Files whose footers are read.
LOOKED = 20

_SUMMED = ("typed_rows", "residual_rows", "other_rows", "typed_bytes", "residual_bytes")


def tree_of(reader: kernel.FileReader) -> list[dict[str, Any]]:
    """The shredding tree of a file, parents first: column, path, type, typed and residual rows and bytes."""
    return [_named(row, row["column"]) for row in reader.inspect().to_pylist()]


def _named(row: dict[str, Any], column: str) -> dict[str, Any]:
    return {**row, "column": column, "type": _NAMES.get(row["type"], row["type"].lower())}


def shredding_of(source: Source, parts: Sequence[FilePart]) -> tuple[list[dict[str, Any]], int]:
    """The tree of some of these files in the form of `tree_of`, and how many were read; none if one cannot be."""
    columns = {physical_names(source.schema, at): at for at in variant_columns(source.schema)}
    chosen = np.unique(np.linspace(0, len(parts) - 1, LOOKED, dtype=int)).tolist() if parts and columns else []
    trees = []
    for part in (parts[at] for at in chosen):
        try:
            place, name = source.storage.locate(part.path)
            variants, early = list(columns), source.early
            reader = kernel.open_file(place, name, part.size, variants=variants, early=early, tails=source.tails)
            found = reader.inspect_columns().items()
            trees.append([_named(row, spelled(columns.get(at, at))) for at, rows in found for row in rows.to_pylist()])
        except MicaError:
            return [], 0  # who reads the rows is told why
    return _summed(trees), len(trees)


def _summed(trees: Iterable[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in (row for tree in trees for row in tree):
        known = found.setdefault((row["column"], row["path"]), {**row, **dict.fromkeys(_SUMMED, 0), "type": ""})
        known |= {name: known[name] + row[name] for name in _SUMMED}
        types = [*filter(None, known["type"].split(" or "))]
        known["type"] = " or ".join(types if row["type"] in types else [*types, row["type"]])
    # What is below a path has the path as its beginning: so parents stay first, and each has its own behind it.
    return [found[key] for key in sorted(found)]


#: Arrow's names of leaf types, as SQL has them.
_NAMES = {
    "Utf8": "string", "Int8": "tinyint", "Int16": "smallint", "Int32": "int", "Int64": "bigint", "Float32": "float",
    "Float64": "double", "Date32": "date", "Boolean": "boolean", "Binary": "binary",
}  # fmt: skip
