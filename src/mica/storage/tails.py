"""The ends of files in object stores, which hold their footers.

The rule: the end of a file is fetched once, however often the file is opened: a scan opens a bare file for its schema
and then to read it, and an explained scan opens files before it is run. Bytes are kept as long as the scan's source is,
up to `LIMIT` of them in all, and do not travel to workers. A file of a table never changes; a bare one may be replaced,
so its end counts for `BRIEFLY`, about as long as a reader that just opened it would rely on it. Local files need none
of it: the system's cache holds them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from mica.storage.base import Storage

#: Bytes that are kept of all files together, and of one.
LIMIT = 16 << 20
LIMIT_OF_ONE = 1 << 20

#: Seconds for which the end of a file counts that may be replaced.
BRIEFLY = 10.0

Ranges = Sequence[tuple[int, int]]


class Tails:
    """The ends of some files, which count for so many seconds; None: for good."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._kept: dict[tuple[str, int], bytes] = {}
        self._since: dict[tuple[str, int], float] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Tails], tuple[float | None]]:
        return Tails, (self._seconds,)

    def of(self, key: tuple[str, int]) -> bytes:
        """What is kept of a file, by its full name and its size."""
        with self._lock:
            if self._seconds is not None and time.monotonic() - self._since.get(key, 0.0) > self._seconds:
                self._bytes -= len(self._kept.pop(key, b""))
            return self._kept.get(key, b"")

    def keep(self, key: tuple[str, int], end: bytes, before: bytes) -> None:
        """Keeps `before` in front of what is kept, `end`: a long footer comes in two steps."""
        with self._lock:
            fits = self._bytes + len(before) <= LIMIT and len(end) + len(before) <= LIMIT_OF_ONE
            if fits and self._kept.get(key, b"") == end:
                if not end:
                    self._since[key] = time.monotonic()
                self._kept[key] = before + end
                self._bytes += len(before)


class Fetch:
    """`Storage.read_ranges` of one file, less what is kept of it."""

    def __init__(self, tails: Tails, storage: Storage, rel: str, size: int) -> None:
        self._tails, self._storage, self._rel, self._size = tails, storage, rel, size
        self._key = storage.path(rel), size
        #: Bytes that were read.
        self.fetched = 0

    def __call__(self, ranges: Ranges) -> list[bytes]:
        """The bytes [start, end) of each range."""
        end = self._tails.of(self._key)
        begin = self._size - len(end)
        if all(start >= begin for start, _ in ranges):
            return [end[start - begin : stop - begin] for start, stop in ranges]
        found = self._storage.read_ranges(self._rel, ranges)
        self.fetched += sum(map(len, found))
        if len(found) == 1 and ranges[0][1] == begin:
            self._tails.keep(self._key, end, bytes(found[0]))
        return found
