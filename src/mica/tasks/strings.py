"""Strings of files, for whoever compares them.

The rule: each column is read once, alone, and of a file no more goes on than could be its least or greatest string;
where that is much (`tasks.candidates`), it goes on in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from mica.log.paths import is_absolute
from mica.stats.collated import CollatedColumn
from mica.storage import Storage
from mica.tasks.candidates import Candidates, columns, ddl, values
from mica.tasks.file_columns import called
from mica.variant import kernel

BATCH_ROWS = 32_768
BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class StringsSpec:
    """What is the same for every file: where they lie, and which columns are asked for."""

    storage: Storage
    leaves: tuple[CollatedColumn, ...]
    #: The version of the comparator that they go to.
    version: str

    @property
    def schema(self) -> pa.Schema:
        """`file`, then the columns of `tasks.candidates`."""
        return pa.schema([pa.field("file", pa.int32(), False), *columns(self.leaves)])

    @property
    def ddl(self) -> str:
        """The same for Spark."""
        return f"file int not null, {ddl(self.leaves)}"


@dataclass(frozen=True)
class StringsFile:
    """A file, by the number that its rows are told by. `path` is decoded, relative or absolute."""

    number: int
    path: str
    size: int


def strings_of_files(spec: StringsSpec, files: Sequence[StringsFile]) -> Iterator[pa.RecordBatch]:
    """A row per file, or some where one would be long: strings of all of its rows, deleted ones too."""
    for file in files:
        storage, rel = spec.storage.at_of_log(file.path) if is_absolute(file.path) else (spec.storage, file.path)
        reader = kernel.open_file(storage, rel, file.size)
        found = [Candidates(leaf, spec.version) for leaf in spec.leaves]
        items, read = [], []
        for i, leaf in enumerate(spec.leaves):
            names = called(reader.schema, leaf.names)
            if names is not None:
                items.append({"column": list(names), "name": str(i)})
                read.append(found[i])
        if not items:
            continue
        for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES, timezone="UTC"):
            for candidates, strings in zip(read, batch.columns, strict=True):
                candidates.add(strings)
            if any(candidates.many for candidates in read):
                yield _row(spec, file, found)
        yield _row(spec, file, found)


def _row(spec: StringsSpec, file: StringsFile, found: Sequence[Candidates]) -> pa.RecordBatch:
    arrays = [pa.array([file.number], pa.int32()), *values([found], spec.leaves)]
    return pa.RecordBatch.from_arrays(arrays, schema=spec.schema)
