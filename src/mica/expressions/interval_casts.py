"""Casts from intervals and to them, as in Spark.

The rule: a number counts the least unit of the interval's type, and so does what a cast to a number gives, towards zero
for an integer. To fewer units an interval loses what is shorter. What does not fit fails, with ANSI and without;
TRY_CAST gives null.

| from | to |
|---|---|
| an interval | string, integer, decimal, an interval of the same kind (months, or days and times) |
| string, integer, decimal | an interval |

Source: Spark's Cast, IntervalUtils (durationToMicros, dayTimeIntervalToLong, decimalToDayTimeInterval,
castStringToDTInterval, castStringToYMInterval).
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.coerce import digits, is_exact
from mica.expressions.interval_literals import of_cast
from mica.expressions.plain_values import TRIMMED, Made, each
from mica.schema.arrow import to_arrow_type
from mica.schema.interval_types import COUNTS, is_interval, of_months, show, units_of
from mica.schema.types import INTEGRALS, STRING, DataType

_WIDE = Context(prec=120)


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether Spark has the cast, of which one side is an interval."""
    if is_interval(source) and is_interval(target):
        return of_months(source) == of_months(target)
    other = target if is_interval(source) else source
    return other == STRING or is_exact(other)


def cast_array(array: pa.Array, source: DataType, target: DataType) -> Made:
    """Returns the cast array, null where the cast failed, and the mask of failures."""
    if not is_interval(source):
        return _to_interval(array, source, target)
    if target == STRING:
        return each(counts_of(array), target, lambda value: show(value, source))
    values, unit, arrow = counts_of(array), COUNTS[units_of(source)[-1]], to_arrow_type(target)
    if is_interval(target):
        least = COUNTS[units_of(target)[-1]]
        numbers = _numbers(values)
        kept = numbers - np.fmod(numbers, least) if least > unit else numbers
        return of_counts(kept, to_numpy(pc.is_valid(values)), arrow), None
    if target in INTEGRALS:
        found = _truncated(_numbers(values), unit)
        limits = np.iinfo(arrow.to_pandas_dtype())
        failed = to_numpy(pc.is_valid(values)) & ((found < limits.min) | (found > limits.max))
        made = arrow_array(np.where(failed, 0, found), pa.int64(), mask=to_numpy(pc.is_null(values)) | failed)
        return made.cast(arrow), arrow_array(failed) if failed.any() else None
    whole = unit != COUNTS["second"] or of_months(source)
    return each(values, target, lambda v: _fitted(Decimal(_quotient(v, unit)) if whole else Decimal(v) / unit, target))


def counts_of(values: pa.Array) -> pa.Array:
    """The months or microseconds of intervals."""
    return values if pa.types.is_integer(values.type) else values.cast(pa.int64())


def of_counts(counts: Any, valid: Any, arrow: pa.DataType) -> pa.Array:
    """Intervals of so many months or microseconds, null where they are not valid."""
    return arrow_array(counts, pa.int64(), mask=~valid).cast(arrow)


def _to_interval(array: pa.Array, source: DataType, target: DataType) -> Made:
    unit, limit = COUNTS[units_of(target)[-1]], 2**31 if of_months(target) else 2**63

    def one(value: Any) -> int | None:
        if source == STRING:
            return of_cast(value.strip(TRIMMED), target)
        count = int(_WIDE.multiply(Decimal(value), unit).to_integral_value(ROUND_HALF_UP, _WIDE))
        return count if -limit <= count < limit else None

    return each(array, target, one)


def _fitted(value: Decimal, target: DataType) -> Decimal | None:
    precision, scale = digits(target)
    try:
        found = value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    except (InvalidOperation, Inexact):
        return None
    return found if abs(found) < Decimal(10) ** (precision - scale) else None


def _numbers(values: pa.Array) -> Any:
    return to_numpy(pc.fill_null(values, 0)).astype(np.int64)


def _truncated(values: Any, unit: int) -> Any:
    return (values - np.fmod(values, unit)) // unit


def _quotient(value: int, unit: int) -> int:
    return value // unit if value >= 0 else -(-value // unit)
