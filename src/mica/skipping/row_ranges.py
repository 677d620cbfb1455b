"""Rows of a file as ranges of their numbers, `[(0, 100), (250, 260)]`.

The rule: ranges are sorted and disjoint, and so are the row numbers that they are made from. Every second row of a file
may be a range of its own: what takes all ranges takes them as arrays, where they are not few.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import itemgetter

import numpy as np

from mica.arrays import NDArray
from mica.variant import kernel

RowRanges = kernel.RowRanges
Numbers = NDArray[np.int64]

#: So many ranges are sooner taken one by one.
FEW = 64


def ranges_of(rows: Numbers) -> RowRanges:
    """The ranges of these row numbers."""
    if not len(rows):
        return []
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    firsts = rows[np.concatenate([[0], breaks])]
    lasts = rows[np.concatenate([breaks - 1, [len(rows) - 1]])] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def rows_of(ranges: RowRanges) -> int:
    """How many rows there are."""
    return int(sum(map(itemgetter(1), ranges)) - sum(map(itemgetter(0), ranges)))


def intersect(left: RowRanges, right: RowRanges) -> RowRanges:
    """The rows that are in both."""
    if len(left) + len(right) > FEW:
        return _in_both(_spans(left), _spans(right))
    found: RowRanges = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            found.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def _in_both(left: Numbers, right: Numbers) -> RowRanges:
    """The same of arrays (`_spans`): each range of the left meets a run of those of the right."""
    first = np.searchsorted(right[:, 1], left[:, 0], "right")
    counts = np.maximum(np.searchsorted(right[:, 0], left[:, 1], "left") - first, 0)
    before = np.cumsum(counts) - counts
    own = np.repeat(np.arange(len(left)), counts)
    other = np.arange(len(own)) + np.repeat(first - before, counts)
    starts = np.maximum(left[own, 0], right[other, 0])
    ends = np.minimum(left[own, 1], right[other, 1])
    keep = starts < ends
    return list(zip(starts[keep].tolist(), ends[keep].tolist(), strict=True))


def of_files(ranges: RowRanges, ends: Sequence[int]) -> list[RowRanges]:
    """The ranges of files that are numbered through, of which these are the ends: those of each, by its own numbers."""
    found: list[RowRanges] = []
    left, begin = iter(ranges), 0
    at = next(left, None)
    for end in ends:
        own: RowRanges = []
        while at is not None and at[0] < end:
            own.append((at[0] - begin, min(at[1], end) - begin))
            at = (end, at[1]) if at[1] > end else next(left, None)
        found.append(own)
        begin = end
    return found


def without(ranges: RowRanges, gone: RowRanges) -> RowRanges:
    """The ranges without `gone`, which are inside of them."""
    edges = [0, *itertools.chain.from_iterable(gone), 1 << 62]
    if len(ranges) + len(gone) > FEW:
        return _in_both(_spans(ranges), np.array(edges, np.int64).reshape(-1, 2))
    return intersect(ranges, list(zip(edges[::2], edges[1::2], strict=True)))


def without_rows(span: tuple[int, int], deleted: NDArray[np.integer]) -> RowRanges:
    """One range without the deleted rows, of which some may be outside of it."""
    start, end = span
    edges = deleted[(deleted >= start) & (deleted < end)].astype(np.int64)
    starts = np.concatenate([[start], edges + 1])
    ends = np.concatenate([edges, [end]])
    keep = ends > starts
    return list(zip(starts[keep].tolist(), ends[keep].tolist(), strict=True))


def numbers_at(ranges: RowRanges, places: Numbers) -> Numbers:
    """The numbers of the rows at these places among the rows of the ranges."""
    return _numbers(*_edges(ranges), places)


def places_in(ranges: RowRanges, rows: Numbers) -> Numbers:
    """The places of these rows, which are in the ranges, among the rows of the ranges."""
    starts, before = _edges(ranges)
    at = np.searchsorted(starts, rows, "right") - 1
    return np.asarray(before[at] + rows - starts[at], np.int64)


class Positions:
    """The rows of some ranges, one after another, by their numbers in the file."""

    def __init__(self, ranges: RowRanges) -> None:
        self._starts, self._before = _edges(ranges)
        self._done = 0

    @property
    def left(self) -> int:
        """How many are left."""
        return int(self._before[-1]) - self._done

    def next(self, count: int) -> Numbers:
        """The next rows."""
        first = int(np.searchsorted(self._before, self._done, "right")) - 1
        found = np.arange(self._done, self._done + count)
        self._done += count
        if count and self._done <= self._before[first + 1]:  # all of one range
            return np.asarray(found + (self._starts[first] - self._before[first]), np.int64)
        return _numbers(self._starts, self._before, found)


def _edges(ranges: RowRanges) -> tuple[Numbers, Numbers]:
    """The first row of each range, and how many rows are before it; then how many there are."""
    spans = _spans(ranges)
    return spans[:, 0].copy(), np.concatenate([[0], np.cumsum(spans[:, 1] - spans[:, 0])])


def _spans(ranges: RowRanges) -> Numbers:
    """The ranges as rows of an array: start and end."""
    return np.fromiter(itertools.chain.from_iterable(ranges), np.int64, 2 * len(ranges)).reshape(-1, 2)


def _numbers(starts: Numbers, before: Numbers, at: Numbers) -> Numbers:
    found = np.searchsorted(before, at, "right") - 1
    return np.asarray(starts[found] + at - before[found], np.int64)
