"""What is fetched of files in object stores before it is needed, or once for several openings: their ends above all.

The rule: the end of a file is fetched once, however often the file is opened: a scan opens a file for its schema and
again to read it, and `explain` opens files before the scan runs. The cache lives as long as the scan's source,
holds up to `LIMIT` bytes, and is not sent to workers. A table's files never change; a file outside a table may be
replaced, so its end is valid only for `BRIEFLY`, about as long as a reader that just opened it would rely on it. Local
files are not cached: the operating system does that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial

from mica import late, threads
from mica.storage.base import Storage

#: The maximum of cached bytes, of all files together and of one.
LIMIT = 64 << 20
LIMIT_OF_ONE = 1 << 20

#: Seconds for which the end of a replaceable file is valid.
BRIEFLY = 10.0

Ranges = Sequence[tuple[int, int]]


class Tails:
    """The ends of some files, valid for so many seconds; None: forever."""

    def __init__(self, seconds: float | None = None) -> None:
        self._seconds = seconds
        self._kept: dict[tuple[str, int], bytes] = {}
        self._lent: dict[tuple[str, int], bytes] = {}
        self._since: dict[tuple[str, int], float] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def whole(self, files: Iterable[tuple[Storage, str, int]]) -> list[bytes]:
        """Returns all bytes of files of these sizes; what is not cached is requested at once."""
        return [coming.result() for coming in [threads.soon(partial(self._all, *file)) for file in files]]

    def lend(self, storage: Storage, rel: str, size: int) -> tuple[str, int]:
        """Caches all bytes of a file of this size until it is given back; returns how it is called."""
        key, data = (storage.path(rel), size), self._all(storage, rel, size)
        with self._lock:
            self._lent[key] = data
        return key

    def _all(self, storage: Storage, rel: str, size: int) -> bytes:
        key = storage.path(rel), size
        end = self.of(key)
        if len(end) >= size:
            return end
        [before] = storage.read_ranges(rel, [(0, size - len(end))])
        self.keep(key, end, before)
        return before + end if end else before

    def give_back(self, key: tuple[str, int]) -> None:
        """Ends a `lend`."""
        with self._lock:
            self._lent.pop(key, None)

    def __reduce__(self) -> tuple[type[Tails], tuple[float | None]]:
        return Tails, (self._seconds,)

    def of(self, key: tuple[str, int]) -> bytes:
        """Returns the cached end of a file, by its full name and its size."""
        with self._lock:
            if key in self._lent:
                return self._lent[key]
            if self._seconds is not None and time.monotonic() - self._since.get(key, 0.0) > self._seconds:
                self._bytes -= len(self._kept.pop(key, b""))
            return self._kept.get(key, b"")

    def keep(self, key: tuple[str, int], end: bytes, before: bytes) -> None:
        """Caches `before` in front of the cached `end`: a long footer is fetched in two steps."""
        with self._lock:
            fits = self._bytes + len(before) <= LIMIT and len(end) + len(before) <= LIMIT_OF_ONE
            if fits and self._kept.get(key, b"") == end:
                if not end:
                    self._since[key] = time.monotonic()
                self._kept[key] = before + end
                self._bytes += len(before)


class Fetch:
    """`Storage.read_ranges` of one file, except the cached bytes."""

    def __init__(self, tails: Tails, storage: Storage, rel: str, size: int) -> None:
        self._tails, self._storage, self._rel, self._size = tails, storage, rel, size
        self._key = storage.path(rel), size
        #: Bytes that were read.
        self.fetched = 0
        self._announced: tuple[Ranges, late.futures.Future[list[bytes]]] | None = None

    def announce(self, ranges: Ranges) -> None:
        """These ranges will be asked for together soon: they are read in the background, once."""
        if any(start < self._size - len(self._tails.of(self._key)) for start, _ in ranges):
            self._announced = ranges, threads.soon(lambda: self._storage.read_ranges(self._rel, ranges))

    def __call__(self, ranges: Ranges) -> list[bytes]:
        """Returns the bytes [start, end) of each range."""
        if self._announced is not None and self._announced[0] == ranges:
            coming, self._announced = self._announced[1], None
            found = coming.result()
            self.fetched += sum(map(len, found))
            return found
        end = self._tails.of(self._key)
        begin = self._size - len(end)
        if all(start >= begin for start, _ in ranges):
            return [end[start - begin : stop - begin] for start, stop in ranges]
        found = self._storage.read_ranges(self._rel, ranges)
        self.fetched += sum(map(len, found))
        if len(found) == 1 and ranges[0][1] == begin:
            self._tails.keep(self._key, end, bytes(found[0]))
        return found
