"""Ranges of rows say the same as sets of their numbers."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import mica.skipping.row_ranges as module
from mica.skipping.row_ranges import (
    Positions,
    RowRanges,
    intersect,
    numbers_at,
    of_files,
    places_in,
    ranges_of,
    rows_of,
    without,
    without_rows,
)


def _rows(ranges: RowRanges) -> list[int]:
    return [row for start, end in ranges for row in range(start, end)]


def _some(rng: random.Random, rows: list[int]) -> RowRanges:
    """The ranges of some of these rows."""
    return ranges_of(np.array(sorted(rng.sample(rows, rng.randrange(len(rows) + 1))), np.int64))


def _apart(ranges: RowRanges) -> bool:
    """In order, not empty, and apart from each other."""
    return all(a < b for a, b in ranges) and all(left[1] < right[0] for left, right in itertools.pairwise(ranges))


@pytest.fixture(params=["one by one", "as arrays"], autouse=True)
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW", 1 << 30 if request.param == "one by one" else -1)


def test_ranges_in_both() -> None:
    assert intersect([(0, 10), (20, 30)], [(5, 25), (29, 40)]) == [(5, 10), (20, 25), (29, 30)]
    assert intersect([(0, 10)], []) == []
    assert intersect([(0, 1), (2, 3)], [(1, 2)]) == []


def test_many_ranges_in_both(rng: random.Random) -> None:
    for _ in range(200):
        left, right = (_some(rng, list(range(60))) for _ in range(2))
        assert _rows(intersect(left, right)) == sorted(set(_rows(left)) & set(_rows(right)))
        # Ranges that touch, or are of no row, as the edges of what is taken out are.
        split = [(0, 0), *((row, row + 1) for row in _rows(left))]
        assert intersect(split, right) == [(row, row + 1) for row in sorted(set(_rows(left)) & set(_rows(right)))]
        assert _rows(intersect(right, split)) == sorted(set(_rows(left)) & set(_rows(right)))


def test_ranges_of_rows_hold_these_rows(rng: random.Random) -> None:
    for _ in range(200):
        rows = sorted(rng.sample(range(100), rng.randrange(100)))
        found = ranges_of(np.array(rows, np.int64))
        assert _apart(found)
        assert (_rows(found), rows_of(found)) == (rows, len(rows))


def test_deleted_rows_are_taken_out(rng: random.Random) -> None:
    for _ in range(200):
        start = rng.randrange(50)
        end = start + rng.randrange(1, 50)
        deleted = sorted(rng.sample(range(100), rng.randrange(100)))
        found = without_rows((start, end), np.array(deleted, np.uint64))
        assert _rows(found) == [row for row in range(start, end) if row not in deleted]
        assert _apart(found)


def test_ranges_are_taken_out(rng: random.Random) -> None:
    for _ in range(200):
        ranges = _some(rng, list(range(60)))
        gone = _some(rng, _rows(ranges))
        assert _rows(without(ranges, gone)) == sorted(set(_rows(ranges)) - set(_rows(gone)))


def test_places_and_numbers_are_inverse(rng: random.Random) -> None:
    for _ in range(200):
        ranges = _some(rng, list(range(60)))
        rows, every = np.array(_rows(ranges), np.int64), np.arange(rows_of(ranges))
        assert numbers_at(ranges, every).tolist() == rows.tolist()
        assert places_in(ranges, rows).tolist() == every.tolist()


def test_masks_become_row_numbers(rng: random.Random) -> None:
    for _ in range(200):
        edges = sorted(rng.sample(range(200), 2 * rng.randrange(1, 8)))
        ranges = list(zip(edges[::2], edges[1::2], strict=True))
        rows = _rows(ranges)
        chosen = [rng.random() < rng.choice((0.1, 0.9)) for _ in rows]
        positions, found, at = Positions(ranges), [], 0
        while at < len(rows):
            assert positions.left == len(rows) - at
            count = min(rng.randrange(1, 40), positions.left)
            mask = np.array(chosen[at : at + count], np.bool_)
            found += positions.next(count)[mask].tolist()
            at += count
        assert found == [row for row, wanted in zip(rows, chosen, strict=True) if wanted]


def test_ranges_of_files_that_are_numbered_through(rng: random.Random) -> None:
    for _ in range(200):
        ends = sorted(rng.choices(range(100), k=rng.randrange(1, 8)))
        ranges = _some(rng, list(range(ends[-1]))) if ends[-1] else []
        found = of_files(ranges, ends)
        assert len(found) == len(ends)
        for own, (begin, end) in zip(found, itertools.pairwise([0, *ends]), strict=True):
            assert [begin + row for row in _rows(own)] == [row for row in _rows(ranges) if begin <= row < end]
            assert _apart(own)
