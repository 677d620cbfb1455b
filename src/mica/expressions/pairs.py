"""Evaluates a function of some columns row by row, where Arrow has no equivalent of Spark's.

The rule: each distinct combination of values is evaluated once; null gives null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.expressions.compare import Datum
from mica.expressions.plain_values import from_values
from mica.expressions.room import repeated
from mica.schema.arrow import to_arrow_type
from mica.schema.types import DataType


def as_array(value: Datum, count: int) -> pa.Array:
    """Expands the datum to one value per row."""
    return repeated(value, count) if isinstance(value, pa.Scalar) else value


def as_arrays(*values: Datum) -> list[pa.Array]:
    """All of them with one value per row; at least one of them is an array."""
    count = next(len(v) for v in values if isinstance(v, pa.Array))
    return [as_array(v, count) for v in values]


def by_rows(type_: DataType, judge: Callable[..., Any], *values: Datum) -> pa.Array:
    """Returns `judge` of each row's Python values, as an array of `type_`; at least one of them is an array."""
    count = next(len(v) for v in values if isinstance(v, pa.Array))
    if any(isinstance(v, pa.Scalar) and not v.is_valid for v in values):
        return pa.nulls(count, to_arrow_type(type_))
    codes: Any = None
    known: list[tuple[Any, ...]] = [()]
    for value in values:
        if isinstance(value, pa.Scalar):
            known = [(*one, value.as_py()) for one in known]
            continue
        own = value.dictionary_encode()
        found = own.dictionary.to_pylist()
        if codes is None:
            codes, known = own.indices, [(*one, other) for one in known for other in found]
            continue
        # The number of a combination, which is numbered again: the product of several columns would be too many.
        width = max(1, len(found))
        both = pc.add(pc.multiply(codes.cast(pa.int64()), width), own.indices.cast(pa.int64())).dictionary_encode()
        known = [(*known[code // width], found[code % width]) for code in both.dictionary.to_pylist()]
        codes = both.indices
    return from_values([judge(*one) for one in known], type_).take(codes)


def tried_by_rows(type_: DataType, judge: Callable[..., Any], *values: Datum) -> tuple[pa.Array, pa.Array | None]:
    """As `by_rows`, with the mask of the rows for whose values `judge` has no result (None: there is none)."""
    found = by_rows(type_, judge, *values)
    failed = pc.is_null(found)
    for value in values:
        failed = pc.and_(failed, pc.is_valid(value))
    return found, failed if failed.true_count else None
