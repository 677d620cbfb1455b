"""Decimals of a task's rows, on their way to Spark.

The rule: a column of at most 18 digits crosses as its unscaled numbers, of which Catalyst makes decimals again. Spark
makes a BigDecimal of each decimal that it gets from Arrow: 100 ns for what takes 10 as a number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica.schema.types import LONG, Primitive, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType as SparkStructType

#: Digits of a decimal whose unscaled number has 64 bits, as Spark's own have (`Decimal.MAX_LONG_DIGITS`).
MOST_DIGITS = 18


def crossing(schema: StructType) -> StructType:
    """The columns of the rows on their way."""
    return StructType(tuple(replace(f, type=LONG) if _short(f) else f for f in schema.fields))


def unscaled(batch: pa.RecordBatch, schema: StructType) -> pa.RecordBatch:
    """The rows on their way; `schema` is that of both."""
    short = [_short(field) is not None for field in schema.fields]
    if not any(short):
        return batch
    arrays = [_numbers(array) if one else array for array, one in zip(batch.columns, short, strict=True)]
    fields = [field.with_type(array.type) for field, array in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def scaled(frame: DataFrame, schema: StructType, wanted: SparkStructType) -> DataFrame:
    """The rows as they are meant, of a classic session; `wanted` is their schema as PySpark's."""
    from pyspark.sql.classic.column import Column

    found: dict[str, Any] = {}
    for number, (field, shown) in enumerate(zip(schema.fields, wanted.fields, strict=True)):
        digits = _short(field)
        if digits is None:
            continue
        if not found:
            jvm: Any = frame.sparkSession._jvm  # noqa: SLF001
            output = frame._jdf.queryExecution().analyzed().output()  # noqa: SLF001
            make = jvm.org.apache.spark.sql.catalyst.expressions.MakeDecimal
            column = jvm.org.apache.spark.sql.classic.ExpressionUtils.column
        decimal = Column(column(make(output.apply(number), *digits, False)))
        found[field.name] = decimal.alias(field.name, metadata=shown.metadata) if shown.metadata else decimal
    return frame.withColumns(found) if found else frame


def _short(field: StructField) -> tuple[int, int] | None:
    """Precision and scale of a column that crosses as numbers; None for any other."""
    digits = field.type.decimal if isinstance(field.type, Primitive) else None
    return digits if digits is not None and digits[0] <= MOST_DIGITS else None


def _numbers(array: pa.Array) -> pa.Array:
    # A number of 128 bits is its lower half, whose sign the upper one repeats.
    nulls, values = array.buffers()
    end = array.offset + len(array)
    lower = np.frombuffer(values, "<i8", 2 * end)[::2] if end else np.empty(0, "<i8")
    buffers = [nulls, pa.py_buffer(np.ascontiguousarray(lower))]
    return pa.Array.from_buffers(pa.int64(), len(array), buffers, array.null_count, array.offset)
