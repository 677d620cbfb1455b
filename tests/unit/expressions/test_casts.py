"""Casts of plain columns: what only columns have, and what Spark does without ANSI. (Spark itself: tests/property.)"""

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.casts import CastFailedError, can_cast, cast_array, cast_value
from mica.expressions.plain_values import from_values
from mica.schema.ddl import parse_type
from mica.variant import kernel

NAN, INF = float("nan"), float("inf")
LAST = 2**63 - 1
FAILS = object()


def cast(value: Any, source: str, target: str, *, ansi: bool) -> Any:
    try:
        return cast_value(value, parse_type(source), parse_type(target), "Europe/Berlin", ansi=ansi)
    except CastFailedError:
        return FAILS


@pytest.mark.parametrize(
    ("value", "source", "target", "strict", "loose"),
    [
        (1e-7, "double", "string", "1.0E-7", "1.0E-7"), (0.1, "float", "string", "0.1", "0.1"),
        (123456789.0, "double", "string", "1.23456789E8", "1.23456789E8"), (-0.0, "float", "string", "-0.0", "-0.0"),
        (1577836800000001, "timestamp", "string", "2020-01-01 01:00:00.000001", "2020-01-01 01:00:00.000001"),
        (Decimal("0.00000010"), "decimal(10,8)", "string", "0.00000010", "1.0E-7"),
        (1, "bigint", "timestamp", 1_000_000, 1_000_000), (LAST, "bigint", "timestamp", LAST, LAST),
        (-LAST, "bigint", "timestamp", -(2**63), -(2**63)), (1e30, "double", "timestamp", FAILS, LAST),
        (NAN, "double", "timestamp", FAILS, None),
        (Decimal("1E20"), "decimal(38,0)", "timestamp", -2537764290115403776, -2537764290115403776),
        (-1_500_000, "timestamp", "bigint", -2, -2), (2**60, "timestamp", "int", FAILS, FAILS),
        (NAN, "double", "decimal(10,2)", None, None), (1e30, "double", "decimal(10,2)", FAILS, FAILS),
        (0.125, "double", "decimal(10,2)", Decimal("0.13"), Decimal("0.13")),
        (1e30, "double", "bigint", FAILS, LAST), (-1e30, "float", "bigint", FAILS, -(2**63)),
        (2.0**40, "double", "bigint", 2**40, 2**40), (2.0**40, "double", "int", FAILS, 2**31 - 1),
        (1e30, "double", "tinyint", FAILS, -1), (-1e30, "double", "smallint", FAILS, 0),
        (300.7, "double", "tinyint", FAILS, 44),
        (NAN, "float", "int", FAILS, 0), (300, "int", "tinyint", FAILS, 44), (NAN, "double", "boolean", True, True),
        (Decimal("4294967297.9"), "decimal(20,1)", "int", FAILS, 1), (" 1.5 ", "string", "int", FAILS, 1),
        ("-.", "string", "int", FAILS, 0), ("-", "string", "int", FAILS, FAILS), ("1e2", "string", "int", FAILS, FAILS),
        (18_262, "date", "timestamp", 1577833200000000, 1577833200000000),  # midnight in Berlin
        (18_262, "date", "timestamp_ntz", 1577836800000000, 1577836800000000),
        (1577836800000000, "timestamp_ntz", "timestamp", 1577833200000000, 1577833200000000),
        ("-128", "string", "tinyint", -128, -128), ("-129", "string", "tinyint", FAILS, FAILS),
        ("1" * 5000, "string", "bigint", FAILS, FAILS), ("-" + "0" * 5000 + "7", "string", "int", -7, -7),
        (Decimal("12345678901234567890123456789012.125000"), "decimal(38,6)", "timestamp", *[-4302749291975966272] * 2),
        ("127.9", "string", "tinyint", FAILS, 127), ("128", "string", "tinyint", FAILS, FAILS),
        (b"\xff", "binary", "string", FAILS, FAILS), ("0x1p3", "string", "double", 8.0, 8.0),
    ],
)  # fmt: skip
def test_values(value: Any, source: str, target: str, strict: Any, loose: Any) -> None:
    if source == "float":
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    assert cast(value, source, target, ansi=True) == strict
    assert cast(value, source, target, ansi=False) == loose


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (True, "boolean", "timestamp", 1), (0, "timestamp", "boolean", False), (5, "date", "int", None),
        (-2, "int", "binary", b"\xff\xff\xff\xfe"), (1, "tinyint", "binary", b"\x01"), (None, "bigint", "binary", None),
    ],
)  # fmt: skip
def test_pairs_that_ansi_has_not(value: Any, source: str, target: str, expected: Any) -> None:
    assert not can_cast(parse_type(source), parse_type(target), ansi=True)
    assert cast(value, source, target, ansi=False) == expected
    assert cast_value(value, parse_type(source), parse_type(target), "UTC", ansi=False) == expected


def test_arrays_of_these_pairs_may_have_nulls() -> None:
    def loose(values: pa.Array, source: str, target: str) -> list[Any]:
        return cast_array(values, parse_type(source), parse_type(target), "UTC", ansi=False)[0].to_pylist()

    assert loose(pa.array([1, None], pa.int32()), "int", "binary") == [b"\0\0\0\1", None]
    assert loose(pa.array([2**62 + 1, None]), "bigint", "binary") == [(2**62 + 1).to_bytes(8, "big"), None]
    assert loose(pa.array([NAN, None, -1.9]), "double", "int") == [0, None, -1]


