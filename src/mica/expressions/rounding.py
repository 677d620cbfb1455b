"""round, bround, floor and ceil, as in Spark.

The rule: a number is rounded as it is printed: 2.675 is a tie although its double is a little less. Doubles take the
fast way where no tie is near; the others are rounded one by one, each distinct value once. An integer keeps its type, a
decimal gets the digits that are left, floor and ceil of other numbers give a BIGINT. With a number of places floor and
ceil take any number as a decimal, and more than 38 digits are an error, with ANSI and without.

Source: Spark's Round, BRound, Floor, Ceil, RoundFloor, RoundCeil; DecimalType.forType; BigDecimal.setScale.
"""

from __future__ import annotations

import decimal as exact
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions.casts import bits_of, cast_array
from mica.expressions.coerce import digits, is_exact, is_number, is_real
from mica.expressions.plain_values import Made
from mica.expressions.signatures import Asked, Signature
from mica.schema.arrow import to_arrow_type
from mica.schema.types import (
    DOUBLE,
    FLOAT,
    INTEGER,
    INTEGRALS,
    LONG,
    MAX_PRECISION,
    STRING,
    VOID,
    DataType,
    decimal,
)

_MODES = {"half_up": exact.ROUND_HALF_UP, "half_even": exact.ROUND_HALF_EVEN}
_ARROW_MODES = {"half_up": "half_towards_infinity", "half_even": "half_to_even"}
_WIDE = exact.Context(prec=800)
#: Powers of ten up to here, and integers below 2**52, are doubles without an error, and so is their quotient rounded.
_POWERS, _EXACT = 22, 2.0**52
#: No double has as many digits on either side of the point.
_FAR = 400


def to_places(asked: Asked) -> Signature | None:
    """A number and a constant number of places."""
    own = DOUBLE if asked.types[0] in (STRING, VOID) else asked.types[0]
    places = asked.types[1:]
    if not is_number(own) or any(not (is_number(t) or t in (STRING, VOID)) for t in places):
        return None
    given = asked.values[1] if places else None
    count = int(given) if isinstance(given, int | float | Decimal) and math.isfinite(given) else 0
    return (own, *[INTEGER] * len(places)), own if is_real(own) or own in INTEGRALS else _rounded(own, count)


def _rounded(type_: DataType, places: int) -> DataType:
    precision, scale = digits(type_)
    whole = precision - scale + 1
    if places < 0:
        return decimal(min(max(whole, -places + 1), MAX_PRECISION), 0)
    return decimal(min(whole + min(scale, places), MAX_PRECISION), min(scale, places))


#: The decimals that hold numbers and texts where Spark needs decimals.
_TAKEN: Mapping[DataType, DataType] = {
    **{t: decimal(p, 0) for t, p in zip(INTEGRALS, (3, 5, 10, 20), strict=True)},
    FLOAT: decimal(14, 7), DOUBLE: decimal(30, 15), STRING: decimal(38, 18), VOID: decimal(38, 18),
}  # fmt: skip


def to_whole(asked: Asked) -> Signature | None:
    """A number gives a BIGINT, a decimal one without digits after the point; with places any gives a decimal."""
    own = asked.types[0]
    if len(asked.types) > 1:
        taken = own if is_exact(own) and own not in INTEGRALS else _TAKEN.get(own)
        if taken is None or asked.types[1] != INTEGER or asked.values[1] is None:
            return None
        return (taken, INTEGER), _rounded(taken, asked.values[1])
    if own in INTEGRALS or own == LONG:
        return (LONG,), LONG
    if is_exact(own):
        precision, scale = digits(own)
        return (own,), own if scale == 0 else decimal(min(precision - scale + 1, MAX_PRECISION), 0)
    return ((DOUBLE,), LONG) if is_real(own) or own in (STRING, VOID) else None


def rounded(mode: str) -> Callable[..., Made]:
    """Returns the function that rounds `half_up` or `half_even`."""

    def found(
        values: pa.Array, places: pa.Scalar | None = None, *, types: Sequence[DataType], result: DataType, ansi: bool
    ) -> Made:
        count = 0 if places is None else places.as_py()
        if count is None:
            return pa.nulls(len(values), to_arrow_type(result)), None
        if types[0] in INTEGRALS:
            return _integers(values, count, mode, types[0], ansi=ansi)
        if is_real(types[0]):
            return _reals(values, count, mode), None
        return _decimals(values, count, _ARROW_MODES[mode], types[0], result), None

    return found


def whole(mode: str) -> Callable[..., Any]:
    """Returns the function that rounds `down` (floor) or `up` (ceil)."""

    def found(
        values: pa.Array, places: pa.Scalar | None = None, *, types: Sequence[DataType], result: DataType
    ) -> pa.Array | Made:
        if places is not None:
            made = _decimals(values, places.as_py(), mode, types[0], result)
            failed = pc.and_(pc.is_valid(values), pc.is_null(made))
            return made, failed if failed.true_count else None
        if types[0] == LONG or types[0] == result:
            return values
        if is_exact(types[0]):
            return _decimals(values, 0, mode, types[0], result)
        kept = pc.floor(values) if mode == "down" else pc.ceil(values)
        return cast_array(kept, DOUBLE, LONG, "UTC", ansi=False)[0]

    return found


