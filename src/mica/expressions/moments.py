"""The current moment as a constant: `current_timestamp()` and its kin, with or without brackets.

The rule: an expression sees one moment, that of its binding. Rows of one write have the same, on every worker, as in
Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from mica.expressions import casts
from mica.schema.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DataType

MOMENTS: Mapping[str, DataType] = {
    "current_timestamp": TIMESTAMP, "now": TIMESTAMP, "localtimestamp": TIMESTAMP_NTZ, "current_date": DATE,
    "curdate": DATE,
}  # fmt: skip


def moment(name: str, micros: int, timezone: str) -> tuple[int, DataType]:
    """The value of one of `MOMENTS` at `micros` since the epoch, and its type."""
    type_ = MOMENTS[name]
    value = casts.cast_value(micros, TIMESTAMP, type_, timezone, ansi=True)
    assert isinstance(value, int)
    return value, type_
