"""Which rows of an open file a predicate is true for, batch by batch.

The rule: the kernel gives the predicate's leaves of a batch and takes a mask back; other columns it reads only of the
rows that pass. Constants decide for all rows at once, and the numbers of rows need no reading. The row of an error is
counted over all batches, so that its value can be read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from mica.arrays import to_numpy
from mica.expressions.bind import BoundExpr
from mica.expressions.evaluate import RowError, filter_rows
from mica.skipping.row_ranges import Numbers, Positions, RowRanges, ranges_of
from mica.tasks.leaf_columns import PassedRows, leaves_in
from mica.tasks.row_errors import located

if TYPE_CHECKING:
    from mica.tasks.file import DataFileReader


class Judge:
    """A predicate over the rows of `ranges`; called with a batch of the kernel it returns the mask of those that pass.

    `passed`, a list that grows, are the rows that passed so far if it is `numbered` or reads nothing; otherwise it is
    `ranges`. `keeps`: the numbers of these rows are wanted, in the order of the batches, from `passing`, which takes
    less than ranges of rows that are scattered.
    """

    def __init__(
        self, file: DataFileReader, predicate: BoundExpr, ranges: RowRanges, *, numbered: bool, keeps: bool
    ) -> None:
        self.file, self.predicate, self.ranges = file, predicate, ranges
        self.asked = file.asked(predicate)
        self.filters = [column.request for column in self.asked if column.request is not None]
        #: Whether the numbers of rows decide too.
        self.counts = any(column.counts for column in self.asked)
        self.is_constant = not self.filters and not self.counts
        self._tells = not self.is_constant and (numbered or not self.filters)
        self.places = Positions(ranges) if numbered or keeps or self.counts else None
        # Of rows whose numbers are asked for all are judged here.
        self.texts = file.texts(predicate, self.asked) if self.places is None else []
        self.passed: RowRanges = [] if self._tells else ranges
        self.passing = PassedRows() if keeps and not self.is_constant else None
        self._judged = 0

    def before_reading(self, max_rows: int) -> RowRanges:
        """The rows that may pass: what needs no reading is judged, `max_rows` at once."""
        if self.is_constant:
            if not self._mask(_rows(1), None)[0].as_py():
                self.passed = []
            return self.passed
        if self.filters or self.places is None:
            return self.ranges
        while self.places.left:
            self(_rows(min(max_rows, self.places.left)))
        return self.passed

    def __call__(self, batch: pa.RecordBatch) -> pa.BooleanArray:
        """The mask of the next rows, whose columns are those of `filters`. Errors: those of casts."""
        numbers = None if self.places is None else self.places.next(batch.num_rows)
        mask = self._mask(batch, numbers)
        if numbers is not None:
            chosen = numbers[to_numpy(mask)]
            if self.passing is not None:
                self.passing.add(chosen)
            if self._tells:
                self.passed += ranges_of(chosen)
        return mask

    def _mask(self, batch: pa.RecordBatch, numbers: Numbers | None) -> pa.BooleanArray:
        found = leaves_in(self.asked, batch, numbers)
        try:
            mask = filter_rows(self.predicate, found.of(self.predicate), num_rows=found.rows)
        except RowError as e:
            if self.texts:  # by which batches were passed over: judged again, all rows before it are counted
                for _ in self.file.passing([], self.predicate, self.ranges, tracked=True):
                    pass
            file, ranges, before = self.file, self.ranges, self._judged
            raise located(e, file.name, lambda leaf, row: file.value(leaf, None, ranges, before + row)) from None
        self._judged += found.rows
        return mask


def _rows(count: int) -> pa.RecordBatch:
    """A batch without columns."""
    return pa.record_batch([pa.nulls(count)], [""]).select([])
