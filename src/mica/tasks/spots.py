"""Evenly spaced spots in the rows of a file, for samples."""

from __future__ import annotations

from mica.skipping.row_ranges import RowRanges, rows_of

#: Rows of a spot.
SPOT_ROWS = 64


def spots(rows: RowRanges, wanted: int) -> RowRanges:
    """About `wanted` of the rows, in evenly spaced spots."""
    count = rows_of(rows)
    if count <= wanted:
        return rows
    step = max(SPOT_ROWS, count * SPOT_ROWS // max(1, wanted))
    found, before = [], 0
    for start, end in rows:
        first = -(-before // step) * step
        for at in range(first, before + end - start, step):
            place = start + at - before
            found.append((place, min(place + SPOT_ROWS, end)))
        before += end - start
    return found
