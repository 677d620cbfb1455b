"""Bitwise operators and shifts give what Java gives."""

from typing import Any

import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.tree import Literal
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("s string, i int, x double, bin binary, b boolean, d date, a array<int>")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("6 & 3", 2), ("6 | 3L", 7), ("6 ^ NULL", None), ("~ 5", -6), ("~ -1Y", 0), ("1 << 33", 2),
        ("1L << 33", 8589934592), ("-8 >> 1", -4), ("-8 >>> 28", 15), ("-8L >>> 60", 15), ("1 << -1", -2147483648),
        ("bit_count(-1)", 64), ("bit_count(-1Y)", 64), ("bit_count(true)", 1), ("bit_get(5, 2)", 1),
        ("getbit(-1L, 63)", 1),
    ],
)  # fmt: skip
def test_operators_and_shifts(text: str, value: Any) -> None:
    found = bind_value(text, SCHEMA).expr
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("i & x", "TYPE_MISMATCH"), ("s | 1", "TYPE_MISMATCH"), ("~ x", "TYPE_MISMATCH"), ("b & b", "TYPE_MISMATCH"),
        ("1 << x", "TYPE_MISMATCH"), ("bit_count(s)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code