def _integers(values: pa.Array, places: int, mode: str, type_: DataType, *, ansi: bool) -> Made:
    if places >= 0:
        return values, None
    places = max(places, -20)  # from there on every integer becomes zero
    valid = to_numpy(pc.is_valid(values))
    numbers = to_numpy(pc.fill_null(values, 0)).astype(object if places < -18 else np.int64)
    if places < -18:  # no 64 bits hold the unit
        unit = 10**-places
        found = np.array([_to_unit(int(n), unit, mode) for n in numbers], object)
    else:
        # The quotient and the rest are exact; the product may not fit.
        unit = 10**-places
        quotient = np.floor_divide(numbers, unit)
        rest = numbers - quotient * unit
        up = (rest * 2 > unit) if unit < 2**61 else rest > unit // 2
        tie = rest == unit - rest
        away = (numbers >= 0) if mode == "half_up" else (quotient % 2 != 0)
        quotient = quotient + (up | (tie & away))
        limit = (2**63 - 1) // unit
        big = np.abs(quotient) > limit
        found = quotient * unit
        if big.any():
            found = found.astype(object)
            found[big] = [int(q) * unit for q in quotient[big]]
    bits = bits_of(type_)
    outside = (found < -(1 << bits)) | (found >= 1 << bits)
    failed = valid & outside.astype(bool)
    if found.dtype == object:
        found = np.array([(int(n) + (1 << bits)) % (1 << bits + 1) - (1 << bits) for n in found], np.int64)
    made = arrow_array(found, pa.int64(), mask=~valid | (failed & ansi)).cast(values.type, safe=False)
    return made, arrow_array(failed) if ansi and failed.any() else None


def _to_unit(number: int, unit: int, mode: str) -> int:
    return int((Decimal(number) / unit).quantize(Decimal(1), _MODES[mode], _WIDE)) * unit


def _reals(values: pa.Array, places: int, mode: str) -> pa.Array:
    places = max(-_FAR, min(places, _FAR))
    numbers = to_numpy(pc.fill_null(values, 0)).astype(np.float64)
    finite = np.isfinite(numbers)
    size = np.where(finite, np.abs(numbers), 0.0)
    fast = np.zeros(len(numbers), np.bool_)
    found = numbers.copy()
    if abs(places) <= _POWERS:
        power = 10.0 ** abs(places)
        with np.errstate(all="ignore"):
            scaled = size * power if places >= 0 else size / power
            low = np.floor(scaled)
            nearest = low + (scaled - low > 0.5)
            back = nearest / power if places >= 0 else nearest * power
            fast = finite & (scaled < 2.0**40) & (np.abs(scaled - low - 0.5) > 1e-3) & (nearest < _EXACT)
        # The result has no sign if it is zero: BigDecimal has no negative zero.
        found = np.where(fast, np.where(nearest == 0, 0.0, np.copysign(back, numbers)), found)
    slow = finite & ~fast
    if slow.any():
        distinct, inverse = np.unique(numbers[slow], return_inverse=True)
        unit = Decimal(1).scaleb(-places)
        made = [float(Decimal(repr(float(n))).quantize(unit, _MODES[mode], _WIDE)) + 0.0 for n in distinct]
        found[slow] = np.array(made)[inverse]
    kept: Any = found.astype(np.float32) if pa.types.is_float32(values.type) else found
    return arrow_array(kept, values.type, mask=to_numpy(pc.is_null(values)))


def _decimals(values: pa.Array, places: int, mode: str, type_: DataType, result: DataType) -> pa.Array:
    precision, scale = digits(type_)
    places = max(places, -MAX_PRECISION - 1)
    if -places > precision - scale + 1:
        away = pc.less(values, 0) if mode == "down" else pc.greater(values, 0) if mode == "up" else None
        unit = Decimal(10) ** -places * (-1 if mode == "down" else 1)
        made = arrow_array([Decimal(0), unit if -places < digits(result)[0] else None], to_arrow_type(result))
        return made.take(pc.if_else(pc.is_valid(values), 0, None) if away is None else away.cast(pa.int8()))
    wide = values.cast(pa.decimal256(min(76, precision + max(1, -places) + 1), scale))
    if places < scale:
        wide = pc.round(wide, places, mode)
    wanted = to_arrow_type(result)
    # What 38 digits cannot hold is null, with ANSI too.
    whole_digits = wanted.precision - wanted.scale
    if wide.type.precision - wide.type.scale > whole_digits:
        fits = pc.less(pc.abs(wide), scalar(Decimal(10) ** whole_digits, wide.type))
        wide = pc.if_else(fits, wide, scalar(None, wide.type))
    return wide.cast(pa.decimal256(wide.type.precision, wanted.scale)).cast(wanted)
