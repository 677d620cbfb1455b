"""Makes rows in halves where all of them at once have no room.

The rule: how many rows are read at once is known before their new values are, and an array holds 2 GiB of texts only.
So rows are halved where that is said, down to a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from mica.expressions.room import NoRoomError, is_of_room


def in_halves(make: Callable[[int, int], pa.RecordBatch], end: int, *, first: int = 0) -> Iterator[pa.RecordBatch]:
    """What `make` gives for the rows from `first` to before `end`, as one batch if there is room. Errors: TOO_LARGE if
    there is none for a single row, those of `make`."""
    try:
        made = make(first, end)
    except (pa.ArrowException, NoRoomError) as e:
        if not is_of_room(e):
            raise
        if end - first <= 1:
            raise NoRoomError.of("the values of a row") from e
    else:
        yield made
        return
    middle = (first + end) // 2
    yield from in_halves(make, middle, first=first)
    yield from in_halves(make, end, first=middle)
