"""Leaves of expressions as columns of one file.

The rule: a leaf is read by the kernel, constant, or both: the id of a row is the one that its file holds for it, else
its place in the file after the id of the first row; so is the version that it comes from, else that of the file.
Constants may differ in files that are read as one.

Source: PROTOCOL.md, "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import from_numpy, scalar
from mica.expressions.bind import Leaf
from mica.records import dataclass
from mica.schema.types import VARIANT
from mica.skipping.row_ranges import Numbers
from mica.tasks.file_columns import Cast
from mica.tasks.leaf_values import Leaves
from mica.variant import kernel


@dataclass(frozen=True)
class FileColumn:
    """A leaf in one file: read by the kernel, or constant."""

    leaf: Leaf
    request: kernel.Request | None
    #: Converts the file's values of a whole column to the table's.
    cast: Cast | None = None
    value: pa.Scalar | None = None

    #: Whether its values depend on the numbers of rows.
    counts = False

    def called(self, name: str) -> FileColumn:
        """The column under a name in the kernel's batches."""
        return self if self.request is None else replace(self, request=replace(self.request, name=name))

    def untyped_in(self, groups: Iterable[int]) -> FileColumn:
        """The column without the typed values of these row groups."""
        if self.request is None:
            return self
        return replace(self, request=replace(self.request, untyped_in=tuple(sorted(groups))))

    def nulls(self) -> FileColumn:
        """The column with any value where it has one, for a predicate that asks nothing else of it."""
        if self.request is None or self.leaf.path is not None or self.leaf.type != VARIANT:
            return self
        return replace(self, request=replace(self.request, there=True), cast=lambda array: array)

    def as_stored(self, name: str) -> FileColumn:
        """The Variant column in its storage layout, under a name in the kernel's batches."""
        assert self.request is not None
        return StoredColumn(self.leaf, replace(self.request, name=name, layout="standard"))

    def constant(self, rows: int) -> list[pa.Array]:
        """Its columns if the file does not have it."""
        values = pa.repeat(self.value, rows)
        return [values] if self.leaf.path is None else [values, pa.repeat(scalar(False), rows)]

    def take(
        self, arrays: Iterator[pa.Array], rows: int, numbers: Numbers | None, failed: pa.Array | None
    ) -> list[pa.Array]:
        """Its columns from the kernel's arrays. `numbers` are the rows of the file, for a column that counts them;
        `failed` is the mask of failed casts of every path, or None if each has its own.
        """
        del numbers
        if self.request is None:
            return self.constant(rows)
        if self.leaf.path is not None:
            return [next(arrays), next(arrays) if failed is None else failed]
        assert self.cast is not None
        return [self.cast(next(arrays))]


@dataclass(frozen=True)
class StoredColumn(FileColumn):
    """A Variant column in its storage layout."""

    def take(
        self, arrays: Iterator[pa.Array], rows: int, numbers: Numbers | None, failed: pa.Array | None
    ) -> list[pa.Array]:
        """As it is; the mask beside it says which rows were rebuilt."""
        del rows, numbers, failed
        found = next(arrays)
        next(arrays)
        return [found]


@dataclass(frozen=True)
class ColumnOfFiles(FileColumn):
    """A constant of each of several files that are read as one, or what counts on from it; `ends` are where the rows of
    each end. A file may hold another value for a row."""

    values: pa.Array | None = None
    ends: Sequence[int] = ()
    #: Whether it is the value of a file's first row, and each row after it has the next one.
    rises: bool = False
    counts: bool = True

    def take(
        self, arrays: Iterator[pa.Array], rows: int, numbers: Numbers | None, failed: pa.Array | None
    ) -> list[pa.Array]:
        """Those that the file holds; where it holds none, those of the log."""
        del rows, failed
        assert numbers is not None
        assert self.values is not None
        counts = np.diff(np.searchsorted(numbers, self.ends), prepend=0)  # numbers ascend
        files = np.repeat(np.arange(len(counts)), counts)
        told = self.values.take(from_numpy(files))
        if self.rises:
            told = pc.add(told, from_numpy(numbers - np.concatenate([[0], self.ends])[files]))
        return [told if self.request is None else pc.coalesce(next(arrays).cast(told.type), told)]


class PassedRows:
    """The numbers of rows that passed a filter, until the batches with their other columns come."""

    def __init__(self) -> None:
        self._waiting: list[Numbers] = []

    def add(self, numbers: Numbers) -> None:
        """More rows."""
        self._waiting.append(numbers)

    def next(self, count: int) -> Numbers:
        """The next rows."""
        found: list[Numbers] = []
        while count:
            first = self._waiting[0]
            found.append(first[:count])
            if len(first) <= count:
                self._waiting.pop(0)
            else:
                self._waiting[0] = first[count:]
            count -= len(found[-1])
        return np.concatenate(found) if found else np.zeros(0, np.int64)


def leaves_in(columns: Sequence[FileColumn], batch: pa.RecordBatch, numbers: Numbers | None) -> Leaves:
    """The leaves of a batch of the kernel; `numbers` are its rows, for columns that count them."""
    arrays, rows = iter(batch.columns), batch.num_rows
    failed = None
    if batch.num_columns == sum(column.request is not None for column in columns):  # no cast failed: there are no masks
        failed = pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bytes(-(-rows // 8)))])
    return Leaves(rows, {c.leaf: c.take(arrays, rows, numbers, failed) for c in columns})
