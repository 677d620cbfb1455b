"""Constants as Python values, and arrays cast value by value.

The rule: dates are days, timestamps and intervals microseconds (or months) as ints, so that every value of Spark's is
possible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.schema.arrow import to_arrow_type
from mica.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType

#: What Spark trims from a text before it is cast.
TRIMMED = "".join(map(chr, range(33))) + "\x7f"

#: The values, and the mask of rows that failed (None when none did).
Made = tuple[pa.Array, pa.Array | None]


def each(array: pa.Array, target: DataType, one: Callable[[Any], Any]) -> Made:
    """Casts each distinct value once; None is a failure."""
    encoded = array.dictionary_encode()
    results = [None if v is None else one(v) for v in encoded.dictionary.to_pylist()]
    found = from_values(results, target).take(encoded.indices)
    failed = pc.and_(pc.is_null(found), pc.is_valid(array))
    return found, failed if failed.true_count else None


def to_values(array: pa.Array, type_: DataType) -> list[Any]:
    """Converts an array to Python values; dates, timestamps and intervals are ints."""
    if type_ == DATE:
        array = array.cast(pa.int32())
    elif type_ in (TIMESTAMP, TIMESTAMP_NTZ) or pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def from_values(values: list[Any], type_: DataType) -> pa.Array:
    """The inverse of `to_values`."""
    stored = wanted = to_arrow_type(type_)
    if type_ == DATE:
        stored = pa.int32()
    elif type_ in (TIMESTAMP, TIMESTAMP_NTZ) or pa.types.is_duration(wanted):
        stored = pa.int64()
    found = arrow_array(values, stored)
    return found if stored == wanted else found.cast(wanted)
