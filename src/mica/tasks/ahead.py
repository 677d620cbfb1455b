"""Reads files before it is their turn, or changes them, several at once.

The rule: what comes of them comes in their order, as if they were taken one by one, and the files that wait have a
bounded number of bytes. A small file takes longer to open than to decode, and on an object store longer to ask for; who
writes one there waits for the answer.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

import pyarrow as pa

from mica import late, threads
from mica.errors import MicaError
from mica.records import dataclass
from mica.storage import Storage
from mica.storage.tails import Tails
from mica.tasks.parts import FilePart

#: A file, or several, with what is known of them.
Item = TypeVar("Item", bound="FilePart | Sequence[object]")

#: Bytes of files that are read ahead; a larger file is read in its turn, batch by batch.
AHEAD_BYTES = 16 << 20

#: Files of an object store that are read ahead at most, if several at once: who closes what is read waits for them.
AHEAD_FILES = 128

#: Files that a task decodes at once of those that are fetched, and bytes of one that is fetched whole: about what a
#: link gives within the time of another request.
DECODED = 4
LENT_BYTES = 256 << 10

#: Bytes of rows that wait for their turn at most.
HELD_BYTES = 256 << 20


def readers_of(storage: Storage) -> int:
    """How many files of this place one task has at once: requests wait for an object store, not for a core."""
    return 1 if storage.local_path is not None else threads.REQUESTS


def at_once(storage: Storage, files: Sequence[FilePart]) -> int:
    """The same of a process in which each file is a task that decodes it."""
    mean = sum(map(_size, files)) // max(1, len(files))
    return min(readers_of(storage), 2 * DECODED, max(1, AHEAD_BYTES // max(1, mean)))


class Lending:
    """Fetches small files of a place whole, before it is their turn, and lends their bytes to who reads them."""

    def __init__(self, storage: Storage, tails: Tails | None = None) -> None:
        self.storage, self.tails = storage, Tails() if tails is None else tails

    def begin(self, files: Sequence[FilePart]) -> Lent:
        """Fetches those of the files that are small, in the background."""
        return [threads.soon(partial(self._fetch, file)) for file in files]

    def give_back(self, lent: Lent) -> None:
        """The files are read, or will not be."""
        for key in filter(None, [coming.result() for coming in lent]):
            self.tails.give_back(key)

    def _fetch(self, file: FilePart) -> tuple[str, int] | None:
        """How its bytes are called; who reads the file says what is wrong with it."""
        if file.size is None or file.size > LENT_BYTES:
            return None
        with contextlib.suppress(MicaError):
            storage, rel = self.storage.locate(file.path)
            return None if storage.local_path is not None else self.tails.lend(storage, rel, file.size)
        return None


Lent = Sequence["late.futures.Future[tuple[str, int] | None]"]


def in_order(
    read: Callable[[Item], Iterable[pa.RecordBatch]],
    files: Iterable[Item],
    readers: int,
    *,
    few: bool = False,
    most_files: float = math.inf,
    once: bool = False,
    lending: Lending | None = None,
) -> Iterator[pa.RecordBatch]:
    """The batches of all files, or groups of them, in their order; up to `readers` are read at once, of groups so many
    as have at most `most_files`. Where `few` rows may be enough, two are read first, and twice as many ahead after each
    that was not enough. What fails is read again in its turn, for what comes before the error, and fewer rows may be
    wanted by then; what writes is done `once`: a second time would leave the files of the first. With `lending` files
    are fetched before, and few have a thread: what is decoded may be large, and allocators keep memory for each."""
    if readers <= 1:
        for file in files:
            yield from read(file)
        return
    ahead = _Ahead(read, readers, once, lending)
    waiting = deque[_Waiting[Item]]()
    left, filled, count = iter(files), 0, 0
    most = 2 if few else 4 * readers
    try:
        coming = next(left, None)
        while coming is not None or waiting:
            while coming is not None and len(waiting) < most:
                size, more = _size(coming), len(_files(coming))
                if waiting and (filled + size > AHEAD_BYTES or count + more > most_files):
                    break
                waiting.append(ahead.begun(coming) if size < AHEAD_BYTES else _Waiting(coming))
                filled, count = filled + size, count + more
                coming = next(left, None)
            first = waiting[0]
            yield from ahead.batches(first)
            ahead.give_back([first])
            waiting.popleft()
            filled, count = filled - _size(first.file), count - len(_files(first.file))
            most = min(2 * most, 4 * readers)
    finally:
        ahead.stop()
        ahead.give_back(waiting)


@dataclass(frozen=True)
class _Waiting(Generic[Item]):
    """A file, or several, whose turn comes: what is read of it before, if that has begun, and what is lent for that."""

    file: Item
    coming: late.futures.Future[list[pa.RecordBatch] | None] | None = None
    lent: Lent = ()


class _Ahead(Generic[Item]):
    """Reads files on threads of its own; their batches wait, with a bounded number of bytes. See `in_order`."""

    def __init__(
        self, read: Callable[[Item], Iterable[pa.RecordBatch]], readers: int, once: bool, lending: Lending | None
    ) -> None:
        self._read, self._once, self._lending = read, once, lending
        self._lock, self._held = threading.Lock(), 0
        decoded = readers if lending is None else min(readers, DECODED)
        self._pool = late.futures.ThreadPoolExecutor(decoded, thread_name_prefix="mica-ahead")

    def begun(self, file: Item) -> _Waiting[Item]:
        """The file, of which a thread reads the batches."""
        lent: Lent = () if self._lending is None else self._lending.begin(_files(file))
        try:
            whole = partial(contextvars.copy_context().run, self._whole, file, lent)
            return _Waiting(file, threads.begun(self._pool, whole), lent)
        except RuntimeError:
            return _Waiting(file, None, lent)

    def _whole(self, file: Item, lent: Lent) -> list[pa.RecordBatch] | None:
        """What comes of a file, None if too much would wait."""
        found, size = list[pa.RecordBatch](), 0
        late.futures.wait(lent)
        for batch in self._read(file):
            found.append(batch)
            size += batch.nbytes
            if not self._once and self._held + size > HELD_BYTES:
                return None
        with self._lock:
            self._held += size
        return found

    def batches(self, one: _Waiting[Item]) -> Iterator[pa.RecordBatch]:
        """The batches of a file in its turn."""
        coming = one.coming
        found = None if coming is None or (not self._once and coming.exception()) else coming.result()
        if found is None:
            yield from self._read(one.file)
            return
        yield from found
        with self._lock:
            self._held -= sum(batch.nbytes for batch in found)

    def give_back(self, files: Iterable[_Waiting[Item]]) -> None:
        """The files are read, or will not be."""
        if self._lending is not None:
            self._lending.give_back([one for waiting in files for one in waiting.lent])

    def stop(self) -> None:
        """Returns when no thread reads any more."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _files(item: FilePart | Sequence[object]) -> Sequence[FilePart]:
    return [item] if isinstance(item, FilePart) else [one for one in item if isinstance(one, FilePart)]


def _size(item: FilePart | Sequence[object]) -> int:
    return sum(file.size or AHEAD_BYTES for file in _files(item))
