"""How results follow arguments: each direction holds for values around the place."""

from __future__ import annotations

import pytest

from mica.expressions.bind import bind_value
from mica.expressions.tree import Call
from mica.schema.ddl import parse_ddl
from mica.skipping.ordered import directions, plainly

SCHEMA = parse_ddl("i int, j int, l long, x double, n decimal(10,2), d date, ts timestamp, tn timestamp_ntz, s string")


@pytest.mark.parametrize(("text", "order"), [
    ("i + 1", (1, 1)), ("1 + i", (1, 1)), ("i - 1", (1, -1)), ("1 - i", (1, -1)), ("i - j", (1, -1)),
    ("-(i)", (-1,)), ("i * 2", (1, 1)), ("i * -2", (-1, -1)), ("2.5 * n", (1, 1)), ("i * 0", None), ("i * j", None),
    ("x * 1e300", (1, 1)), ("x / -3e0", (-1, 0)), ("x / 0e0", None), ("1e0 / x", None), ("i DIV 3", (1, 0)),
    ("n DIV 3", None), ("i % 3", None), ("x + CAST('NaN' AS DOUBLE)", None),
    ("d + INTERVAL 1 MONTH", (1, 1)), ("ts - INTERVAL 1 DAY", (1, -1)), ("ts + INTERVAL 1 MONTH", None),
    ("tn + INTERVAL 1 YEAR", None), ("d - d", None), ("ts - ts", None), ("INTERVAL 1 DAY * i", None),
    ("year(d)", (1,)), ("month(d)", (1,)), ("datediff(d, DATE'2020-01-01')", (1, -1)), ("datediff(d, d)", None),
    ("date_add(d, 3)", (1, 0)), ("date_add(d, i)", None), ("date_add(DATE'2020-01-01', i)", None),
    ("date_trunc('day', ts)", (0, 1)), ("substring(s, 1, 3)", (1, 0, 0)), ("substring(s, 2, 3)", None),
    ("date_format(ts, 'yyyy-MM')", (1, 0)), ("date_format(ts, 'MM-yyyy')", None), ("round(n, 1)", (1, 0)),
    ("upper(s)", None), ("try_add(i, 1)", (1, 1)),
])  # fmt: skip
def test_directions(text: str, order: tuple[int, ...] | None) -> None:
    expr = bind_value(text, SCHEMA).expr
    assert isinstance(expr, Call)
    found = directions(expr)
    assert (None if found is None else tuple(found)) == order


@pytest.mark.parametrize(("text", "name"), [
    ("from_unixtime(l)", "date_format"), ("from_unixtime(l, 'yyyy')", "date_format"),
    ("unix_timestamp(ts)", "div"), ("unix_timestamp(tn)", "div"),
    ("unix_timestamp(s)", "unix_timestamp"), ("year(d)", "year"),
])  # fmt: skip
def test_what_is_spelled_in_several_ways(text: str, name: str) -> None:
    expr = bind_value(text, SCHEMA).expr
    assert isinstance(expr, Call)
    assert plainly(expr).name == name
    assert plainly(expr).type == expr.type
