"""What the footer of a file says of the paths of its Variants.

The rule: footers alone are read. A path is known where the file gives it a column: what lies in a residual is counted
with the nearest path above it. Of a path through arrays all elements are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.schema.spelling import spelled
from mica.schema.types import DataType, variant_columns
from mica.stats.columns import physical_names
from mica.tasks.file_errors import of_gone
from mica.variant import kernel, tree_path
from mica.variant.shredding import type_of

#: At most so many files of a table, or of a side of it, are looked at.
FILES = 32


class ColumnPath(NamedTuple):
    """A Variant column, by its names through structs, and a path in it; None stands for the elements of an array."""

    column: tuple[str, ...]
    steps: tuple[str | None, ...]

    def __str__(self) -> str:
        """As rules spell it: `v:a.b`."""
        return f"{spelled(self.column)}:{tree_path.spelled(self.steps)}"


@dataclass(frozen=True)
class PathRows:
    """The rows of a file that have a path, or the elements of arrays: with a value of the column's type, and with
    another one (the residual).

    The type is VARIANT where the file gives the path no typed column: then all of its values are residual. It may be
    one that no column of a table has (`shredding.OWN_TYPES`).
    """

    type: DataType
    typed_rows: int
    residual_rows: int
    typed_bytes: int


@dataclass(frozen=True)
class Look:
    """A file: its rows, the bytes of its residuals, and the paths with columns of their own, by column and path.

    `levels` are all levels of the trees, by column and normalized path: the rows with a typed value, an object or an
    array there, and those with a residual.
    """

    rows: int
    residual_bytes: int
    paths: Mapping[ColumnPath, PathRows]
    levels: Mapping[tuple[tuple[str, ...], str], tuple[int, int]]

    def may_have(self, path: ColumnPath) -> bool:
        """Whether rows may have the path: it is there as a leaf, an object or an array, or a residual above it may
        hold it."""
        column, steps = path
        above = (tree_path.normalized(steps[:at]) for at in range(len(steps)))
        own = self.levels.get((column, tree_path.normalized(steps)), (0, 0))
        return any(own) or any(self.levels.get((column, level), (0, 0))[1] for level in above)


def evenly(count: int) -> list[int]:
    """At most `FILES` places of `count`, evenly taken."""
    return [int(at) for at in np.unique(np.linspace(0, count - 1, FILES, dtype=int))] if count else []


def looks(snapshot: Snapshot, numbers: Sequence[int]) -> list[Look]:
    """Reads the footers of files, by their places in `snapshot.files`."""
    return snapshot.storage.each(partial(_look_at, snapshot), numbers)


def _look_at(snapshot: Snapshot, number: int) -> Look:
    physical = {column: physical_names(snapshot.schema, column) for column in variant_columns(snapshot.schema)}
    path, size = (snapshot.files.column(name)[number].as_py() for name in ("path", "size"))
    place, rel = snapshot.locate(path)
    with of_gone(place.path(rel), snapshot.version):
        reader = kernel.open_file(place, rel, size, variants=list(physical.values()))
    trees = reader.inspect_columns() if physical else {}
    found: dict[ColumnPath, PathRows] = {}
    levels: dict[tuple[tuple[str, ...], str], tuple[int, int]] = {}
    residual = 0
    for column, names in physical.items():
        report = {row["path"]: row for row in trees[names].to_pylist()} if names in trees else {}
        levels |= {(column, at): (row["typed_rows"], row["residual_rows"]) for at, row in report.items()}
        residual += sum(row["residual_bytes"] for row in report.values() if row["residual_rows"])
        tree = reader.tree(names)
        for steps, type_ in _leaves(tree[0]) if tree is not None else ():
            row = report.get(tree_path.normalized(steps))
            if row is not None:
                found[ColumnPath(column, steps)] = PathRows(
                    type_of(type_), row["typed_rows"], row["residual_rows"], row["typed_bytes"]
                )
    return Look(reader.num_rows, residual, found, levels)


def _leaves(
    tree: pa.DataType, steps: tuple[str | None, ...] = ()
) -> Iterator[tuple[tuple[str | None, ...], pa.DataType]]:
    """The leaves of a shredding tree; of type null where they are not typed."""
    if pa.types.is_struct(tree):
        for one in tree:
            yield from _leaves(one.type, (*steps, one.name))
    elif pa.types.is_list(tree):
        yield from _leaves(tree.value_type, (*steps, None))
    elif steps:
        yield steps, tree
