"""Files in object stores whose last request ends while others are written.

The rule: who writes many small files to a store would wait for the answer to each, so these are asked for in the
background, and whoever needs the files waits for all of them at once.
"""

from __future__ import annotations

import contextlib
from collections import deque

from mica import late, threads
from mica.storage.base import Writer

#: Bytes that a file has at most when it ends: those before were sent as parts.
_LAST = 10 << 20

#: Bytes of files that end in the background at most.
_MOST = 32 << 20


class Uploads:
    """The files of one writer that end in the background."""

    def __init__(self) -> None:
        self._ending: deque[tuple[int, late.futures.Future[None]]] = deque()
        self._bytes = 0

    def end(self, file: Writer, size: int) -> None:
        """Closes a file of so many bytes, in the background. Raises if one before could not be written."""
        own = min(size, _LAST)
        while self._ending and (len(self._ending) >= threads.REQUESTS or self._bytes + own > _MOST):
            self._wait_for_one()
        self._ending.append((own, threads.soon(file.close)))
        self._bytes += own

    def wait(self) -> None:
        """Returns when all files are complete. Raises if one could not be written."""
        while self._ending:
            self._wait_for_one()

    def give_up(self) -> None:
        """Returns when no file will appear any more."""
        while self._ending:
            with contextlib.suppress(Exception):
                self._wait_for_one()

    def _wait_for_one(self) -> None:
        size, ending = self._ending[0]
        error = ending.exception()  # who is interrupted here waits again when he gives up
        self._ending.popleft()
        self._bytes -= size
        if error is not None:
            raise error
