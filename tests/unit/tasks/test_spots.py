"""Spots of a sample are spread over all rows."""

from __future__ import annotations

from mica.tasks.spots import SPOT_ROWS, spots


def test_few_rows_are_all_taken() -> None:
    assert spots([(3, 10), (20, 30)], 17) == [(3, 10), (20, 30)]
    assert spots([], 5) == []


def test_many_rows_are_sampled_evenly() -> None:
    found = spots([(0, 100_000), (200_000, 300_000)], 1000)
    assert 900 <= sum(end - start for start, end in found) <= 1100
    assert sum(start < 100_000 for start, _ in found) in range(7, 10)
    assert all(end - start <= SPOT_ROWS and not 100_000 < end < 200_000 for start, end in found)
    assert found == sorted(found)
