"""Merges a source into data files: which rows change, and the files with the changed rows.

The rule: a file is read only where it can hold a row that a clause changes, and a file without such a row stays as it
is. Of a file that changes, the columns of ON are read first; new rows are written as by an update: the file gets a
deletion vector, or is written again with the same shredding. With a change data feed every changed row is written to
change files too.

Every task has the whole source, as in a broadcast join, and reports which source rows matched: the others are inserted
when all files are done. `shuffled_merge` does the same where the source is too large for that.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.cached import cached_property
from mica.expressions.evaluate import RowError, evaluate
from mica.expressions.joined import Side
from mica.records import dataclass
from mica.schema.arrow import to_arrow, to_arrow_field
from mica.schema.evolution import cast_to
from mica.schema.types import StructField
from mica.skipping.row_ranges import RowRanges, numbers_at, places_in, ranges_of, rows_of, without
from mica.tasks import lane
from mica.tasks.batches import cut
from mica.tasks.change import new_vector
from mica.tasks.changed_rows import of_type, write_changes, write_inserted
from mica.tasks.each_file import each_file
from mica.tasks.facts import facts
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.halves import in_halves
from mica.tasks.leaf_values import Leaves, distinct, extract
from mica.tasks.matching import SOURCE, Assigned, Changes, MatchSpec, Rows, SourceRows, choose, columns
from mica.tasks.parts import FilePart
from mica.tasks.read import outputs_of, read_ranges
from mica.tasks.rewrite import shredded_as
from mica.tasks.row_errors import located
from mica.tasks.stored import rows_after
from mica.tasks.together import found_together
from mica.tasks.write import WriteSpec, write_files
from mica.variant.plain import to_variants

#: Rows and bytes of the target that are matched at once.
_CHUNK_ROWS = 1 << 20
_CHUNK_BYTES = 256 << 20

#: Rows of a batch of inserted rows.
_INSERTED_ROWS = 16_384


#: Leaves of some source rows, the numbers of those that are inserted, and their clauses.
Chosen = tuple[Leaves, Rows, Rows]


@dataclass(frozen=True)
class MergeSpec:
    """What is the same for every file."""

    #: Its predicate is true for every row that can match, or None if every row must be seen; its outputs are the
    #: table's columns.
    read: ReadSpec
    write: WriteSpec
    match: MatchSpec
    #: The numbers of the files that may get a deletion vector.
    vectors: frozenset[int] = frozenset()
    #: Whether changed rows are written to change files.
    feeds: bool = False


class SharedSource:
    """The rows of a source, prepared once in each process that needs them."""

    def __init__(self, spec: MatchSpec, batch: pa.RecordBatch) -> None:
        self.spec, self.batch = spec, batch

    @cached_property
    def rows(self) -> SourceRows:
        """The rows, ready to be matched."""
        return SourceRows(self.spec, self.batch)

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self.spec, "batch": self.batch}


def merge_files(spec: MergeSpec, source: SharedSource, files: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """Facts of new files, deletion vectors and replaced files, and which source rows matched (see `matched_rows`)."""
    rows = source.rows
    matched = np.zeros(rows.batch.num_rows, np.bool_)
    leaves = [*spec.match.key_leaves, *(spec.read.predicate.leaves if spec.read.predicate is not None else ())]

    def find(file: DataFileReader) -> Changes:
        return _found(spec, file, rows, matched)

    def change(found: tuple[FilePart, Changes | None]) -> Iterator[pa.RecordBatch]:
        part, changes = found
        file = DataFileReader(spec.read, part)
        yield from change_file(spec, file, find(file) if changes is None else changes, rows.leaves)

    looked = found_together(spec.read, files, leaves, find, Changes.of_files)
    found = (one for one in looked if one[1] is None or len(one[1].rows))
    yield from each_file(change, found, spec.read, once=True)
    packed = zlib.compress(np.packbits(matched).tobytes(), 1)
    yield facts([{"kind": "matched", "vector": packed}], spec.write.collated)


def matched_rows(packed: bytes, count: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The mask of matched source rows in a fact of the kind `matched`."""
    return np.unpackbits(np.frombuffer(zlib.decompress(packed), np.uint8), count=count).astype(np.bool_)


def _found(spec: MergeSpec, file: DataFileReader, source: SourceRows, matched: np.ndarray[Any, Any]) -> Changes:
    """What happens to the rows of a file, by their numbers in it."""
    found, before = [], 0
    for chunk in target_rows(spec, file):
        try:
            one = source.changes(chunk, matched)
        except RowError as e:
            raise located(e, file.name) from None
        found.append(replace(one, rows=one.rows + before))
        before += chunk.rows
    changes = Changes.of(found)
    return replace(changes, rows=numbers_at(file.passed, changes.rows))


