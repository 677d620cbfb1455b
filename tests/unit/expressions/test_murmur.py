"""hash is Spark's Murmur3."""

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
        ("hash('Spark')", 228093765), ("hash(1)", -559580957), ("hash(1L)", -1712319331),
        ("hash('Spark', 1, NULL)", 205329825), ("hash(X'00010203FF')", -2044790726), ("hash(1.5D)", 1290763749),
        ("hash(1.50)", -2056712946), ("hash(true)", -559580957), ("hash(NULL)", 42),
        ("hash(DATE'2020-01-01')", -725858435), ("hash('')", 142593372), ("hash('é😀 and more')", 31851629),
        ("hash(12345678901234567890123.5)", 654034604),
    ],
)  # fmt: skip
def test_hashes(text: str, value: Any) -> None:
    found = bind_value(text, SCHEMA).expr
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hash(a)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code
