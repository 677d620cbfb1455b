"""Bounds of the times that texts are cast to, from bounds of the texts.

The rule: the bounds contain the time of every text between two texts in the order of bytes, if it is one. Spark reads
more than ISO 8601: months and days of one digit, years of five to seven, a clock alone, blanks and control characters
around it all, and any zone behind a clock. So both texts must begin with a whole date (`2024-05-31`) of one century;
then

| if both have the same | a text between them is a time |
|---|---|
| year, month and first digit of the day | not before the day of the lower one |
| year and first digit of the month | not before the day 1, 2 or 3 that begins the day of the lower one, in its month |
| (any other) | not before the year of the lower one |
| year | not after the day of the upper one; else it may be of a year of five digits |

A TIMESTAMP may be 18 hours off, by its zone or the session's.

Source: Spark's SparkDateTimeUtils, stringToDate and parseTimestampString; java.time.ZoneOffset.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar, to_numpy
from mica.expressions.intervals import DAY
from mica.schema.arrow import to_arrow_type
from mica.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType
from mica.skipping.clocks import FARTHEST

#: The types of times that a text is cast to.
READ = (DATE, TIMESTAMP, TIMESTAMP_NTZ)

_WHOLE = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"


def times(low: pa.Array, high: pa.Array, target: DataType) -> tuple[pa.Array, pa.Array]:
    """Bounds of type DATE, TIMESTAMP or TIMESTAMP_NTZ from those of type STRING, an array each; null is unknown."""
    (least, known), (most, other) = _digits(low), _digits(high)
    same = least == most
    year, month = same[:, :4].all(axis=1), same[:, :7].all(axis=1)
    known &= other & same[:, :2].all(axis=1)
    # A day or month of one digit comes after those of two digits that begin with less: "1" after "09"; and "2T" comes
    # after "25".
    tens = np.maximum(least[:, 8], 1)
    day = np.where(month & same[:, 8], _two(least, 8), tens)
    in_month = year & same[:, 5]
    first = _day(least, np.where(in_month, _two(least, 5), 1), np.where(in_month, day, 1))
    last = _day(most, _two(most, 5), _two(most, 8))
    return _bound(first, ~known, target, 0), _bound(last, ~(known & year), target, 1)


def _digits(texts: pa.Array) -> tuple[Any, Any]:
    """The ten characters of each date, those of digits as numbers, and where there is one."""
    dates = pc.utf8_slice_codeunits(texts.cast(pa.string()), 0, 10)
    known = to_numpy(pc.fill_null(pc.match_substring_regex(dates, _WHOLE), False))
    held = pc.if_else(arrow_array(known), dates, scalar("0000-01-01", pa.string()))
    (_, _, data) = held.buffers()
    start = held.offset * 10
    flat = np.frombuffer(data, np.uint8, len(held) * 10, start) if len(held) else np.zeros(0, np.uint8)
    return flat.reshape(-1, 10).astype(np.int64) - ord("0"), known


def _two(digits: Any, at: int) -> Any:
    return digits[:, at] * 10 + digits[:, at + 1]


def _day(digits: Any, month: Any, day: Any) -> Any:
    """Days since the epoch; a day that the month does not have is its last."""
    months = ((_two(digits, 0) * 100 + _two(digits, 2) - 1970) * 12 + month - 1).astype("datetime64[M]")
    start = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - start
    return start + np.minimum(day, length) - 1


def _bound(day: Any, unknown: Any, target: DataType, more: int) -> pa.Array:
    """The first instant of the days, or their last one where there is `more`."""
    if target == DATE:
        return arrow_array(day.astype(np.int32), mask=unknown).cast(to_arrow_type(target))
    micros = (day + more) * DAY - more
    if target == TIMESTAMP:
        micros += FARTHEST if more else -FARTHEST
    return arrow_array(micros, pa.int64(), mask=unknown).cast(to_arrow_type(target))
