"""Bitwise operators and functions, as in Spark.

The rule: integers are calculated in their common width; a shift has an INT or BIGINT, and takes the low five or six
bits of its distance, as in Java.

Source: Spark's bitwiseExpressions.scala, ShiftLeft, ShiftRight, ShiftRightUnsigned, BitwiseGet.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.compare import Datum
from mica.expressions.pairs import as_arrays
from mica.expressions.signatures import Asked, Function, Signature
from mica.schema.types import BOOLEAN, BYTE, INTEGER, INTEGRALS, LONG, VOID

_COUNTED = np.array([n.bit_count() for n in range(256)], np.uint8)


def _of_integers(asked: Asked) -> Signature | None:
    """Integers give one of their widest type."""
    if any(t not in (*INTEGRALS, VOID) for t in asked.types):
        return None
    widest = max((t for t in asked.types if t != VOID), key=INTEGRALS.index, default=INTEGER)
    return (widest,) * len(asked.types), widest


def _of_shift(asked: Asked) -> Signature | None:
    """An integer of 32 or 64 bits, and an INT."""
    own, by = asked.types
    if own not in (*INTEGRALS, VOID) or by not in (*INTEGRALS[:3], VOID):
        return None
    wanted = LONG if own == LONG else INTEGER
    return (wanted, INTEGER), wanted


def _of_counted(asked: Asked) -> Signature | None:
    own = asked.types[0]
    return ((own,), INTEGER) if own in (*INTEGRALS, BOOLEAN) else None


def _of_bit(asked: Asked) -> Signature | None:
    own, at = asked.types
    return ((own, INTEGER), BYTE) if own in INTEGRALS and at in (*INTEGRALS[:3], VOID) else None


def _both(calculate: Callable[[Any, Any], Any]) -> Callable[[Datum, Datum], pa.Array]:
    def found(left: Datum, right: Datum) -> pa.Array:
        a, b, null = _numbers(left, right)
        return arrow_array(calculate(a, b), mask=null)

    return found


def _numbers(left: Datum, right: Datum) -> tuple[Any, Any, Any]:
    one, other = as_arrays(left, right)
    null = to_numpy(pc.or_(pc.is_null(one), pc.is_null(other)))
    return to_numpy(pc.fill_null(one, 0)), to_numpy(pc.fill_null(other, 0)), null


def _shift(calculate: Callable[[Any, Any], Any], *, unsigned: bool = False) -> Callable[[Datum, Datum], pa.Array]:
    def found(a: Any, b: Any) -> Any:
        width = a.dtype.itemsize * 8
        own = a.view(f"u{a.dtype.itemsize}") if unsigned else a
        return calculate(own, (b & (width - 1)).astype(own.dtype)).view(a.dtype)

    return _both(found)


def inverted(values: pa.Array) -> pa.Array:
    """Every bit the other way round."""
    return pc.bit_wise_not(values)


def bit_count(values: pa.Array) -> pa.Array:
    """The number of ones in the 64 bits of an integer; a boolean is 0 or 1."""
    numbers = to_numpy(pc.fill_null(values.cast(pa.int64()), 0))
    found = _COUNTED[np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, 8)].sum(1)
    return arrow_array(found.astype(np.int32), mask=to_numpy(pc.is_null(values)))


def bit_get(values: Datum, places: Datum) -> tuple[pa.Array, pa.Array | None]:
    """The bit at a place from the right, from 0. Fails outside of the value."""
    a, b, null = _numbers(values, places)
    failed = ~null & ((b < 0) | (b >= a.dtype.itemsize * 8))
    found = (a.astype(np.int64) >> np.where(failed, 0, b)) & 1
    return arrow_array(found.astype(np.int8), mask=null | failed), arrow_array(failed) if failed.any() else None


FUNCTIONS: Mapping[str, Function] = {
    "&": Function((VOID, VOID), VOID, _both(operator.and_), resolve=_of_integers),
    "|": Function((VOID, VOID), VOID, _both(operator.or_), resolve=_of_integers),
    "^": Function((VOID, VOID), VOID, _both(operator.xor), resolve=_of_integers),
    "~": Function((VOID,), VOID, inverted, resolve=_of_integers),
    "shiftleft": Function((VOID, VOID), VOID, _shift(np.left_shift), resolve=_of_shift),
    "shiftright": Function((VOID, VOID), VOID, _shift(np.right_shift), resolve=_of_shift),
    "shiftrightunsigned": Function((VOID, VOID), VOID, _shift(np.right_shift, unsigned=True), resolve=_of_shift),
    "bit_count": Function((VOID,), INTEGER, bit_count, resolve=_of_counted),
    "bit_get": Function((VOID, VOID), BYTE, bit_get, resolve=_of_bit),
}
