"""Parameters become literals where an expression may be, and nowhere else."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mica.errors import UserError
from mica.query.parameters import bound

BOUND: list[tuple[str, Any, str]] = [
    ("DELETE FROM t WHERE id = :i AND v:i = :i", {"i": 7}, "DELETE FROM t WHERE id = 7 AND v:i = 7"),
    ("x = ? - ?", [1, -2], "x = 1 - (-2)"),
    ("s = ':i ?' -- ? :i\n AND `:i` = /* :i */ :i", {"i": 1}, "s = ':i ?' -- ? :i\n AND `:i` = /* :i */ 1"),
    ("v:a:i::int = :i AND (v):i > f(v)[0]:i", {"i": 1}, "v:a:i::int = 1 AND (v):i > f(v)[0]:i"),
    ("a BETWEEN :i AND :j OR NOT :b", {"i": 1, "j": 2, "b": True}, "a BETWEEN 1 AND 2 OR NOT TRUE"),
    # A word that may also be a column: a path, unless args has the name.
    ("values:i = 1 OR when:j = :i", {"i": 1}, "values1 = 1 OR when:j = 1"),
    (
        "x = :s::date AND y = r'\\' || :s",
        {"s": "it's \\ ?"},
        "x = 'it\\'s \\\\ ?'::date AND y = r'\\' || 'it\\'s \\\\ ?'",
    ),
]
LITERALS: list[tuple[Any, str]] = [
    (None, "NULL"), (True, "TRUE"), (-5, "(-5)"), (1.5, "(1.5D)"), (1e300, "(1e+300D)"), (-0.5, "(-0.5D)"),
    (float("-inf"), "CAST('-inf' AS DOUBLE)"), (Decimal("-1.50"), "(-1.50BD)"), (b"\x01\xff", "X'01FF'"),
    (dt.date(2024, 1, 2), "DATE'2024-01-02'"), (dt.date(1, 1, 1), "DATE'0001-01-01'"),
    (dt.datetime(2024, 1, 2, 3, 4, 5, 600_000, dt.UTC), "TIMESTAMP'2024-01-02 03:04:05.6Z'"),
    (dt.timedelta(days=1, seconds=2), "INTERVAL '1 00:00:02' DAY TO SECOND"), (np.int64(3), "3"),
    ("${a}", "'$\\{a}'"), ([1, None], "array(1, NULL)"), ((), "array()"), ({"a": 1}, "map('a', 1)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "args", "expected"), BOUND, ids=[text for text, *_ in BOUND])
def test_parameters_become_literals(text: str, args: Any, expected: str) -> None:
    assert bound(text, args) == expected


@pytest.mark.parametrize(("value", "expected"), LITERALS, ids=[expected for _, expected in LITERALS])
def test_every_value_is_its_literal(value: Any, expected: str) -> None:
    assert bound("SELECT ?", [value]) == f"SELECT {expected}"


@pytest.mark.parametrize(
    ("text", "args", "named"),
    [
        ("x = :i", {"j": 1}, ":i"),
        ("x = ?", [], r"\?"),
        ("x = :i", {"i": object()}, r"args\['i'\]"),
        ("x = :i", [1], ":i"),
    ],
)
def test_a_value_that_is_missing_or_no_literal_is_named(text: str, args: Any, named: str) -> None:
    with pytest.raises(UserError, match=named) as caught:
        bound(text, args)
    assert caught.value.code == "INVALID_ARGUMENT"
