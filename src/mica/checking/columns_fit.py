"""Whether a table's columns can be read from a file as its log has it: their types, the values of partitions, NOT NULL.

The rule: what a scan would refuse is a violation; so is a null where the schema allows none, which a scan hands out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mica.arrays import arrow_array
from mica.checking.statistics import Found, Statistics, footer_nulls
from mica.errors import MicaError
from mica.schema.types import StructField
from mica.stats.columns import physical_name
from mica.stats.partition import parse_values
from mica.tasks.file_columns import Level, Located, aligned, locate
from mica.tasks.parts import FilePart
from mica.variant import kernel


def unfit(said: Statistics, reader: kernel.FileReader, file: FilePart) -> Iterator[Found]:
    """Yields the columns that do not fit."""
    level = Level(reader.schema)
    deleted = 0
    if file.deletion_vector is not None:
        count = file.deletion_vector["cardinality"]
        deleted = reader.num_rows if count is None else count  # without a count it may hide any
    for f in said.schema.fields:
        try:
            if f.name in said.partition_columns:
                yield from _partition(f, file)
                continue
            found = locate(level, said.schema, (f.name,), by_id=said.by_id)
            if found is not None:
                aligned(found.field, f, f.name, by_id=said.by_id)
                yield from _nulls(f, found, reader, deleted)
        except MicaError as error:
            kind = "partition_value" if f.name in said.partition_columns else "column_type"
            yield {"kind": kind, "path": f.name, "found": error.message}


def _partition(f: StructField, file: FilePart) -> Iterator[Found]:
    text = arrow_array([file.partition.get(physical_name(f))], pa.string())
    if parse_values(text, f.type).null_count and not f.nullable:
        yield {"kind": "not_null", "path": f.name, "found": "the column is NOT NULL, and the partition's value is null"}


def _nulls(f: StructField, found: Located, reader: kernel.FileReader, deleted: int) -> Iterator[Found]:
    """Nulls of a top column by the footer, which may be among the deleted rows."""
    nulls = None if f.nullable else footer_nulls(found, reader)
    if nulls is not None and nulls > deleted:
        yield {"kind": "not_null", "path": f.name, "found": f"the column is NOT NULL, and has {nulls} nulls"}
