"""Functions of doubles give Java's doubles, bit by bit."""

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
        ("sqrt(2)", 1.4142135623730951), ("sqrt(-1)", float("nan")), ("rint(2.5)", 2.0), ("sign(-0.0D)", -0.0),
        ("signum(-3)", -1.0), ("degrees(1)", 57.29577951308232), ("radians(180)", 3.141592653589793),
        ("exp(1)", 2.7182818284590455), ("exp(-745.2)", 0.0), ("exp(710)", float("inf")), ("exp(-744.5)", 5e-324),
        ("ln(0)", None), ("ln(10)", 2.302585092994046), ("ln(5e-324)", -744.4400719213812), ("log(2, 8)", 3.0),
        ("log(10, 1000)", 2.9999999999999996), ("log10(1000)", 3.0), ("log10(1e-320)", -320.000004834948),
        ("log2(3)", 1.584962500721156), ("power(3, 2)", 9.0), ("pow(2, -1)", 0.5),
        ("factorial(20)", 2432902008176640000), ("factorial(21)", None), ("nanvl(cast('nan' as double), 1)", 1.0),
        ("e()", 2.718281828459045), ("pi()", 3.141592653589793), ("try_add(2147483647, 1)", None),
        ("try_divide(1, 0)", None), ("try_mod(5, 3)", 2), ("try_multiply(2, 3L)", 6),
    ],
)  # fmt: skip
def test_doubles(text: str, value: Any) -> None:
    found = bind_value(text, SCHEMA).expr
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("power(x, 3)", "UNSUPPORTED_EXPRESSION"), ("power(x, x)", "UNSUPPORTED_EXPRESSION"),
        ("sqrt(d)", "TYPE_MISMATCH"), ("ln(b)", "TYPE_MISMATCH"), ("nanvl(d, x)", "TYPE_MISMATCH"),
        ("try_add(d, INTERVAL 1 DAY)", "UNSUPPORTED_EXPRESSION"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code