def target_rows(spec: MergeSpec, file: DataFileReader) -> Iterator[Leaves]:
    """What matching needs of the rows that can match, in large chunks. `file.passed` has their places afterwards."""
    predicate, leaves = spec.read.predicate, spec.match.key_leaves
    ranges = file.candidates(predicate)
    waiting: list[Leaves] = []
    rows = size = 0
    for found in file.passing(leaves, predicate, ranges, tracked=True):
        if not leaves:
            continue  # only their number counts
        waiting.append(found)
        rows += found.rows
        size += sum(column.nbytes for values in found.columns.values() for column in values)
        if rows >= _CHUNK_ROWS or size >= _CHUNK_BYTES:
            yield _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _joined(waiting)
    if not leaves and file.passed:
        yield Leaves(rows_of(file.passed), {})


def _joined(parts: Sequence[Leaves]) -> Leaves:
    if len(parts) == 1:
        return parts[0]
    names = parts[0].columns
    found = {
        leaf: [pa.concat_arrays([part.columns[leaf][i] for part in parts]) for i in range(len(names[leaf]))]
        for leaf in names
    }
    return Leaves(sum(part.rows for part in parts), found)


def change_file(spec: MergeSpec, file: DataFileReader, changes: Changes, source: Leaves) -> Iterator[pa.RecordBatch]:
    """Facts of one file after its changes, whose `sources` number the rows of `source`."""
    if not len(changes.rows):
        return
    part, ranges = file.part, file.ranges
    clauses = spec.match.clauses
    deleting = [i for i, clause in enumerate(clauses) if clause.action == "delete"]
    deletes = np.isin(changes.clauses, deleting)
    gone, updated = ranges_of(changes.rows[deletes]), ranges_of(changes.rows[~deletes])
    updates = changes.where(~deletes)
    counts = np.bincount(changes.clauses, minlength=len(clauses)).tolist()
    told: list[dict[str, Any]] = [
        {"kind": f"{clause.when} {clause.action}", "rows": count}
        for clause, count in zip(clauses, counts, strict=True)
        if count
    ]
    if len(changes.rows) < rows_of(ranges) and part.number in spec.vectors:
        told.append(new_vector(file, ranges_of(changes.rows)))
        written = updated
    else:
        written = without(ranges, gone)
        told.append({"kind": "remove", "file": part.number})
        told.append({"kind": "copied", "rows": rows_of(written) - rows_of(updated)})
    write = shredded_as(spec.write, file.reader)
    if written:

        def update(some: RowRanges) -> Iterator[pa.RecordBatch]:
            inside = (updates.rows >= some[0][0]) & (updates.rows < some[-1][1])
            return _after(spec, file, some, updates.where(inside), source)

        yield from write_files(write, rows_after(file, written, updated, update, file.spec.outputs, write))
    if spec.feeds:
        yield from write_changes(write, _changed(spec, file, gone, updated, updates, source))
    yield facts(told, spec.write.collated)


def _changed(
    spec: MergeSpec, file: DataFileReader, gone: RowRanges, updated: RowRanges, updates: Changes, source: Leaves
) -> Iterator[pa.RecordBatch]:
    yield from of_type("delete", read_ranges(file, gone))
    yield from of_type("update_preimage", read_ranges(file, updated))
    if updated:
        yield from of_type("update_postimage", _after(spec, file, updated, updates, source))


def _after(
    spec: MergeSpec, file: DataFileReader, ranges: RowRanges, updates: Changes, source: Leaves
) -> Iterator[pa.RecordBatch]:
    """The rows of these ranges after the updates, in the table's columns."""
    outputs, schema = file.spec.outputs, to_arrow(spec.write.stored(file.spec.outputs))
    own = [leaf for value in outputs.values() for leaf in value.leaves]
    leaves = distinct([*own, *spec.match.leaves("target", "update")])
    places = places_in(ranges, updates.rows)
    done = 0
    for found in file.passing(leaves, None, ranges):

        def made(first: int, end: int, found: Leaves = found, before: int = done) -> pa.RecordBatch:
            rows, start = found.slice(first, end), before + first
            batch = outputs_of(outputs, rows, schema)
            one, last = np.searchsorted(places, [start, before + end])
            if last == one:
                return batch
            some = Changes(places[one:last] - start, updates.clauses[one:last], updates.sources[one:last])
            sides: Mapping[Side, Leaves] = {"target": rows, "source": source}
            named = zip(schema.names, batch.columns, strict=True)
            try:
                arrays = [_assigned(spec, column, array, some, sides) for column, array in named]
            except RowError as e:
                raise located(e, file.name) from None
            return pa.RecordBatch.from_arrays(arrays, schema=schema)

        for piece in in_halves(made, found.rows):
            yield from cut(piece)
        done += found.rows


