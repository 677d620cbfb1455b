"""Texts and bytes in other writings, their lengths and checksums."""

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
        ("hex(255)", "FF"), ("hex(-1)", "FFFFFFFFFFFFFFFF"), ("hex('é')", "C3A9"), ("hex(X'0A')", "0A"),
        ("unhex('F')", b"\x0f"), ("unhex('0aff')", b"\n\xff"), ("unhex('x')", None),
        ("bin(-1L)", "1111111111111111111111111111111111111111111111111111111111111111"), ("bin(6)", "110"),
        ("base64('ab')", "YWI="), ("unbase64('YWI=')", b"ab"), ("unbase64('Y W\\nI')", b"ab"), ("unbase64('')", b""),
        ("base64(repeat('a', 57))", "YWFh" * 19), ("base64(repeat('a', 58))", f"{'YWFh' * 19}\r\nYQ=="),
        ("base64('')", ""), ("unbase64(base64(repeat('a', 58)))", b"a" * 58),
        ("encode('é', 'UTF-8')", b"\xc3\xa9"), ("decode(X'C3A9', 'utf-8')", "é"),
        ("url_encode('a b~é*')", "a+b%7E%C3%A9*"), ("octet_length('é')", 2), ("bit_length(X'00')", 8),
        ("sha('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"), ("crc32('a')", 3904355907),
        ("hex(DATE'2020-01-01')", "323032302D30312D3031"),
    ],
)  # fmt: skip
def test_writings(text: str, value: Any) -> None:
    found = bind_value(text, SCHEMA).expr
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("encode(s, 'utf-16')", "UNSUPPORTED_EXPRESSION"), ("encode(s, s)", "UNSUPPORTED_EXPRESSION"),
        ("unbase64(i, i)", "INVALID_EXPRESSION"), ("hex(a)", "TYPE_MISMATCH"),
        ("decode(i, 'utf-8')", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code
