"""Erases a path from the Variants of data files, file by file.

The rule: a file is rewritten if a row of it that matches has the path, or if a row that a deletion vector hides has it:
hidden rows lie in the file all the same, and a rewrite leaves them out. New files have no deletion vector. If the path
goes from every row, it goes from the shredding schema and with it from the names in the metadata, too.

With a change data feed the changed rows are written to change files, and no row in them has the path: `update_preimage`
and `update_postimage` are the same row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from mica.expressions.bind import BoundExpr
from mica.records import dataclass
from mica.skipping.row_ranges import RowRanges, rows_of, without
from mica.stats.columns import physical_names
from mica.tasks.changed_rows import of_type, write_changes
from mica.tasks.each_file import each_file
from mica.tasks.facts import facts
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.read import read_ranges
from mica.tasks.rewrite import shredded_as
from mica.tasks.write import WriteSpec, write_files
from mica.variant import kernel
from mica.variant.path import Step


@dataclass(frozen=True)
class EraseSpec:
    """What is the same for every file."""

    #: Its predicate selects the rows that have the path and are to lose it, its outputs are the columns afterwards.
    read: ReadSpec
    write: WriteSpec
    #: True for any row that has the path.
    holds: BoundExpr
    column: tuple[str, ...]
    steps: tuple[Step, ...]
    #: Whether every row loses the path.
    whole: bool
    #: Whether the commit needs change files.
    feeds: bool = False
    #: Reads the Variants alone, if names of the path in their metadata go too.
    plain: ReadSpec | None = None


def erase_files(spec: EraseSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """Facts of new files and of the files that they replace."""

    def erase(part: FilePart) -> Iterator[pa.RecordBatch]:
        file = DataFileReader(spec.read, part)
        ranges = file.ranges
        matching = file.matching(spec.read.predicate, ranges)
        changed = rows_of(matching)
        if not changed and not _hides(spec, file, part, ranges) and not _names(spec, part, ranges):
            return
        write = _write_spec(spec, file)
        if ranges:
            yield from write_files(write, read_ranges(file, ranges))
        if spec.feeds and changed:
            yield from write_changes(write, _changed_rows(file, matching))
        told = [
            {"kind": "changed", "rows": changed},
            {"kind": "copied", "rows": rows_of(ranges) - changed},
            {"kind": "remove", "file": part.number},
        ]
        yield facts(told, spec.write.collated)

    yield from each_file(erase, files, spec.read, once=True)


def _changed_rows(file: DataFileReader, matching: RowRanges) -> Iterator[pa.RecordBatch]:
    yield from of_type("update_preimage", read_ranges(file, matching))
    yield from of_type("update_postimage", read_ranges(file, matching))


def _hides(spec: EraseSpec, file: DataFileReader, part: FilePart, ranges: RowRanges) -> bool:
    """Whether a deleted row of the file has the path."""
    if part.deletion_vector is None or not file.reader.num_rows:
        return False
    hidden = without([(0, file.reader.num_rows)], ranges)
    return bool(rows_of(file.matching(spec.holds, hidden)))


def _names(spec: EraseSpec, part: FilePart, ranges: RowRanges) -> bool:
    """Whether the metadata of a row still names the path, which the row does not have."""
    if spec.plain is None:
        return False
    return any(found.column("name").true_count for found in traces(spec.plain, part, spec.steps, ranges))


def traces(
    plain: ReadSpec, part: FilePart, steps: tuple[Step, ...], ranges: RowRanges | None = None
) -> Iterator[pa.RecordBatch]:
    """Where a path is in rows of a file (None: all that are not deleted), whose Variants `plain` reads alone: see
    `kernel.traces`."""
    file = DataFileReader(plain, part)
    shared = _shares_name(plain, file, steps)
    for batch in read_ranges(file, file.ranges if ranges is None else ranges):
        found = kernel.traces(pa.record_batch([batch.column(0)], names=["v"]), steps)
        yield found.set_column(1, "name", pa.repeat(False, found.num_rows)) if shared else found


def _shares_name(plain: ReadSpec, file: DataFileReader, steps: tuple[Step, ...]) -> bool:
    """Whether another path of the file's shredding schema, which lacks this one, has the last key: the metadata of all
    rows has the names of the schema, so that it says nothing of a row, and a rewrite would have it again."""
    [leaf] = plain.outputs["v"].leaves
    found = file.reader.tree(physical_names(plain.columns, leaf.column))
    return found is not None and without_path(found[0], steps) == found[0] and _has_name(found[0], steps[-1])


def _has_name(tree: pa.DataType, name: Step) -> bool:
    """Whether a field of the shredding tree, however deep, is called so."""
    if pa.types.is_list(tree):
        return _has_name(tree.value_type, name)
    return pa.types.is_struct(tree) and any(f.name == name or _has_name(f.type, name) for f in tree)


def _write_spec(spec: EraseSpec, file: DataFileReader) -> WriteSpec:
    write = shredded_as(spec.write, file.reader)
    trees = write.shredding.trees
    if not spec.whole or not trees or spec.column not in trees:
        return write
    trees = {**trees, spec.column: without_path(trees[spec.column], spec.steps)}
    return replace(write, shredding=replace(write.shredding, trees=trees))


def without_path(tree: pa.DataType, steps: tuple[Step, ...]) -> pa.DataType:
    """The shredding tree without the fields at a path; an object that loses its last one is not shredded any more."""
    if not pa.types.is_struct(tree) or not steps:
        return tree
    fields = []
    for f in tree:
        if f.name != steps[0]:
            fields.append(f)
        elif len(steps) > 1:
            inner = without_path(f.type, steps[1:])
            fields += [] if pa.types.is_null(inner) and not pa.types.is_null(f.type) else [f.with_type(inner)]
    return pa.struct(fields) if fields else pa.null()
