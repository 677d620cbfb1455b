"""Reads files in their order, small ones several at once, as if they were one.

The rule: a small file takes longer to open, plan and judge than to decode, so files in which a scan meets the same
columns share one plan, and their rows one batch. Constants of the log are those of the file of each row, and deleted
rows are those of each file. Small files of an object store are fetched whole, many at once. The rows are those of the
files read one by one, in their order; what fails is read again that way, and the error names file and row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeVar

import pyarrow as pa

from mica import threads
from mica.errors import MicaError
from mica.expressions.bind import Leaf
from mica.schema.types import VARIANT, contains
from mica.tasks.ahead import AHEAD_FILES, in_order, readers_of
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.parts import FilePart

Found = TypeVar("Found")

#: Bytes of a small file, and what is read of those that are read as one, in bytes; all of these are open at once.
SMALL_BYTES = 1 << 20
TOGETHER_BYTES = 8 << 20
TOGETHER_FILES = 64

#: What is fetched of a file in vain at most, where it is fetched whole: about what a link gives within the time that
#: another request would take.
IN_VAIN_BYTES = 64 << 10

#: Rows that the deletion vectors of a small file name at most.
_NAMED_ROWS = 2_000

#: Where a few rows are wanted, or come from an object store, few files are read first, and then so many times as many.
_GROWTH = 4

#: A path is about this share of a file.
_PATH = 1 / 16


def read_together(
    spec: ReadSpec,
    parts: Sequence[FilePart],
    read: Callable[[DataFileReader, int], Iterable[pa.RecordBatch]],
    readers: int = 1,
) -> Iterator[pa.RecordBatch]:
    """What `read` returns for the files, in their order. Up to `readers` are read at once, those of an object store
    always several. Where files are read again, one by one, `read` is told how many rows were given before."""
    readers = max(readers, readers_of(spec.storage))
    few, most = spec.limit is not None, math.inf if spec.storage.local_path is not None else AHEAD_FILES
    yield from in_order(partial(_read, spec, read), groups(spec, parts, readers), readers, few=few, most_files=most)


def _read(
    spec: ReadSpec, read: Callable[[DataFileReader, int], Iterable[pa.RecordBatch]], parts: Sequence[FilePart]
) -> Iterator[pa.RecordBatch]:
    """What `read` returns for files that are alike by the log."""
    data, at = _fetched(spec, parts), 0
    if data is None:
        yield from _one_by_one(spec, read, parts)
        return
    while at < len(parts):
        first, *more = parts[at:]
        if not more:
            yield from read(DataFileReader(spec, first, more, data[at:]), 0)
            return
        given = 0
        try:
            file = DataFileReader(spec, first, more, data[at:])
            # Small files may hold much: their rows are given as they come, not kept until all are read.
            for batch in read(file, 0):
                given += batch.num_rows
                yield batch
        except MicaError:
            yield from _one_by_one(spec, read, parts[at:], data[at:], given)
            return
        at += len(file.ends)


def _one_by_one(
    spec: ReadSpec,
    read: Callable[[DataFileReader, int], Iterable[pa.RecordBatch]],
    parts: Sequence[FilePart],
    data: Sequence[bytes] = (),
    given: int = 0,
) -> Iterator[pa.RecordBatch]:
    """What `read` returns for each of the files by itself, but for rows that were given before."""
    for number, part in enumerate(parts):
        for batch in read(DataFileReader(spec, part, (), data[number : number + 1]), given):
            again = min(given, batch.num_rows)
            given -= again
            if not again or again < batch.num_rows:
                yield batch.slice(again)


def found_together(
    spec: ReadSpec,
    parts: Sequence[FilePart],
    leaves: Sequence[Leaf],
    find: Callable[[DataFileReader], Found],
    of_files: Callable[[Found, Sequence[int]], Sequence[Found]],
) -> Iterator[tuple[FilePart, Found | None]]:
    """Each file with what `find`, which reads these leaves, returns for it: files are read as one, and `of_files`
    divides what was found by where the rows of each end. None for files that are to be read by themselves: single ones,
    and those of which something fails."""
    for alike in groups(spec, parts, leaves=leaves):
        left, data = alike, _fetched(spec, alike, leaves) if len(alike) > 1 else []
        while len(left) > 1 and data is not None:
            try:
                file = DataFileReader(spec, left[0], left[1:], data)
                found = of_files(find(file), file.ends)
            except MicaError:  # reading each by itself names the file and the row
                break
            yield from zip(left, found, strict=False)  # the others have other columns
            left, data = left[len(found) :], data[len(found) :]
        yield from ((part, None) for part in left)


def groups(
    spec: ReadSpec, parts: Sequence[FilePart], readers: int = 1, *, leaves: Sequence[Leaf] | None = None
) -> Iterator[Sequence[FilePart]]:
    """The files that can be read as one, by what the log says of them, so that each reader has some. `leaves` are what
    is read: by default all that the scan needs."""
    leaves = spec.leaves if leaves is None else leaves
    names = {leaf.column[0] for leaf in leaves}
    # A few rows may be in the first file.
    files = 1 if spec.limit is not None else threads.REQUESTS if spec.storage.local_path is None else TOGETHER_FILES
    one, most, at = _most_of_one(spec, leaves), TOGETHER_BYTES / share(leaves), 0
    if readers > 1 and spec.storage.local_path is not None:
        most = min(most, sum(part.size or 0 for part in parts) / readers)
    while at < len(parts):
        # Of large files none is looked at but the first.
        end = _end(parts[at : at + files], one, most, names) if files > 1 and _small(parts[at], one) else 1
        yield parts[at : at + end]
        at += end
        files = min(files * _GROWTH, TOGETHER_FILES)


def _end(parts: Sequence[FilePart], one: float, most: float, names: AbstractSet[str]) -> int:
    """How many of the files, of which the first is small, are small and alike: of these columns the same are constants
    in the log."""
    first, *more = parts
    size, own = first.size or 0, first.constants.keys() & names
    for end, part in enumerate(more, 1):
        size += part.size or 0
        if part.constants.keys() & names != own or not _small(part, one) or size > most:
            return end
    return len(parts)


def _fetched(spec: ReadSpec, parts: Sequence[FilePart], leaves: Sequence[Leaf] | None = None) -> Sequence[bytes] | None:
    """The bytes of small files of an object store; of others nothing. None where a path is refused or a request fails:
    who reads that file by itself says why."""
    if spec.storage.local_path is not None:
        return []
    one = _most_of_one(spec, spec.leaves if leaves is None else leaves)
    if not all(_small(part, one) for part in parts):
        return []
    try:
        files = [(*spec.storage.locate(part.path), part.size or 0) for part in parts]
        return None if any(storage.local_path is not None for storage, *_ in files) else spec.tails.whole(files)
    except MicaError:  # the path of a later file may be refused, of which no row is wanted
        return None


def _most_of_one(spec: ReadSpec, leaves: Sequence[Leaf]) -> float:
    """The size of a small file at most. Of those in an object store little is fetched in vain."""
    vain = 1 - share(leaves if spec.predicate is None else spec.predicate.leaves)
    return SMALL_BYTES if spec.storage.local_path is not None or not vain else min(SMALL_BYTES, IN_VAIN_BYTES / vain)


def share(leaves: Sequence[Leaf]) -> float:
    """How much of its files is read for these, about: all, or some paths of them."""
    whole = any(not (leaf.path and leaf.path.steps) and contains(leaf.type, VARIANT) for leaf in leaves)
    return 1.0 if whole else min(1.0, max(1, len(leaves)) * _PATH)


def _small(part: FilePart, most: float) -> bool:
    """Also by what has to be known of its rows: a small file may have many, and as many deleted ones."""
    named = sum(vector["cardinality"] or 0 for vector in (part.deletion_vector, part.chosen) if vector is not None)
    return part.parts == 1 and part.size is not None and part.size <= most and named <= _NAMED_ROWS
