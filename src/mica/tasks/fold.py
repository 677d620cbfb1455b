"""Rows of a scan that are alike become one, before an engine sees them.

The rule: rows may become one only if they agree in all keys; nothing asks that they do, so an engine aggregates what
comes once more. Rows that hardly repeat are passed on one by one: gathering them would cost more than it saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import scalar
from mica.records import dataclass
from mica.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Primitive,
    StructField,
    StructType,
)
from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart
from mica.tasks.read import read_parts

#: So many rows, at most, wait to become one with others.
HELD_ROWS = 131_072

#: Gathering goes on while it leaves less than this share of the rows.
WORTH = 0.5

#: Types whose equal values are the same bytes, and whose order is Spark's. Not floats: NaN, and the two zeros.
_TYPES = (BOOLEAN, BYTE, SHORT, INTEGER, LONG, DATE, TIMESTAMP, TIMESTAMP_NTZ, STRING, BINARY)


def foldable(type_: DataType) -> bool:
    """Whether a column of this type may be a key, and have a minimum and maximum."""
    return type_ in _TYPES or (isinstance(type_, Primitive) and type_.decimal is not None)


@dataclass(frozen=True)
class Measure:
    """A column of rows that became one: `rows` (how many), or `count`, `min`, `max` of a column's values."""

    name: str
    function: str
    column: str = ""


@dataclass(frozen=True)
class Fold:
    """The keys of rows, and what is kept of those that agree in all of them."""

    keys: tuple[str, ...]
    measures: tuple[Measure, ...]

    def schema(self, scanned: StructType) -> StructType:
        """The columns that come of those of the scan."""
        fields = [scanned.field(name) for name in self.keys]
        for measure in self.measures:
            counts = measure.function in ("rows", "count")
            fields.append(StructField(measure.name, LONG if counts else scanned.field(measure.column).type, not counts))
        return StructType(tuple(fields))

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of a scan, with rows that are alike as one."""
        held: list[pa.Table] = []
        rows, worth = 0, True
        for batch in batches:
            if not batch.num_rows:
                continue
            if not worth:
                yield from self._single(batch)
                continue
            found = self._grouped(pa.Table.from_batches([batch]), self._first)
            worth = found.num_rows <= max(1, batch.num_rows * WORTH)
            held.append(found)
            rows += found.num_rows
            if rows > HELD_ROWS or not worth:
                yield from self._joined(held)
                held, rows = [], 0
        if held:
            yield from self._joined(held)

    def _joined(self, held: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        found = held[0] if len(held) == 1 else self.joined(pa.concat_tables(held))
        yield from found.combine_chunks().to_batches()

    def joined(self, found: pa.Table, *, threads: bool = False) -> pa.Table:
        """Rows that came of `of`, with those that are alike as one."""
        return self._grouped(found, self._again, threads=threads)

    @property
    def _first(self) -> Mapping[str, Any]:
        counting = pc.CountOptions(mode="only_valid")
        found: dict[str, Any] = {}
        for m in self.measures:
            match m.function:
                case "rows":
                    found[m.name] = ("", "count_all")
                case "count":
                    found[m.name] = (m.column, "count", counting)
                case _:
                    found[m.name] = (m.column, m.function)
        return found

    @property
    def _again(self) -> Mapping[str, Any]:
        return {m.name: (m.name, "sum" if m.function in ("rows", "count") else m.function) for m in self.measures}

    def _grouped(self, table: pa.Table, aggregates: Mapping[str, Any], *, threads: bool = False) -> pa.Table:
        # Keys come first in every version of pyarrow from 12 on.
        found = pc.grouped(table, self.keys, list(aggregates.values()), use_threads=threads)
        return found.rename_columns([*self.keys, *aggregates])

    def _single(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        arrays = [batch.column(name) for name in self.keys]
        for m in self.measures:
            match m.function:
                case "rows":
                    arrays.append(pa.repeat(scalar(1, pa.int64()), batch.num_rows))
                case "count":
                    arrays.append(batch.column(m.column).is_valid().cast(pa.int64()))
                case _:
                    arrays.append(batch.column(m.column))
        yield pa.RecordBatch.from_arrays(arrays, names=[*self.keys, *(m.name for m in self.measures)])


@dataclass(frozen=True)
class ReadFolded:
    """The kept files of a scan, with rows that are alike as one."""

    spec: ReadSpec
    fold: Fold

    def __call__(self, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
        """The rows of some files."""
        return self.fold.of(read_parts(self.spec, parts))
