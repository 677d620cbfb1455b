"""Rows of a table's files deleted or updated, file by file.

The rule: a file without a matching row is not touched, and one of which every row goes is not read for its other
columns. Where a deletion vector may stand for the rows that go, the file stays and the vector grows; otherwise the rows
that are left are written anew, shredded as they were. A row matches when the predicate is true for it: NULL is not.

Source: PROTOCOL.md, "Deletion Vectors".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from mica.log.deletion_vectors import deleted_rows, vector_of
from mica.skipping.footer import Ranges
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.read import read_ranges
from mica.tasks.rewrite import shredded_as
from mica.tasks.write import WriteSpec, facts, write_files


@dataclass(frozen=True)
class ChangeSpec:
    """What is the same for every file."""

    #: Its predicate says which rows match, its outputs what the table's columns are afterwards.
    read: ReadSpec
    write: WriteSpec
    #: Whether rows that match go; otherwise they are written with other values.
    deletes: bool
    #: The files that may keep their rows under a deletion vector, by their numbers.
    vectors: frozenset[int] = frozenset()


def change_files(spec: ChangeSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """Facts of new files, of deletion vectors, and of the files that they stand for."""
    for part in files:
        yield from _change(spec, part)


def _change(spec: ChangeSpec, part: FilePart) -> Iterator[pa.RecordBatch]:
    file = DataFileReader(spec.read, part)
    ranges = file.ranges()
    matching = _matching(file, ranges)
    count, changed = _rows(ranges), _rows(matching)
    if not changed:
        return
    told: list[dict[str, Any]] = [{"kind": "changed", "rows": changed}]
    if changed < count and part.number in spec.vectors:
        told.append(_vector(spec, part, matching))
        written = [] if spec.deletes else matching
    else:
        told.append({"kind": "remove", "file": part.number})
        written = _without(ranges, matching) if spec.deletes else ranges
        told.append({"kind": "copied", "rows": _rows(written) - (0 if spec.deletes else changed)})
    if written:
        yield from write_files(shredded_as(spec.write, file.reader), read_ranges(file, written))
    yield facts(told, spec.write.collated)


def _matching(file: DataFileReader, ranges: Ranges) -> Ranges:
    predicate = file.spec.predicate
    if predicate is None:
        return ranges
    for _ in file.passing([], predicate, file.possible(predicate, ranges), tracked=True):
        pass
    return file.passed


def _vector(spec: ChangeSpec, part: FilePart, matching: Ranges) -> dict[str, Any]:
    """The deletion vector of the file, with what it deleted before."""
    rows = [np.arange(start, end, dtype=np.uint64) for start, end in matching]
    if part.deletion_vector is not None:
        rows.append(deleted_rows(spec.read.storage, part.deletion_vector))
    every = np.unique(np.concatenate(rows))
    return {"kind": "vector", "file": part.number, "vector": vector_of(every), "cardinality": len(every)}


def _rows(ranges: Ranges) -> int:
    return sum(end - start for start, end in ranges)


def _without(ranges: Ranges, gone: Ranges) -> Ranges:
    """The ranges less others that lie in them; both are in order."""
    left: Ranges = []
    holes = iter([*gone, (1 << 62, 1 << 62)])
    hole = next(holes)
    for start, end in ranges:
        while hole[0] < end:
            if hole[1] <= start:
                hole = next(holes)
                continue
            if hole[0] > start:
                left.append((start, hole[0]))
            start = hole[1]  # noqa: PLW2901
            if start >= end:
                break
            hole = next(holes)
        if start < end:
            left.append((start, end))
    return left
