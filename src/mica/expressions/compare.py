"""Comparisons of whole arrays, as in Spark.

The rule: both sides are of one class, and the order is Spark's: NaN equals NaN and is above every number, -0.0 equals
0.0, strings and binary are ordered by unsigned bytes, false is below true, integers and decimals are compared by value
whatever their width. Null gives null, except with `<=>`.

Source: Spark SQL reference, "NaN Semantics" and "Null Semantics".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.expressions.coerce import digits, is_exact, is_real
from mica.expressions.plain_values import from_values
from mica.expressions.tree import Op
from mica.schema.arrow import to_arrow_type
from mica.schema.types import BOOLEAN, VOID, DataType

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
    return _widen(left, wide), _widen(right, wide)


def _widen(value: Datum, wide: pa.DataType) -> Datum:
    if pa.types.is_integer(value.type):
        # Arrow's cast requires room for 64 bits whatever the values; the detour provides it.
        value = pc.cast(pc.cast(value, pa.int64()), pa.decimal256(19, 0))
    elif pa.types.is_decimal128(value.type) and pa.types.is_decimal256(wide):
        value = pc.cast(value, pa.decimal256(value.type.precision, value.type.scale))
    return pc.cast(value, wide)


def is_in(values: Datum, type_: DataType, wanted: list[Any], wanted_types: list[DataType]) -> Datum:
    """`x IN (…)` over constants: true if x equals one; null if x is null, or if no constant matches and one is null."""
    found: Datum = None
    if is_exact(type_) and any(t != type_ for t in wanted_types):
        found = _exact_in(values, type_, wanted, wanted_types)
    else:
        value_set = from_values([v for v in wanted if v is not None], type_)
        if is_real(type_):
            # Hashing distinguishes -0.0 from 0.0; adding zero makes both 0.0.
            values, value_set = pc.add(values, 0.0), pc.add(value_set, 0.0)
        found = pc.is_in(values, value_set=value_set)
    if any(v is None for v in wanted):
        found = pc.if_else(found, True, pa.scalar(None, pa.bool_()))
    return pc.if_else(pc.is_valid(values), found, pa.scalar(None, pa.bool_()))


def _exact_in(values: Datum, type_: DataType, wanted: list[Any], wanted_types: list[DataType]) -> Datum:
    """Converts each constant to the column's type; one that does not exist in that type equals no value."""
    own = to_arrow_type(type_)
    fitting = []
    for value, its_type in zip(wanted, wanted_types, strict=True):
        if value is None:
            continue
        try:
            wide = from_values([value], its_type)
            if pa.types.is_integer(wide.type) and pa.types.is_decimal(own):
                wide = pc.cast(wide, pa.decimal256(19, 0))
            fitting.append(pc.cast(wide, own, safe=True)[0].as_py())
        except pa.ArrowInvalid:
            continue
    return pc.is_in(values, value_set=pa.array(fitting, own))
