"""Small parts of files in object stores that never change: the deletion vectors of a table above all.

The rule: such a file is fetched by pieces of `PIECE` bytes, each once in a process while it is among the last that were
used. An operation writes the vectors of all its files into one, so a request for each of them would ask for as many as
there are data files. Files of a local disk are not cached: the operating system does that.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence

from mica import late
from mica.errors import StorageError
from mica.storage.base import Storage

PIECE = 256 << 10

#: Pieces that are cached: 16 MiB.
_MOST = 64


class Pieces:
    """The pieces that were used last, by the full name of their file and their number; threads share a request."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._kept: OrderedDict[tuple[str, int], late.futures.Future[bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def read_ranges(self, storage: Storage, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """`Storage.read_ranges` of a file that never changes."""
        if storage.local_path is not None or any(end - start > PIECE for start, end in ranges):
            return storage.read_ranges(rel, ranges)
        return [self._range(storage, rel, start, end) for start, end in ranges]

    def keep(self, storage: Storage, rel: str, data: bytes) -> None:
        """Caches a file that was written just now."""
        if storage.local_path is None and len(data) <= _MOST * PIECE:
            for number, start in enumerate(range(0, len(data), PIECE)):
                piece, is_new = self._of(storage, rel, number)
                if is_new:
                    piece.set_result(data[start : start + PIECE])

    def _range(self, storage: Storage, rel: str, start: int, end: int) -> bytes:
        first, last = start // PIECE, (end - 1) // PIECE
        try:
            data = b"".join(self._piece(storage, rel, number) for number in range(first, last + 1))
        except StorageError:
            data = b""
        found = data[start - first * PIECE : end - first * PIECE]
        # What is wrong with the file is said where just this is asked for.
        return found if len(found) == end - start else storage.read_ranges(rel, [(start, end)])[0]

    def _piece(self, storage: Storage, rel: str, number: int) -> bytes:
        piece, is_new = self._of(storage, rel, number)
        if is_new:
            try:
                piece.set_result(storage.read_up_to(rel, number * PIECE, (number + 1) * PIECE))
            except BaseException as error:
                with self._lock:
                    key = storage.path(rel), number
                    if self._kept.get(key) is piece:
                        del self._kept[key]
                # An interrupt is for one thread: the others ask for themselves.
                given = error if isinstance(error, Exception) else StorageError("IO", "the request was interrupted")
                piece.set_exception(given)
                raise
        return piece.result()

    def _of(self, storage: Storage, rel: str, number: int) -> tuple[late.futures.Future[bytes], bool]:
        """A piece, and whether who asks has to fetch it."""
        key = storage.path(rel), number
        with self._lock:
            piece = self._kept.get(key)
            is_new = piece is None
            if piece is None:
                piece = self._kept[key] = late.futures.Future()
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return piece, is_new


#: Those of this process.
PIECES = Pieces()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PIECES.forget)  # what a thread of the parent fetches would never come
