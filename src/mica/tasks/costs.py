"""Costs of reading files: estimated from footers, or measured while reading.

The rule: each file is one row, and the sums are the costs of the scan. Pages and bytes are those of the leaf columns
that the scan needs; the reason of a skipped row group or page is a part of the predicate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import batch_of
from mica.skipping.row_ranges import RowRanges, rows_of
from mica.tasks.ahead import in_order, readers_of
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.leaf_columns import FileColumn
from mica.tasks.leaf_values import distinct
from mica.tasks.parts import FilePart

#: One row per file (`path`). One per reason that skipped something (`what`): for which part of the predicate, how many
#: spans (row groups or pages) and rows. One per path of a Variant that was read (`leaf`): how many of its values came
#: from its typed column, how many from a residual.
COSTS = pa.schema(
    [
        ("path", pa.string()),
        ("what", pa.string()),
        ("part", pa.int32()),
        ("spans", pa.int64()),
        ("row_groups_total", pa.int64()),
        ("row_groups", pa.int64()),
        ("rows_total", pa.int64()),
        ("rows", pa.int64()),
        ("pages_total", pa.int64()),
        ("pages", pa.int64()),
        ("bytes_total", pa.int64()),
        ("bytes", pa.int64()),
        ("rows_passed", pa.int64()),
        ("bytes_fetched", pa.int64()),
        ("seconds", pa.float64()),
        ("leaf", pa.string()),
        ("typed", pa.int64()),
        ("residual", pa.int64()),
    ]
)


def footer_costs(spec: ReadSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """The costs that remain after skipping by the footers of the files."""

    def costs(part: FilePart) -> Iterator[pa.RecordBatch]:
        file = DataFileReader(spec, part)
        ranges = file.candidates(spec.predicate)
        yield _rows(file, ranges, ranges, {})

    yield from in_order(costs, parts, readers_of(spec.storage))


def measured_costs(spec: ReadSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """Reads the files, discards the rows, and returns the measured costs."""
    left = spec.limit
    leaves = distinct(leaf for value in spec.outputs.values() for leaf in value.leaves)
    for part in parts:
        if left is not None and left <= 0:
            return
        began = time.perf_counter()
        file = DataFileReader(spec, part)
        ranges = file.candidates(spec.predicate)
        passed = 0
        for found in file.passing(leaves, spec.predicate, ranges, left, tracked=True):
            passed += found.rows
        if left is not None:
            left -= passed
        took = {
            "rows_passed": passed,
            "bytes_fetched": file.bytes_fetched,
            "seconds": time.perf_counter() - began,
        }
        yield _rows(file, ranges, file.passed, took)
        yield batch_of(list(_origins(file, ranges)), COSTS)


def _origins(file: DataFileReader, ranges: RowRanges) -> Iterator[dict[str, Any]]:
    """Where the values of each path came from, in the rows in which it was read."""
    spec = file.spec
    judged = [] if spec.predicate is None else distinct(spec.predicate.leaves)
    given = distinct(leaf for value in spec.outputs.values() for leaf in value.leaves)
    places = {leaf.name: (leaf, file.passed) for leaf in given} | {leaf.name: (leaf, ranges) for leaf in judged}
    groups = range(file.reader.row_groups().num_rows)
    for name, (leaf, rows) in places.items():
        column = file.column(leaf)
        if leaf.path is None or not leaf.path.steps or column.request is None:
            continue
        every, residual = (_count(file, asked, rows) for asked in (column, column.untyped_in(groups)))
        yield {"leaf": name, "typed": every - residual, "residual": residual}


def _count(file: DataFileReader, column: FileColumn, rows: RowRanges) -> int:
    """How many rows have a value there, one of the asked type or another."""
    assert column.request is not None
    asked = [] if not rows else file.reader.scan([column.request], ranges=rows, timezone=file.spec.timezone)
    return sum(pc.sum(pc.or_(batch.column(0).is_valid(), batch.column(1))).as_py() or 0 for batch in asked)


def _rows(file: DataFileReader, ranges: RowRanges, passed: RowRanges, took: dict[str, float]) -> pa.RecordBatch:
    """The costs of one file; the predicate is evaluated on `ranges` and returns `passed` of them."""
    spec, reader = file.spec, file.reader
    asked = [] if spec.predicate is None else file.asked(spec.predicate)
    filters = [column.request for column in asked if column.request is not None]
    outputs = file.requests(distinct(leaf for value in spec.outputs.values() for leaf in value.leaves))
    groups_total, rows_total, pages_total, bytes_total = reader.cost(
        [*file.requests([column.leaf for column in asked]), *outputs]
    )
    # The filter's columns in the evaluated rows, and the other columns in the returned rows; a column in both is read
    # once.
    costs = (filters, ranges), (filters, passed), ([*filters, *outputs], passed)
    judged, both, given = (reader.cost(items, ranges=rows) for items, rows in costs)
    one = {
        "path": file.part.path,
        "row_groups_total": groups_total,
        "row_groups": reader.cost([], ranges=ranges)[0],
        "rows_total": rows_total,
        "rows": rows_of(ranges),
        "pages_total": pages_total,
        "pages": judged[2] + given[2] - both[2],
        "bytes_total": bytes_total,
        "bytes": judged[3] + given[3] - both[3],
        **took,
    }
    gone = [
        {"what": proof.what, "part": part, "spans": spans, "rows": rows}
        for proof in file.skipper.proofs
        for part, spans, rows in proof.gone
    ]
    return batch_of([one, *gone], COSTS)
