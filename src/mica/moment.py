"""The moment that expressions take for the current time.

The rule: all expressions of one statement see one moment, that of its beginning (Spark's ComputeCurrentTime): those
that an UPDATE sets, those of generated columns, defaults and constraints, and those that find its rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_MOMENT: ContextVar[int | None] = ContextVar("moment", default=None)


def now() -> int:
    """The moment of the statement that runs in this context, or else this one: microseconds since 1970 UTC."""
    held = _MOMENT.get()
    return time.time_ns() // 1000 if held is None else held


@contextmanager
def one_moment(moment: int | None = None) -> Iterator[None]:
    """Inside, `now` does not move on: it is the given moment, else that of the statement around, else that of entry."""
    token = _MOMENT.set(now() if moment is None else moment)
    try:
        yield
    finally:
        _MOMENT.reset(token)
