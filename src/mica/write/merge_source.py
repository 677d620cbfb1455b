"""The source of a merge: what a person gives as rows of one schema.

The rule: a source is what an append accepts, with any columns. Its types are Spark's; a column named like a VARIANT
column of the table is a Variant if its rows are, shredded or not. On Spark every task has the whole source only if its
rows are few: those of a DataFrame are then collected, many of other sources become a DataFrame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.engines.spark import types
from mica.errors import UserError
from mica.schema.arrow import from_arrow_field, looks_like_variant, to_arrow
from mica.schema.types import VARIANT, StructField, StructType, refuse_twice
from mica.tasks.shuffled_merge import in_schema
from mica.tasks.unshred import unshredded_schema
from mica.write.given import arrow

if TYPE_CHECKING:
    from mica.engines.spark.engine import Spark


def rows_of(data: Any, table: StructType) -> tuple[StructType, pa.Table]:
    """The schema and the rows of a source that is no DataFrame; `table` has the columns of the target."""
    found = arrow(data, table)
    schema = _schema(unshredded_schema(found.schema, table), table)
    return schema, _typed(found if isinstance(found, pa.Table) else found.read_all(), schema)


def frame_schema(frame: Any) -> StructType:
    """The schema of a Spark DataFrame, with its collations."""
    found = types.from_spark(frame.schema)
    refuse_twice(found.names)
    return found


def of_frame(engine: Spark, data: Any, schema: StructType) -> tuple[Any, pa.RecordBatch | None]:
    """These columns of a DataFrame: a frame that is computed once, and the rows if they are few. The caller forgets the
    frame; there is none of rows that are at hand."""
    found = engine.at_hand(data, schema.names)
    if found is not None:
        return None, batch_of(_typed(found, schema))
    frame = engine.kept(data, schema.names)
    try:
        found = engine.collected(frame)
        return frame, None if found is None else batch_of(_typed(found, schema))
    except BaseException:
        engine.forget(frame)
        raise


def batch_of(rows: pa.Table) -> pa.RecordBatch:
    """The rows as one batch. Errors: INVALID_ARGUMENT for more than a batch can hold."""
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise UserError(
            "INVALID_ARGUMENT",
            f"the source has {rows.nbytes >> 20:,} MiB, more than a merge in process can hold",
            hint="Merge on Spark: give spark=, or a DataFrame.",
        )
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)


def _typed(rows: pa.Table, schema: StructType) -> pa.Table:
    return pa.Table.from_batches(list(in_schema(rows.to_batches(), schema)), to_arrow(schema))


def _schema(found: pa.Schema, table: StructType) -> StructType:
    refuse_twice(found.names)
    fields = []
    for f in found:
        own = from_arrow_field(f, f.name)
        target = table.find(f.name)
        if target is not None and target.type == VARIANT and looks_like_variant(own.type):
            own = StructField(own.name, VARIANT, own.nullable)
        fields.append(own)
    return StructType(tuple(fields))
