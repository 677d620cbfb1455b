"""A stored file as a seekable file object.

The rule: only the requested bytes are fetched, all of one file. A small file is fetched whole by the first request,
where pyarrow makes five that wait for each other.
"""

from __future__ import annotations

import io
from typing import Any

from mica.storage.base import Storage

#: Bytes of a small file: a link gives them within the time of a few requests.
WHOLE_BYTES = 1 << 20


class RangeFile(io.RawIOBase):
    """A file of a location, read by ranges; pyarrow reads only footers and column chunks from it. Reading raises
    `NOT_FOUND` once the file is not the one with this `tag` any more; without one, the one that was read first."""

    def __init__(self, storage: Storage, rel: str, size: int, tag: str | None = None) -> None:
        self._storage, self._rel, self._size, self._at = storage, rel, size, 0
        self.tag = tag
        self._whole: bytes | None = None

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = (0, self._at, self._size)[whence] + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._size, self._at + size)
        if end <= self._at:
            return b""
        start, self._at = self._at, end
        if self._size > WHOLE_BYTES:
            data, self.tag = self._storage.read_same(self._rel, start, end, self.tag)
            return data
        if self._whole is None:
            self._whole, self.tag = self._storage.read_same(self._rel, 0, self._size, self.tag)
        return self._whole[start:end]
