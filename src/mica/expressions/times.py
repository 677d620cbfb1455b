"""Functions of dates and times, as in Spark.

The rule: a part of a TIMESTAMP is the part of its local time. The cast to TIMESTAMP_NTZ or DATE converts it in the
session's time zone, so all functions here work on times without a zone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.expressions.compare import Datum
from mica.expressions.pairs import as_array

_LEAST, _MOST = -(2**63), 2**63 - 1


def part(name: str) -> Callable[[pa.Array], pa.Array]:
    """Returns a function from dates or local times to one part (`year` … `day`, `hour`, `minute`, `second`) as INT."""
    take = years_of if name == "year" else getattr(pc, name)

    def found(values: pa.Array) -> pa.Array:
        return take(values).cast(pa.int32())

    return found


def years_of(values: pa.Array) -> pa.Array:
    """The years of dates or local times; Arrow's end at 32767."""
    unit = "us" if pa.types.is_timestamp(values.type) else "D"
    counts = np.asarray(pc.fill_null(values.cast(pa.int64() if unit == "us" else pa.int32()), 0)).astype(np.int64)
    years = counts.astype(f"datetime64[{unit}]").astype("datetime64[Y]").astype(np.int64) + 1970
    return pa.array(years, mask=np.asarray(pc.is_null(values)))


def date_add(days: Datum, more: Datum) -> pa.Array:
    """Adds days to a date; the sum wraps around, as in Java."""
    return _shifted(days, more, 1)


def date_sub(days: Datum, fewer: Datum) -> pa.Array:
    """Subtracts days from a date; the result wraps around, as in Java."""
    return _shifted(days, fewer, -1)


def _shifted(days: Datum, by: Datum, sign: int) -> pa.Array:
    count = len(days) if isinstance(days, pa.Array) else len(by)
    start, more = as_array(days, count).cast(pa.int32()), as_array(by, count)
    valid = np.asarray(pc.and_(pc.is_valid(start), pc.is_valid(more)))
    a, b = (np.asarray(pc.fill_null(side, 0), np.int64) for side in (start, more))
    return pa.array((a + sign * b).astype(np.int32), mask=~valid).cast(pa.date32())


def datediff(end: Datum, start: Datum) -> pa.Array:
    """Returns the days from `start` to `end`."""
    count = len(end) if isinstance(end, pa.Array) else len(start)
    return pc.subtract(as_array(end, count).cast(pa.int32()), as_array(start, count).cast(pa.int32()))


def from_unit(micros: int) -> Callable[[pa.Array], tuple[pa.Array, pa.Array | None]]:
    """Returns a function from a number of units of `micros` microseconds to TIMESTAMP and the mask of overflows."""

    def found(values: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        valid = np.asarray(pc.is_valid(values))
        numbers = np.asarray(pc.fill_null(values, 0), np.int64)
        wrong = (numbers > _MOST // micros) | (numbers < -(_MOST // micros) - (1 if micros == 1 else 0))
        product = np.where(wrong, 0, numbers) * micros
        array = pa.array(product, pa.int64(), mask=~valid | wrong).cast(pa.timestamp("us", "UTC"))
        return array, pa.array(wrong) if wrong.any() else None

    return found


def to_unit(micros: int) -> Callable[[pa.Array], pa.Array]:
    """Returns a function from TIMESTAMP to its number of units, rounded down."""

    def found(values: pa.Array) -> pa.Array:
        return pa.array(np.asarray(pc.fill_null(values.cast(pa.int64()), 0)) // micros,
                        mask=np.asarray(pc.is_null(values)))  # fmt: skip

    return found
