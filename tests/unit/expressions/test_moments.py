"""The current moment: one for an expression, a local date by the zone, and no argument."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind, bind_value
from mica.expressions.evaluate import evaluate, filter_rows
from mica.expressions.moments import MOMENTS, moment, named
from mica.expressions.tree import Literal
from mica.schema.ddl import parse_ddl
from mica.schema.types import DATE, TIMESTAMP

SCHEMA = parse_ddl("a INT, now STRING, d DATE")
NEW_YEAR = int(datetime(2020, 1, 1, 3, tzinfo=UTC).timestamp() * 1e6)


def test_a_date_is_local() -> None:
    assert moment("current_date", NEW_YEAR, "UTC") == ((date(2020, 1, 1) - date(1970, 1, 1)).days, DATE)
    assert moment("current_date", NEW_YEAR, "America/New_York")[0] == (date(2019, 12, 31) - date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("text", "date_", "timestamp"),
    [
        ("epoch", 0, 0), (" NOW ", 18261, NEW_YEAR), ("Today UTC", 18261, 18261 * 86_400_000_000 + 18_000_000_000),
        ("tomorrow", 18262, 18262 * 86_400_000_000 + 18_000_000_000),
        ("yesterday +01:00", 18260, 18260 * 86_400_000_000 + 18_000_000_000),
        ("epoch Nowhere", None, None), ("now UTC", None, None), ("yesterdayZ", None, None), ("never", None, None),
    ],
)  # fmt: skip
def test_texts_name_moments(text: str, date_: int | None, timestamp: int | None) -> None:
    assert [named(text, t, NEW_YEAR, "America/New_York") for t in (DATE, TIMESTAMP)] == [date_, timestamp]


@pytest.mark.parametrize(
    "text",
    [
        "d < 'today'",
        "try_cast('now' as timestamp) > d",
        "DATE'tomorrow' > d",
        "to_date('today') > d",
        "year('now') > 1999",
    ],
)
def test_only_constants_name_moments(text: str) -> None:
    for ansi in (True, False):
        bound = bind(text, SCHEMA, ansi=ansi)
        assert filter_rows(
            bound, [pa.array([0], pa.int32()).cast(pa.date32())][: len(bound.leaves)], num_rows=1
        ) == pa.array([True])
    found = evaluate(bind_value("try_cast(now AS DATE)", SCHEMA), [pa.array(["today", "epoch"])])
    assert found.to_pylist() == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        *(f"{name}()" for name in MOMENTS), "current_timestamp", "CURRENT_DATE", "year(current_date)",
        "cast(current_date as string)", "try_cast(current_timestamp as date)", "date_add(current_date, 1)",
    ],
)  # fmt: skip
def test_it_is_a_constant(text: str) -> None:
    assert isinstance(bind_value(text, SCHEMA).expr, Literal)


def test_an_expression_sees_one_moment() -> None:
    assert bind_value("current_timestamp() = now()", SCHEMA).expr is not None
    found = bind_value("CASE WHEN a = 1 THEN current_timestamp() ELSE now() END", SCHEMA)
    assert found.type == TIMESTAMP
    assert (
        len({part.value for part in found.expr.children if isinstance(part, Literal) and part.type == TIMESTAMP}) == 1
    )


def test_a_column_of_that_name_comes_first() -> None:
    assert bind_value("now", SCHEMA).leaves[0].column == ("now",)


def test_arguments_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        bind_value("current_timestamp(3)", SCHEMA)
    assert caught.value.code == "INVALID_EXPRESSION"
