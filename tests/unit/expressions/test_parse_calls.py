"""Calls with words between their arguments."""

import pytest

from mica.expressions.parse import parse
from mica.expressions.tree import to_sql


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("extract(year FROM a)", "year(a)"), ("EXTRACT(DOW_ISO FROM a + 1)", "weekday(a + 1) + 1"),
        ("extract(second FROM a)", "extract(SECOND FROM a)"), ("position(a || 'x' IN b)", "locate(a || 'x', b)"),
        ("position(a, b)", "locate(a, b)"), ("trim(both)", "trim(both)"), ("trim(leading FROM a)", "ltrim(a)"),
        ("trim(BOTH 'x' FROM a)", "trim(BOTH 'x' FROM a)"), ("trim(trailing b FROM a)", "trim(TRAILING b FROM a)"),
        ("trim('x' FROM a)", "trim(BOTH 'x' FROM a)"), ("trim('x', a)", "trim(BOTH 'x' FROM a)"),
        ("overlay(a PLACING b FROM 2)", "overlay(a, b, 2)"),
        ("overlay(a PLACING b FROM 2 FOR c + 1)", "overlay(a, b, 2, c + 1)"),
        ("overlay(a, b, 2)", "overlay(a, b, 2)"), ("substring(a FROM 2 FOR 3)", "substring(a, 2, 3)"),
        ("dateadd(MONTH, 1, a)", "timestampadd(MONTH, 1, a)"), ("date_add(a, 1)", "date_add(a, 1)"),
        ("timestampadd(day, b, c)", "timestampadd(DAY, b, c)"), ("datediff(HOUR, a, b)", "timestampdiff(HOUR, a, b)"),
        ("datediff(a, b)", "datediff(a, b)"), ("dateadd(month, 1)", "date_add(month, 1)"),
    ],
)  # fmt: skip
def test_reads(text: str, shown: str) -> None:
    assert to_sql(parse(text)) == shown
    assert to_sql(parse(shown)) == shown
