"""Gathers, while a file is written, the strings that can be minimum or maximum of its collated columns.

The rule: a few strings are kept per column, which include its minimum and maximum (`collation.narrow`). If they would
be too many, none are kept, and `tasks.strings` reads the file again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.collation.narrow import narrowed
from mica.stats.collated import CollatedColumn

#: Upper limit of kept bytes per column, and number of strings to gather before they are narrowed again.
MAX_BYTES = 16 << 20
GATHERED = 65_536

_NONE = pa.nulls(0, pa.string())


class Candidates:
    """The candidates of one column in one file. `version` is the version of the comparator that will compare them."""

    def __init__(self, leaf: CollatedColumn, version: str) -> None:
        self.leaf, self.version = leaf, version
        #: Whether the strings were few enough to be kept.
        self.whole = True
        self._forget()

    def add(self, strings: pa.Array) -> None:
        """Adds strings of the column, which may include nulls."""
        if not self.whole:
            return
        strings = strings.cast(pa.string()).drop_null()
        part = narrowed(strings, self.leaf.sql, self.version)
        self._parts.append(part)
        self._gathered += len(part)
        self._bytes += int(part.nbytes)
        if self._gathered > max(GATHERED, 2 * self._narrow):
            self._again()

    @property
    def many(self) -> bool:
        """Whether they are too many to keep."""
        return self._bytes > MAX_BYTES

    def keep_few(self) -> None:
        """Keeps nothing from now on if they are too many."""
        if self.many:
            self.whole = False
            self._forget()

    def take(self) -> pa.Array:
        """The remaining candidates; can be called once."""
        if len(self._parts) > 1:
            self._again()
        found = self._parts[0] if self._parts else _NONE
        self._forget()
        return found

    def _forget(self) -> None:
        self._parts: list[pa.Array] = []
        self._gathered = self._narrow = self._bytes = 0

    def _again(self) -> None:
        self._parts = [narrowed(pa.concat_arrays(self._parts), self.leaf.sql, self.version)]
        self._gathered = self._narrow = len(self._parts[0])
        self._bytes = int(self._parts[0].nbytes)


def leaf_strings(batch: pa.RecordBatch, leaf: CollatedColumn) -> pa.Array:
    """A leaf's strings in a batch of the table's columns; null if a struct around it is null."""
    first, *inner = leaf.column
    found = batch.column(first)
    return pc.struct_field(found, inner) if inner else found


def columns(leaves: Sequence[CollatedColumn]) -> list[pa.Field]:
    """Per leaf `c<i>` (strings) and `c<i>_whole`: false if they were too many; null: no file."""
    return [
        field
        for i, _ in enumerate(leaves)
        for field in (pa.field(f"c{i}", pa.list_(pa.string())), pa.field(f"c{i}_whole", pa.bool_()))
    ]


def values(rows: Sequence[Sequence[Candidates]], leaves: Sequence[CollatedColumn]) -> list[pa.Array]:
    """The columns for rows of one file or of none each."""
    found = []
    for i, _ in enumerate(leaves):
        strings = [_NONE, *(row[i].take() if row else _NONE for row in rows)]
        ends = np.cumsum([*map(len, strings)])
        found.append(pa.ListArray.from_arrays(arrow_array(ends, pa.int32()), pa.concat_arrays(strings)))
        found.append(arrow_array([row[i].whole if row else None for row in rows], pa.bool_()))
    return found
