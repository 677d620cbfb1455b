"""Decimals on their way between tasks and Spark.

The rule: a column of at most 18 digits crosses as its unscaled numbers, which is what both have in memory. Of each
decimal of Arrow Spark makes a BigDecimal, both ways: 100 ns for what takes 10 as a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica.engines.spark.java import java_class
from mica.schema.types import LONG, Primitive, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType as SparkStructType

#: Digits of a decimal whose unscaled number has 64 bits, as Spark's own have (`Decimal.MAX_LONG_DIGITS`).
MOST_DIGITS = 18

#: The columns that cross as numbers, by their places: precision and scale.
Short = Mapping[int, tuple[int, int]]


def short(schema: StructType) -> Short:
    """The columns that cross as numbers."""
    decimals = {n: f.type.decimal for n, f in enumerate(schema.fields) if isinstance(f.type, Primitive)}
    return {n: digits for n, digits in decimals.items() if digits is not None and digits[0] <= MOST_DIGITS}


def crossing(schema: StructType, columns: Short) -> StructType:
    """The schema of the rows on their way."""
    return StructType(tuple(replace(f, type=LONG) if n in columns else f for n, f in enumerate(schema.fields)))


def as_numbers(batch: pa.RecordBatch, columns: Short) -> pa.RecordBatch:
    """The rows of a task, on their way to Spark."""
    return _with(batch, {n: _unscaled(batch.column(n)) for n in columns})


def of_numbers(
    columns: Short,
    function: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
    batches: Iterator[pa.RecordBatch],
) -> Iterable[pa.RecordBatch]:
    """What a function makes of Spark's rows, which come on their way."""
    return function(
        _with(batch, {n: _scaled(batch.column(n), digits) for n, digits in columns.items()}) for batch in batches
    )


def made(frame: DataFrame, columns: Short, wanted: SparkStructType) -> DataFrame:
    """The rows of tasks in a classic session, as they are meant; `wanted` is their schema."""
    metadata = {n: dict(wanted.fields[n].metadata) for n in columns}
    return _replaced(frame, "MakeDecimal", {n: (*digits, False) for n, digits in columns.items()}, metadata)


def sent(frame: DataFrame) -> tuple[DataFrame, Short]:
    """Rows of a classic session for tasks, on their way, and which columns are numbers there."""
    from pyspark.sql.types import DecimalType

    kinds = {n: field.dataType for n, field in enumerate(frame.schema.fields)}
    columns = {
        n: (kind.precision, kind.scale)
        for n, kind in kinds.items()
        if isinstance(kind, DecimalType) and kind.precision <= MOST_DIGITS
    }
    if len({name.lower() for name in frame.columns}) < len(kinds):
        return frame, {}  # a column is replaced by its name
    return _replaced(frame, "UnscaledValue", dict.fromkeys(columns, ()), {}), columns


def _replaced(
    frame: DataFrame, made_by: str, columns: Mapping[int, tuple[Any, ...]], metadata: Mapping[int, dict[str, Any]]
) -> DataFrame:
    """The rows with expressions of a class in the place of columns, of which it takes more than the column."""
    from pyspark.sql.classic.column import Column

    if not columns:  # of Connect, too, which has no JVM
        return frame
    make = java_class(frame.sparkSession, f"org.apache.spark.sql.catalyst.expressions.{made_by}")
    column = java_class(frame.sparkSession, "org.apache.spark.sql.classic.ExpressionUtils").column
    output, names = frame._jdf.queryExecution().analyzed().output(), frame.columns  # noqa: SLF001
    found: dict[str, Any] = {}
    for n, more in columns.items():
        one = Column(column(make(output.apply(n), *more)))
        found[names[n]] = one.alias(names[n], metadata=metadata[n]) if metadata.get(n) else one
    return frame.withColumns(found)


def _with(batch: pa.RecordBatch, columns: Mapping[int, pa.Array]) -> pa.RecordBatch:
    for n, array in columns.items():
        batch = batch.set_column(n, batch.schema.field(n).with_type(array.type), array)
    return batch


def _unscaled(array: pa.Array) -> pa.Array:
    # A number of 128 bits is its lower half, whose sign the upper one repeats.
    nulls, values = array.buffers()
    end = array.offset + len(array)
    lower = np.frombuffer(values, "<i8", 2 * end)[::2] if end else np.empty(0, "<i8")
    buffers = [nulls, pa.py_buffer(np.ascontiguousarray(lower))]
    return pa.Array.from_buffers(pa.int64(), len(array), buffers, array.null_count, array.offset)


def _scaled(array: pa.Array, digits: tuple[int, int]) -> pa.Array:
    nulls, values = array.buffers()
    end = array.offset + len(array)
    lower = np.frombuffer(values, "<i8", end) if end else np.empty(0, "<i8")
    whole = np.empty((end, 2), "<i8")
    whole[:, 0], whole[:, 1] = lower, lower >> 63
    buffers = [nulls, pa.py_buffer(whole)]
    return pa.Array.from_buffers(pa.decimal128(*digits), len(array), buffers, array.null_count, array.offset)
