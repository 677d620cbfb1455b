"""Batches for libraries that ask for them on threads of their own.

The rule: none of these threads is in Python when Python ends. pyarrow's Scanner reads ahead on one, and whoever left it
in the middle (`head`, a loop with `break`) would have a process that never ends: Python stops the thread where it asks
for the next batch, and Arrow's pool waits for it at exit. So before Python ends, the batches of each of these threads
end, without an error, whose object it would need Python for, and it is waited for. The main thread may read on, as a
function of `atexit` does; of rows that it alone read there is no such thread.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Iterator

import pyarrow as pa

#: Seconds after which a thread that asked for nothing more is taken for one that waits: it reads ahead no further.
_WAITS = 0.5


class Foreign(Iterator[pa.RecordBatch]):
    """The batches, to be read by one thread at a time."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._asked = self._over = self._ending = False
        #: Whether the main thread alone has asked so far; None: nobody has.
        self._by_main: bool | None = None
        self._left = time.monotonic()
        _OPEN.add(self)

    def __next__(self) -> pa.RecordBatch:
        """The next batch; there is none while Python ends, but for the main thread."""
        self._asked = True
        main = threading.current_thread() is threading.main_thread()
        try:
            if self._ending and not main:
                raise StopIteration
            self._by_main = main and self._by_main is not False
            return next(self._batches)
        except BaseException:
            self._over = True
            raise
        finally:
            self._left = time.monotonic()
            self._asked = False

    def end(self) -> None:
        """Returns when no other thread will ask again."""
        self._ending = True
        while self._asked or not (self._over or self._by_main or time.monotonic() - self._left > _WAITS):
            time.sleep(0.001)


_OPEN = weakref.WeakSet[Foreign]()


def _end() -> None:
    for one in list(_OPEN):
        one.end()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.clear)  # their threads stay with the parent
