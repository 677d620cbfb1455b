"""Evaluates a function of two columns pair by pair, where Arrow has no equivalent of Spark's.

The rule: each distinct pair of values is evaluated once; null gives null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.expressions.compare import Datum
from mica.expressions.plain_values import from_values
from mica.expressions.room import repeated
from mica.schema.types import DataType


def as_array(value: Datum, count: int) -> pa.Array:
    """Expands the datum to one value per row."""
    return repeated(value, count) if isinstance(value, pa.Scalar) else value


def by_pairs(left: Datum, right: Datum, type_: DataType, judge: Callable[[Any, Any], Any]) -> pa.Array:
    """Returns `judge` of each row's two Python values, as an array of `type_`; at least one side is an array."""
    count = len(left) if isinstance(left, pa.Array) else len(right)
    one, other = as_array(left, count).dictionary_encode(), as_array(right, count).dictionary_encode()
    width = max(1, len(other.dictionary))
    codes = pc.add(pc.multiply(one.indices.cast(pa.int64()), width), other.indices.cast(pa.int64()))
    pairs = codes.dictionary_encode()
    lefts, rights = one.dictionary.to_pylist(), other.dictionary.to_pylist()
    results = [judge(lefts[code // width], rights[code % width]) for code in pairs.dictionary.to_pylist()]
    return from_values(results, type_).take(pairs.indices)


def tried_by_pairs(
    left: Datum, right: Datum, type_: DataType, judge: Callable[[Any, Any], Any]
) -> tuple[pa.Array, pa.Array | None]:
    """As `by_pairs`, with the mask of the rows for whose values `judge` has no result (None: there is none)."""
    found = by_pairs(left, right, type_, judge)
    failed = pc.and_(pc.and_(pc.is_valid(left), pc.is_valid(right)), pc.is_null(found))
    return found, failed if failed.true_count else None
