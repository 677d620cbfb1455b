"""Local times of instants, and instants of local times, lie within the bounds; and how zones change their clocks."""

import zoneinfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.errors import UserError
from mica.expressions.casts import cast_array
from mica.expressions.intervals import offsets
from mica.schema.types import TIMESTAMP, TIMESTAMP_NTZ
from mica.skipping.clocks import clocks, instants
from mica.variant import kernel
from tests.support import CAMPAIGN

HOUR = 3_600_000_000
UTC, NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
#: Clocks set back by a day (1867), forward by a day (2011, 1993), by half an hour, at midnight, and without a name.
ZONES = [
    "America/Anchorage", "Pacific/Apia", "Pacific/Kwajalein", "Australia/Lord_Howe", "America/Sao_Paulo",
    "Europe/Berlin", "Asia/Tehran", "+05:30", "UTC",
]  # fmt: skip
#: Hours since the epoch near changes of those zones: 1867, 1969, 1993, 2011, and of our days.
CHANGES = [-896_600, -2_237, 207_420, 368_410, 475_000, 480_000, 0]


@st.composite
def times(draw: st.DrawFn) -> list[int]:
    near = draw(st.sampled_from(CHANGES)) * HOUR
    steps = draw(st.lists(st.integers(-40 * 24 * 4, 40 * 24 * 4), min_size=2, max_size=60))
    return sorted(near + step * (HOUR // 4) for step in steps)


@given(times(), st.sampled_from(ZONES), st.booleans())
def test_what_lies_between_two_times_is_within_the_bounds(found: list[int], zone: str, others: bool) -> None:
    plain = pa.array(found, pa.int64())
    for bounds, source, target, kinds in (
        (clocks, UTC, NTZ, (TIMESTAMP, TIMESTAMP_NTZ)), (instants, NTZ, UTC, (TIMESTAMP_NTZ, TIMESTAMP)),
    ):  # fmt: skip
        low, high = bounds(plain[:1].cast(source), plain[-1:].cast(source), zone, others=others)
        assert (low.type, high.type) == (target, target)
        made = cast_array(plain.cast(source), *kinds, zone, ansi=True)[0].cast(pa.int64()).to_pylist()
        assert low[0].value <= min(made), (zone, found)
        assert max(made) <= high[0].value, (zone, found)


def test_far_from_changes_the_bounds_are_exact() -> None:
    low = pa.array([1_718_000_000_000_000, None, 2**63 - 1], UTC)
    first, last = clocks(low, low, "Europe/Berlin", others=False)
    assert first.equals(last)
    assert first.cast(pa.int64()).to_pylist() == [1_718_000_000_000_000 + 2 * HOUR, None, None]
    for side in instants(first, last, "Europe/Berlin", others=False):
        assert side.cast(pa.int64()).to_pylist() == [1_718_000_000_000_000, None, None]
    wide = clocks(low, low, "Europe/Berlin", others=True)
    assert wide[1][0].value - wide[0][0].value == 36 * HOUR
    assert clocks(low, low, "+05:30", others=True)[0][0].value - low[0].value == 5.5 * HOUR


@pytest.mark.slow
@pytest.mark.parametrize("years", [(1970, 2040)])
def test_no_zone_changes_its_clocks_twice_in_80_hours(years: tuple[int, int]) -> None:
    """All zones from 1850 on in a campaign, some of them in the years of most data otherwise."""
    zones, (first, last) = sorted(zoneinfo.available_timezones()), years
    if CAMPAIGN:
        first, last = 1850, 2100
    else:
        zones = [zone for zone in zones if zone.startswith(("Africa/", "Pacific/", "America/A", "America/M"))]
    grid = np.arange((first - 1970) * 8766, (last - 1970) * 8766, dtype=np.int64) * HOUR
    asked = 0
    for zone in zones:
        try:
            if kernel.fixed_offset(zone) is not None:
                continue
        except UserError:  # a name of the machine, such as localtime
            continue
        ahead = offsets(grid, zone)
        at = np.flatnonzero(np.diff(ahead))
        asked += 1
        assert not len(at) or np.abs(np.diff(ahead)[at]).max() <= 24 * HOUR, zone
        assert len(at) < 2 or np.diff(at).min() > 80, zone
        assert np.abs(ahead).max() <= 18 * HOUR
    assert asked > 30
