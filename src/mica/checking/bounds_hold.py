"""Compares bounds with the rows.

The rule: a bound is valid if no row still in the table is beyond it, and a path with bounds holds only values
of their type. A missing bound, or one wider than necessary, is not a violation.

Source: Delta protocol, "Per-file Statistics"; Variant Shredding RFC, "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import to_numpy
from mica.checking.statistics import Bounds, Found
from mica.errors import MicaError
from mica.skipping.row_ranges import without_rows
from mica.variant import kernel


def compare(wanted: list[Bounds], reader: kernel.FileReader, deleted: np.ndarray | None = None) -> Iterator[Found]:
    """Yields invalid bounds: how many rows are beyond them, and the first one. `deleted` rows are ignored."""
    if not wanted or not reader.num_rows:
        return
    firsts = to_numpy(reader.row_groups().column("first_row"))
    tallies = [_Tally(bounds) for bounds in wanted]
    ranges = [(0, reader.num_rows)] if deleted is None else without_rows((0, reader.num_rows), deleted)
    items = [replace(bounds.request, name=str(i)) for i, bounds in enumerate(wanted)]
    numbers = _Numbers(ranges)
    try:
        for batch in reader.scan(items, ranges=None if deleted is None else ranges):
            for i, tally in enumerate(tallies):
                tally.add(batch.column(str(i)), batch.column(f"{i}!") if items[i].path is not None else None, numbers)
            numbers.done += batch.num_rows
    except MicaError as e:
        # The violation of the rows is already listed; bounds cannot be compared with unreadable rows.
        yield {"kind": "bounds_not_checked", "path": str(e.context.get("path") or ""), "found": e.message}
        return
    for tally in tallies:
        for found in tally.found(0 if deleted is None else len(deleted)):
            group = {} if "row" not in found else {"row_group": int(np.searchsorted(firsts, found["row"], "right")) - 1}
            yield {**found, **group}


class _Numbers:
    """Row numbers of the file for the rows of ranges, counted across batches."""

    def __init__(self, ranges: list[tuple[int, int]]) -> None:
        self.ranges, self.done = ranges, 0

    def of(self, place: int) -> int:
        """Returns the row of the file at position `place` of the current batch."""
        left = self.done + place
        for start, end in self.ranges:
            if left < end - start:
                return start + left
            left -= end - start
        raise IndexError(place)


class _Beyond:
    """Rows beyond one end: how many, the first, and its value."""

    def __init__(self) -> None:
        self.count, self.row, self.value = 0, -1, None

    def add(self, mask: pa.Array, values: pa.Array | None, numbers: _Numbers) -> None:
        """Counts the rows for which the mask is true; null counts as false."""
        count = pc.sum(mask).as_py() or 0
        if count and not self.count:
            place = pc.index(mask, True).as_py()
            self.row = numbers.of(place)
            self.value = None if values is None else values[place]
        self.count += count


class _Tally:
    """The rows of one leaf that are beyond its bounds."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.nulls = 0
        self.below, self.above, self.other = _Beyond(), _Beyond(), _Beyond()

    def add(self, values: pa.Array, failed: pa.Array | None, numbers: _Numbers) -> None:
        """Adds a batch: the values, and for a path the mask of values of another type."""
        self.nulls += values.null_count
        if values.type != self.bounds.type:
            try:
                values = values.cast(self.bounds.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                return  # the column has another type in the file, which is a violation of its own (`columns_fit`)
        if self.bounds.low is not None:
            self.below.add(pc.less(values, self.bounds.low), values, numbers)
        if self.bounds.high is not None:
            self.above.add(pc.greater(values, self.bounds.high), values, numbers)
        if failed is not None:
            self.other.add(failed, None, numbers)

    def found(self, deleted: int) -> Iterator[Found]:
        """Yields the violations; `deleted` rows, which are not looked at, may be among those that a count has."""
        path, nulls = self.bounds.path, self.bounds.nulls
        for side, end, beyond in (("minimum", self.bounds.low, self.below), ("maximum", self.bounds.high, self.above)):
            if beyond.count:
                found = (
                    f"the {side} is {_shown(end)}, but {beyond.count} rows are beyond it, first {_shown(beyond.value)}"
                )
                yield {"kind": "bound", "path": path, "row": beyond.row, "found": found}
        if self.other.count:
            found = f"the log has bounds of the path, but {self.other.count} rows hold values of another type there"
            yield {"kind": "bound_other_type", "rule": 41, "path": path, "row": self.other.row, "found": found}
        if nulls is not None and not self.nulls <= nulls <= self.nulls + deleted:
            found = f"nullCount is {nulls}, the column has {self.nulls} nulls"
            found += f" beside {deleted} deleted rows" if deleted else ""
            yield {"kind": "null_count", "path": path, "found": found}


def _shown(value: Any) -> str:
    try:
        text = str(value.as_py() if isinstance(value, pa.Scalar) else value)
    except (OverflowError, ValueError):  # a time that Python has no year for
        text = str(value.cast(pa.string()).as_py())
    return text if len(text) <= 80 else f"{text[:80]}…"
