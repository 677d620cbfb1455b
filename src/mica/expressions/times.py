"""Functions of dates and times, as in Spark.

The rule: a part of a TIMESTAMP is the part of its local time. The cast to TIMESTAMP_NTZ or DATE converts it in the
session's time zone, so all functions here work on times without a zone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.compare import Datum
from mica.expressions.pairs import as_arrays

_LEAST, _MOST = -(2**63), 2**63 - 1


def part(name: str) -> Callable[[pa.Array], pa.Array]:
    """Returns a function from dates or local times to one part (`year` … `day`, `hour`, `minute`, `second`) as INT."""
    take = calendar(name)

    def found(values: pa.Array) -> pa.Array:
        return take(values).cast(pa.int32())

    return found


def calendar(name: str) -> Callable[[pa.Array], pa.Array]:
    """Returns Arrow's function of dates, or of clocks, by its name. Its years end at 32767: what needs a year beyond
    that is computed here."""
    take: Callable[[pa.Array], pa.Array] = getattr(pc, name)
    own = _CALENDAR.get(name)
    if own is None:
        return take

    def found(values: pa.Array) -> pa.Array:
        counts = values.cast(pa.int32())
        ends = pc.min_max(counts)
        if not ends["min"].is_valid or (ends["min"].as_py() > -_NEAR and ends["max"].as_py() < _NEAR):
            return take(values)
        days = to_numpy(pc.fill_null(counts, 0)).astype(_DAYS)
        return arrow_array(own(days), pa.int64(), mask=to_numpy(pc.is_null(values)))

    return found


def _since(days: Any, start: str) -> Any:
    """The number of each day in its month or year, from 1."""
    return days.astype(np.int64) - days.astype(start).astype(_DAYS).astype(np.int64) + 1


#: Days on both sides of the epoch whose years Arrow knows.
_NEAR = 11_000_000
_DAYS, _MONTHS, _YEARS = (f"datetime64[{unit}]" for unit in "DMY")
_CALENDAR: Mapping[str, Callable[[Any], Any]] = {
    "year": lambda days: days.astype(_YEARS).astype(np.int64) + 1970,
    "month": lambda days: days.astype(_MONTHS).astype(np.int64) % 12 + 1,
    "day": lambda days: _since(days, _MONTHS),
    "day_of_year": lambda days: _since(days, _YEARS),
}
years_of = calendar("year")


def date_add(days: Datum, more: Datum) -> pa.Array:
    """Adds days to a date; the sum wraps around, as in Java."""
    return _shifted(days, more, 1)


def date_sub(days: Datum, fewer: Datum) -> pa.Array:
    """Subtracts days from a date; the result wraps around, as in Java."""
    return _shifted(days, fewer, -1)


def _shifted(days: Datum, by: Datum, sign: int) -> pa.Array:
    start, more = as_arrays(days, by)
    valid = to_numpy(pc.and_(pc.is_valid(start), pc.is_valid(more)))
    a, b = (np.asarray(to_numpy(pc.fill_null(side, 0)), np.int64) for side in (start.cast(pa.int32()), more))
    return arrow_array((a + sign * b).astype(np.int32), mask=~valid).cast(pa.date32())


def datediff(end: Datum, start: Datum) -> pa.Array:
    """Returns the days from `start` to `end`."""
    return pc.subtract(*(side.cast(pa.int32()) for side in as_arrays(end, start)))


def from_unit(micros: int) -> Callable[[pa.Array], tuple[pa.Array, pa.Array | None]]:
    """Returns a function from a number of units of `micros` microseconds to TIMESTAMP and the mask of overflows."""

    def found(values: pa.Array) -> tuple[pa.Array, pa.Array | None]:
        valid = to_numpy(pc.is_valid(values))
        numbers = np.asarray(to_numpy(pc.fill_null(values, 0)), np.int64)
        wrong = (numbers > _MOST // micros) | (numbers < -(_MOST // micros) - (1 if micros == 1 else 0))
        product = np.where(wrong, 0, numbers) * micros
        array = arrow_array(product, pa.int64(), mask=~valid | wrong).cast(pa.timestamp("us", "UTC"))
        return array, arrow_array(wrong) if wrong.any() else None

    return found


def to_unit(micros: int) -> Callable[[pa.Array], pa.Array]:
    """Returns a function from TIMESTAMP to its number of units, rounded down."""

    def found(values: pa.Array) -> pa.Array:
        return arrow_array(to_numpy(pc.fill_null(values.cast(pa.int64()), 0)) // micros,
                        mask=to_numpy(pc.is_null(values)))  # fmt: skip

    return found
