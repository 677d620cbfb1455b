"""Bounds of the wall clocks of instants, and of the instants of wall clocks.

The rule: the bounds contain what every value between the given ones becomes. The ends alone do not tell: clocks that
are set back show an hour twice, and clocks that are set forward skip one. No zone changes its clocks twice in 80 hours
or by more than a day (`tests/unit/skipping/test_clocks.py`), so what holds near an end holds on either side of it.

Where another database of zones evaluates the rows, only so much is known: no offset is beyond 18 hours
(`java.time.ZoneOffset`), and fixed ones are what they are called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.intervals import DAY, int64_of, offsets
from mica.schema.arrow import to_arrow_type
from mica.schema.types import TIMESTAMP, TIMESTAMP_NTZ, DataType
from mica.variant import kernel

Bounds = tuple[pa.Array, pa.Array]

_SECOND, _HOUR = 1_000_000, DAY // 24
#: On either side of a wall clock read as UTC: the offset, and the day by which a change may move it.
_NEAR = 40 * _HOUR
#: No zone is further ahead of UTC, or behind it.
FARTHEST = 18 * _HOUR
#: Bounds beyond it are unknown: 64 bits may not hold what they become.
_LARGEST = 2**62


def clocks(low: pa.Array, high: pa.Array, zone: str, *, others: bool) -> Bounds:
    """Bounds of type TIMESTAMP_NTZ from those of type TIMESTAMP; `others`: another database evaluates the rows."""
    # A day after they were set back, clocks show what they never showed before.
    first = _moved(low, TIMESTAMP_NTZ, lambda at: _ahead(at, zone, others, 0, DAY)[0])
    last = _moved(high, TIMESTAMP_NTZ, lambda at: _ahead(at, zone, others, -DAY, 0)[1])
    return first, last


def instants(low: pa.Array, high: pa.Array, zone: str, *, others: bool) -> Bounds:
    """Bounds of type TIMESTAMP from those of type TIMESTAMP_NTZ; `others`: another database evaluates the rows."""
    first = _moved(low, TIMESTAMP, lambda at: -_ahead(at, zone, others, -_NEAR, _NEAR)[1])
    last = _moved(high, TIMESTAMP, lambda at: -_ahead(at, zone, others, -_NEAR, _NEAR)[0])
    return first, last


def _ahead(at: Any, zone: str, others: bool, before: int, after: int) -> tuple[Any, Any]:
    """How far ahead of UTC the zone is around these times, at least and at most, in microseconds."""
    fixed = kernel.fixed_offset(zone)
    if fixed is not None:
        return fixed * _SECOND, fixed * _SECOND
    if others:
        return -FARTHEST, FARTHEST
    one, other = offsets(at + before, zone), offsets(at + after, zone)
    return np.minimum(one, other), np.maximum(one, other)


def _moved(bounds: pa.Array, target: DataType, by: Callable[[Any], Any]) -> pa.Array:
    at = int64_of(bounds)
    far = np.abs(at) > _LARGEST
    at = np.where(far, 0, at)
    return arrow_array(at + by(at), pa.int64(), mask=to_numpy(pc.is_null(bounds)) | far).cast(to_arrow_type(target))
