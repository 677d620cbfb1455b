"""Comparisons of whole arrays, as in Spark.

The rule: both sides are of one class, and the order is Spark's: NaN equals NaN and is above every number, -0.0 equals
0.0, strings and binary are ordered by unsigned bytes, false is below true, integers and decimals are compared by value
whatever their width. Null gives null, except with `<=>`. Arrays and structs are ordered by their first parts that
differ, and an array is above its beginning; inside of them null equals null and is below everything else.

Source: Spark SQL reference, "NaN Semantics" and "Null Semantics"; PhysicalArrayType and InterpretedOrdering.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, scalar, to_numpy
from mica.expressions.coerce import digits, is_exact, is_real
from mica.expressions.plain_values import from_values
from mica.expressions.room import repeated
from mica.expressions.tree import Op
from mica.schema.arrow import to_arrow_type
from mica.schema.lists import offsets_from_zero
from mica.schema.types import BOOLEAN, VOID, ArrayType, DataType, StructType

#: An array, or a scalar if the value is constant.
Datum = Any

_ARROW: dict[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def literal(value: Any, type_: DataType) -> Datum:
    """A constant as an Arrow scalar."""
    return from_values([value], type_)[0]


def compare(op: Op, left: Datum, right: Datum, left_type: DataType, right_type: DataType) -> Datum:
    """Compares two sides of one class, whose types are given. At least one side should be an array."""
    if op in (Op.SAFE_EQ, Op.DISTINCT):
        same = _null_safe_equal(left, right, left_type, right_type)
        return same if op is Op.SAFE_EQ else pc.invert(same)
    if isinstance(left_type, ArrayType | StructType):
        return _compare_nested(op, left, right, left_type)
    if is_exact(left_type) and is_exact(right_type):
        left, right = exact_pair(left, right, left_type, right_type)
    elif left_type in (BOOLEAN, VOID):  # Arrow orders neither
        left, right = pc.cast(left, pa.int8()), pc.cast(right, pa.int8())
    elif is_real(left_type):
        return _compare_reals(op, left, right)
    return _ARROW[op](left, right)


def _null_safe_equal(left: Datum, right: Datum, left_type: DataType, right_type: DataType) -> Datum:
    equal = compare(Op.EQ, left, right, left_type, right_type)
    both = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(pc.is_null(equal), both, equal)


def _compare_nested(op: Op, left: Datum, right: Datum, type_: DataType) -> Datum:
    count = len(left) if isinstance(left, pa.Array) else len(right)
    left, right = (repeated(side, count) if isinstance(side, pa.Scalar) else side for side in (left, right))
    either_null = to_numpy(pc.or_(pc.is_null(left), pc.is_null(right)))
    return _ARROW[op](arrow_array(_signs(left, right, type_), mask=either_null), scalar(0, pa.int8()))


def _signs(left: pa.Array, right: pa.Array, type_: DataType) -> NDArray[np.int8]:
    """Per row -1, 0 or 1: the order of the values, among which null is the lowest."""
    match type_:
        case StructType(fields):
            found = np.zeros(len(left), np.int8)
            for one, other, f in zip(left.flatten(), right.flatten(), fields, strict=True):
                found = np.where(found, found, _signs(one, other, f.type))
        case ArrayType(element):
            found = _signs_of_lists(left, right, element)
        case _:
            above, below = (pc.fill_null(compare(op, left, right, type_, type_), False) for op in (Op.GT, Op.LT))
            found = to_numpy(above).astype(np.int8) - to_numpy(below).astype(np.int8)
    one_null, other_null = (to_numpy(pc.is_null(side)).astype(np.int8) for side in (left, right))
    return np.asarray(np.where(one_null | other_null, other_null - one_null, found), np.int8)


def _signs_of_lists(left: pa.Array, right: pa.Array, element: DataType) -> NDArray[np.int8]:
    starts, other_starts = (to_numpy(offsets_from_zero(side)).astype(np.int64) for side in (left, right))
    lengths, other_lengths = np.diff(starts), np.diff(other_starts)
    shared = np.minimum(lengths, other_lengths)
    parents = np.repeat(np.arange(len(shared)), shared)
    places = np.arange(len(parents)) - np.repeat(np.cumsum(shared) - shared, shared)
    sides = (
        left.flatten().take(arrow_array(starts[parents] + places)),
        right.flatten().take(arrow_array(other_starts[parents] + places)),
    )
    signs = _signs(*sides, element)
    found: NDArray[np.int8] = np.sign(lengths - other_lengths).astype(np.int8)
    differing = np.flatnonzero(signs)
    rows, first = np.unique(parents[differing], return_index=True)
    found[rows] = signs[differing[first]]
    return found


def _compare_reals(op: Op, left: Datum, right: Datum) -> Datum:
    """IEEE comparisons already treat -0.0 and 0.0 as equal; their results for NaN are replaced."""
    if op in (Op.GT, Op.GE):
        return _compare_reals(op.flipped, right, left)
    if op is Op.NE:
        return pc.invert(_compare_reals(Op.EQ, left, right))
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if op is Op.EQ:
        return pc.or_(pc.equal(left, right), pc.and_(left_nan, right_nan))
    if op is Op.LT:
        return pc.or_(pc.less(left, right), pc.and_(pc.invert(left_nan), right_nan))
    return pc.or_(pc.less_equal(left, right), right_nan)


def hashable(reals: Datum) -> Datum:
    """Reals as doubles, of which those that are equal have equal bytes: one zero, and one NaN of the many."""
    reals = pc.add(reals, 0.0)  # -0.0 becomes 0.0
    return pc.if_else(pc.is_nan(reals), scalar(math.nan, reals.type), reals)


def exact_pair(left: Datum, right: Datum, left_type: DataType, right_type: DataType) -> tuple[Datum, Datum]:
    """Casts integers and decimals to one Arrow type that holds both sides without loss."""
    if not pa.types.is_decimal(left.type) and not pa.types.is_decimal(right.type):
        return left, right
    if left.type == right.type:
        return left, right
    (p1, s1), (p2, s2) = digits(left_type), digits(right_type)
    scale = max(s1, s2)
    precision = max(p1 - s1, p2 - s2) + scale
    wide = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    return pc.cast(left, wide), pc.cast(right, wide)


def is_in(values: Datum, type_: DataType, wanted: list[Any], wanted_types: list[DataType]) -> Datum:
    """`x IN (…)` over constants: true if x equals one; null if x is null, or if no constant matches and one is null."""
    found: Datum = None
    if is_exact(type_) and any(t != type_ for t in wanted_types):
        found = _exact_in(values, type_, wanted, wanted_types)
    else:
        value_set = from_values([v for v in wanted if v is not None], type_)
        if is_real(type_):
            values, value_set = hashable(values), hashable(value_set)
        found = pc.is_in(values, value_set=value_set)
    if any(v is None for v in wanted):
        found = pc.if_else(found, True, scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(values), found, scalar(None, pa.bool_()))


def _exact_in(values: Datum, type_: DataType, wanted: list[Any], wanted_types: list[DataType]) -> Datum:
    """Converts the constants to the column's type; one that does not exist in that type equals no value."""
    own = to_arrow_type(type_)
    by_type: dict[DataType, list[Any]] = {}
    for value, its_type in zip(wanted, wanted_types, strict=True):
        if value is not None:
            by_type.setdefault(its_type, []).append(value)
    fitting = [part for its_type, some in by_type.items() for part in _fitting(from_values(some, its_type), own)]
    return pc.is_in(values, value_set=pa.chunked_array(fitting, own).combine_chunks())


def _fitting(constants: pa.Array, own: pa.DataType) -> list[pa.Array]:
    """The constants of one type that exist in another. All are cast at once; if some do not fit, halves say which."""
    try:
        if pa.types.is_integer(constants.type) and pa.types.is_decimal(own):
            return [pc.cast(pc.cast(constants, pa.decimal256(19, 0)), own)]
        return [pc.cast(constants, own)]
    except pa.ArrowInvalid:
        half = len(constants) // 2
        return [] if not half else _fitting(constants[:half], own) + _fitting(constants[half:], own)
