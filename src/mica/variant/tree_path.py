"""A path into a shredding tree: keys, and the elements of arrays.

The rule: a key is a str, and None stands for all elements of an array.
"""

from __future__ import annotations

from collections.abc import Sequence

from mica.variant.path import VariantPath

TreePath = Sequence[str | None]


def spelled(path: TreePath) -> str:
    """The path as rules spell it: `a[*].b`; the root is `$`."""
    text = ""
    for at, part in enumerate(_parts(path)):
        text += "[*]" if at else ""
        keys = str(part) if part.steps else ""
        text += f".{keys}" if text and keys and not keys.startswith("[") else keys
    return text or "$"


def normalized(path: TreePath) -> str:
    """The path as the report of a file has it (`kernel.FileReader.inspect`): `$['a'][*]['b']`."""
    return "$" + "[*]".join(part.normalized[1:] for part in _parts(path))


def _parts(path: TreePath) -> list[VariantPath]:
    """The paths between the elements of arrays."""
    parts: list[list[str]] = [[]]
    for step in path:
        if step is None:
            parts.append([])
        else:
            parts[-1].append(step)
    return [VariantPath(tuple(part)) for part in parts]
