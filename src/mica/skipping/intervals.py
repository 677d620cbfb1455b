"""What is known about a leaf's values in each file, row group or page.

The rule: an interval contains every value; what is not known is null. Intervals come from the log's statistics, from
partition values or from a Parquet footer; the evaluation is the same for all.

A bound of a variant path serves only a comparison of its own class, because a value of another class may cast into the
requested range ('5' is 5): integers and decimals serve integers, decimals, float and double; float and double serve
float and double; string, date, timestamp and timestamp_ntz serve their own type, and strings serve times as far as
`written` tells. Within a class the cast keeps the order, so the cast bounds contain the cast values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import FALSE, TRUE, NDArray, arrow_array, from_numpy, scalar, to_numpy
from mica.expressions.bind import Leaf
from mica.expressions.casts import CastFailedError, bits_of, cast_value
from mica.expressions.coerce import is_exact, is_real
from mica.expressions.compare import Datum
from mica.records import dataclass
from mica.schema.arrow import to_arrow_type
from mica.schema.char import padded
from mica.schema.types import DATE, DOUBLE, FLOAT, INTEGRALS, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, decimal
from mica.skipping import written
from mica.skipping.filled import filled
from mica.stats import paths
from mica.stats.paths import PathSide
from mica.stats.read import ColumnStats, in_order

#: The protocol truncates timestamps to milliseconds: the true max may be up to 1 ms above the stored one.
_ZERO = scalar(0, pa.int64())
_MS = 1000
_LAST = 2**63 - 1
_REALS = (paths.FLOAT, paths.DOUBLE)
_OWN_KIND: dict[DataType, int] = {
    STRING: paths.STRING,
    DATE: paths.DATE,
    TIMESTAMP: paths.TIMESTAMP,
    TIMESTAMP_NTZ: paths.TIMESTAMP_NTZ,
}


@dataclass(frozen=True)
class Interval:
    """Per file (array) or for all (scalar): `low` and `high` enclose every non-null value; null is unknown.

    `may_be_null`: a null is possible. `all_null`: every value is certainly null. `may_be_nan`: `high` excludes NaN,
    which is above it in Spark's order.
    """

    low: Datum
    high: Datum
    may_be_null: Datum
    all_null: Datum
    may_be_nan: bool = False
    #: Per file: there are bounds, but of a type that says nothing about the one asked for. For explain.
    unfit: NDArray[np.bool_] | None = None


def unknown(count: int, type_: DataType) -> Interval:
    """An interval about which nothing is known."""
    nothing = pa.nulls(count, to_arrow_type(type_))
    return Interval(nothing, nothing, pa.repeat(TRUE, count), pa.repeat(FALSE, count), is_real(type_))


def from_stats(leaf: Leaf, stats: ColumnStats) -> Interval:
    """Builds a leaf's interval from the statistics in the log."""
    equal = filled(pc.equal(stats.null_count, stats.num_rows), False)
    if leaf.path is not None:
        low, high = path_bounds(stats.min, stats.max, leaf.type)
        # Bounds of integers and decimals prove that the file holds no other class, so no NaN.
        nan = is_real(leaf.type) and any(np.isin(side.kinds, _REALS).any() for side in (stats.min, stats.max))
        # A row without the path is null too, and statistics do not count those.
        known = (stats.min.kinds != paths.NONE) | (stats.max.kinds != paths.NONE)
        unfit = known & to_numpy(pc.and_(pc.is_null(low), pc.is_null(high)))
        return Interval(low, high, pa.repeat(TRUE, len(equal)), equal, nan, unfit)
    # Writers differ in whether a field of a null struct counts as a null: a count of 0 proves nothing there.
    some = filled(pc.not_equal(stats.null_count, _ZERO), True)
    some = pa.repeat(TRUE, len(equal)) if len(leaf.column) > 1 else some
    return Interval(stats.min, longest(stats.max, leaf), some, equal, is_real(leaf.type))


def longest(high: Datum, leaf: Leaf) -> Datum:
    """The upper bound of a CHAR column, whose values are read with blanks behind them. They are still not below the
    lower bound, and not above the padded upper one, unless a control character in it is below the blank.
    """
    if not leaf.padded or leaf.type != STRING:
        return high
    control = pc.match_substring_regex(high, r"[\x00-\x1f]")
    return padded(pc.if_else(control, scalar(None, high.type), high), leaf.padded)


