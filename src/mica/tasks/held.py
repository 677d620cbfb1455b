"""Keeps rows until each file of theirs gets many of them.

The rule: rows of more partitions than may be open at once wait until they are `HELD_BYTES`, and are then written
partition by partition. Otherwise each batch would begin and end a file of every partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from mica.variant import kernel

#: So many bytes of rows wait at most, in a task.
HELD_BYTES = 64 << 20

#: How the Variants of stored rows are shredded; None for rows whose Variants are whole.
Trees = Mapping[tuple[str, ...], pa.DataType] | None


class HeldRows:
    """Rows that wait, in their order."""

    def __init__(self) -> None:
        self._runs: list[tuple[list[pa.RecordBatch], Trees]] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._runs)

    @property
    def are_many(self) -> bool:
        """Whether they are to be written now."""
        return self._bytes >= HELD_BYTES

    def add(self, rows: kernel.Rows, trees: Trees) -> None:
        """Keeps these rows too."""
        batch = kernel.arrow(rows)
        self._bytes += batch.nbytes
        if self._runs and self._runs[-1][0][-1].schema == batch.schema and self._runs[-1][1] == trees:
            self._runs[-1][0].append(batch)
        else:
            self._runs.append(([batch], trees))

    def released(self) -> Iterator[tuple[pa.RecordBatch, Trees]]:
        """The rows in large batches, which are kept no longer."""
        runs, self._runs, self._bytes = self._runs, [], 0
        runs.reverse()
        while runs:
            batches, trees = runs.pop()
            whole = pa.Table.from_batches(batches).combine_chunks()
            del batches
            for batch in whole.to_batches():
                yield batch, trees
