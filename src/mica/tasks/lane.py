"""The place of a task among those that run beside it, and the numbers that it gives to new rows.

The rule: no two tasks of a write give the same number, and no task knows how many others there are. Numbers come in
blocks; block `b` of task `i` is block `(i + b)(i + b + 1) / 2 + i` of all (Cantor's pairing function). A task that is
repeated gives the same numbers again.
"""

from __future__ import annotations

from contextvars import ContextVar

import numpy as np

from mica.arrays import NDArray
from mica.records import dataclass

#: Numbers in one block: a small write has no gaps.
BLOCK = 1 << 16


@dataclass
class Lane:
    """One task: its index, and how many numbers it has given."""

    index: int
    given: int = 0

    def take(self, count: int) -> NDArray[np.int64]:
        """The next numbers, ascending, from 0."""
        places = np.arange(self.given, self.given + count, dtype=np.int64)
        self.given += count
        return self._numbers(places)

    @property
    def end(self) -> int:
        """A number above all that were given."""
        return int(self._numbers(np.array([self.given - 1]))[0]) + 1 if self.given else 0

    def _numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        diagonal = self.index + places // BLOCK
        return (diagonal * (diagonal + 1) // 2 + self.index) * BLOCK + places % BLOCK


_CURRENT: ContextVar[Lane] = ContextVar("lane")


def begin(index: int) -> None:
    """Says that the calling thread runs the task of this index; engines call it before each task."""
    _CURRENT.set(Lane(index))


def current() -> Lane:
    """The lane of the task that runs here. A task asks once, when it starts."""
    return _CURRENT.get(Lane(0))