def from_constants(values: pa.Array, type_: DataType) -> Interval:
    """A partition column: one known value per file."""
    null = pc.is_null(values)
    if is_real(type_):
        nan = filled(pc.is_nan(values), False)
        if nan.true_count:
            values = pc.if_else(nan, scalar(None, values.type), values)
            return Interval(values, values, null, null, True)
    return Interval(values, values, null, null, False)


def path_bounds(low: PathSide, high: PathSide, asked: DataType) -> tuple[pa.Array, pa.Array]:
    """Returns the bounds of a variant path as arrays of the type that the predicate uses; null if unusable for it.

    A path may be in one of min and max only; if it is in both and the classes differ, neither is used.
    """
    mixed = (low.kinds != high.kinds) & (low.kinds != paths.NONE) & (high.kinds != paths.NONE)
    one, other = _serve(low, asked, ~mixed, upper=False), _serve(high, asked, ~mixed, upper=True)
    if asked in written.READ and ((texts := low.kinds == paths.STRING) & (high.kinds == paths.STRING)).any():
        one, other = (
            pc.if_else(from_numpy(texts), said, known)
            for said, known in zip(written.times(low.texts, high.texts, asked), (one, other), strict=True)
        )
    return in_order(one, other)


def _serve(side: PathSide, asked: DataType, usable: NDArray[np.bool_], *, upper: bool) -> pa.Array:
    """Casts the bounds to the requested type as the rows are cast; null if their class cannot serve that type."""
    wanted = to_arrow_type(asked)
    if asked in _OWN_KIND:
        usable = usable & (side.kinds == _OWN_KIND[asked])
        if asked == STRING:
            return pc.if_else(from_numpy(usable), side.texts, scalar(None, pa.string())).cast(wanted)
        days = asked == DATE
        more = _MS if upper and not days else 0
        usable = usable & (side.ints <= _LAST - more)  # the last instant has no upper bound
        values = np.where(usable, side.ints, 0) + more
        return from_numpy(values, ~usable).cast(pa.int32() if days else pa.int64()).cast(wanted)
    if asked in INTEGRALS:
        fits = usable & (side.kinds == paths.EXACT)
        if asked != LONG:
            bits = bits_of(asked)
            fits &= (side.ints >= -(1 << bits)) & (side.ints <= (1 << bits) - 1)
        fits[list(side.decimals)] = False
        array = pc.cast(from_numpy(side.ints, ~fits), wanted)
    elif asked == DOUBLE:
        exact, real = usable & (side.kinds == paths.EXACT), usable & np.isin(side.kinds, _REALS)
        exact[list(side.decimals)] = False
        array = from_numpy(np.where(exact, side.ints.astype(np.float64), side.reals), ~(exact | real))
    else:
        array = pa.nulls(len(usable), wanted)
        if asked == FLOAT or is_exact(asked):
            return _one_by_one(side, asked, usable, range(len(usable)), array)
        return array
    if is_real(asked):
        array = pc.if_else(pc.is_finite(array), array, scalar(None, wanted))
    return _one_by_one(side, asked, usable, side.decimals, array) if side.decimals else array


def _one_by_one(
    side: PathSide, asked: DataType, usable: NDArray[np.bool_], rows: Iterable[int], array: pa.Array
) -> pa.Array:
    """Fills in the values that arrays cannot hold or cast exactly: decimals, and roundings to float and decimal."""
    values = array.to_pylist()
    for row in rows:
        if usable[row]:
            values[row] = _cast_one(side, row, asked)
    return arrow_array(values, array.type)


def _cast_one(side: PathSide, row: int, asked: DataType) -> object:
    kind = int(side.kinds[row])
    if kind == paths.EXACT:
        value: Any = side.decimals.get(row, int(side.ints[row]))
        source = LONG if isinstance(value, int) else decimal(38, min(38, max(0, -value.as_tuple().exponent)))
    elif kind in _REALS and is_real(asked) and math.isfinite(side.reals[row]):
        value, source = float(side.reals[row]), DOUBLE
    else:
        return None
    try:
        cast: object = cast_value(value, source, asked, "UTC", ansi=True)
    except CastFailedError:
        return None
    return None if isinstance(cast, float) and math.isinf(cast) else cast
