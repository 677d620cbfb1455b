"""The 44 rules of Parquet's variants (docs/check.md), a test each and more where a rule has several sides.

Each is a Parquet file with the very bytes that the rule speaks of, read through `mica.read_parquet`: what is legal
comes back as the value it is, what is not is refused with the rule, the column path and the row of the file.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.schema.types import VARIANT
from tests.variant_files import (
    AB,
    ABC,
    BINARY,
    EMPTY,
    HELLO,
    NEITHER,
    NULL,
    ONE,
    TWO,
    arrays,
    column,
    container,
    file,
    leaf,
    metadata,
    objects,
    read,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "v.parquet"


def refused(path: Path, rule: int, at: str = "v.value", row: int | None = 1) -> mica.MicaError:
    with pytest.raises(mica.MicaError) as caught:
        mica.read_parquet(path).to_arrow()
    error = caught.value
    found = tuple(error.context.get(name) for name in ("rule", "path", "row"))
    assert found == (rule, at, row), error
    assert "v.parquet" in str(error)
    return error


def second(path: Path, value: bytes, **options: Any) -> Path:
    """A file whose second row holds this value."""
    return file(path, column([ONE, value, TWO], **options))


# --- The encoding ----------------------------------------------------------------------------------------------------


def test_rule_1_an_annotated_group_whose_children_are_found_by_name(path: Path) -> None:
    array = column([ONE, None, HELLO])
    turned = pa.StructArray.from_arrays(
        [array.field("value"), array.field("metadata")],
        fields=[array.type.field("value"), array.type.field("metadata")],
        mask=array.is_null(),
    )
    assert read(file(path, turned)) == [1, None, "hello"]
    assert [f.type for f in mica.read_parquet(path).schema.fields] == [VARIANT]


def test_rule_1_a_child_of_another_name_is_refused(path: Path) -> None:
    type_ = pa.struct([pa.field("metadata", BINARY, nullable=False), ("value", BINARY), ("other", pa.int32())])
    file(path, pa.array([{"metadata": ABC, "value": ONE}], type_))
    refused(path, 1, "v", None)


def test_rule_2_metadata_is_required_and_value_where_nothing_is_shredded(path: Path) -> None:
    assert read(file(path, column([{"value": None, "typed_value": 1}, ONE], pa.int32()))) == [1, 1]
    array = column([ONE, {"metadata": None, "value": ONE}])
    type_ = pa.struct([pa.field("metadata", BINARY), pa.field("value", BINARY)])
    file(path, array.cast(type_))
    refused(path, 2, "v.metadata")


def test_rule_3_metadata_of_version_1_with_reserved_bits_ignored(path: Path) -> None:
    reserved = bytes([ABC[0] | 0x20]) + ABC[1:]
    assert read(file(path, column([ONE, container([ONE], [1])], names=reserved))) == [1, {"b": 1}]
    file(path, column([ONE, {"value": ONE, "metadata": bytes([0x12]) + ABC[1:]}]))
    refused(path, 3, "v")


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_rule_4_offsets_of_1_to_4_bytes(path: Path, width: int) -> None:
    assert read(file(path, column([container([ONE], [2])], names=metadata("a", "b", "c", width=width)))) == [{"c": 1}]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (bytes([0x11, 1, 1, 1]) + b"a", "first offset is 0"),
        (bytes([0x11, 1, 0, 1]) + b"ab", "last offset is the length"),
        (bytes([0x01, 2, 0, 2, 1]) + b"a", "offsets rise"),
        (bytes([0x11, 9, 0, 1]) + b"a", "n + 1 offsets"),
    ],
)
def test_rule_4_offsets_that_cannot_be_are_refused(path: Path, bad: bytes, what: str) -> None:
    file(path, column([ONE, {"value": ONE, "metadata": bad}]))
    assert refused(path, 4, "v"), what


def test_rule_5_keys_are_utf8(path: Path) -> None:
    unsorted = metadata("b", "a")
    assert read(file(path, column([container([ONE, TWO], [1, 0])], names=unsorted))) == [{"a": 1, "b": 2}]
    file(path, column([ONE, {"value": ONE, "metadata": bytes([0x11, 1, 0, 1, 0xFF])}]))
    refused(path, 5, "v")


@pytest.mark.parametrize("names", [("b", "a"), ("b", "a", "b"), ("\U00010000", "\ufff0")])
def test_rule_5_a_broken_promise_of_the_sorted_bit_is_read_and_named(path: Path, names: tuple[str, ...]) -> None:
    """Iceberg 1.11 sorts names by UTF-16. Ids say which name is meant, whatever the order. `tests/unit/maintain` has
    that it is not passed on."""
    inner = container([ONE, TWO], [1, 0])
    wanted = {names[1]: 1, names[0]: 2}
    file(path, column([inner, container([inner]), None], names=metadata(*names, ordered=True)))
    assert read(path) == [wanted, [wanted], None]
    assert [(v.kind, v.rule, v.row) for v in mica.check(path)] == [("metadata_names", 5, 0)]


def test_rule_6_primitives_short_strings_objects_and_arrays(path: Path) -> None:
    short, long = "x" * 63, "x" * 64
    rows = [NULL, bytes([63 << 2 | 1]) + short.encode(), b"\x40" + (64).to_bytes(4, "little") + long.encode()]
    rows += [b"\x01", b"\x40\0\0\0\0", container([ONE], [0]), container([ONE, HELLO])]
    assert read(file(path, column(rows))) == [None, short, long, "", "", {"a": 1}, [1, "hello"]]
    second(path, b"\x05\xff")
    refused(path, 6)


def test_rule_7_an_unknown_type_spoils_its_own_value_only(path: Path) -> None:
    unknown = b"\x54\x01\x02"  # type id 21
    second(path, container([ONE, unknown, TWO], [0, 1, 2]))
    refused(path, 7)
    scan = mica.read_parquet(path, columns={"a": "v:a::int", "c": "v:c::int"})
    assert scan.to_arrow().to_pylist() == [{"a": None, "c": None}, {"a": 1, "c": 2}, {"a": None, "c": None}]
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.read_parquet(path, columns={"b": "v:b::int"}).to_arrow()
    assert caught.value.context["rule"] == 7


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x20\x02" + (1234).to_bytes(4, "little"), Decimal("12.34")),
        (b"\x24\x26" + (1).to_bytes(8, "little"), Decimal("1e-38")),
        (b"\x28\x00" + (-(10**38 - 1)).to_bytes(16, "little", signed=True), Decimal(-(10**38 - 1))),
    ],
)
def test_rule_8_decimals(path: Path, value: bytes, expected: Decimal) -> None:
    assert read(second(path, value))[1] == expected


@pytest.mark.parametrize(
    "value",
    [
        b"\x20\x27" + bytes(4),
        b"\x20\x00" + (10**9).to_bytes(4, "little"),
        b"\x24\x00" + (10**18).to_bytes(8, "little"),
        b"\x28\x00" + (10**38).to_bytes(16, "little"),
    ],
)
def test_rule_8_decimals_beyond_their_scale_or_precision_are_refused(path: Path, value: bytes) -> None:
    second(path, value)
    refused(path, 8)


def test_rule_9_uuids_are_big_endian_and_all_else_little(path: Path) -> None:
    number = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
    assert read(second(path, b"\x50" + number.bytes))[1] == number
    assert read(second(path, b"\x14\x01\x02\x03\x04"))[1] == 0x04030201


def test_rule_10_object_ids_out_of_order_are_read_all_the_same(path: Path) -> None:
    assert read(second(path, container([ONE, TWO], [2, 0])))[1] == {"c": 1, "a": 2}
    second(path, container([ONE], [3]))
    refused(path, 20)


def test_rule_10_names_beyond_uffff_follow_their_bytes(path: Path) -> None:
    names = metadata("￰", "\U00010000")
    assert names[0] & 0x10
    # Spark sorts by UTF-16, which puts the surrogates of U+10000 first: read leniently, written by bytes.
    rows = [container([ONE, TWO], [0, 1]), container([TWO, ONE], [1, 0])]
    assert read(file(path, column(rows, names=names))) == [{"￰": 1, "\U00010000": 2}] * 2


def test_rule_11_offsets_need_not_rise(path: Path) -> None:
    value = bytes([2, 2, 0, 1, 2, 0, 4]) + TWO + ONE
    assert read(second(path, value))[1] == {"a": 1, "b": 2}


def test_rule_12_a_name_that_stands_twice_is_refused(path: Path) -> None:
    second(path, container([ONE, TWO], [1, 1]))
    refused(path, 12)
    second(path, container([ONE, TWO, ONE], [0, 1, 0]))
    refused(path, 12)


def test_rule_13_names_that_differ_in_case_are_two_names(path: Path) -> None:
    file(path, column([container([ONE, TWO], [0, 1])], names=metadata("A", "a")))
    assert read(path) == [{"A": 1, "a": 2}]
    found = mica.read_parquet(path, columns={"x": "v:A::int", "y": "v:a::int"}).to_arrow()
    assert found.to_pylist() == [{"x": 1, "y": 2}]


def test_rule_14_wide_objects_and_encodings_wider_than_needed(path: Path) -> None:
    names = [f"k{i:03}" for i in range(300)]
    wide = container([ONE] * 300, range(300), width=2, id_width=2)
    loose = container([ONE], [7], width=4, id_width=4, large=True)
    list_ = container([ONE, TWO], width=3, large=True)
    array = column([wide, loose, list_], names=metadata(*names, width=2))
    assert read(file(path, array)) == [dict.fromkeys(names, 1), {"k007": 1}, [1, 2]]


@pytest.mark.parametrize(
    "value",
    [
        container([ONE], [0])[:-1],
        container([ONE], [0]) + b"\0",
        bytes([2, 1, 0, 9, 2]) + ONE,
        bytes([3, 1, 0, 1]) + ONE,
        b"\x18\x01",
    ],
)
def test_rule_15_the_last_offset_is_the_total_size(path: Path, value: bytes) -> None:
    second(path, value)
    refused(path, 15)


def test_rule_15_children_that_share_bytes_are_refused_where_sorting_one_would_change_the_other(path: Path) -> None:
    """Found by `make fuzz`: `a` was the second id of the object `b`, whose fields are out of order."""
    inner = bytes([2, 2, 2, 1, 0, 2, 4]) + ONE + TWO
    shared = bytes([2, 2, 0, 1, 3, 0, 12]) + inner + NULL
    second(path, shared)
    refused(path, 15)
    assert [(v.kind, v.row) for v in mica.check(path)] == [("unsorted_ids", 1)]
    # In order nothing is moved, and every field has one meaning.
    second(path, bytes([2, 2, 0, 1, 2, 0, 12, 2, 2, 1, 2, 0, 2, 4]) + TWO + ONE + NULL)
    assert read(path)[1] == {"a": "", "b": {"b": 2, "c": 1}}


def test_rule_16_nested_values_use_the_metadata_of_their_parent(path: Path) -> None:
    assert read(second(path, container([container([ONE], [2])], [1])))[1] == {"b": {"c": 1}}


def test_rule_17_equal_numbers_and_equal_strings_whatever_their_encoding(path: Path) -> None:
    ones = [ONE, b"\x10\x01\x00", b"\x18" + (1).to_bytes(8, "little"), b"\x20\x02" + (100).to_bytes(4, "little")]
    texts = [b"\x05a", b"\x40\x01\x00\x00\x00a"]
    file(path, column([*ones, *texts, TWO]))
    assert mica.read_parquet(path, where="try_variant_get(v, '$', 'int') = 1").count() == 4
    assert mica.read_parquet(path, where="try_variant_get(v, '$', 'string') = 'a'").count() == 2


def test_rule_18_the_depth_that_is_read_is_stated(path: Path) -> None:
    value = NULL
    for _ in range(999):
        value = container([value], width=4)
    (found,) = read(file(path, column([container([value], width=4)])))
    depth = 0
    while found is not None:
        (found,), depth = found, depth + 1
    assert depth == 1000
    file(path, column([container([container([value], width=4)], width=4)]))
    with pytest.raises(mica.MicaError) as caught:
        read(path)
    assert (caught.value.code, caught.value.context["rule"]) == ("TOO_DEEP", 18)


@pytest.mark.parametrize("shredded", [False, True])
def test_rule_18_the_depth_counts_shredded_levels_and_holds_however_a_value_is_read(path: Path, shredded: bool) -> None:
    deepest = NULL
    for _ in range(999):
        deepest = container([deepest], width=4)
    for value, is_read in ((deepest, True), (container([deepest], width=4), False)):
        hidden = {"value": None, "typed_value": {"a": {"value": value, "typed_value": None}}}
        row = hidden if shredded else container([value], [0], width=4)
        file(path, column([row], objects(a=leaf(pa.int32())) if shredded else None))
        scans = [mica.read_parquet(path), mica.read_parquet(path, columns={"a": "v:a"})]
        if is_read:
            assert [scan.to_arrow().num_rows for scan in scans] == [1, 1]
            assert mica.check(path).ok
            continue
        for scan in scans:
            with pytest.raises(mica.MicaError) as caught:
                scan.to_arrow()
            assert (caught.value.code, caught.value.context["rule"]) == ("TOO_DEEP", 18)
        at = "v.typed_value.a.value" if shredded else "v.value"
        assert [(v.kind, v.rule, v.path, v.row) for v in mica.check(path)] == [("too_deep", 18, at, 0)]


# --- Shredding -------------------------------------------------------------------------------------------------------


def test_rule_19_one_metadata_serves_every_value(path: Path) -> None:
    b = container([ONE], [1])
    row = {"value": container([ONE], [2]), "typed_value": {"a": {"typed_value": 5}, "b": {"value": b}}}
    assert read(file(path, column([row], AB))) == [{"a": 5, "b": {"b": 1}, "c": 1}]


def test_rule_20_every_name_is_in_the_metadata(path: Path) -> None:
    there = {"typed_value": {"a": {"typed_value": 5}, "b": {}}}
    assert read(file(path, column([there], AB, names=metadata("a")))) == [{"a": 5}], "what no row uses may be absent"
    file(path, column([there, {**there, "metadata": metadata("b")}], AB))
    refused(path, 20, "v.typed_value.a")


@pytest.mark.parametrize(
    "type_",
    [
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.timestamp("ms"),
        pa.time32("ms"),
        pa.time64("ns"),
        pa.binary(4),
    ],
    ids=str,
)
def test_rule_21_types_outside_of_the_table_are_refused(path: Path, type_: pa.DataType) -> None:
    file(path, column([ONE, ONE], type_))
    refused(path, 21, "v.typed_value", None)


def test_rule_22_null_and_null_is_a_field_that_is_not_there(path: Path) -> None:
    assert read(file(path, column([{"typed_value": {"a": {"typed_value": 1}, "b": {}}}], AB))) == [{"a": 1}]


def test_rule_23_a_value_alone_is_of_any_type(path: Path) -> None:
    rows = [HELLO, ONE, NULL, container([ONE], [1]), container([ONE])]
    assert read(file(path, column(rows, pa.int32()))) == ["hello", 1, None, {"b": 1}, [1]]


def test_rule_24_a_typed_value_alone_is_of_the_shredded_type(path: Path) -> None:
    file(path, column([{"typed_value": 1}], pa.int64()))
    found = mica.read_parquet(path).to_arrow().column("v").combine_chunks()
    assert found.field("value").to_pylist() == [b"\x18" + (1).to_bytes(8, "little")]


def test_rule_25_both_is_an_object_and_nothing_else(path: Path) -> None:
    file(path, column([{"typed_value": 1}, {"value": ONE, "typed_value": 1}], pa.int32()))
    refused(path, 25, "v")


def test_rule_26_missing_where_it_may_not_be_is_variant_null(path: Path) -> None:
    file(path, column([{}, ONE], pa.int32()))
    assert read(path) == [None, 1]
    assert mica.read_parquet(path, where="v IS NULL").count() == 0


def test_rule_27_variant_null_is_00_in_value(path: Path) -> None:
    row = {"typed_value": {"a": {"value": NULL}, "b": {}}}
    assert read(file(path, column([row, NULL], AB))) == [{"a": None}, None]


def test_rule_28_sql_null_is_a_null_group(path: Path) -> None:
    file(path, column([None, NULL], pa.int32()))
    assert mica.read_parquet(path, where="v IS NULL").count() == 1


def test_rule_29_an_array_is_a_list_of_required_groups(path: Path) -> None:
    elements = [{"typed_value": 1}, {"value": HELLO}]
    assert read(file(path, column([{"typed_value": elements}], arrays(leaf(pa.int32()))))) == [[1, "hello"]]
    assert read(file(path, column([{"typed_value": [{"value": ONE}]}], arrays(leaf())))) == [[1]]


@pytest.mark.parametrize("element", [pa.int32(), pa.struct([("_other", pa.int32())])], ids=["no group", "neither"])
def test_rule_29_an_element_without_value_and_typed_value_is_refused(path: Path, element: pa.DataType) -> None:
    file(path, column([{"typed_value": []}], pa.list_(pa.field("element", element, nullable=False))))
    refused(path, 29, "v.typed_value.list.element", None)


def test_rule_30_an_array_stands_in_typed_value_and_nothing_else_does(path: Path) -> None:
    type_ = arrays(leaf(pa.int32()))
    rows = [{"typed_value": []}, HELLO]
    assert read(file(path, column(rows, type_))) == [[], "hello"]
    file(path, column([*rows[:1], {"value": ONE, "typed_value": []}], type_))
    refused(path, 30, "v")
    file(path, column([*rows[:1], container([ONE])], type_))
    refused(path, 30)


def test_rule_31_no_missing_elements(path: Path) -> None:
    """The rule binds writers, and `mica check` names it; a reader takes the element for Variant null (rule 26)."""
    file(path, column([{"typed_value": [{"typed_value": 1}, {}]}], arrays(leaf(pa.int32()))))
    assert read(path) == [[1, None]]
    assert [(v.rule, v.path, v.row) for v in mica.check(path)] == [(31, "v.typed_value.list.element", 0)]


def test_rule_32_an_object_if_and_only_if_typed_value_is_there(path: Path) -> None:
    assert read(file(path, column([{"typed_value": NEITHER}], AB))) == [{}]
    file(path, column([HELLO, container([ONE], [2])], AB))
    refused(path, 32)


def test_rule_33_an_empty_object_in_value_alone(path: Path) -> None:
    file(path, column([HELLO, EMPTY], AB))
    refused(path, 33)
    assert read(file(path, column([EMPTY], arrays(leaf())))) == [{}], "legal where no objects are shredded"


def test_rule_34_every_field_group_is_required(path: Path) -> None:
    """Optional groups have one meaning, so they are read; `mica check` names them."""
    optional = pa.struct([pa.field("a", leaf(pa.int32())), pa.field("b", leaf(pa.int32()))])
    file(path, column([{"typed_value": {"a": None, "b": {"typed_value": 2}}}], optional))
    assert read(path) == [{"b": 2}]
    assert {v.rule for v in mica.check(path)} == {34}
    type_ = pa.struct([pa.field("a", pa.int32())])
    refused(file(path, column([{"typed_value": {"a": 1}}], type_)), 34, "v.typed_value.a", None)


def test_rule_35_the_residual_holds_no_shredded_field(path: Path) -> None:
    file(path, column([HELLO, {"value": container([ONE], [1]), "typed_value": NEITHER}], AB))
    refused(path, 35)


def test_rule_36_the_residual_beside_fields_is_an_object(path: Path) -> None:
    file(path, column([HELLO, {"value": ONE, "typed_value": NEITHER}], AB))
    refused(path, 36)


def test_rule_37_a_field_in_both_is_refused(path: Path) -> None:
    both = {"value": container([ONE], [1]), "typed_value": {"a": {}, "b": {"typed_value": 1}}}
    file(path, column([HELLO, both], AB))
    refused(path, 37)


def test_rule_38_value_may_be_skipped_where_the_shredded_fields_suffice(path: Path) -> None:
    rows = [{"value": container([HELLO], [2]), "typed_value": {"a": {"typed_value": i}, "b": {}}} for i in range(3)]
    file(path, column(rows, AB))
    assert mica.read_parquet(path, columns={"a": "v:a::int"}).to_arrow().column("a").to_pylist() == [0, 1, 2]


def test_rule_39_the_union_is_sorted_again(path: Path) -> None:
    typed = objects(c=leaf(pa.int32()), a=leaf(pa.int32()))
    row = {"value": container([ONE], [1]), "typed_value": {"c": {"typed_value": 3}, "a": {"typed_value": 1}}}
    file(path, column([row], typed))
    value = mica.read_parquet(path).to_arrow().column("v").combine_chunks().field("value")[0].as_py()
    assert value[:5] == bytes([2, 3, 0, 1, 2])


def test_rule_40_nesting_to_any_depth_that_a_schema_has(path: Path) -> None:
    typed: pa.DataType = pa.int32()
    row: Any = {"typed_value": 1}
    for level in range(40):
        typed = objects(a=leaf(typed)) if level % 2 else arrays(leaf(typed))
        row = {"typed_value": {"a": row} if level % 2 else [row]}
    (found,) = read(file(path, column([row], typed)))
    for level in reversed(range(40)):
        found = found["a"] if level % 2 else found[0]
    assert found == 1


def test_rule_41_bounds_count_where_the_value_is_all_null(path: Path) -> None:
    rows = [{"typed_value": 1}, {"typed_value": 2}, b"\x10" + (100).to_bytes(2, "little"), {"typed_value": 5}]
    file(path, column(rows, pa.int32()), row_group_size=3)
    scan = mica.read_parquet(path, where="variant_get(v, '$', 'int') = 100")
    assert scan.count() == 1
    assert mica.read_parquet(path, where="variant_get(v, '$', 'string') = '5'").count() == 1, "another type's order"


def test_rule_42_casts_are_the_engines(path: Path) -> None:
    file(path, column([{"typed_value": "7"}, b"\x0c\x07"], pa.string()))
    assert mica.read_parquet(path, where="variant_get(v, '$', 'int') = 7").count() == 2
    with pytest.raises(mica.UserError) as caught:
        mica.read_parquet(path, where="variant_get(v, '$', 'date') = DATE'2020-01-01'").count()
    assert caught.value.code == "INVALID_CAST"


def test_rule_43_files_differ_in_their_schemas(tmp_path: Path) -> None:
    paths = [
        file(tmp_path / "1.parquet", column([container([ONE], [0])])),
        file(tmp_path / "2.parquet", column([{"typed_value": {"a": {"typed_value": 1}, "b": {}}}], AB)),
        file(tmp_path / "3.parquet", column([{"value": container([ONE], [0])}], pa.string())),
        file(
            tmp_path / "4.parquet", column([{"typed_value": {"a": {"typed_value": "1"}}}], objects(a=leaf(pa.string())))
        ),
    ]
    assert read(paths) == [{"a": 1}, {"a": 1}, {"a": 1}, {"a": "1"}]
    assert mica.read_parquet(paths, where="v:a::int = 1").count() == 4


def test_rule_44_a_layout_that_is_not_known_fails_and_is_never_read_as_nulls(path: Path) -> None:
    type_ = pa.struct([pa.field("metadata", BINARY, nullable=False), ("value", BINARY), ("typed_value_2", pa.int32())])
    file(path, pa.array([{"metadata": ABC, "typed_value_2": 1}], type_))
    refused(path, 1, "v", None)
