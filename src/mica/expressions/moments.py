"""The current moment as a constant: `current_timestamp()` and its kin, with or without brackets, and texts of times.

The rule: an expression sees the moment of its statement (`mica.moment`). Rows of one write have the same, on every
worker, as in Spark.

Source: Spark's SpecialDatetimeValues and SparkDateTimeUtils.extractSpecialValue for the texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mica.expressions import casts
from mica.expressions.plain_values import TRIMMED
from mica.expressions.tree import Column, Expr
from mica.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, DataType, StructType

MOMENTS: Mapping[str, DataType] = {
    "current_timestamp": TIMESTAMP, "now": TIMESTAMP, "localtimestamp": TIMESTAMP_NTZ, "current_date": DATE,
    "curdate": DATE,
}  # fmt: skip

#: The days that a text names, from today.
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}


def is_moment(expr: Expr, schema: StructType) -> bool:
    """Whether a name means one of `MOMENTS`: no column has it."""
    match expr:
        case Column((name,)):
            return name.lower() in MOMENTS and schema.find(name) is None
    return False


def moment(name: str, micros: int, timezone: str) -> tuple[int, DataType]:
    """The value of one of `MOMENTS` at `micros` since the epoch, and its type."""
    type_ = MOMENTS[name]
    return _cast(micros, TIMESTAMP, type_, timezone), type_


def named(text: str, type_: DataType, micros: int, timezone: str) -> int | None:
    """What `epoch`, `now`, `yesterday`, `today` and `tomorrow` are at a moment; None for any other text. A zone behind
    must exist and changes nothing. Only constants are read so, no column's texts."""
    match = re.fullmatch(r"([A-Za-z]+)[ \t]*(.*)", text.strip(TRIMMED))
    if match is None:
        return None
    word, zone = match[1].lower(), match[2]
    if word not in ("epoch", "now", *_DAYS) or (zone and (word == "now" or not _is_zone(zone))):
        return None
    if word == "epoch":
        return 0
    if word == "now":
        return _cast(micros, TIMESTAMP, type_, timezone)
    return _cast(_cast(micros, TIMESTAMP, DATE, timezone) + _DAYS[word], DATE, type_, timezone)


def _is_zone(text: str) -> bool:
    try:
        casts.cast_value(f"1970-01-01 00:00:00 {text}", STRING, TIMESTAMP, "UTC", ansi=True)
    except casts.CastFailedError:
        return False
    return True


def _cast(value: int, source: DataType, target: DataType, timezone: str) -> int:
    found = casts.cast_value(value, source, target, timezone, ansi=True)
    assert isinstance(found, int)
    return found
