"""Reads the kept files of a scan as batches.

The rule: each batch has exactly the scan's schema, whatever the file's schema is. Partition values come from the log, a
column that a file lacks is null, and outputs are computed only on rows that pass, so a strict cast can fail only on
such a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.evaluate import RowError, evaluate
from mica.expressions.tree import LeafRef
from mica.schema.arrow import to_arrow
from mica.skipping.row_ranges import RowRanges, rows_of
from mica.tasks.batches import cut
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.halves import in_halves
from mica.tasks.leaf_columns import leaves_in
from mica.tasks.leaf_values import Leaves, distinct
from mica.tasks.parts import FilePart
from mica.tasks.row_errors import located
from mica.tasks.together import read_together


def read_parts(spec: ReadSpec, parts: Sequence[FilePart], readers: int = 1) -> Iterator[pa.RecordBatch]:
    """Reads several files in their order, up to the scan's limit; up to `readers` at once, those of an object store
    always several."""
    left = spec.limit

    def read(file: DataFileReader, given: int) -> Iterator[pa.RecordBatch]:
        return _rows(file, None if left is None or len(file.ends) > 1 else left + given)

    for batch in read_together(spec, parts, read, readers):
        if left is not None:
            batch = batch.slice(0, left)  # noqa: PLW2901 - files that were read ahead have all that was wanted then
            left -= batch.num_rows
        yield batch
        if left is not None and left <= 0:
            return


def read_file(spec: ReadSpec, part: FilePart) -> Iterator[pa.RecordBatch]:
    """The rows of the file that pass, as batches of the scan's schema."""
    yield from _rows(DataFileReader(spec, part), None)


def _rows(file: DataFileReader, limit: int | None) -> Iterator[pa.RecordBatch]:
    predicate = file.spec.predicate
    yield from read_ranges(file, file.candidates(predicate), predicate, limit)


def read_ranges(
    file: DataFileReader,
    ranges: RowRanges,
    predicate: BoundExpr | None = None,
    limit: int | None = None,
    *,
    outputs: Mapping[str, BoundExpr] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of these ranges of an open file that pass, as batches of the scan's schema, or of other `outputs`."""
    file.passed = ranges
    if not ranges:
        return
    spec = file.spec if outputs is None else replace(file.spec, outputs=outputs)
    schema = to_arrow(spec.schema)
    wanted = [file.column(leaf) for leaf in distinct(leaf for value in spec.outputs.values() for leaf in value.leaves)]
    if plain := _are_paths(spec.outputs):
        wanted = [column.called(name) for column, name in zip(wanted, spec.outputs, strict=True)]
    done = 0
    for batch, numbers in file.batches(wanted, predicate, ranges, limit):
        if plain and batch.schema.equals(schema, check_metadata=True):
            done += batch.num_rows
            yield from cut(batch)
            continue
        found = leaves_in(wanted, batch, numbers)

        def made(first: int, end: int, found: Leaves = found, before: int = done) -> pa.RecordBatch:
            try:
                return outputs_of(spec.outputs, found.slice(first, end), schema)
            except RowError as e:

                def again(leaf: Leaf, row: int) -> str | None:
                    return file.value(leaf, predicate, ranges, before + first + row)

                raise located(e, file.name, again) from None

        for piece in in_halves(made, found.rows):
            yield from cut(piece)
        done += found.rows


def outputs_of(outputs: Mapping[str, BoundExpr], found: Leaves, schema: pa.Schema) -> pa.RecordBatch:
    """The values of these expressions, in the columns of `schema`."""
    arrays = [
        pc.as_type(evaluate(value, found.of(value), num_rows=found.rows), wanted.type)
        for value, wanted in zip(outputs.values(), schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _are_paths(outputs: Mapping[str, BoundExpr]) -> bool:
    """Whether each output is a path of its own, and no more: of a batch in which no cast failed and each has its type
    nothing is left to be evaluated. (In Arrow's C interface NUL ends a name.)"""
    paths = {value.leaves[0] for value in outputs.values() if isinstance(value.expr, LeafRef)}
    return len(paths) == len(outputs) and all(leaf.path is not None for leaf in paths) and "\0" not in "".join(outputs)


def count_rows(spec: ReadSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """How many rows pass, for files or groups of them. Only columns of the predicate are read."""

    def count(file: DataFileReader, _: int) -> Iterator[pa.RecordBatch]:
        if spec.predicate is None:
            total = rows_of(file.ranges)
        else:
            total = sum(found.rows for found in file.read([], spec.predicate))
        yield pa.record_batch({"rows": arrow_array([total], pa.int64())})

    yield from read_together(spec, parts, count)
