"""The files that still hold columns which the table has dropped.

The rule: only footers are read. A file is one of them if it has a field that the table lacks, at any depth, other than
the ids of tracked rows.

Source: Delta protocol, "Column Mapping"; delta-spark's REORG TABLE … APPLY (PURGE).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from mica.arrays import arrow_array
from mica.tasks.ahead import in_order, readers_of
from mica.tasks.file import DataFileReader, ReadSpec
from mica.tasks.file_columns import Level, has_others
from mica.tasks.parts import FilePart

#: One row per such file: its number.
NUMBERS = pa.schema([pa.field("file", pa.int32(), False)])


def with_dropped(spec: ReadSpec, files: Iterable[FilePart]) -> Iterator[pa.RecordBatch]:
    """The numbers of the files with columns that were dropped."""

    def number(part: FilePart) -> Iterator[pa.RecordBatch]:
        schema = DataFileReader(spec, part).schema
        if has_others(Level(schema), spec.columns.fields, spec.row_ids or (), by_id=spec.by_id):
            yield pa.record_batch([arrow_array([part.number], pa.int32())], schema=NUMBERS)

    yield from in_order(number, list(files), readers_of(spec.storage))
