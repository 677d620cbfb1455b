"""Bounds as the log has them: what they stand for at the ends of their types."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mica.schema.types import TIMESTAMP, TIMESTAMP_NTZ, DataType
from mica.skipping.intervals import path_bounds
from mica.stats import paths
from mica.stats.paths import PathSide

LAST = 2**63 - 1


def side(kind: int, value: int | None) -> PathSide:
    known = value is not None
    kinds, ints = np.array([kind if known else 0], np.uint8), np.array([value or 0], np.int64)
    return PathSide(kinds, ints, np.zeros(1), pa.nulls(1, pa.string()), {})


@pytest.mark.parametrize("low", [None, -(2**63), 0])
@pytest.mark.parametrize("high", [LAST, LAST - 999, LAST - 1000, 5])
@pytest.mark.parametrize(("type_", "kind"), [(TIMESTAMP, paths.TIMESTAMP), (TIMESTAMP_NTZ, paths.TIMESTAMP_NTZ)])
def test_a_maximum_near_the_last_instant_never_wraps(type_: DataType, kind: int, low: int | None, high: int) -> None:
    one, other = path_bounds(side(kind, low), side(kind, high), type_)
    # The maximum was cut to milliseconds: it stands for up to 1 ms more, or for nothing where that has no place.
    assert one.cast(pa.int64()).to_pylist() == [low]
    assert other.cast(pa.int64()).to_pylist() == [high + 1000 if high <= LAST - 1000 else None]


def test_a_maximum_without_a_minimum_proves_what_it_can() -> None:
    one, other = path_bounds(side(paths.TIMESTAMP, None), side(paths.TIMESTAMP, 7), TIMESTAMP)
    assert one.null_count == 1
    assert other.cast(pa.int64()).to_pylist() == [1007]