def insert_rows(spec: MergeSpec, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Writes source rows that match no row of the table, as the clauses say; yields facts."""
    yield from insert_chosen(spec, _chosen(spec, batch))


def insert_chosen(spec: MergeSpec, pieces: Iterable[Chosen]) -> Iterator[pa.RecordBatch]:
    """The same for source rows whose clauses are known."""
    count, rules, mine = 0, spec.write.rules, lane.current()

    def rows() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for leaves, numbered, clauses in pieces:
            # What the table makes depends on what a clause leaves out.
            for number in np.unique(clauses).tolist() if rules.supplied else [None]:
                mine_only = slice(None) if number is None else clauses == number
                some = numbered[mine_only]
                changes = Changes(np.arange(len(some)), clauses[mine_only], some)
                absent = () if number is None else rules.absent(spec.match.clauses[number].values)
                for batch in in_halves(partial(_inserted, spec, leaves, changes), len(some)):
                    count += batch.num_rows
                    yield from cut(rules.fill(batch, absent, mine))

    yield from (write_inserted if spec.feeds else write_files)(spec.write, rows())
    yield facts([{"kind": "not matched insert", "rows": count}], spec.write.collated)


def _inserted(spec: MergeSpec, source: Leaves, changes: Changes, first: int, end: int) -> pa.RecordBatch:
    some = Changes(np.arange(end - first), changes.clauses[first:end], changes.sources[first:end])
    made = inserted_columns(spec, source, some, spec.write.schema.names)
    return pa.RecordBatch.from_arrays(list(made.values()), schema=to_arrow(spec.write.schema))


def inserted_columns(spec: MergeSpec, source: Leaves, changes: Changes, names: Iterable[str]) -> dict[str, pa.Array]:
    """Columns of the table for inserted rows."""
    schema, found = to_arrow(spec.write.schema), {}
    for name in names:
        nothing = pa.nulls(len(changes.rows), schema.field(name).type)
        try:
            found[name] = _assigned(spec, name, nothing, changes, {"source": source})
        except RowError as e:
            raise located(e, SOURCE) from None
    return found


def _chosen(spec: MergeSpec, batch: pa.RecordBatch) -> Iterator[Chosen]:
    needed = spec.match.leaves("source", "insert")
    for start in range(0, batch.num_rows, _INSERTED_ROWS):
        piece = batch.slice(start, _INSERTED_ROWS)
        leaves = extract(needed, piece, spec.match.timezone)
        try:
            rows, clauses = choose(spec.match, "not matched", {"source": (leaves, np.arange(piece.num_rows))})
        except RowError as e:
            raise located(e, SOURCE) from None
        if len(rows):
            yield leaves, rows, clauses


def _assigned(
    spec: MergeSpec, column: str, array: pa.Array, changes: Changes, sides: Mapping[Side, Leaves]
) -> pa.Array:
    """A column with the values that the clauses assign to some of its rows."""
    pieces, index, size = [array], np.arange(len(array)), len(array)
    for number in np.unique(changes.clauses).tolist():
        value = spec.match.clauses[number].values.get(column)
        if value is None:
            continue
        mine = changes.where(changes.clauses == number)
        numbers: Mapping[Side, Rows] = {"target": mine.rows, "source": mine.sources}
        asked = columns(value.value, {side: (leaves, numbers[side]) for side, leaves in sides.items()})
        pieces.append(pc.as_type(_value(value, asked, len(mine.rows)), array.type))
        index[mine.rows] = size + np.arange(len(mine.rows))
        size += len(mine.rows)
    return array if len(pieces) == 1 else pc.take(pa.concat_arrays(pieces), arrow_array(index))


def _value(assigned: Assigned, asked: list[pa.Array], rows: int) -> pa.Array:
    found = evaluate(assigned.value.bound, asked, num_rows=rows)
    if not assigned.plain:
        return found
    own = to_arrow_field(StructField(assigned.column.name, assigned.value.bound.type))
    return cast_to(own, assigned.column, assigned.column.name, to_variants)(pc.as_type(found, own.type))
