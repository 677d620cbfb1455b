"""The source of a merge: what a person gives as rows of one schema.

The rule: a source is what an append accepts, with any columns. Its types are Spark's; a column named like a VARIANT
column of the table is a Variant if its rows are, shredded or not. On Spark every task has the whole source only if its
rows are few: those of a DataFrame are then collected, many of other sources become a DataFrame.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from mica import engines
from mica.arrays import batch_of
from mica.engines.base import Engine
from mica.engines.spark import types
from mica.errors import UserError
from mica.records import dataclass
from mica.schema.arrow import from_arrow_field, looks_like_variant, to_arrow
from mica.schema.collations import COLLATIONS
from mica.schema.evolution import plan_write
from mica.schema.interval_types import of_months
from mica.schema.special import CHAR_VARCHAR
from mica.schema.spelling import quote_if_needed
from mica.schema.types import VARIANT, StructField, StructType, refuse_twice
from mica.tasks.shuffled_merge import in_schema
from mica.tasks.unshred import unshredded_schema
from mica.write.given import arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mica.engines.spark.engine import Spark

#: What the metadata of a column says of its values.
_OF_VALUES = (COLLATIONS, CHAR_VARCHAR)


@dataclass(frozen=True)
class MergeSource:
    """A source, and the engine on which the merge runs."""

    engine: Engine
    schema: StructType
    #: A DataFrame; of any other source its rows.
    rows: DataFrame | pa.Table

    @contextmanager
    def taken(self, columns: StructType, *, keyed: bool) -> Iterator[pa.RecordBatch | DataFrame]:
        """The rows if they are few, with these columns at least; else a DataFrame of them that is computed once, and is
        freed at the end. More are few if they are found by keys (`keyed`) than if each meets every row."""
        engine = cast("Spark", self.engine)  # if there is a DataFrame, or if it shuffles
        if isinstance(self.rows, pa.Table):
            rows = self.rows
            if engine.shuffles and not (engine.fits(rows.num_rows, rows.nbytes) if keyed else engine.few(rows)):
                yield engine.spread(self.rows.select(columns.names), columns)
            else:
                yield _batch(self.rows)
            return
        given = _counted(self.rows, columns)
        found = engine.at_hand(given, columns.names)
        if found is not None:
            yield _batch(_typed(found.to_batches(), columns))
            return
        frame = engine.kept(given, columns.names)
        try:
            found = engine.collected(frame)
            yield frame if found is None else _batch(_typed(found.to_batches(), columns))
        finally:
            engine.forget(frame)

    def stored(self, columns: Mapping[str, StructField]) -> MergeSource:
        """With the values of some columns as columns of a table store them, which are given by the source's names.
        Errors: those of an append for types and values."""
        fields = []
        for f in self.schema.fields:
            own = columns.get(f.name)
            said = {} if own is None else {key: own.metadata[key] for key in _OF_VALUES if key in own.metadata}
            fields.append(f if own is None else StructField(f.name, own.type, True, said))
        schema = StructType(tuple(fields))
        if isinstance(self.rows, pa.Table):
            return MergeSource(self.engine, schema, _typed(self.rows.to_batches(), schema))
        plan_write(schema, to_arrow(self.schema))
        return MergeSource(self.engine, schema, self.rows)

    def all_of(self, frame: DataFrame, columns: StructType) -> pa.RecordBatch:
        """The rows of what was `taken`, which are not many."""
        return _batch(_typed(cast("Spark", self.engine).all_of(frame).to_batches(), columns))


def of(data: Any, spark: SparkSession | None, table: StructType) -> MergeSource:
    """What a person gives, on the session of a DataFrame, or on `spark`; `table` has the columns of the target."""
    if spark is not None and hasattr(data, "to_df") and not types.is_frame(data):
        data = data.to_df(spark)  # a Scan or a Table is read where the merge runs
    if types.is_frame(data):
        schema = types.from_spark(data.schema)  # with its collations
        refuse_twice(schema.names)
        return MergeSource(engines.of(data), schema, data)
    found = arrow(data, table)
    schema = _schema(unshredded_schema(found.schema, table), table)
    rows = _typed(found.to_batches() if isinstance(found, pa.Table) else _known(found), schema)
    return MergeSource(engines.of(spark), schema, rows.combine_chunks())  # so that a batch of them is no second copy


def _known(stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The batches, each of which may have its own types and order, and lack columns."""
    names = set(stream.schema.names)
    for batch in stream:
        for name in batch.schema.names:
            if name not in names:
                raise UserError(
                    "UNKNOWN_COLUMN",
                    f"rows of the source have the column {name!r}, which the first ones lack",
                    hint="Give the first rows all columns that come later.",
                )
        yield batch


def _counted(rows: DataFrame, columns: StructType) -> DataFrame:
    """The rows with their intervals of months as numbers of months: Spark gives Arrow no others."""
    intervals = (f.name for f in columns.fields if of_months(f.type))
    casts = {name: rows[quote_if_needed(name)].cast("interval month").cast("int") for name in intervals}
    return rows.withColumns(casts) if casts else rows


def _batch(rows: pa.Table) -> pa.RecordBatch:
    """The rows as one batch. Errors: INVALID_ARGUMENT for more than a batch can hold."""
    batches = rows.combine_chunks().to_batches()
    if len(batches) > 1:
        raise UserError(
            "INVALID_ARGUMENT",
            f"the source has {rows.nbytes >> 20:,} MiB, more than a merge in process can hold",
            hint="Merge on Spark: give spark=, or a DataFrame.",
        )
    return batches[0] if batches else batch_of([], schema=rows.schema)


def _typed(batches: Iterable[pa.RecordBatch], schema: StructType) -> pa.Table:
    return pa.Table.from_batches(list(in_schema(batches, schema)), to_arrow(schema))


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
