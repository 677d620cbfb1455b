"""The ends of files in object stores, which hold their footers.

The rule: the end of a file is fetched once, however often the file is opened: a scan opens a bare file for its schema
and then to read it, and an explained scan opens files before it is run. Bytes are kept as long as the scan's source is,
up to `LIMIT` of them in all, and do not travel to workers. Local files need none of it: the system's cache holds them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from mica.storage.base import Storage

#: Bytes that are kept of all files together, and of one.
LIMIT = 16 << 20
LIMIT_OF_ONE = 1 << 20

Ranges = Sequence[tuple[int, int]]


class Tails:
    """The ends of some files."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], bytes] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Tails], tuple[()]]:
        return Tails, ()

    def fetch(self, storage: Storage, rel: str, size: int) -> Callable[[Ranges], list[bytes]]:
        """As `storage.read_ranges` of a file of that size, less what is kept."""
        key = storage.path(rel), size

        def read(ranges: Ranges) -> list[bytes]:
            end = self._kept.get(key, b"")
            begin = size - len(end)
            if all(start >= begin for start, _ in ranges):
                return [end[start - begin : stop - begin] for start, stop in ranges]
            found = storage.read_ranges(rel, ranges)
            if len(found) == 1 and ranges[0][1] == begin:
                self._keep(key, end, bytes(found[0]))
            return found

        return read

    def _keep(self, key: tuple[str, int], end: bytes, before: bytes) -> None:
        """Keeps `before` in front of what is kept: a long footer comes in two steps."""
        with self._lock:
            fits = self._bytes + len(before) <= LIMIT and len(end) + len(before) <= LIMIT_OF_ONE
            if fits and self._kept.get(key, b"") == end:
                self._kept[key] = before + end
                self._bytes += len(before)
