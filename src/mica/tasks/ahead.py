"""Reads files before it is their turn, or changes them, several at once.

The rule: what comes of them comes in their order, as if they were taken one by one, and the files that wait have a
bounded number of bytes. A small file takes longer to open than to decode, and on an object store longer to ask for; who
writes one there waits for the answer.
"""

from __future__ import annotations

import contextvars
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa

from mica import late
from mica.storage import Storage
from mica.storage.tails import AHEAD_REQUESTS, REQUESTS
from mica.tasks.parts import FilePart

#: A file, or several, with what is known of them.
Item = TypeVar("Item", bound="FilePart | Sequence[object]")

#: Bytes of files that are read ahead; a larger file is read in its turn, batch by batch.
AHEAD_BYTES = 16 << 20

#: Files of an object store that are read ahead at most, if several at once: who closes what is read waits for them.
AHEAD_FILES = 4 * AHEAD_REQUESTS


def readers_of(storage: Storage) -> int:
    """How many files of this place one task has at once: requests wait for an object store, not for a core."""
    return 1 if storage.local_path is not None else REQUESTS


def at_once(storage: Storage, files: Sequence[FilePart]) -> int:
    """The same of a process in which each file is a task: large ones have something to do while they wait."""
    return min(readers_of(storage), max(1, AHEAD_BYTES // max([1, *map(_size, files)])))


def in_order(
    read: Callable[[Item], Iterable[pa.RecordBatch]],
    files: Iterable[Item],
    readers: int,
    *,
    few: bool = False,
    most_files: float = math.inf,
    once: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The batches of all files, or groups of them, in their order; up to `readers` are read at once, of groups so many
    as have at most `most_files`. Where `few` rows may be enough, two are read first, and twice as many ahead after each
    that was not enough. What fails is read again in its turn, for what comes before the error, and fewer
    rows may be wanted by then; what writes is done `once`: a second time would leave the files of the first."""
    if readers <= 1:
        for file in files:
            yield from read(file)
        return

    def whole(file: Item) -> list[pa.RecordBatch]:
        return list(read(file))

    def begun(file: Item) -> late.futures.Future[list[pa.RecordBatch]]:
        return pool.submit(contextvars.copy_context().run, whole, file)

    pool = late.futures.ThreadPoolExecutor(readers, thread_name_prefix="mica-ahead")
    waiting: deque[tuple[Item, int, late.futures.Future[list[pa.RecordBatch]] | None]] = deque()
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
                waiting.append((coming, size, None if size >= AHEAD_BYTES else begun(coming)))
                filled, ahead = filled + size, ahead + count
                coming = next(left, None)
            file, size, future = waiting.popleft()
            failed = future is not None and not once and future.exception() is not None
            yield from read(file) if future is None or failed else future.result()
            filled, ahead = filled - size, ahead - _count(file)
            most = min(2 * most, 4 * readers)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _files(item: FilePart | Sequence[object]) -> Sequence[FilePart]:
    return [item] if isinstance(item, FilePart) else [one for one in item if isinstance(one, FilePart)]


def _count(item: FilePart | Sequence[object]) -> int:
    return len(_files(item))


def _size(item: FilePart | Sequence[object]) -> int:
    return sum(file.size or AHEAD_BYTES for file in _files(item))
