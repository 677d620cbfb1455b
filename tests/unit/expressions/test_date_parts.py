"""Parts of dates and times, and what lies between two times."""

from decimal import Decimal
from typing import Any

import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.tree import Literal
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("s string, i int, x double, bin binary, b boolean, d date, a array<int>")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("quarter(DATE'2020-05-01')", 2), ("weekday(DATE'2020-05-01')", 4), ("dayofweek(DATE'2020-05-03')", 1),
        ("dayofyear(DATE'2020-12-31')", 366), ("weekofyear(DATE'2021-01-03')", 53),
        ("extract(YEAROFWEEK FROM DATE'2021-01-03')", 2020), ("extract(DOW_ISO FROM DATE'2021-01-03')", 7),
        ("extract(SECOND FROM TIMESTAMP'2020-01-01 00:00:01.5')", Decimal("1.500000")),
        ("date_part('qtr', DATE'2020-05-01')", 2), ("dayname(DATE'2020-05-01')", "Fri"),
        ("monthname(DATE'1969-12-31')", "Dec"), ("last_day(DATE'2020-02-01')", 18321),
        ("next_day(DATE'2020-05-01', 'fr')", 18390), ("make_date(2020, 2, 29)", 18321),
        ("unix_date(DATE'1969-12-31')", -1), ("date_from_unix_date(-1)", -1), ("timestamp_seconds(1.5)", 1500000),
        ("timestamp_seconds(cast('nan' as double))", None),
        ("months_between(DATE'2020-03-31', DATE'2020-02-29')", 1.0),
        ("months_between(DATE'2020-03-31', DATE'2020-02-28')", 1.09677419),
        ("from_utc_timestamp(TIMESTAMP'2020-07-01 00:00:00', 'Asia/Tokyo')", 1593594000000000),
        ("to_utc_timestamp(TIMESTAMP'2020-07-01 00:00:00', 'Asia/Tokyo')", 1593529200000000),
        ("datediff(MONTH, DATE'2020-01-31', TIMESTAMP'2020-03-01 09:00:00')", 1),
        ("timestampdiff(MINUTE, TIMESTAMP'2020-01-01 00:01:00', TIMESTAMP'2020-01-01 00:00:30')", 0),
        ("dateadd(QUARTER, 1, DATE'2020-01-31')", 1588204800000000),
        ("timestampdiff(WEEK, timestamp_micros(-9223372036854775808L), timestamp_micros(9223372036854775807L))",
         30500568),
        ("timestampdiff(MILLISECOND, timestamp_micros(9223372036854775807L), timestamp_micros(-9223372036854775808L))",
         -18446744073709551),
        ("next_day(date_from_unix_date(-2147483648), 'mo')", -2147483646),
        ("next_day(date_from_unix_date(2147483647), 'mo')", -2147483646),
        ("timestampadd(HOUR, -1, TIMESTAMP_NTZ'2020-01-01 00:00:00')", 1577833200000000),
    ],
)  # fmt: skip
def test_parts(text: str, value: Any) -> None:
    found = bind_value(text, SCHEMA).expr
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(value)


def test_microseconds_that_the_result_does_not_hold_fail() -> None:
    text = "timestampdiff(MICROSECOND, timestamp_micros(-9223372036854775808L), timestamp_micros(1L))"
    found = bind_value(text, SCHEMA)
    with pytest.raises(UserError):
        evaluate(found, [], num_rows=1)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("make_date(2021, 2, b)", "TYPE_MISMATCH"), ("unix_date(s)", "TYPE_MISMATCH"),
        ("next_day(d, s)", "UNSUPPORTED_EXPRESSION"), ("from_utc_timestamp(d, 'Nowhere/City')", "INVALID_EXPRESSION"),
        ("dateadd(DAY, x, d)", "TYPE_MISMATCH"), ("quarter(i)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code
