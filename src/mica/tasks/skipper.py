"""Which rows of an open file need no reading: its footer, its bloom filters and the bytes of its pages are asked.

The rule: rows are skipped only where one of them proves that the predicate is true for none. Cheap proofs come first:
bounds of row groups, bloom filters, bounds of pages, and last the bytes of the pages that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mica.arrays import to_numpy
from mica.expressions.bind import BoundExpr, Leaf
from mica.schema.hidden import is_hidden
from mica.skipping.row_ranges import RowRanges
from mica.skipping.within_files import Proof, Verdicts, can_prove, verdicts
from mica.tasks.leaf_columns import FileColumn
from mica.variant import kernel

if TYPE_CHECKING:
    from mica.tasks.file import ReadSpec

#: Files of at most so many rows are small: the bounds of their only row group are in the log already.
SMALL_ROWS = 65_536
#: Finds a leaf in the file.
ColumnOf = Callable[[Leaf], FileColumn]


class Skipper:
    """What is skipped of one open file, or of several that are read as one."""

    def __init__(self, spec: ReadSpec, reader: kernel.FileReader) -> None:
        self._spec, self._reader = spec, reader
        #: Why row groups and pages were skipped, in the order of the checks. For explain.
        self.proofs: list[Proof] = []
        self._untyped: dict[Leaf, set[int]] = {}

    def untyped(self, leaf: Leaf) -> Iterable[int]:
        """The row groups in which a leaf can match only by its residual; there the predicate reads only that."""
        return self._untyped.get(leaf, ())

    def possible(self, predicate: BoundExpr, ranges: RowRanges, column: ColumnOf) -> RowRanges:
        """`ranges` without the row groups, then the pages, in which no row matches by the footer."""
        files, table = len(self._reader.ends), self._spec.columns
        # A row's id has no bounds: the footer's are those of the rows for which the file holds one.
        known = ((i, leaf) for i, leaf in enumerate(predicate.leaves) if not is_hidden(table, leaf.column))
        # A constant of each of several files counts rows, too.
        columns = {i: one for i, leaf in known if not (one := column(leaf)).counts}
        constants = {i: x.value for i, x in columns.items() if x.request is None}
        requests = [replace(x.request, name=str(i)) for i, x in columns.items() if x.request is not None]
        names = {i: str(i) for i in columns if i not in constants}
        # Of a small file only the pages are checked.
        small = self._reader.num_rows <= SMALL_ROWS * files and self._reader.row_groups().num_rows == files
        for pages in (True,) if small else (False, True):
            if not ranges or not requests:
                break
            found = self._reader.bounds_in_runs(requests, pages=pages, ranges=ranges)
            if constants or any(can_prove(predicate, run, names) for run in found):
                what = "pages" if pages and sum(run.num_rows for run in found) > files else "row groups"
                judged = [verdicts(predicate, run, names, constants) for run in found]
                ranges = self._left(what, ranges, Verdicts.joined(judged))
            if small or not pages:
                ranges = self._by_bloom_filters(predicate, columns, ranges)
        return ranges

    def _by_bloom_filters(
        self, predicate: BoundExpr, columns: Mapping[int, FileColumn], ranges: RowRanges
    ) -> RowRanges:
        for part, index, values in self._spec.questions_of(predicate):
            asked = columns[index].request if index in columns else None
            if asked is None or not ranges:
                continue
            may = self._reader.may_contain(asked, values, ranges=ranges)
            self._untyped.setdefault(predicate.leaves[index], set()).update(
                group for group, answer in enumerate(may) if answer == "untyped"
            )
            reasons = np.where(np.array(may) == "no", part, -1)
            groups = self._reader.row_groups()
            starts, rows = to_numpy(groups.column("first_row")), to_numpy(groups.column("rows"))
            ranges = self._left("bloom filters", ranges, Verdicts(starts, rows, reasons))
        return ranges

    def _left(self, what: str, ranges: RowRanges, found: Verdicts) -> RowRanges:
        """The rows of `ranges` that verdicts leave; records which they exclude."""
        proof = Proof(what, ranges, found)
        self.proofs.append(proof)
        return proof.left

    def searched(self, predicate: BoundExpr, ranges: RowRanges, column: ColumnOf) -> RowRanges:
        """`ranges` without the pages that hold the bytes of no text that the predicate wants."""
        for index, texts in self._spec.searches_of(predicate):
            leaf = predicate.leaves[index]
            asked = column(leaf).untyped_in(self.untyped(leaf)).request
            if asked is not None and ranges:
                ranges = self._reader.search(asked, texts, ranges)
        return ranges
