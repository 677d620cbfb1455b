"""How large Spark takes rows to be, by which it broadcasts the smaller side of a join.

The rule: rows that mica reads are as large as if Spark's own reader had them, so that a query has the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping

from mica.engines.spark.decimals import MOST_DIGITS
from mica.schema.types import ArrayType, DataType, MapType, Primitive, StructType

#: What each row has beside its values (`EstimationUtils.getSizePerRow`).
_BESIDE = 8

#: Catalyst's `defaultSize` of types. Those that are not named here have 8 bytes.
_DEFAULT: Mapping[str, int] = {
    "void": 1, "boolean": 1, "byte": 1, "short": 2, "integer": 4, "float": 4, "date": 4, "string": 20, "binary": 100,
    "variant": 2048,
}  # fmt: skip


def row_bytes(schema: StructType) -> int:
    """What Spark takes a row of these columns to have."""
    return _BESIDE + _bytes(schema)


def _bytes(type_: DataType) -> int:
    match type_:
        case StructType(fields):
            return sum(_bytes(field.type) for field in fields)
        case ArrayType(element):
            return _bytes(element)
        case MapType(key, value):
            return _bytes(key) + _bytes(value)
        case Primitive():
            digits = type_.decimal
            return _DEFAULT.get(type_.name, 8) if digits is None else 8 if digits[0] <= MOST_DIGITS else 16
        case _:
            return _DEFAULT["string"]
