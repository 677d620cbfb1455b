"""Calls that are spelled as others."""

import pytest

from mica.errors import UserError
from mica.expressions.parse import parse
from mica.expressions.tree import to_sql


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("isnull(a)", "a IS NULL"), ("isnotnull(a)", "a IS NOT NULL"), ("equal_null(a, b)", "a <=> b"),
        ("nullifzero(a)", "CASE WHEN a = 0 THEN NULL ELSE a END"), ("zeroifnull(a)", "coalesce(a, 0)"),
        ("decode(a, 1, 'x', NULL, 'y', 'z')", "CASE WHEN a <=> 1 THEN 'x' WHEN a <=> NULL THEN 'y' ELSE 'z' END"),
        ("decode(a, 1, 'x')", "CASE WHEN a <=> 1 THEN 'x' ELSE NULL::STRING END"),
        ("decode(a, 'utf-8')", "decode(a, 'utf-8')"),
        ("negative(a)", "- a"), ("positive(a)", "positive(a)"), ("mod(a, 4)", "a % 4"),
        ("nvl2(a, 1, 2)", "CASE WHEN a IS NOT NULL THEN 1 ELSE 2 END"), ("instr(a, b)", "locate(b, a)"),
        ("position(a, b, 2)", "locate(a, b, 2)"), ("left(a, 2)", "substring(a, 1, 2)"),
        ("ltrim('x', a)", "trim(LEADING 'x' FROM a)"), ("trim(a)", "trim(a)"),
        ("btrim(a, 'x')", "trim(BOTH 'x' FROM a)"), ("date_part('DOW_ISO', a)", "weekday(a) + 1"),
        ("try_add(a, 1)", "try_add(a, 1)"), ("bigint(a)", "a::BIGINT"),
    ],
)  # fmt: skip
def test_mean_others(text: str, shown: str) -> None:
    assert to_sql(parse(text)) == shown


@pytest.mark.parametrize("text", ["isnull()", "nullif(1)", "decode(a)", "e(1)", "date_part(a, b)", "date_part('x', a)"])
def test_refuses(text: str) -> None:
    with pytest.raises(UserError, match="INVALID_EXPRESSION"):
        parse(text)
