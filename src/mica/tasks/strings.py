"""Reads the strings of collated columns from files, for the comparator.

The rule: each column is read once, by itself, and only strings that could be a file's minimum or maximum are passed on,
in pieces if they are many (`tasks.candidates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from mica.arrays import arrow_array
from mica.records import dataclass
from mica.stats.collated import CollatedColumn
from mica.storage import Storage
from mica.tasks.ahead import Lending, in_order, readers_of
from mica.tasks.candidates import Candidates, columns, values
from mica.tasks.file_columns import Level, called
from mica.tasks.parts import FilePart
from mica.variant import kernel

BATCH_ROWS = 32_768
BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class StringsSpec:
    """The spec that is common to all files: their storage, and the columns to read."""

    storage: Storage
    leaves: tuple[CollatedColumn, ...]
    #: The version of the comparator.
    version: str

    @property
    def schema(self) -> pa.Schema:
        """`file`, then the columns of `tasks.candidates`."""
        return pa.schema([pa.field("file", pa.int32(), False), *columns(self.leaves)])


def strings_of_files(spec: StringsSpec, files: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """One row per file, or several for long ones: candidates of all rows, including deleted ones."""
    lending = Lending(spec.storage)

    def strings(file: FilePart) -> Iterator[pa.RecordBatch]:
        found = [Candidates(leaf, spec.version) for leaf in spec.leaves]
        for _ in gathered(kernel.open_file(*spec.storage.locate(file.path), file.size, tails=lending.tails), found):
            if any(candidates.many for candidates in found):
                yield _row(spec, file, found)
        yield _row(spec, file, found)

    yield from in_order(strings, files, readers_of(spec.storage), lending=lending)


def gathered(reader: kernel.FileReader, found: Sequence[Candidates]) -> Iterator[None]:
    """Adds the strings of a file, for columns that it has; yields after each batch."""
    file = Level(reader.schema)
    places = [(candidates, called(file, candidates.leaf.names)) for candidates in found]
    there = [(candidates, names) for candidates, names in places if names is not None]
    if not there:
        return
    items = [kernel.Request(names, name=str(i)) for i, (_, names) in enumerate(there)]
    for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES, timezone="UTC"):
        for (candidates, _), strings in zip(there, batch.columns, strict=True):
            candidates.add(strings)
        yield


def _row(spec: StringsSpec, file: FilePart, found: Sequence[Candidates]) -> pa.RecordBatch:
    arrays = [arrow_array([file.number], pa.int32()), *values([found], spec.leaves)]
    return pa.RecordBatch.from_arrays(arrays, schema=spec.schema)
