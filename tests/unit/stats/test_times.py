"""Dates and timestamps of statistics: what has a text is read back from it, cut to milliseconds."""

from __future__ import annotations

import datetime as dt
import json
import random

import pyarrow as pa
import pytest

from mica.stats.times import json_date, json_timestamp
from mica.variant import kernel

FIRST, LAST = -719_162, 2_932_896  # days of years 1 and 9999
DAY = 86_400_000_000


def read_date(text: str | None) -> int | None:
    (days,) = read(text, pa.date32()).cast(pa.int32()).to_pylist()
    return days


def read_timestamp(text: str | None) -> tuple[int, bool] | None:
    """Microseconds, and whether the text has a zone."""
    both = [read(text, pa.timestamp("us", zone)).cast(pa.int64())[0].as_py() for zone in (None, "UTC")]
    assert None in both
    found = [(micros, utc) for micros, utc in zip(both, (False, True), strict=True) if micros is not None]
    return found[0] if found else None


def read(text: str | None, kind: pa.DataType) -> pa.Array:
    statistics = pa.array([json.dumps({"maxValues": {"t": text}})])
    return kernel.stats_leaves(statistics, [(("maxValues", "t"), kind)]).column(0)


def test_every_day_and_moment_comes_back(rng: random.Random) -> None:
    for days in [FIRST, -1, 0, LAST, *(rng.randrange(FIRST, LAST) for _ in range(500))]:
        text = json_date(days)
        assert text == (dt.date(1970, 1, 1) + dt.timedelta(days)).isoformat()
        assert read_date(text) == days
    for micros in [
        FIRST * DAY,
        -1,
        0,
        (LAST + 1) * DAY - 1,
        *(rng.randrange(FIRST * DAY, LAST * DAY) for _ in range(500)),
    ]:
        for utc in (True, False):
            text = json_timestamp(micros, utc=utc)
            assert text is not None
            assert read_timestamp(text) == (micros // 1000 * 1000, utc), "cut downwards, before 1970 too"


@pytest.mark.parametrize("days", [FIRST - 1, LAST + 1, -(2**31), 2**31 - 1])
def test_other_years_have_no_text(days: int) -> None:
    assert json_date(days) is None
    assert json_timestamp(days * DAY, utc=True) is None


@pytest.mark.parametrize("micros", [FIRST * DAY - 1, (LAST + 1) * DAY])
def test_the_moments_just_outside_have_no_text(micros: int) -> None:
    assert json_timestamp(micros, utc=False) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1970-01-01T00:00:00.000Z", (0, True)),
        ("1970-01-01 00:00:01", (1_000_000, False)),
        ("1970-01-01T01:00:00.000+01:00", (0, True)),
        ("1969-12-31T22:30:00-0130", (0, True)),
        ("1970-01-01T00:00:00.123456789Z", (123_456, True)),
        ("1970-01-01T00:00", (0, False)),
        ("1970-01-01", None),
        ("1970-02-30T00:00:00Z", None),
        ("1970-01-01T00:00:00.000Zulu", None),
        ("١970-01-01T00:00:00Z", None),
        ("", None),
    ],
)
def test_texts_of_others(text: str, found: tuple[int, bool] | None) -> None:
    assert read_timestamp(text) == found


@pytest.mark.parametrize(
    ("text", "days"),
    [("1970-01-02", 1), ("1970-01-02T10:00:00", 1), ("1970-13-01", None), ("70-01-01", None), ("", None)],
)
def test_dates_of_others(text: str, days: int | None) -> None:
    assert read_date(text) == days
