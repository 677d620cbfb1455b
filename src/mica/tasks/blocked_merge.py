"""Merges a large source whose ON has no equality: every block of the source meets all rows of the target.

The rule: a task holds one block of the source and reads what matching needs of every file. What it finds goes to the
task of the file, which knows then what all blocks found: a row that two blocks would change is ambiguous, and one that
no block has marked is matched by no row of the source.

    source ── blocks ──▶ match_block ── by file ──▶ change_files (`shuffled_merge`) ──▶ facts
                             ▲                            ▲
          columns of ON of every file            settled: the changes of a file
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from mica.arrays import arrow_array
from mica.expressions.evaluate import RowError
from mica.skipping.row_ranges import numbers_at
from mica.tasks.each_file import each_file
from mica.tasks.file import DataFileReader
from mica.tasks.leaf_values import Leaves
from mica.tasks.matching import NOT_BY_SOURCE, Changes, Rows, SourceRows, single, without_source
from mica.tasks.merge import target_rows
from mica.tasks.parts import FilePart
from mica.tasks.row_errors import located
from mica.tasks.shuffled_merge import Batches, ShuffleSpec, all_of, in_schema, inserts, moving, together

#: The clause of a row that a block matches and no clause changes, and of the first row of each file.
_MARK = -1


def match_block(spec: ShuffleSpec, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The changes of one block of the source, and its rows to insert."""
    source = together(spec, list(in_schema(batches, spec.source)))
    matched = np.zeros(source.batch.num_rows, np.bool_)

    def match(part: FilePart) -> Iterator[pa.RecordBatch]:
        for found in _found(spec, DataFileReader(spec.merge.read, part), source, matched):
            task, rows = all_of(spec.task_of[part.number], len(found.rows)), arrow_array(found.rows, pa.int64())
            numbered = all_of(part.number, len(found.rows))
            yield from moving(spec, task, numbered, rows, found.clauses, source.batch, found.sources)

    files = (part for some in spec.files for part in some)
    yield from each_file(match, files, spec.merge.read)
    if spec.match.numbers("not matched"):
        yield from inserts(spec, source, np.flatnonzero(~matched).astype(np.int64))


def _found(
    spec: ShuffleSpec, file: DataFileReader, source: SourceRows, matched: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Iterator[Changes]:
    """What the block does to the rows of a file, and which of them it matches, by their numbers in the file."""
    marks = bool(spec.match.numbers(NOT_BY_SOURCE))
    if marks:  # the file's task sees every file, whatever is found in it
        yield Changes(*(np.array([number], np.int64) for number in (-1, _MARK, -1)))
    if not len(matched):  # the block is empty
        return
    for chunk, places in _numbered(spec, file):
        seen = np.zeros(chunk.rows, np.bool_)
        try:
            found = source.changes(chunk, matched, seen)
        except RowError as e:
            raise located(e, file.name) from None
        changed = Changes(places[found.rows], found.clauses, found.sources)
        seen[found.rows] = False
        others = places[seen] if marks else places[:0]
        nothing = np.full(len(others), _MARK, np.int64)
        yield Changes.of([changed, Changes(others, nothing, nothing)])


def _numbered(spec: ShuffleSpec, file: DataFileReader) -> Iterator[tuple[Leaves, Rows]]:
    """What matching needs of the rows of a file, and their numbers in it."""
    before = 0
    for chunk in target_rows(spec.merge, file):
        yield chunk, numbers_at(file.passed, np.arange(before, before + chunk.rows))
        before += chunk.rows


def settled(spec: ShuffleSpec, file: DataFileReader, found: Changes) -> Changes:
    """What happens to the rows of a file, from what the blocks found, which is sorted by row."""
    match = spec.match
    acting = found.clauses != _MARK
    changes = [single(match, found.where(acting))]
    for chunk, places in _numbered(spec, file) if match.numbers(NOT_BY_SOURCE) else ():
        free = np.flatnonzero(~np.isin(places, found.rows)).astype(np.int64)
        some = without_source(match, chunk, free)
        changes.append(replace(some, rows=places[some.rows]))
    return Changes.of(changes).by_row()
