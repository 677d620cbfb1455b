"""Strings of files, for whoever compares them.

The rule: each column is read once, alone, and of a batch no more goes on than could be its least or greatest string:
its distinct strings, and under UTF8_LCASE the two that are it, where the letters are those of the comparator's version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mica.collation import lcase
from mica.collation.names import LCASE
from mica.collation.sound import all_in_order
from mica.log.paths import is_absolute
from mica.stats.collated import CollatedLeaf
from mica.storage import Storage
from mica.tasks.mapping import find
from mica.variant import kernel

BATCH_ROWS = 32_768
BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class StringsSpec:
    """What is the same for every file: where they lie, and which columns are asked for."""

    storage: Storage
    leaves: tuple[CollatedLeaf, ...]
    #: The version of the comparator that they go to.
    version: str

    @property
    def schema(self) -> pa.Schema:
        """`file`, then per leaf `c<i>` (distinct strings) and `c<i>_ok` (whether all have one place in the order)."""
        fields = [pa.field("file", pa.int32(), False)]
        for i, _ in enumerate(self.leaves):
            fields += [pa.field(f"c{i}", pa.list_(pa.string())), pa.field(f"c{i}_ok", pa.bool_())]
        return pa.schema(fields)

    @property
    def ddl(self) -> str:
        """The same for Spark."""
        columns = (f"c{i} array<string>, c{i}_ok boolean" for i, _ in enumerate(self.leaves))
        return ", ".join(["file int not null", *columns])


@dataclass(frozen=True)
class StringsFile:
    """A file, by the number that its rows are told by. `path` is decoded, relative or absolute."""

    number: int
    path: str
    size: int


def strings_of_files(spec: StringsSpec, files: Sequence[StringsFile]) -> Iterator[pa.RecordBatch]:
    """One row per batch of each file: its strings, of all of its rows, deleted ones too."""
    for file in files:
        storage, rel = spec.storage.at(file.path) if is_absolute(file.path) else (spec.storage, file.path)
        reader = kernel.open_file(storage, rel, file.size)
        there = [find(reader.schema, leaf.names) is not None for leaf in spec.leaves]
        items = [
            {"column": list(leaf.names), "name": str(i)} for i, leaf in enumerate(spec.leaves) if there[i]
        ]  # fmt: skip
        if not items:
            continue
        for batch in reader.scan(items, max_rows=BATCH_ROWS, max_bytes=BATCH_BYTES, timezone="UTC"):
            columns = iter(batch.columns)
            found: list[pa.Array] = [pa.array([file.number], pa.int32())]
            for leaf, present in zip(spec.leaves, there, strict=True):
                strings = next(columns).cast(pa.string()).drop_null() if present else _NONE
                strings = lcase.ends(strings) if _by_lcase(leaf, spec) else pc.unique(strings)
                ordered = all_in_order(strings, leaf.sql)
                kept = strings if ordered else _NONE
                found.append(pa.ListArray.from_arrays(pa.array([0, len(kept)], pa.int32()), kept))
                found.append(pa.array([ordered]))
            yield pa.RecordBatch.from_arrays(found, schema=spec.schema)


def _by_lcase(leaf: CollatedLeaf, spec: StringsSpec) -> bool:
    return leaf.collation == str(LCASE) and spec.version == lcase.ICU


_NONE = pa.array([], pa.string())