def test_what_a_variant_is_cast_to() -> None:
    variant = parse_type("variant")
    holds = ["int", "binary", "timestamp_ntz", "array<array<double>>", "map<string, date>", "struct<a: int>", "variant"]
    lacks = ["map<int, int>", "struct<a: map<int, int>>", "struct<a: int not null>", "array<map<int, int>>", "struct<>"]
    for ansi in (True, False):
        assert [can_cast(variant, parse_type(t), ansi=ansi) for t in holds] == [True] * len(holds)
        assert [can_cast(variant, parse_type(t), ansi=ansi) for t in lacks] == [False] * len(lacks)
        assert can_cast(parse_type("array<array<int>>"), variant, ansi=ansi)
        assert not can_cast(parse_type("map<string, int>"), variant, ansi=ansi)
        assert not can_cast(parse_type("array<struct<a: int>>"), variant, ansi=ansi)


def test_whole_arrays_with_nulls_and_slices() -> None:
    long, text = parse_type("bigint"), parse_type("string")
    array = from_values([None, "7", "x", "9", None], text).slice(1)
    found, failed = cast_array(array, text, long, "UTC", ansi=True)
    assert found.to_pylist() == [7, None, 9, None]
    assert failed.to_pylist() == [False, True, False, False]
    found, failed = cast_array(array.cast(pa.large_string()), text, long, "UTC", ansi=False)
    assert found.to_pylist() == [7, None, 9, None]
    assert cast_array(pa.array([], pa.string()), text, long, "UTC", ansi=True)[0].to_pylist() == []


def test_parts_are_cast_where_they_show() -> None:
    """Slices and null rows have other values beneath."""
    values = pa.array(["x", "1", "y", "z", "2"])
    texts = pa.ListArray.from_arrays(pa.array([0, 1, 3, 4, 5]), values, mask=pa.array([False, False, True, False]))
    of_texts, of_numbers = parse_type("array<string>"), parse_type("array<bigint>")
    found, failed = cast_array(texts.slice(1), of_texts, of_numbers, "UTC", ansi=True)
    assert found.to_pylist() == [[1, None], None, [2]]
    assert failed.to_pylist() == [True, False, False]
    entries = pa.array([[("a", {"x": "1"})], None, [], [("b", None), ("c", {"x": "z"})]],
                       pa.map_(pa.string(), pa.struct([pa.field("x", pa.string())])))  # fmt: skip
    source, target = parse_type("map<string, struct<x: string>>"), parse_type("map<string, struct<y: int>>")
    found, failed = cast_array(entries.slice(1), source, target, "UTC", ansi=True)
    assert found.to_pylist() == [None, [], [("b", None), ("c", {"y": None})]]
    assert failed.to_pylist() == [False, False, True]


def test_what_must_not_be_null_is_cast_by_what_cannot_fail() -> None:
    def may(source: str, target: str) -> bool:
        return can_cast(parse_type(source), parse_type(target), ansi=True)

    assert may("struct<a: int not null>", "struct<b: bigint not null>")
    assert not may("struct<a: int>", "struct<a: bigint not null>")
    assert not may("struct<a: string not null>", "struct<a: bigint not null>")
    assert may("map<int, string>", "map<bigint, int>")
    assert not may("map<bigint, int>", "map<int, int>")
    assert not may("struct<a: int>", "struct<a: int, b: int>")
    # The required field of a null struct is no null of its own, as DuckDB and Arrow's casts want it.
    field = pa.field("a", pa.int32(), False)
    structs = pa.StructArray.from_arrays([pa.array([1, 0], pa.int32())], fields=[field], mask=pa.array([False, True]))
    source, target = parse_type("struct<a: int not null>"), parse_type("struct<a: bigint not null>")
    found, failed = cast_array(structs, source, target, "UTC", ansi=True)
    assert (found.to_pylist(), failed, found.field(0).null_count) == ([{"a": 1}, None], None, 0)
    found.validate(full=True)


def test_the_integers_of_keys_that_are_stored_may_become_smaller_ones() -> None:
    def may(source: str, target: str) -> bool:
        return can_cast(parse_type(source), parse_type(target), ansi=True, by_name=True)

    assert may("map<struct<x: array<bigint>>, int>", "map<struct<x: array<int>>, bigint>")
    assert not may("map<double, int>", "map<int, int>")  # 1.2 and 1.4 would be one key
    assert not may("map<decimal(5,2), int>", "map<decimal(5,1), int>")
    source, target = parse_type("map<bigint, int>"), parse_type("map<int, int>")
    maps = pa.array([[(1, 1)], None, [(2, 2), (1 << 40, 3)], []], pa.map_(pa.int64(), pa.int32()))
    found, failed = cast_array(maps.slice(1), source, target, "UTC", ansi=True, by_name=True)
    assert failed.to_pylist() == [False, True, False]
    assert (found[0].as_py(), found[2].as_py()) == (None, [])


def test_the_kernel_names_what_it_cannot_cast() -> None:
    nested = pa.record_batch([pa.array([[1]])], names=["x"])
    with pytest.raises(UserError, match="cannot be cast"):
        kernel.cast(nested, pa.string())
    with pytest.raises(UserError, match="cannot be cast to"):
        kernel.cast(pa.record_batch([pa.array([1])], names=["x"]), pa.list_(pa.int32()))
    with pytest.raises(UserError, match="zone"):
        kernel.cast(pa.record_batch([pa.array([1])], names=["x"]), pa.string(), timezone="Nowhere/None")
