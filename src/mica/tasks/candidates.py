"""The strings of a file that can be the ends of its collated columns, gathered while its rows pass.

The rule: what is kept of a column is a few strings, among which its least and its greatest are (`collation.narrow`);
where they would be many, nothing is kept and the file is read again for them, by `tasks.strings`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica.collation.narrow import narrowed
from mica.stats.collated import CollatedColumn

#: Bytes of strings that are kept of a column, and strings that are gathered before they are narrowed again.
MAX_BYTES = 16 << 20
GATHERED = 65_536

_NONE = pa.array([], pa.string())


class Candidates:
    """Those of one column in one file. `version` is that of the comparator that they go to."""

    def __init__(self, leaf: CollatedColumn, version: str) -> None:
        self.leaf, self.version = leaf, version
        #: Whether the strings were few enough to be kept.
        self.whole = True
        self._forget()

    def add(self, strings: pa.Array) -> None:
        """Takes in strings of the column, nulls among them."""
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
        """Whether they are too many to be kept."""
        return self._bytes > MAX_BYTES

    def keep_few(self) -> None:
        """Keeps nothing from now on where they are too many."""
        if self.many:
            self.whole = False
            self._forget()

    def take(self) -> pa.Array:
        """What is left of them, once."""
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
    """A leaf's strings in a batch of the table's columns; null where a struct around it is."""
    first, *inner = leaf.column
    found = batch.column(first)
    return pc.struct_field(found, inner) if inner else found


def columns(leaves: Sequence[CollatedColumn]) -> list[pa.Field]:
    """Per leaf `c<i>` (strings) and `c<i>_whole`: false where they were too many; null: no file."""
    return [
        field
        for i, _ in enumerate(leaves)
        for field in (pa.field(f"c{i}", pa.list_(pa.string())), pa.field(f"c{i}_whole", pa.bool_()))
    ]


def values(rows: Sequence[Sequence[Candidates]], leaves: Sequence[CollatedColumn]) -> list[pa.Array]:
    """The columns of rows, each of which tells of one file or of none."""
    found = []
    for i, _ in enumerate(leaves):
        strings = [row[i].take() if row else _NONE for row in rows]
        ends = np.cumsum([0, *map(len, strings)])
        found.append(pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.concat_arrays(strings)))
        found.append(pa.array([row[i].whole if row else None for row in rows], pa.bool_()))
    return found
