"""Partition values between the log's strings and types."""

import datetime as dt
import math
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mica.errors import CorruptDataError, UserError
from mica.schema.arrow import to_arrow_type
from mica.schema.ddl import parse_type
from mica.schema.types import BINARY
from mica.stats.partition import column_texts, format_values, parse_values


@pytest.mark.parametrize(
    ("ddl", "text", "value"),
    [
        ("int", "5", 5), ("bigint", "-9223372036854775808", -(2**63)), ("string", "a/b=%20 ☃", "a/b=%20 ☃"),
        ("boolean", "true", True), ("date", "2020-02-29", dt.date(2020, 2, 29)), ("decimal(5,2)",
        "1.50", Decimal("1.50")),
        ("double", "0.1", 0.1), ("float", "-Infinity", -math.inf), ("binary", "a\x01", b"a\x01"), ("int", "", None),
        ("int", None, None),
        ("timestamp_ntz", "2020-01-01 00:00:00.5", dt.datetime.fromisoformat("2020-01-01T00:00:00.5")),
        ("timestamp", "2020-01-01 01:00:00", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("timestamp", "2020-01-01T00:00:00.000000Z", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
    ],
)  # fmt: skip
def test_reads(ddl: str, text: str | None, value: Any) -> None:
    type_ = parse_type(ddl)
    found = parse_values(pa.array([text, None], pa.string()), type_, timezone="Europe/Berlin")
    assert found.to_pylist() == [value, None]
    assert found.type == to_arrow_type(type_)
    again = parse_values(format_values(found, type_), type_)
    assert again.equals(found)


def test_instants_are_written_in_utc() -> None:
    moments = pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 5, dt.UTC)], pa.timestamp("us", "UTC"))
    assert format_values(moments, parse_type("timestamp")).to_pylist() == ["2020-01-01T00:00:00.000005Z"]


@pytest.mark.parametrize(
    ("ddl", "text"),
    [
        ("int", "x"),
        ("int", "1.5"),
        ("date", "soon"),
        ("boolean", "maybe"),
        ("double", "x"),
        ("int", "1_0"),
        ("int", "2147483648"),
        ("decimal(3,1)", "100"),
    ],
)
def test_what_the_type_has_no_value_for(ddl: str, text: str) -> None:
    with pytest.raises(CorruptDataError) as raised:
        parse_values(pa.array([text]), parse_type(ddl))
    assert raised.value.code == "INVALID_PARTITION_VALUE"


def test_one_column_of_the_map() -> None:
    maps = pa.array([[("a b", "1"), ("c", None)], [("c", "2")], []], pa.map_(pa.string(), pa.string()))
    assert column_texts(maps, "a b").to_pylist() == ["1", None, None]
    assert column_texts(pa.chunked_array([maps, maps]), "c").to_pylist() == [None, "2", None] * 2


def test_a_binary_value_that_is_no_text_is_refused() -> None:
    with pytest.raises(UserError, match="not UTF-8") as caught:
        format_values(pa.array([b"ok", b"\xff"]), BINARY)
    assert caught.value.code == "INVALID_PARTITION_VALUE"


def test_no_type_is_compared_with_bytes() -> None:
    """`python -bb` makes an error of it."""
    code = (
        "import pyarrow as pa; from mica.stats.partition import format_values; from mica.schema.types import LONG\n"
        "assert format_values(pa.array([1, None]), LONG).to_pylist() == ['1', None]"
    )
    subprocess.run([sys.executable, "-bb", "-c", code], check=True)
