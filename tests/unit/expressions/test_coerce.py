"""The types in which values are compared: the table of `coerce`, each pair both ways. (Spark: tests/property.)"""

from __future__ import annotations

import pytest

from mica.expressions.coerce import (
    boolean_equality,
    common_type,
    common_type_of_list,
    digits,
    holds,
    is_ordered,
    is_plain,
    tightest_type,
)
from mica.schema.ddl import parse_type, type_to_ddl
from mica.schema.types import VOID, ArrayType, DataType, Primitive


def _type(text: str) -> DataType:
    if text == "array<void>":
        return ArrayType(VOID)
    return Primitive(text) if text.startswith(("void", "interval")) else parse_type(text)


def _shown(type_: DataType | None) -> str | None:
    return None if type_ is None else type_to_ddl(type_).lower()


@pytest.mark.parametrize(
    ("left", "right", "ansi", "loose"),
    [
        ("int", "int", "int", "int"), ("void", "date", "date", "date"), ("tinyint", "bigint", "bigint", "bigint"),
        ("smallint", "int", "int", "int"),
        ("int", "decimal(5,2)", "decimal(12,2)", "decimal(12,2)"),
        ("bigint", "decimal(38,20)", "decimal(38,18)", "decimal(38,18)"),
        ("decimal(10,2)", "decimal(8,4)", "decimal(12,4)", "decimal(12,4)"),
        ("decimal(38,0)", "decimal(38,38)", "decimal(38,0)", "decimal(38,0)"),
        ("float", "int", "double", "float"), ("float", "decimal(5,2)", "double", "double"),
        ("float", "double", "double", "double"), ("double", "bigint", "double", "double"),
        ("double", "decimal(5,2)", "double", "double"),
        ("string", "int", "bigint", "int"), ("string", "tinyint", "bigint", "tinyint"),
        ("string", "float", "double", "float"), ("string", "double", "double", "double"),
        ("string", "decimal(5,2)", "double", "double"), ("string", "decimal(5,0)", "double", "decimal(5,0)"),
        *(("string", t, t, t) for t in ("date", "timestamp", "timestamp_ntz", "boolean", "binary")),
        ("date", "timestamp", "timestamp", "timestamp"), ("date", "timestamp_ntz", "timestamp_ntz", "timestamp_ntz"),
        ("timestamp", "timestamp_ntz", "timestamp", "timestamp"),
        *((left, right, None, None) for left, right in [
            ("int", "date"), ("boolean", "int"), ("boolean", "double"), ("binary", "int"), ("date", "binary"),
            ("string", "variant"), ("array<int>", "int"), ("array<int>", "map<int, int>"),
        ]),
        ("interval year", "interval month", "interval year to month", "interval year to month"),
        ("interval day", "interval month", None, None), ("interval day", "int", None, None),
        ("array<int>", "array<bigint>", "array<bigint>", "array<bigint>"),
        ("array<int>", "array<string>", "array<bigint>", "array<string>"),
        ("array<date>", "array<int>", None, None),
        ("map<string, int>", "map<string, double>", "map<string, double>", "map<string, double>"),
        ("map<int, int>", "map<bigint, int>", "map<bigint, int>", "map<bigint, int>"),
        ("map<string, int>", "map<date, int>", None, None),
        ("struct<a: int>", "struct<a: double>", "struct<a: double>", "struct<a: double>"),
        ("struct<a: int>", "struct<b: int>", None, None),
        ("struct<a: int, b: int>", "struct<a: int, b: date>", None, None),
    ],
)  # fmt: skip
def test_the_common_type_of_two(left: str, right: str, ansi: str | None, loose: str | None) -> None:
    one, other = _type(left), _type(right)
    for pair in ((one, other), (other, one)):
        assert _shown(common_type(*pair, ansi=True)) == (ansi and _shown(_type(ansi)))
        assert _shown(common_type(*pair, ansi=False)) == (loose and _shown(_type(loose)))


@pytest.mark.parametrize(
    ("left", "right", "common"),
    [
        ("int", "bigint", "bigint"), ("string", "int", None), ("string", "string", "string"),
        ("decimal(12,2)", "int", "decimal(12,2)"), ("decimal(11,2)", "int", None), ("decimal(5,2)", "double", None),
        ("decimal(5,2)", "decimal(6,2)", None), ("decimal(5,2)", "void", "decimal(5,2)"), ("date", "string", None),
        ("array<int>", "array<bigint>", "array<bigint>"), ("array<int>", "array<string>", None),
        ("array<void>", "array<decimal(3,1)>", "array<decimal(3,1)>"),
        ("struct<a: int>", "struct<b: int>", "struct<a: int>"),
        ("date", "timestamp", "timestamp"), ("float", "double", "double"),
    ],
)  # fmt: skip
def test_parts_of_nested_values_are_compared_in_types_that_hold_both(left: str, right: str, common: str | None) -> None:
    found = tightest_type(_type(left), _type(right), ansi=True)
    assert _shown(found) == (common and _shown(_type(common)))


@pytest.mark.parametrize(
    ("types", "ansi", "loose"),
    [
        ("int bigint double", "double", "double"), ("date", "date", "date"), ("void int", "int", "int"),
        ("int string", "bigint", "string"), ("string date string", "date", "string"),
        ("string boolean", "boolean", None), ("binary string", "binary", None), ("int date bigint", None, None),
        ("array<int> string", None, None),
    ],
)  # fmt: skip
def test_the_common_type_of_a_list(types: str, ansi: str | None, loose: str | None) -> None:
    every = [_type(t) for t in types.split()]
    assert _shown(common_type_of_list(every, ansi=True)) == ansi
    assert _shown(common_type_of_list(every, ansi=False)) == loose


@pytest.mark.parametrize(
    ("other", "common"),
    [("int", "int"), ("decimal(5,2)", "decimal(5,2)"), ("double", "double"), ("boolean", "boolean"), ("date", None),
     ("string", None)],
)  # fmt: skip
def test_without_ansi_a_boolean_may_equal_a_number(other: str, common: str | None) -> None:
    pair = _type("boolean"), _type(other)
    assert _shown(boolean_equality(*pair)) == _shown(boolean_equality(*reversed(pair))) == common
    assert boolean_equality(_type("int"), _type("int")) is boolean_equality(_type("int"), _type("date")) is None


def test_what_holds_every_value_of_another() -> None:
    wide = _type("decimal(12,2)")
    assert [holds(wide, _type(t)) for t in ("int", "bigint", "decimal(12,2)", "decimal(5,3)", "decimal(13,2)")] == [
        True, False, True, False, False,
    ]  # fmt: skip
    assert [digits(_type(t)) for t in ("tinyint", "smallint", "int", "bigint", "decimal(7,3)")] == [
        (3, 0), (5, 0), (10, 0), (20, 0), (7, 3),
    ]  # fmt: skip


def test_what_has_an_order() -> None:
    ordered = ["int", "interval day", "array<array<string>>", "struct<a: int, b: array<date>>"]
    unordered = ["variant", "map<int, int>", "array<variant>", "struct<a: int, b: map<int, int>>"]
    assert [is_ordered(_type(t)) for t in (*ordered, *unordered)] == [True] * 4 + [False] * 4
    assert [is_plain(_type(t)) for t in ("interval day", "variant", "array<int>")] == [True, True, False]
