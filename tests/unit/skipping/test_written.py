"""Every text between two texts, as the casts read it, lies within their bounds."""

import random
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mica.expressions.casts import cast_array
from mica.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from mica.skipping.written import READ, times

_YEARS = ["2023", "2024", "20245", "1999", "0001", "9999", "2024567", "+2024", "-2024", "202", ""]
_DAYS = ["1", "01", "2", "02", "9", "09", "10", "12", "25", "29", "30", "31", "3", "0", "13"]
_CLOCKS = ["", "T", " ", "T01:02:03", " 23:59:59.999999", "T9:5", "T00:00:00Z", "T00:00+18:00", " 23:59:59-18:00", "x"]
_AROUND = ["", "", "", " ", "\t", "\x7f", "\x00", "é"]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Dates and times in all the forms that Spark reads, and some that it does not."""

    def one(options: list[str]) -> str:
        return draw(st.sampled_from(options))

    day = one([f"{one(_YEARS)}-{one(_DAYS)}-{one(_DAYS)}", f"{one(_YEARS)}-{one(_DAYS)}", one(_YEARS)])
    return one([f"{one(_AROUND)}{day}{one(_CLOCKS)}{one(_AROUND)}"] * 9 + ["1:30", "T1:30", "20:30:00"])


@given(st.lists(texts(), min_size=3, max_size=40), st.booleans())
def test_no_text_between_is_a_time_outside(found: list[str], ansi: bool) -> None:
    ordered = sorted(found, key=str.encode)
    inner = pa.array(ordered)
    for target in READ:
        low, high = times(pa.array(ordered[:1]), pa.array(ordered[-1:]), target)
        for zone in ("UTC", "Pacific/Kiritimati", "America/Adak"):
            values, _ = cast_array(inner, STRING, target, zone, ansi=ansi)
            for text, value in zip(
                ordered, values.cast(pa.int32() if target == DATE else pa.int64()).to_pylist(), strict=True
            ):
                if value is None:
                    continue
                assert not low[0].is_valid or low[0].value <= value, (text, ordered[0], ordered[-1])
                assert not high[0].is_valid or high[0].value >= value, (text, ordered[0], ordered[-1])


def _one(low: str, high: str) -> tuple[date | None, date | None]:
    least, most = times(pa.array([low]), pa.array([high]), DATE)
    return least[0].as_py(), most[0].as_py()


@pytest.mark.parametrize(
    ("low", "high", "least", "most"),
    [
        ("2024-05-21T10:00:00Z", "2024-05-29", date(2024, 5, 21), date(2024, 5, 29)),
        ("2024-05-09", "2024-05-10", date(2024, 5, 1), date(2024, 5, 10)),  # "2024-05-1" is between them
        ("2024-01-25", "2024-03-02", date(2024, 1, 2), date(2024, 3, 2)),  # and so is "2024-01-2T"
        ("2024-09-30", "2024-10-01", date(2024, 1, 1), date(2024, 10, 1)),
        ("2023-12-05", "2024-01-01", date(2023, 1, 1), None),  # "20239-01-01"
        ("2024-02-31", "2024-02-31", date(2024, 2, 29), date(2024, 2, 29)),
        ("1999-12-31", "2000-01-01", None, None),  # "1:30" is today
        ("2024-5-01", "2024-5-02", None, None),
        ("2024-05", "2024-05-02", None, None),
        ("", "", None, None),
    ],
)
def test_days(low: str, high: str, least: date | None, most: date | None) -> None:
    assert _one(low, high) == (least, most)


def test_bounds_of_many_files_and_unknown_ones() -> None:
    low = pa.array([None, "2024-05-01", "2024-05-01", "2024-05-02"])[1:]
    high = pa.array(["x", "2024-05-01", None, "2024-05-03"])[1:]
    least, most = times(low, high, TIMESTAMP_NTZ)
    ends = [[str(value) for value in side.to_pylist()] for side in (least, most)]
    assert ends[0] == ["2024-05-01 00:00:00", "None", "2024-05-02 00:00:00"]
    assert ends[1] == ["2024-05-01 23:59:59.999999", "None", "2024-05-03 23:59:59.999999"]
    least, most = times(low, high, TIMESTAMP)
    assert least[0].as_py() == datetime(2024, 4, 30, 6, tzinfo=UTC)
    assert most[0].as_py() == datetime(2024, 5, 2, 17, 59, 59, 999999, tzinfo=UTC)
    assert len(times(low[:0], high[:0], DATE)[0]) == 0


def test_iso_texts_of_a_year_are_told_apart_by_month() -> None:
    start, rng = datetime(2024, 1, 1, tzinfo=UTC), random.Random(1)
    for _ in range(200):
        low = start + timedelta(days=rng.randrange(366))
        high = low + timedelta(days=rng.randrange(30))
        least, most = _one(low.isoformat(), high.isoformat())
        assert least is not None
        assert least <= low.date()
        if low.year == high.year:
            assert most == high.date()
            assert low.month // 10 != high.month // 10 or least >= low.date().replace(day=1)
