"""Rules 19 to 40 of the shredding checklist (docs/check.md), one test a rule, on hand-made columns.

The columns are Arrow batches in storage layout; `unshred` reads them as a Parquet scan would.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from mica import _native
from mica.variant.kernel import Request
from mica.variant.values import decode

VARIANT = {"ARROW:extension:name": "arrow.parquet.variant"}
METADATA = bytes([0x11, 3, 0, 1, 2, 3]) + b"abc"
"""The sorted dictionary a, b, c."""

ONE, TWO, NULL, EMPTY = b"\x0c\x01", b"\x0c\x02", b"\x00", b"\x02\x00\x00"
HELLO = b"\x15hello"
B1 = bytes([2, 1, 1, 0, 2]) + ONE
"""{"b": 1}"""
C1 = bytes([2, 1, 2, 0, 2]) + ONE
"""{"c": 1}"""

BINARY = pa.binary()
LEAF = pa.struct([("value", BINARY), ("typed_value", pa.int32())])


def shredded(typed: pa.DataType, rows: list[Any], *, value: bool = True, metadata: bytes = METADATA) -> pa.RecordBatch:
    """A column `v`; a row is None or a dict of value and typed_value."""
    fields = [pa.field("metadata", BINARY)]
    fields += [pa.field("value", BINARY)] if value else []
    fields += [pa.field("typed_value", typed)]
    cells = [row if row is None else {"metadata": metadata, **row} for row in rows]
    column = pa.array(cells, pa.struct(fields))
    return pa.record_batch([column], schema=pa.schema([pa.field("v", column.type, metadata=VARIANT)]))


def read(batch: pa.RecordBatch) -> list[Any]:
    column = _native.unshred(batch).column(0)
    return [v and decode(v["metadata"], v["value"]) for v in column.to_pylist()]


def texts(batch: pa.RecordBatch, *path: str | int) -> Any:
    return _native.extract(batch, [Request(("v",), path, json=True)]).column(0).to_pylist()


def refused(batch: pa.RecordBatch) -> Any:
    with pytest.raises(_native.KernelError) as caught:
        _native.unshred(batch)
    return caught.value


OBJECT = pa.struct([("a", LEAF), ("b", LEAF)])
BOTH_MISSING = {"a": {}, "b": {}}


def test_rule_19_residuals_use_the_metadata_of_the_column() -> None:
    assert read(shredded(OBJECT, [{"value": C1, "typed_value": {"a": {"typed_value": 5}, "b": {"value": B1}}}])) == [
        {"a": 5, "b": {"b": 1}, "c": 1}
    ]


def test_rule_20_a_shredded_name_that_the_metadata_lacks_is_refused() -> None:
    batch = shredded(OBJECT, [{"typed_value": {"a": {"typed_value": 5}, "b": {}}}], metadata=b"\x01\x00\x00")
    error = refused(batch)
    assert (error.code, error.rule, error.row) == ("MALFORMED_SHREDDING", 20, 0)
    assert error.path == "v.typed_value.a"


def test_rule_20_a_name_that_no_row_uses_need_not_be_there() -> None:
    assert read(shredded(OBJECT, [{"typed_value": BOTH_MISSING}], metadata=b"\x01\x00\x00")) == [{}]


@pytest.mark.parametrize("leaf", [pa.uint8(), pa.uint32(), pa.timestamp("ms"), pa.time32("ms"), pa.binary(4)])
def test_rule_21_types_outside_of_the_table_are_refused(leaf: pa.DataType) -> None:
    error = refused(shredded(leaf, [{"value": ONE}]))
    assert (error.rule, error.path) == (21, "v.typed_value")


def test_rule_22_null_and_null_is_a_missing_field() -> None:
    assert read(shredded(OBJECT, [{"typed_value": {"a": {"typed_value": 1}, "b": {}}}])) == [{"a": 1}]


def test_rule_23_a_value_alone_may_have_any_type_also_that_of_the_column() -> None:
    assert read(shredded(pa.int32(), [{"value": HELLO}, {"value": ONE}, {"value": B1}])) == ["hello", 1, {"b": 1}]


def test_rule_24_a_typed_value_alone_has_the_type_of_the_column() -> None:
    out = _native.unshred(shredded(pa.int64(), [{"typed_value": 1}])).column(0)
    assert out.to_pylist()[0]["value"] == b"\x18" + (1).to_bytes(8, "little")


def test_rule_25_both_is_an_object_and_nothing_else() -> None:
    error = refused(shredded(pa.int32(), [{"typed_value": 1}, {"value": ONE, "typed_value": 1}]))
    assert (error.rule, error.row, error.path) == (25, 1, "v")


def test_rule_26_missing_at_the_root_is_variant_null() -> None:
    batch = shredded(pa.int32(), [{}, None])
    column = _native.unshred(batch).column(0).to_pylist()
    assert (column[0]["value"], column[1]) == (NULL, None)
    assert texts(batch) == ["null", None]


def test_rule_27_variant_null_is_00_in_value() -> None:
    assert read(shredded(OBJECT, [{"typed_value": {"a": {"value": NULL}, "b": {}}}])) == [{"a": None}]


def test_rule_28_sql_null_is_a_null_group() -> None:
    out = _native.unshred(shredded(pa.int32(), [None, {"value": NULL}])).column(0)
    assert [v.is_valid for v in out] == [False, True]


ARRAY = pa.list_(pa.field("element", LEAF, nullable=False))


def test_rule_29_an_element_without_value_and_typed_value_is_refused() -> None:
    batch = shredded(pa.list_(pa.struct([("_x", pa.int32())])), [{"typed_value": [{"_x": 1}]}])
    assert refused(batch).rule == 29


def test_rule_29_an_element_that_is_no_group_is_refused() -> None:
    error = refused(shredded(pa.list_(pa.int32()), [{"typed_value": [1]}]))
    assert (error.rule, error.path) == (29, "v.typed_value.list.element")


def test_rule_30_an_array_stands_in_typed_value_with_value_null() -> None:
    elements = [{"typed_value": 1}, {"value": HELLO}, {"value": B1}]
    assert read(shredded(ARRAY, [{"typed_value": elements}, {"typed_value": []}])) == [[1, "hello", {"b": 1}], []]
    assert refused(shredded(ARRAY, [{"value": ONE, "typed_value": []}])).rule == 30


@pytest.mark.parametrize("layout", [pa.large_list, pa.list_view, pa.large_list_view])
def test_rule_30_an_array_may_have_any_layout_of_arrow(layout: Any) -> None:
    rows = [{"typed_value": [{"typed_value": 1}, {"value": B1}]}, {"typed_value": []}, {"typed_value": [{}]}]
    batch = shredded(layout(ARRAY.value_field), rows)
    assert read(batch) == [[1, {"b": 1}], [], [None]]
    assert read(batch.slice(1)) == [[], [None]]


def test_rule_30_an_array_in_value_where_arrays_are_shredded_is_refused() -> None:
    assert refused(shredded(ARRAY, [{"value": bytes([3, 1, 0, 2]) + ONE}])).rule == 30


def test_rule_30_what_is_no_array_stands_in_value() -> None:
    assert read(shredded(ARRAY, [{"value": HELLO}])) == ["hello"]


def test_rules_31_and_26_a_missing_element_reads_as_variant_null() -> None:
    batch = shredded(ARRAY, [{"typed_value": [{"typed_value": 1}, {}]}])
    assert read(batch) == [[1, None]]
    assert [texts(batch, at) for at in range(3)] == [["1"], ["null"], [None]]


def test_rule_32_an_empty_object_has_a_typed_value_of_missing_fields() -> None:
    assert read(shredded(OBJECT, [{"typed_value": BOTH_MISSING}])) == [{}]


def test_rule_32_an_object_in_value_alone_is_refused_where_objects_are_shredded() -> None:
    error = refused(shredded(OBJECT, [{"value": C1}]))
    assert (error.rule, error.path, error.row) == (32, "v.value", 0)


def test_rule_33_an_empty_object_in_value_alone_is_refused_where_objects_are_shredded() -> None:
    assert refused(shredded(OBJECT, [{"value": EMPTY}])).rule == 33


def test_rule_34_a_null_field_group_reads_as_missing() -> None:
    assert read(shredded(OBJECT, [{"typed_value": {"a": None, "b": {"typed_value": 2}}}])) == [{"b": 2}]


def test_rule_35_a_residual_that_holds_a_shredded_field_is_refused() -> None:
    error = refused(shredded(OBJECT, [{"value": B1, "typed_value": BOTH_MISSING}]))
    assert (error.rule, error.path) == (35, "v.value")


def test_rule_36_the_residual_beside_shredded_fields_is_an_object() -> None:
    error = refused(shredded(OBJECT, [{"value": ONE, "typed_value": BOTH_MISSING}]))
    assert (error.rule, error.path) == (36, "v.value")


def test_rule_37_a_field_in_both_is_refused() -> None:
    both = {"value": B1, "typed_value": {"a": {}, "b": {"typed_value": 1}}}
    assert refused(shredded(OBJECT, [both])).rule == 37


def test_rule_38_a_path_through_shredded_objects_does_not_need_the_residuals_above() -> None:
    rows = [{"value": C1, "typed_value": {"a": {"typed_value": 7}, "b": {}}}]
    out = _native.extract(shredded(OBJECT, rows), [Request(("v",), ("a",), pa.int32())])
    assert out.to_pydict() == {"0": [7], "0!": [False]}


def test_rule_39_the_union_is_sorted_by_name_again() -> None:
    typed = pa.struct([("c", LEAF), ("a", LEAF)])
    rows = [{"value": B1, "typed_value": {"c": {"typed_value": 3}, "a": {"typed_value": 1}}}]
    value = _native.unshred(shredded(typed, rows)).column(0).to_pylist()[0]["value"]
    assert value[:5] == bytes([2, 3, 0, 1, 2])


def test_rule_40_nesting_to_any_depth() -> None:
    typed: pa.DataType = pa.int32()
    row: Any = {"typed_value": 1}
    for _ in range(40):
        typed = pa.struct([("a", pa.struct([("value", BINARY), ("typed_value", typed)]))])
        row = {"typed_value": {"a": row}}
    (value,) = read(shredded(typed, [row]))
    depth = 0
    while value != 1:
        value, depth = value["a"], depth + 1
    assert depth == 40


def test_rule_2_a_row_without_metadata_is_refused() -> None:
    assert refused(shredded(pa.int32(), [{"metadata": None, "typed_value": 1}])).rule == 2


def test_rule_1_an_unknown_child_is_refused_and_one_with_an_underscore_ignored() -> None:
    for name, rule in (("other", 1), ("_other", None)):
        column = pa.array([{"metadata": METADATA, "value": ONE, name: 1}])
        batch = pa.record_batch([column], schema=pa.schema([pa.field("v", column.type, metadata=VARIANT)]))
        if rule:
            assert refused(batch).rule == rule
        else:
            assert read(batch) == [1]


def test_an_absent_value_column_is_null_in_every_row() -> None:
    assert read(shredded(pa.int32(), [{"typed_value": 1}, {}], value=False)) == [1, None]


def test_unsorted_ids_in_a_residual_are_sorted_on_the_way() -> None:
    unsorted = bytes([2, 2, 2, 0, 0, 2, 4]) + ONE + TWO  # {"c": 1, "a": 2}
    (value,) = [v["value"] for v in _native.unshred(shredded(pa.int32(), [{"value": unsorted}])).column(0).to_pylist()]
    assert value[:7] == bytes([2, 2, 0, 2, 2, 0, 4])
    assert decode(METADATA, value) == {"c": 1, "a": 2}


def test_user_keys_may_be_called_as_the_layout_calls_its_columns() -> None:
    names = sorted(["", "_id", "list", "metadata", "typed_value", "value"])
    offsets = [sum(map(len, names[:i])) for i in range(len(names) + 1)]
    metadata = bytes([0x11, len(names), *offsets]) + "".join(names).encode()
    typed = pa.struct([(name, LEAF) for name in names])
    rows = [{"typed_value": {name: {"typed_value": i} for i, name in enumerate(names)}}]
    assert read(shredded(typed, rows, metadata=metadata)) == [{name: i for i, name in enumerate(names)}]


def test_wide_objects_and_long_bodies_get_wider_headers() -> None:
    names = [f"k{i:05}" for i in range(300)]
    offsets = [6 * i for i in range(301)]
    metadata = bytes([0x51]) + (300).to_bytes(2, "little") + b"".join(o.to_bytes(2, "little") for o in offsets)
    metadata += "".join(names).encode()
    leaf = pa.struct([("value", BINARY), ("typed_value", pa.string())])
    typed = pa.struct([(name, leaf) for name in names])
    short = {name: {"typed_value": "x"} for name in names}
    long = {name: {"typed_value": "y" * 300} for name in names}
    rows = [{"typed_value": cells} for cells in (short, long, short)]
    assert read(shredded(typed, rows, metadata=metadata)) == [
        dict.fromkeys(names, "x"),
        dict.fromkeys(names, "y" * 300),
        dict.fromkeys(names, "x"),
    ]
