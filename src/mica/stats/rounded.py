"""Bounds of decimals that their writer kept as doubles.

The rule: a bound of a decimal beyond 15 digits that has at most 17 of its own may be the nearest double of the true
one, as deltalake 1.6 writes it: it becomes wide enough to hold in any case. More digits are no double's, and exact.
Where there are no decimal places deltalake writes whole numbers of 64 bits, and the ends of these for all beyond: such
a bound is unknown.

Source: Delta protocol, "Per-file Statistics", which asks for bounds that hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy

#: All decimals of so many digits come back from doubles, and no double has more digits than these.
_EXACT, _DIGITS = 15, 17
_LONG = (1 << 63) - 1
#: Four times the distance of neighbouring doubles, for a writer that rounds twice.
_SLACK = 2.0**-50
_UNITS, _WIDE = pa.decimal128(38, 0), pa.decimal256(38, 0)


def as_they_hold(low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Lower and upper bounds of DECIMALs that hold for what they may have been rounded from; null: unknown."""
    kind = low.type
    if kind.precision <= _EXACT or low.null_count + high.null_count == 2 * len(low):
        return low, high
    if kind.scale == 0 and kind.precision > len(str(_LONG)) - 1:
        low, high = _unless(low, -_LONG - 1), _unless(high, _LONG)
    return _wider(low, -1), _wider(high, 1)


def _unless(bounds: pa.Array, end: int) -> pa.Array:
    ends = pc.equal(_units(bounds, _UNITS), scalar(end, _UNITS))
    return pc.if_else(pc.fill_null(ends, True), scalar(None, bounds.type), bounds)


def _wider(bounds: pa.Array, sign: int) -> pa.Array:
    far = _is_far(bounds)
    if not far.any():
        return bounds
    mask = arrow_array(far)
    return pc.replace_with_mask(bounds, mask, _widened(bounds.filter(mask), sign))


def _is_far(bounds: pa.Array) -> np.ndarray:
    """Whether each bound has more digits than come back from a double for certain."""
    words = np.frombuffer(bounds.buffers()[1], np.int64).reshape(-1, 2)[bounds.offset :][: len(bounds)]
    low, end = words[:, 0], 10**_EXACT
    far: np.ndarray = to_numpy(bounds.is_valid()) & ((words[:, 1] != low >> 63) | (low <= -end) | (low >= end))
    return far


def _widened(bounds: pa.Array, sign: int) -> pa.Array:
    units = _units(bounds, _UNITS)
    digits = pc.ascii_rtrim(pc.ascii_ltrim(pc.cast(units, pa.string()), characters="-0"), characters="0")
    sizes = np.abs(to_numpy(pc.cast(units, pa.float64())))
    slack = pc.cast(arrow_array(np.ceil(sizes * _SLACK) * sign, pa.float64()), _WIDE)
    sums = pc.add(pc.cast(units, _WIDE), slack)
    end = scalar(sign * (10**bounds.type.precision - 1), sums.type)
    within = (pc.min_element_wise if sign > 0 else pc.max_element_wise)(sums, end, skip_nulls=False)
    short = pc.less_equal(pc.binary_length(digits), _DIGITS)
    return pc.if_else(short, _units(pc.cast(within, _UNITS), bounds.type), bounds)


def _units(values: pa.Array, kind: Any) -> pa.Array:
    """The same numbers without their scale, or with another."""
    return pa.Array.from_buffers(kind, len(values), values.buffers(), offset=values.offset)
