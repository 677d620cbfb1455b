"""Kept files of a scan to batches.

The rule: a batch that leaves here is in exactly the scan's schema, whatever the file's own is: partition values come
from the log, a column that a file lacks is null, and outputs are computed on the rows that pass alone, so a strict
cast fails only on a row that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica.errors import StorageError
from mica.log.deletion_vectors import deleted_rows
from mica.log.paths import is_absolute
from mica.schema.arrow import to_arrow, to_arrow_type
from mica.schema.collations import COLLATIONS
from mica.schema.types import VARIANT, StructField, StructType, walk
from mica.skipping.bind import Bound, Leaf
from mica.skipping.footer import intersect, matching_ranges
from mica.skipping.rows import evaluate, filter_rows
from mica.stats.partition import parse_values
from mica.stats.schema import physical_name, physical_names
from mica.storage import Storage
from mica.tasks.batches import Late, cut, for_spark
from mica.tasks.leaves import Leaves, distinct, item
from mica.tasks.mapping import align, field_at, find
from mica.variant import kernel

#: Rows and bytes of one batch.
BATCH_ROWS = 65_536
BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class ReadSpec:
    """What is the same for every file of a scan. It travels to workers; `storage` keeps its secrets out of its text."""

    storage: Storage
    #: The columns of the table, and which of them stand in the log instead of the files.
    columns: StructType
    partition_by: tuple[str, ...]
    outputs: Mapping[str, Bound]
    predicate: Bound | None = None
    limit: int | None = None
    timezone: str = "UTC"
    spark: bool = False
    #: The version of the table, None for bare files.
    version: int | None = None
    #: Which columns may be of the early shredding layout; a table's never are.
    early: bool | list[list[str]] = False
    #: Whether times, nanoseconds and UUIDs in Variants become texts for Spark, which has no such types; else an error.
    late_as_text: bool = False

    @property
    def schema(self) -> StructType:
        """The columns that come out."""
        return StructType(tuple(StructField(n, v.type, True, _metadata(n, v)) for n, v in self.outputs.items()))


def _metadata(name: str, value: Bound) -> dict[str, Any]:
    return {COLLATIONS: {name + way: found for way, found in value.collations}} if value.collations else {}


@dataclass(frozen=True)
class FilePart:
    """A file to read, or the part-th of `parts` shares of its row groups. `path` is decoded, relative or absolute."""

    path: str
    size: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    deletion_vector: Mapping[str, Any] | None = None
    part: int = 0
    parts: int = 1


def read_parts(spec: ReadSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """Reads several files one after another, up to the scan's limit."""
    left = spec.limit
    for part in parts:
        for batch in read_file(spec, part):
            if left is None:
                yield batch
                continue
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if left == 0:
                return


def read_file(spec: ReadSpec, part: FilePart) -> Iterator[pa.RecordBatch]:
    """The rows of the file that pass, as batches of the scan's schema."""
    file = _File(spec, part)
    ranges = file.ranges()
    schema, late = to_arrow(spec.schema), Late(spec.late_as_text, spec.timezone)
    leaves = distinct(leaf for value in spec.outputs.values() for leaf in value.leaves)
    if spec.predicate is None:
        batches = file.leaves(leaves, ranges)
    elif set(leaves) <= set(spec.predicate.leaves):
        # The predicate reads all that is asked for: once is enough.
        batches = file.filtered(spec.predicate, ranges)
    else:
        batches = file.leaves(leaves, merged(file.passing(spec.predicate, ranges)))
    for found in batches:
        arrays = []
        for value, wanted in zip(spec.outputs.values(), schema, strict=True):
            array = evaluate(value, found.of(value), num_rows=found.rows)
            arrays.append(array if array.type == wanted.type else array.cast(wanted.type))
        for piece in cut(pa.RecordBatch.from_arrays(arrays, schema=schema)):
            yield for_spark(piece, spec.schema, late) if spec.spark else piece


