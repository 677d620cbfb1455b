"""What is known of a leaf's values in each file, row group or page.

The rule: an interval holds every value that is there, and what is not known is null. It is made from the log's
statistics, from partition values or from a Parquet footer; who judges it need not know which.

A bound of a variant path serves only a comparison of its own class, for a value of another class may cast into the
range asked for ('5' is 5): integers and decimals serve integers, decimals, float and double; float and double serve
float and double; string, date, timestamp and timestamp_ntz serve themselves. Within a class the cast keeps the order,
so the cast bound bounds the cast values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from mica.schema.arrow import to_arrow_type
from mica.schema.types import DATE, DOUBLE, FLOAT, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, decimal
from mica.skipping.bind import Leaf
from mica.skipping.casts import CastFailedError, cast_value, from_values
from mica.skipping.coerce import is_exact, is_real
from mica.skipping.compare import Datum
from mica.stats.codec import LeafStats
from mica.stats.variant import Value

#: The protocol cuts timestamps to milliseconds: a max stands for itself plus 1 ms.
_MS = 1000
_REALS = ("float", "double")
_OWN_KIND: dict[DataType, str] = {
    STRING: "string",
    DATE: "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
}


@dataclass(frozen=True, slots=True)
class Interval:
    """Per file (array) or for all (scalar): `low` and `high` hold every value that is not null; null is unknown.

    `may_be_null`: a null is possible. `all_null`: nothing but nulls, for certain. `may_be_nan`: `high` leaves NaN out,
    which is above it in Spark's order.
    """

    low: Datum
    high: Datum
    may_be_null: Datum
    all_null: Datum
    may_be_nan: bool = False


def unknown(count: int, type_: DataType) -> Interval:
    """Nothing is known."""
    nothing = pa.nulls(count, to_arrow_type(type_))
    return Interval(nothing, nothing, pa.repeat(True, count), pa.repeat(False, count), is_real(type_))


def from_stats(leaf: Leaf, stats: LeafStats) -> Interval:
    """A leaf's interval from the statistics in the log."""
    equal = pc.fill_null(pc.equal(stats.null_count, stats.num_rows), False)
    if leaf.path is not None:
        low, high = path_bounds(stats.min, stats.max, leaf.type)
        # Bounds of integers and decimals say that the file holds nothing else: no NaN.
        nan = is_real(leaf.type) and any(v is not None and v.kind in _REALS for v in (*stats.min, *stats.max))
        # A row without the path is null too, and nobody counts those.
        return Interval(low, high, pa.repeat(True, len(equal)), equal, nan)
    # Writers differ in whether a field of a null struct counts as a null: a count of 0 there proves nothing.
    some = pc.fill_null(pc.not_equal(stats.null_count, 0), True)
    some = pa.repeat(True, len(equal)) if len(leaf.column) > 1 else some
    return Interval(stats.min, stats.max, some, equal, is_real(leaf.type))


def from_constants(values: pa.Array, type_: DataType) -> Interval:
    """A partition column: one known value per file."""
    null = pc.is_null(values)
    if is_real(type_):
        nan = pc.fill_null(pc.is_nan(values), False)
        if nan.true_count:
            values = pc.if_else(nan, pa.scalar(None, values.type), values)
            return Interval(values, values, null, null, True)
    return Interval(values, values, null, null, False)


def from_footer(
    low: pa.Array, high: pa.Array, null_count: pa.Array, num_rows: pa.Array, usable: pa.Array, leaf: Leaf
) -> Interval:
    """Row groups or pages: bounds in the leaf's type, usable where the specification lets a reader rely on them."""
    nothing = pa.scalar(None, low.type)
    low, high = pc.if_else(usable, low, nothing), pc.if_else(usable, high, nothing)
    equal = pc.fill_null(pc.equal(null_count, num_rows), False)
    some = pc.fill_null(pc.not_equal(null_count, 0), True)
    if leaf.path is not None:
        some = pa.repeat(True, len(equal))
        equal = pc.and_(equal, usable)
    return Interval(low, high, some, equal, is_real(leaf.type))


def path_bounds(
    low: Sequence[Value | None], high: Sequence[Value | None], asked: DataType
) -> tuple[pa.Array, pa.Array]:
    """Bounds of a variant path as arrays of the type that the predicate asks for; null where they cannot serve it.

    A path may stand in one of min and max only; where it stands in both and the kinds differ, neither is used.
    """
    lows, highs = [], []
    for a, b in zip(low, high, strict=True):
        mixed = a is not None and b is not None and a.kind != b.kind
        one = None if mixed else _serve(a, asked, upper=False)
        other = None if mixed else _serve(b, asked, upper=True)
        if one is not None and other is not None and one > other:  # type: ignore[operator]
            one = other = None  # no interval at all: a mistake of the writer
        lows.append(one)
        highs.append(other)
    return from_values(lows, asked), from_values(highs, asked)


def _serve(bound: Value | None, asked: DataType, *, upper: bool) -> object:
    """The bound cast to the asked type as the rows will be, or None where its class says nothing about that type."""
    if bound is None:
        return None
    kind, value = bound
    if kind in _REALS:
        if not is_real(asked) or math.isnan(value):
            return None
        return _cast(value, DOUBLE, asked)
    if kind == "exact":
        source = LONG if isinstance(value, int) else decimal(38, min(38, max(0, -value.as_tuple().exponent)))
        return _cast(value, source, asked) if is_exact(asked) or is_real(asked) else None
    if _OWN_KIND.get(asked) != kind:
        return None
    return value + _MS if upper and asked in (TIMESTAMP, TIMESTAMP_NTZ) else value


def _cast(value: object, source: DataType, asked: DataType) -> object:
    try:
        cast: object = cast_value(value, source, asked, "UTC", ansi=True)
    except CastFailedError:
        return None
    if asked in (FLOAT, DOUBLE) and isinstance(cast, float) and math.isinf(cast):
        return None
    return cast
