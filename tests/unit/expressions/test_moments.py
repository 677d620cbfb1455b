"""The current moment: one for an expression, a local date by the zone, and no argument."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.moments import MOMENTS, moment
from mica.expressions.tree import Literal
from mica.schema.ddl import parse_ddl
from mica.schema.types import DATE, TIMESTAMP

SCHEMA = parse_ddl("a INT, now STRING")
NEW_YEAR = int(datetime(2020, 1, 1, 3, tzinfo=UTC).timestamp() * 1e6)


def test_a_date_is_local() -> None:
    assert moment("current_date", NEW_YEAR, "UTC") == ((date(2020, 1, 1) - date(1970, 1, 1)).days, DATE)
    assert moment("current_date", NEW_YEAR, "America/New_York")[0] == (date(2019, 12, 31) - date(1970, 1, 1)).days


@pytest.mark.parametrize("text", [*(f"{name}()" for name in MOMENTS), "current_timestamp", "CURRENT_DATE"])
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
