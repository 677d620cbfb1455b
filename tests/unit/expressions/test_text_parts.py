"""Parts of strings are found, cut, repeated and rearranged as in Spark."""

from typing import Any

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.expressions.tree import Literal
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("s string, i int, x double, bin binary, b boolean, d date, a array<string>")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("locate('b', 'abcb')", 2), ("locate('b', 'abcb', 3)", 4), ("locate('', 'ab', 9)", 1),
        ("locate('a', 'a', 0)", 0), ("instr('aé', 'é')", 2), ("position('x' IN 'ax')", 2),
        ("lpad('7', 3, '0')", "007"), ("lpad('abcd', 2)", "ab"), ("lpad('a', 4, '')", "a"),
        ("rpad('é', 4, 'xy')", "éxyx"), ("lpad('a', -1)", ""), ("left('héllo', 2)", "hé"),
        ("right('héllo', 2)", "lo"), ("right('a', 0)", ""), ("substr('abc', -2, 1)", "b"),
        ("substring('abc' FROM 2 FOR 1)", "b"), ("overlay('abcd' PLACING '__' FROM 2)", "a__d"),
        ("overlay('abcd' PLACING '_' FROM 2 FOR 0)", "a_bcd"), ("substring_index('a.b.c', '.', 2)", "a.b"),
        ("substring_index('a.b.c', '.', -1)", "c"), ("substring_index('aaa', 'aa', -1)", ""),
        ("split_part('a,b', ',', -2)", "a"), ("split_part('a,b', ',', 3)", ""), ("replace('aXbX', 'X')", "ab"),
        ("repeat('ab', 2)", "abab"), ("repeat('ab', -2)", ""), ("space(2)", "  "),
        ("translate('abcba', 'ab', 'x')", "xcx"), ("ascii('é')", 233), ("ascii('')", 0), ("char(65 + 256)", "A"),
        ("chr(-1)", ""), ("find_in_set('b', 'a,b')", 2), ("find_in_set('a,b', 'a,b')", 0),
        ("levenshtein('kitten', 'sitting')", 3),
        ("initcap('hELLO  wORLD-x')", "Hello  World-x"),
        ("concat_ws(',', 'a', NULL, 'b')", "a,b"), ("concat_ws('-')", ""), ("concat_ws(NULL, 'a')", None),
        ("elt(2, 'a', 'b')", "b"), ("trim(BOTH 'xy' FROM 'xyaxy')", "a"), ("trim(TRAILING FROM ' a ')", " a"),
        ("ltrim('xy', 'yxa')", "a"), ("btrim(' a ')", "a"), ("trim('' FROM ' a ')", " a "),
    ],
)  # fmt: skip
def test_parts(text: str, value: Any) -> None:
    found = bind_value(text, SCHEMA).expr
    assert isinstance(found, Literal)
    assert repr(found.value) == repr(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("repeat(s)", "INVALID_EXPRESSION"), ("locate(s)", "INVALID_EXPRESSION"),
        ("lpad(bin, 3)", "UNSUPPORTED_EXPRESSION"), ("substring(bin, 1)", "UNSUPPORTED_EXPRESSION"),
        ("elt(1)", "INVALID_EXPRESSION"), ("left(s, b)", "TYPE_MISMATCH"),
    ],
)  # fmt: skip
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        bind_value(text, SCHEMA)
    assert raised.value.code == code


@pytest.mark.slow
def test_a_constant_that_has_no_room_is_refused() -> None:
    with pytest.raises(UserError) as raised:
        bind_value("space(2147483647)", SCHEMA)
    assert raised.value.code == "TOO_LARGE"


def test_a_text_that_has_no_room_is_refused_before_it_is_made() -> None:
    found = bind_value("repeat(s, i)", SCHEMA)
    with pytest.raises(UserError) as raised:
        evaluate(found, [pa.array(["ab" * 1000]), pa.array([2**31 - 1], pa.int32())])
    assert raised.value.code == "TOO_LARGE"


def test_rows_without_a_text_are_joined_too() -> None:
    found = evaluate(bind_value("concat_ws(s, a, d)", SCHEMA), [
        pa.array(["-", "-", None]), pa.array([["x", None, "y"], None, []]), pa.array([None, None, None], pa.date32()),
    ])  # fmt: skip
    assert found.to_pylist() == ["x-y", "", None]
