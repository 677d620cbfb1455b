"""date_trunc and trunc, as in Spark.

The rule: a time is cut in the session's time zone. Days and what is longer begin at midnight there; an hour that a
clock change repeats keeps its offset. An unknown unit gives null.

Source: Spark's DateTimeUtils.parseTruncLevel, truncTimestamp, truncDate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.casts import cast_array
from mica.expressions.compare import Datum
from mica.expressions.intervals import DAY, clock_of, int64_of, offsets, resolved
from mica.expressions.pairs import as_array
from mica.expressions.plain_values import Made
from mica.schema.types import DATE, TIMESTAMP

#: The units of days and more: what a day becomes. Days are those since the epoch, a Thursday.
_MONTHS: Mapping[str, int] = {"month": 1, "quarter": 3, "year": 12}
#: Units that are cut off the local time, and those that are the same everywhere, in microseconds.
_LOCAL: Mapping[str, int] = {"minute": 60_000_000, "hour": 3_600_000_000, "day": DAY}
_EXACT: Mapping[str, int] = {"microsecond": 1, "millisecond": 1_000, "second": 1_000_000}
_NAMES: Mapping[str, str] = {
    **{name: name for name in (*_MONTHS, "week", *_LOCAL, *_EXACT)},
    "mon": "month", "mm": "month", "yyyy": "year", "yy": "year", "dd": "day",
}  # fmt: skip


def timestamps(units: pa.Array, times: Datum, *, timezone: str) -> Made:
    """`date_trunc(unit, times)`: timestamps, cut. The unit is a constant, repeated. Fails before the first instant."""
    values = as_array(times, len(units))
    if not len(units):
        return values, None
    unit = units[0]
    name = _NAMES.get(unit.as_py().lower())
    if name is None:
        return pa.nulls(len(values), values.type), None
    instants = int64_of(values)
    if name in _EXACT:
        cut = instants - np.mod(instants, _EXACT[name])
        return _timed(cut, cut > instants, values)
    ahead = offsets(instants, timezone)
    if name in _LOCAL:
        kept = instants - np.mod(np.mod(instants, _LOCAL[name]) + ahead, _LOCAL[name])
        cut, wrong = resolved(kept, ahead, timezone)
        return _timed(cut, wrong | (kept > instants), values)
    day, _ = clock_of(instants, ahead)
    local = arrow_array(day.astype(np.int32), mask=to_numpy(pc.is_null(values))).cast(pa.date32())
    days, failed = dates(local, unit)
    assert failed is None
    return cast_array(days, DATE, TIMESTAMP, timezone, ansi=True)


def dates(values: pa.Array, unit: pa.Scalar) -> Made:
    """`trunc(values, unit)`: dates, cut to a week or more. Fails before the first day."""
    name = _NAMES.get(unit.as_py().lower(), "")
    days = to_numpy(pc.fill_null(values.cast(pa.int32()), 0)).astype(np.int64)
    if name == "week":
        found: Any = days - np.mod(days + 3, 7)
    elif name in _MONTHS:
        month = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
        first = month - np.mod(month, _MONTHS[name])
        found = first.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    else:
        return pa.nulls(len(values), values.type), None
    null, failed = to_numpy(pc.is_null(values)), found < -(2**31)
    made = arrow_array(found.astype(np.int32), mask=null | failed).cast(values.type)
    return made, arrow_array(failed & ~null) if failed.any() else None


def _timed(micros: Any, failed: Any, values: pa.Array) -> Made:
    """The times; those that are later than they were wrapped around."""
    null = to_numpy(pc.is_null(values))
    made = arrow_array(micros, pa.int64(), mask=null | failed).cast(values.type)
    return made, arrow_array(failed & ~null) if failed.any() else None
