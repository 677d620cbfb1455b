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
from typing import TypeVar

import pyarrow as pa

from mica import late, threads
from mica.errors import MicaError
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

    lock, held = threading.Lock(), 0

    def whole(file: Item, lent: Lent) -> list[pa.RecordBatch] | None:
        """What comes of a file, None if too much would wait."""
        nonlocal held
        found, size = list[pa.RecordBatch](), 0
        late.futures.wait(lent)
        for batch in read(file):
            found.append(batch)
            size += batch.nbytes
            if not once and held + size > HELD_BYTES:
                return None
        with lock:
            held += size
        return found

    def begun(file: Item) -> tuple[late.futures.Future[list[pa.RecordBatch] | None] | None, Lent]:
        lent: Lent = () if lending is None else lending.begin(_files(file))
        try:
            return pool.submit(contextvars.copy_context().run, whole, file, lent), lent
        except RuntimeError:  # Python ends
            return None, lent

    decoded = readers if lending is None else min(readers, DECODED)
    pool = late.futures.ThreadPoolExecutor(decoded, thread_name_prefix="mica-ahead")
    waiting: deque[tuple[Item, int, late.futures.Future[list[pa.RecordBatch] | None] | None, Lent]] = deque()
    left, filled, ahead = iter(files), 0, 0
    most = 2 if few else 4 * readers
    try:
        coming = next(left, None)
        while coming is not None or waiting:
            while coming is not None and len(waiting) < most:
                size = _size(coming)
                count = _count(coming)
                if waiting and (filled + size > AHEAD_BYTES or ahead + count > most_files):
                    break
                waiting.append((coming, size, *((None, ()) if size >= AHEAD_BYTES else begun(coming))))
                filled, ahead = filled + size, ahead + count
                coming = next(left, None)
            file, size, future, lent = waiting[0]
            found = None if future is None or (not once and future.exception()) else future.result()
            if found is None:
                yield from read(file)
            else:
                yield from found
                with lock:
                    held -= sum(batch.nbytes for batch in found)
            if lending is not None:
                lending.give_back(lent)
            waiting.popleft()
            filled, ahead = filled - size, ahead - _count(file)
            most = min(2 * most, 4 * readers)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if lending is not None:
            lending.give_back([one for *_, lent in waiting for one in lent])


def _files(item: FilePart | Sequence[object]) -> Sequence[FilePart]:
    return [item] if isinstance(item, FilePart) else [one for one in item if isinstance(one, FilePart)]


def _count(item: FilePart | Sequence[object]) -> int:
    return len(_files(item))


def _size(item: FilePart | Sequence[object]) -> int:
    return sum(file.size or AHEAD_BYTES for file in _files(item))
