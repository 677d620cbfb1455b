"""Deletes or updates rows, file by file.

The rule: a file without a matching row is not changed, and of a file whose every row is deleted only the predicate's
columns are read. If a deletion vector is allowed, the file stays and gets one; otherwise its remaining rows are
rewritten with the same shredding. A row matches if the predicate is true for it, not if it is NULL. With a change data
feed the changed rows are written to change files too, unless deletion vectors alone say which rows are gone.

Source: PROTOCOL.md, "Deletion Vectors", "Change Data Files".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica.expressions.bind import BoundExpr
from mica.log.deletion_vectors import vector_of
from mica.records import dataclass
from mica.skipping.row_ranges import RowRanges, numbers_at, of_files, rows_of, without
from mica.tasks.changed_rows import of_type, write_changes
from mica.tasks.each_file import each_file
from mica.tasks.facts import facts
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.read import read_ranges
from mica.tasks.rewrite import shredded_as
from mica.tasks.stored import rows_after
from mica.tasks.together import found_together
from mica.tasks.write import WriteSpec, write_files


@dataclass(frozen=True)
class ChangeSpec:
    """What is the same for every file."""

    #: Its predicate selects the rows, its outputs are the table's columns after the change.
    read: ReadSpec
    write: WriteSpec
    #: Whether matching rows are deleted; otherwise they are updated.
    deletes: bool
    #: The table's columns as they are, for rows that are copied.
    own: Mapping[str, BoundExpr]
    #: The numbers of the files that may get a deletion vector.
    vectors: frozenset[int] = frozenset()
    #: The table's columns before the change, for change files; None: the commit needs none.
    before: Mapping[str, BoundExpr] | None = None


def change_files(spec: ChangeSpec, files: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """Facts of new files, of deletion vectors, and of the files that they replace. In small files the rows are looked
    for together."""
    predicate = spec.read.predicate

    def find(file: DataFileReader) -> RowRanges:
        return file.matching(predicate, file.ranges)

    def change(found: tuple[FilePart, RowRanges | None]) -> Iterator[pa.RecordBatch]:
        yield from _change(spec, *found)

    if predicate is None:
        yield from each_file(partial(_change, spec), files, spec.read, once=True)
        return
    looked = found_together(spec.read, files, predicate.leaves, find, of_files)
    yield from each_file(change, (found for found in looked if found[1] != []), spec.read, once=True)


def _change(spec: ChangeSpec, part: FilePart, matching: RowRanges | None = None) -> Iterator[pa.RecordBatch]:
    file = DataFileReader(spec.read, part)
    ranges = file.ranges
    if matching is None:
        matching = file.matching(spec.read.predicate, ranges)
    count, changed = rows_of(ranges), rows_of(matching)
    if not changed:
        return
    told: list[dict[str, Any]] = [{"kind": "changed", "rows": changed}]
    if changed < count and part.number in spec.vectors:
        told.append(new_vector(file, matching))
        written = [] if spec.deletes else matching
    else:
        told.append({"kind": "remove", "file": part.number})
        written = without(ranges, matching) if spec.deletes else ranges
        told.append({"kind": "copied", "rows": rows_of(written) - (0 if spec.deletes else changed)})
    write = shredded_as(spec.write, file.reader)
    if written:
        updated = [] if spec.deletes else matching
        yield from write_files(write, rows_after(file, written, updated, partial(read_ranges, file), spec.own, write))
    if spec.before is not None:
        yield from write_changes(write, _changed_rows(spec, spec.before, file, matching))
    yield facts(told, spec.write.collated)


def _changed_rows(
    spec: ChangeSpec, before: Mapping[str, BoundExpr], file: DataFileReader, matching: RowRanges
) -> Iterator[pa.RecordBatch]:
    old = read_ranges(file, matching, outputs=before)
    yield from of_type("delete" if spec.deletes else "update_preimage", old)
    if not spec.deletes:
        yield from of_type("update_postimage", read_ranges(file, matching))


def new_vector(file: DataFileReader, gone: RowRanges) -> dict[str, Any]:
    """The fact of the deletion vector of a whole file from which these rows go too: all but those that are left."""
    every = without([(0, file.reader.num_rows)], without(file.ranges, gone))
    rows = numbers_at(every, np.arange(rows_of(every)))
    vector = vector_of(rows.astype(np.uint64))
    return {"kind": "vector", "file": file.part.number, "vector": vector, "cardinality": len(rows)}
