"""INTERVAL literals, and dates and times with something added.

`tests/property/test_expressions_spark.py` holds all of it against Spark; here are the corners, as Spark 4.2.1 answers.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("d date, t timestamp, z timestamp_ntz, i int, v variant")


def value(text: str, day: str = "2024-01-31", clock: str = "2024-10-26T02:30:00+02:00") -> str:
    bound = bind_value(text, SCHEMA, timezone="Europe/Berlin")
    when = dt.datetime.fromisoformat(clock)
    arrays = {
        "d": pa.array([dt.date.fromisoformat(day)]), "t": pa.array([when], pa.timestamp("us", "UTC")),
        "z": pa.array([when.replace(tzinfo=None)], pa.timestamp("us")), "i": pa.array([1], pa.int32()),
    }  # fmt: skip
    return str(evaluate(bound, [arrays[leaf.column[0]] for leaf in bound.leaves], num_rows=1)[0].as_py())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("d + INTERVAL 1 MONTH", "2024-02-29"), ("d - INTERVAL '1-11' YEAR TO MONTH", "2022-02-28"),
        ("INTERVAL 2 WEEKS + d", "2024-02-14"), ("d - i", "2024-01-30"), ("i + d", "2024-02-01"),
        ("d + INTERVAL 24 HOURS", "2024-01-31 23:00:00+00:00"), ("add_months(d, -11)", "2023-02-28"),
        # A day of 25 hours, and the hour that comes twice keeps its offset.
        ("t + INTERVAL 1 DAY", "2024-10-27 00:30:00+00:00"), ("t + INTERVAL 24 HOURS", "2024-10-27 00:30:00+00:00"),
        ("t + INTERVAL 2 DAYS", "2024-10-28 01:30:00+00:00"), ("t + INTERVAL 48 HOURS", "2024-10-28 01:30:00+00:00"),
        ("t + INTERVAL '-1 day 3 seconds'", "2024-10-25 00:30:03+00:00"),
        ("z + INTERVAL 2 DAYS", "2024-10-28 02:30:00"),
        ("z - INTERVAL '1 02:03:04.5' DAY TO SECOND", "2024-10-25 00:26:55.500000"),
        ("t - - INTERVAL '59:59.9' MINUTE TO SECOND", "2024-10-26 01:29:59.900000+00:00"),
    ],
)  # fmt: skip
def test_adds_to_dates_and_times(text: str, shown: str) -> None:
    assert value(text) == shown


def test_the_hour_that_comes_twice_keeps_its_offset_and_the_one_that_never_comes_moves() -> None:
    winter = "2024-10-28T02:30:00+01:00"
    assert value("t - INTERVAL 1 DAY", clock=winter) == "2024-10-27 01:30:00+00:00"
    assert value("t + INTERVAL 1 DAY", clock="2024-03-30T02:30:00+01:00") == "2024-03-31 01:30:00+00:00"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("t + INTERVAL 1 MONTH 1 DAY", "INVALID_EXPRESSION"), ("t + INTERVAL 1.5 DAYS", "INVALID_EXPRESSION"),
        ("t + INTERVAL '3' DAY TO MONTH", "INVALID_EXPRESSION"), ("t + INTERVAL 'soon'", "INVALID_EXPRESSION"),
        ("t + INTERVAL '1 24:00' DAY TO MINUTE", "INVALID_EXPRESSION"), ("t + INTERVAL", "INVALID_EXPRESSION"),
        ("t + INTERVAL 9999999999999 DAYS", "INVALID_EXPRESSION"), ("INTERVAL 1 DAY - t", "UNSUPPORTED_EXPRESSION"),
        ("i + INTERVAL 1 DAY", "TYPE_MISMATCH"), ("v:a + INTERVAL 1 DAY", "TYPE_MISMATCH"),
        ("INTERVAL 1 DAY", "UNSUPPORTED_EXPRESSION"), ("t - t", "UNSUPPORTED_EXPRESSION"), ("d + 1L", "TYPE_MISMATCH"),
        ("i - d", "TYPE_MISMATCH"), ("t + INTERVAL 300000 YEARS", "ARITHMETIC_OVERFLOW"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        value(text)
    assert raised.value.code == code