def count_rows(spec: ReadSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """How many rows pass: one batch with one number."""
    total = 0
    for part in parts:
        file = _File(spec, part)
        ranges = file.ranges()
        if spec.predicate is not None:
            ranges = merged(file.passing(spec.predicate, ranges))
        total += sum(end - start for start, end in ranges)
    yield pa.record_batch({"rows": pa.array([total], pa.int64())})


class _File:
    """One open file and what its log line says of it."""

    def __init__(self, spec: ReadSpec, part: FilePart) -> None:
        self.spec, self.part = spec, part
        storage, rel = spec.storage.at(part.path) if is_absolute(part.path) else (spec.storage, part.path)
        name = storage.path(rel)
        # Files of old writers lack the annotation: the table's schema says which groups are Variants.
        variants = [list(physical_names(spec.columns, at)) for at, f in walk(spec.columns) if f.type == VARIANT]
        try:
            if storage.local_path is not None:
                self.reader = kernel.FileReader(path=name, name=name, variants=variants, early=spec.early)
            else:
                fetch = partial(storage.read_ranges, rel)
                self.reader = kernel.FileReader(
                    size=part.size, fetch=fetch, name=name, variants=variants, early=spec.early
                )
        except StorageError as e:
            raise self._gone(name) if e.code == "NOT_FOUND" and spec.version is not None else e from None
        self.schema = self.reader.schema

    def _gone(self, name: str) -> StorageError:
        return StorageError(
            "NOT_FOUND",
            f"{name} is gone: version {self.spec.version} of the table names it",
            hint="It was vacuumed or deleted. Open the newest version, or put the file back.",
            path=name,
            version=self.spec.version,
        )

    def ranges(self) -> list[tuple[int, int]]:
        """The rows of this part that are in the table: whole row groups less the deleted rows."""
        rows = self.reader.num_rows
        ranges = [(0, rows)] if rows else []
        if self.part.parts > 1:
            groups = self.reader.row_groups().column("rows").to_pylist()
            first, last = (len(groups) * n // self.part.parts for n in (self.part.part, self.part.part + 1))
            start, end = sum(groups[:first]), sum(groups[:last])
            ranges = [(start, end)] if end > start else []
        if self.part.deletion_vector is not None and ranges:
            deleted = deleted_rows(self.spec.storage, self.part.deletion_vector)
            ranges = without(ranges[0], deleted)
        return ranges

    def passing(self, predicate: Bound, ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The ranges of rows for which the predicate is true."""
        leaves = distinct(predicate.leaves)
        ranges = self.possible(predicate, ranges)
        positions = _Positions(ranges)
        for found in self.leaves(leaves, ranges):
            mask = filter_rows(predicate, found.of(predicate), num_rows=found.rows)
            yield from positions.take(mask, found.rows)

    def possible(self, predicate: Bound, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """`ranges` less the row groups, then the pages, of which the footer proves that no row matches."""
        columns = {i: self._column(leaf) for i, leaf in enumerate(predicate.leaves)}
        constants = {i: column.value for i, column in columns.items() if column.item is None}
        items = [{**column.item, "name": str(i)} for i, column in columns.items() if column.item is not None]
        names = {i: str(i) for i in columns if i not in constants}
        for pages in (False, True):
            if ranges and items:
                found = self.reader.bounds(items, pages=pages)
                ranges = intersect(ranges, matching_ranges(predicate, found, names, constants))
        return ranges

    def filtered(self, predicate: Bound, ranges: list[tuple[int, int]]) -> Iterator[Leaves]:
        """The leaves of the predicate in the rows for which it is true."""
        for found in self.leaves(distinct(predicate.leaves), self.possible(predicate, ranges)):
            mask = filter_rows(predicate, found.of(predicate), num_rows=found.rows)
            rows = mask.true_count
            if rows:
                yield found if rows == found.rows else found.filter(mask, rows)

    def leaves(self, leaves: list[Leaf], ranges: list[tuple[int, int]]) -> Iterator[Leaves]:
        """The values of the leaves in the rows of `ranges`, a batch at a time."""
        if not ranges:
            return
        columns = [self._column(leaf) for leaf in leaves]
        items = [column.item for column in columns if column.item is not None]
        if not items:
            for start, end in ranges:
                for at in range(start, end, BATCH_ROWS):
                    rows = min(BATCH_ROWS, end - at)
                    yield Leaves(rows, {column.leaf: column.constant(rows) for column in columns})
            return
        whole = ranges == [(0, self.reader.num_rows)]
        for found in self.reader.scan(
            items,
            ranges=None if whole else ranges,
            max_rows=BATCH_ROWS,
            max_bytes=BATCH_BYTES,
            timezone=self.spec.timezone,
        ):
            if found.num_rows == 0:
                continue
            arrays = iter(found.columns)
            yield Leaves(found.num_rows, {c.leaf: c.take(arrays, found.num_rows) for c in columns})

    def _column(self, leaf: Leaf) -> _Column:
        top = self.spec.columns.field(leaf.column[0])
        if top.name in self.spec.partition_by:
            text = self.part.partition.get(physical_name(top))
            values = parse_values(pa.array([text], pa.string()), top.type, timezone=self.spec.timezone)
            return _Column(leaf, None, value=values[0])
        names = physical_names(self.spec.columns, leaf.column)
        found = find(self.schema, names)
        if found is None:
            return _Column(leaf, None, value=pa.scalar(None, to_arrow_type(leaf.type)))
        wanted = field_at(self.spec.columns, leaf.column)
        return _Column(leaf, item(leaf, names), found=found, wanted=wanted)


@dataclass(frozen=True)
class _Column:
    """A leaf in one file: asked of the kernel, or constant."""

    leaf: Leaf
    item: dict[str, Any] | None
    found: pa.Field | None = None
    wanted: StructField | None = None
    value: pa.Scalar | None = None

    def constant(self, rows: int) -> list[pa.Array]:
        values = pa.repeat(self.value, rows)
        return [values] if self.leaf.path is None else [values, pa.repeat(pa.scalar(False), rows)]

    def take(self, arrays: Iterator[pa.Array], rows: int) -> list[pa.Array]:
        """Its columns out of the kernel's."""
        if self.item is None:
            return self.constant(rows)
        if self.leaf.path is not None:
            return [next(arrays), next(arrays)]
        assert self.found is not None
        assert self.wanted is not None
        return [align(next(arrays), self.found, self.wanted)]


class _Positions:
    """Turns masks over the rows of `ranges`, in their order, into ranges of the file's row numbers."""

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        self._ranges = iter(ranges)
        self._at, self._end = next(self._ranges, (0, 0))

    def take(self, mask: pa.Array, rows: int) -> Iterator[tuple[int, int]]:
        """The ranges of the next `rows` rows where `mask` is true."""
        done = 0
        while done < rows:
            if self._at == self._end:
                self._at, self._end = next(self._ranges)
            here = min(rows - done, self._end - self._at)
            for start, end in runs(mask.slice(done, here)):
                yield self._at + start, self._at + end
            self._at += here
            done += here


def without(rows: tuple[int, int], deleted: np.ndarray) -> list[tuple[int, int]]:
    """A range of rows less the deleted ones (sorted row numbers)."""
    start, end = rows
    edges = deleted[(deleted >= start) & (deleted < end)].astype(np.int64)
    starts = np.concatenate([[start], edges + 1])
    ends = np.concatenate([edges, [end]])
    keep = ends > starts
    return list(zip(starts[keep].tolist(), ends[keep].tolist(), strict=True))


def merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges in order, those that touch made one."""
    found: list[tuple[int, int]] = []
    for start, end in ranges:
        if found and found[-1][1] == start:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def runs(mask: pa.Array) -> list[tuple[int, int]]:
    """Where a mask is true, as ranges; null is not true."""
    encoded = pc.run_end_encode(pc.fill_null(mask, False), run_end_type=pa.int32())
    found, start = [], 0
    for value, end in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
        if value:
            found.append((start, end))
        start = end
    return found
