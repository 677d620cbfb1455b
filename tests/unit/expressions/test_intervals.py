"""INTERVAL literals, dates and times with something added, and differences of times.

`tests/property/test_expressions_spark.py` holds all of it against Spark; here are the corners, as Spark 4.2.1 answers.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.ddl import parse_ddl
from mica.schema.interval_types import is_interval
from mica.schema.types import StructField, StructType

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
        ("t + INTERVAL '- 1 day -  3 seconds'", "2024-10-25 00:29:57+00:00"),
        ("INTERVAL 1 DAY * (i * 1e37BD) + try_to_timestamp('x')", "None"),
        ("t - - INTERVAL '59:59.9' MINUTE TO SECOND", "2024-10-26 01:29:59.900000+00:00"),
    ],
)  # fmt: skip
def test_adds_to_dates_and_times(text: str, shown: str) -> None:
    assert value(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # Local times: the day has 25 hours, of which the clock shows 24.
        ("TIMESTAMP'2024-10-28' - TIMESTAMP'2024-10-27'", "INTERVAL '1 00:00:00' DAY TO SECOND"),
        ("t - d", "INTERVAL '269 02:30:00' DAY TO SECOND"), ("d - t", "INTERVAL '-269 02:30:00' DAY TO SECOND"),
        # Without a zone on one side a time in the gap stays where it is.
        ("TIMESTAMP'2024-03-31 03:00:00' - TIMESTAMP_NTZ'2024-03-31 02:30:00'", "INTERVAL '0 00:30:00' DAY TO SECOND"),
        ("t + NULL", "None"), ("NULL + d", "None"), ("DATE'2024-02-02' - d", "INTERVAL '2' DAY"), ("d - NULL", "None"),
        ("d - '2024-01-01'", "INTERVAL '30' DAY"),
        ("(d - d) + INTERVAL 90 MINUTES", "INTERVAL '0 01:30' DAY TO MINUTE"), ("-(d - d)", "INTERVAL '0' DAY"),
        ("abs(d - t) / 2.0", "INTERVAL '134 13:15:00' DAY TO SECOND"),
        ("(t - d) * i", "INTERVAL '269 02:30:00' DAY TO SECOND"),
        ("INTERVAL 1 MICROSECOND * 0.5D", "INTERVAL '0 00:00:00.000001' DAY TO SECOND"),
        ("INTERVAL 7 MONTHS / -2", "INTERVAL '-0-4' YEAR TO MONTH"), ("INTERVAL 1 DAY DIV INTERVAL 5 HOURS", "4"),
        ("INTERVAL 1 WEEK", "INTERVAL '7' DAY"), ("INTERVAL 5 MILLISECONDS", "INTERVAL '00.005' SECOND"),
        ("cast(t - d as bigint)", "23250600"), ("cast(t - d as interval day)", "INTERVAL '269' DAY"),
        ("cast(INTERVAL '-1.25' SECOND as decimal(5,1))", "-1.3"), ("try_cast(t - d as tinyint)", "None"),
        ("cast(2.5 as INTERVAL DAY) + INTERVAL 0 HOURS", "INTERVAL '2 12' DAY TO HOUR"),
        ("cast(' -1 2:03:04.1234567 ' as INTERVAL DAY TO SECOND)", "INTERVAL '-1 02:03:04.123456' DAY TO SECOND"),
        ("cast('0000000000001.5' as INTERVAL SECOND)", "INTERVAL '01.5' SECOND"),
        ("cast('interval -\\'-1-2\\' year to month' as INTERVAL YEAR TO MONTH)", "INTERVAL '1-2' YEAR TO MONTH"),
        ("d + cast(i as INTERVAL DAY)", "2024-02-01"), ("d + INTERVAL 1 MONTH * i", "2024-02-29"),
        ("t - d IN (INTERVAL 1 DAY, NULL)", "None"),
        ("greatest(d - d, INTERVAL 1 HOUR)", "INTERVAL '0 01' DAY TO HOUR"),
        ("CASE WHEN t - d > INTERVAL 100 DAYS THEN 'old' END", "old"),
        ("'2024-01-31' + INTERVAL 1 DAY", "2024-02-01 00:00:00"),
    ],
)  # fmt: skip
def test_differences_are_intervals(text: str, shown: str) -> None:
    is_one = is_interval(bind_value(text, SCHEMA).type)
    assert value(f"cast({text} as string)" if is_one else text) == shown


def test_intervals_are_columns_of_scans_and_of_no_table(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "d DATE")
    table.append([{"d": dt.date(2024, 1, 3)}])
    found = table.scan(columns={"age": "d - DATE'2024-01-01'"}).to_arrow()
    assert found.column("age").to_pylist() == [dt.timedelta(days=2)]
    for refused in (
        lambda: table.scan(columns={"age": "array(INTERVAL 1 MONTH)"}),
        lambda: mica.Table.create(tmp_path / "u", found.schema),
        lambda: mica.Table.create(tmp_path / "u", StructType((StructField("a", bind_value("d - d", SCHEMA).type),))),
        lambda: table.append(found, schema_evolution=True),
    ):
        with pytest.raises(UserError) as raised:
            refused()
        assert raised.value.code in ("UNSUPPORTED_EXPRESSION", "UNSUPPORTED_TYPE")


def test_the_hour_that_comes_twice_keeps_its_offset_and_the_one_that_never_comes_moves() -> None:
    winter = "2024-10-28T02:30:00+01:00"
    assert value("t - INTERVAL 1 DAY", clock=winter) == "2024-10-27 01:30:00+00:00"
    assert value("t + INTERVAL 1 DAY", clock="2024-03-30T02:30:00+01:00") == "2024-03-31 01:30:00+00:00"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("t + INTERVAL 1 MONTH 1 DAY", "INVALID_EXPRESSION"), ("t + INTERVAL 1.5 DAYS", "INVALID_EXPRESSION"),
        ("t + INTERVAL '3' DAY TO MONTH", "INVALID_EXPRESSION"), ("t + INTERVAL 'soon'", "INVALID_EXPRESSION"),
        ("t + INTERVAL '1 24:00' DAY TO MINUTE", "INVALID_EXPRESSION"), ("t + INTERVAL", "UNKNOWN_COLUMN"),
        ("t + INTERVAL 9999999999999 DAYS", "INVALID_EXPRESSION"), ("INTERVAL 1 DAY - t", "TYPE_MISMATCH"),
        ("i + INTERVAL 1 DAY", "TYPE_MISMATCH"), ("v:a + INTERVAL 1 DAY", "TYPE_MISMATCH"),
        ("INTERVAL 1 DAY = '1 day'", "TYPE_MISMATCH"), ("INTERVAL 1 MONTH < t - d", "TYPE_MISMATCH"),
        ("(t - d) / 0", "DIVIDE_BY_ZERO"), ("cast(t - d as tinyint)", "INVALID_CAST"),
        ("cast(t - d as double)", "TYPE_MISMATCH"), ("cast('1 25' as INTERVAL DAY TO HOUR)", "INVALID_CAST"),
        ("cast(i as INTERVAL SECOND TO DAY)", "INVALID_EXPRESSION"),
        ("cast('0000000001' as INTERVAL DAY)", "INVALID_CAST"), ("t + INTERVAL '- - 1 day'", "INVALID_EXPRESSION"),
        ("INTERVAL '0000000001 1' DAY TO HOUR", "INVALID_EXPRESSION"),
        ("d + 1L", "TYPE_MISMATCH"), ("(t - d) % 2", "TYPE_MISMATCH"),
        ("i - d", "TYPE_MISMATCH"), ("t + INTERVAL 300000 YEARS", "ARITHMETIC_OVERFLOW"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        value(text)
    assert raised.value.code == code
