"""A write keeps every value or fails."""

import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.schema.arrow import variant_field
from mica.schema.ddl import parse_ddl
from mica.schema.evolution import plan_write

TABLE = parse_ddl(
    "a INT, s STRUCT<x: BIGINT, y: STRING>, l ARRAY<DOUBLE>, m MAP<STRING, INT>, d DECIMAL(10,2), v VARIANT, "
    "n STRING NOT NULL"
)
ROWS = pa.record_batch(
    {
        "A": pa.array([1, 2, None]),
        "S": pa.array([{"X": 1}, None, {"X": 3}]),
        "l": pa.array([[1.5], None, [2.0, None]], pa.large_list(pa.float32())),
        "m": pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.int8())),
        "d": pa.array([1, 2, 3]),
        "v": pa.array([{"value": b"\0", "metadata": b"\1\0\0"}, None, {"value": b"\0", "metadata": b"\1\0\0"}]),
        "n": pa.array(["a", "b", "c"]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_names_order_and_types_of_the_table_win(start: int) -> None:
    batch = ROWS.slice(start)
    out = plan_write(TABLE, ROWS.schema).apply(batch)
    out.validate(full=True)
    assert out.schema.names == TABLE.names
    expected = [
        {"a": r["A"], "s": r["S"] and {"x": r["S"]["X"], "y": None}, "l": r["l"], "m": r["m"], "d": r["d"], "v": r["v"],
         "n": r["n"]} for r in batch.to_pylist()
    ]  # fmt: skip
    assert out.to_pylist() == expected


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"a": pa.array([1 << 40]), "n": ["x"]}, "INVALID_VALUE"),
        ({"d": pa.array([12345678901]), "n": ["x"]}, "INVALID_VALUE"),
        ({"n": pa.array([None], pa.string())}, "NULL_IN_NOT_NULL_COLUMN"),
        ({"a": ["5"], "n": ["x"]}, "INCOMPATIBLE_TYPE"),
        ({"a": [1.0], "n": ["x"]}, "INCOMPATIBLE_TYPE"),
        ({"v": [1], "n": ["x"]}, "INCOMPATIBLE_TYPE"),
        ({"a": [[1]], "n": ["x"]}, "INCOMPATIBLE_TYPE"),
        ({"z": [1], "n": ["x"]}, "UNKNOWN_COLUMN"),
        ({"s": pa.array([{"q": 1}]), "n": ["x"]}, "UNKNOWN_COLUMN"),
        ({"a": [1]}, "MISSING_COLUMN"),
        ({"a": [1], "A": [1], "n": ["x"]}, "DUPLICATE_COLUMN"),
    ],
)
def test_refuses(columns: dict[str, object], code: str) -> None:
    batch = pa.record_batch(columns)
    with pytest.raises(UserError) as raised:
        plan_write(TABLE, batch.schema).apply(batch)
    assert raised.value.code == code
    if code == "INVALID_VALUE":
        assert raised.value.context["condition"] == "CAST_OVERFLOW_IN_TABLE_INSERT"


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.int64()), pa.large_list(pa.int32()), pa.list_(pa.int8(), 2), pa.list_view(pa.int64()),
        pa.large_list_view(pa.int16()),
    ],
    ids=str,
)  # fmt: skip
def test_lists_of_any_layout_are_taken(type_: pa.DataType) -> None:
    lists = [[0, 0], [1, 2], None, [3, None]]
    batch = pa.record_batch({"l": pa.array(lists, type_)})
    plan = plan_write(parse_ddl("l ARRAY<INT>"), batch.schema)
    for start in range(4):
        found = plan.apply(batch.slice(start))
        found.validate(full=True)
        assert found.column(0).to_pylist() == lists[start:]


@pytest.mark.parametrize(("large", "column"), [(pa.large_string(), "STRING"), (pa.large_binary(), "BINARY")])
def test_a_slice_of_texts_may_lie_beyond_2_gib_of_others(large: pa.DataType, column: str) -> None:
    data = np.zeros((1 << 31) + 3, np.uint8)  # no memory until it is touched
    data[-3:] = bytearray(b"abc")
    buffers = [None, pa.py_buffer(np.array([0, 1 << 31, (1 << 31) + 1, (1 << 31) + 3])), pa.py_buffer(data)]
    texts = pa.Array.from_buffers(large, 3, buffers)
    lists = pa.LargeListArray.from_arrays(np.arange(4), texts)
    batch = pa.record_batch({"t": texts, "l": lists}).slice(1)
    found = plan_write(parse_ddl(f"t {column}, l ARRAY<{column}>"), batch.schema).apply(batch)
    found.validate(full=True)
    assert [row["t"] for row in found.to_pylist()] == pa.array(["a", "bc"]).cast(found["t"].type).to_pylist()
    assert found["l"].values.equals(found["t"])


@pytest.mark.parametrize("is_null", [False, True])
def test_runs_and_categories_are_values_at_any_depth(is_null: bool) -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["x", "y"]))
    words = pa.DictionaryArray.from_arrays([1, None, 0], pa.array(["x", "y"], pa.string_view()))
    mask = pa.array([False, True, False]) if is_null else None
    structs = pa.StructArray.from_arrays([runs, pa.ListArray.from_arrays([0, 2, 2, 3], words)], ["r", "l"], mask=mask)
    batch = pa.record_batch({"s": structs})
    plan = plan_write(parse_ddl("s STRUCT<r: STRING, l: ARRAY<STRING>>"), batch.schema)
    rows = [{"r": "x", "l": ["y", None]}, None if is_null else {"r": "x", "l": []}, {"r": "y", "l": ["x"]}]
    for start in range(3):
        found = plan.apply(batch.slice(start))
        found.validate(full=True)
        assert found.column(0).to_pylist() == rows[start:]


def test_nulls_without_a_type_fit_every_column_that_may_be_null() -> None:
    table = parse_ddl("i INT, s STRUCT<x: INT>, l ARRAY<INT>, m MAP<INT, INT>, v VARIANT")
    batch = pa.record_batch({name: pa.nulls(2) for name in table.names})
    out = plan_write(table, batch.schema).apply(batch)
    out.validate(full=True)
    assert out.to_pylist() == [dict.fromkeys(table.names)] * 2


def test_decimals_of_fewer_digits_are_kept_and_others_are_refused() -> None:
    for text, type_, kept in [("1.5", (3, 1), True), ("1.25", (5, 3), True), ("1.255", (5, 3), False)]:
        batch = pa.record_batch({"d": pa.array([Decimal(text)], pa.decimal128(*type_))})
        plan = plan_write(parse_ddl("d DECIMAL(4,2)"), batch.schema)
        if kept:
            assert plan.apply(batch).to_pylist() == [{"d": Decimal(text)}]
        else:
            with pytest.raises(UserError, match="does not fit"):
                plan.apply(batch)


def test_a_variant_is_no_struct_of_its_parts() -> None:
    table = parse_ddl("v STRUCT<metadata: BINARY, value: BINARY>")
    with pytest.raises(UserError) as raised:
        plan_write(table, pa.schema([variant_field("v")]))
    assert raised.value.code == "INCOMPATIBLE_TYPE"
    plan_write(table, pa.schema([pa.field("v", variant_field("v").type)]))  # without the mark they are plain parts


def test_nested_not_null() -> None:
    table = parse_ddl("s STRUCT<x: INT NOT NULL>")
    with pytest.raises(UserError) as raised:
        plan_write(parse_ddl("s STRUCT<x: INT NOT NULL, y: INT>"), pa.schema({"s": pa.struct({"y": pa.int32()})}))
    assert raised.value.code == "MISSING_COLUMN"
    ok = pa.record_batch({"s": pa.array([{"x": 1}, None])})
    assert plan_write(table, ok.schema).apply(ok).to_pylist() == [{"s": {"x": 1}}, {"s": None}]
    bad = pa.record_batch({"s": pa.array([{"x": None}], pa.struct([("x", pa.int32())]))})
    with pytest.raises(UserError, match="NOT NULL"):
        plan_write(table, bad.schema).apply(bad)


def test_a_struct_takes_time_in_proportion_to_its_fields() -> None:
    """8 times the fields take 8 times as long, 64 times if each were taken out of the whole struct."""

    def best(fields: int) -> float:
        names = [f"c{n}" for n in range(fields)]
        structs = pa.StructArray.from_arrays([pa.array([1, None], pa.int32())] * fields, names)
        rows = pa.record_batch({"s": structs})
        table = parse_ddl(f"s STRUCT<{', '.join(f'{name}: BIGINT' for name in names)}>")
        plan = plan_write(table, rows.schema)
        taken = []
        for _ in range(3):
            began = time.process_time()
            plan.apply(rows)
            taken.append(time.process_time() - began)
        return min(taken)

    ratios = [best(8000) / best(1000) for _ in range(2)]
    assert min(ratios) <= 24, ratios


def test_lists_without_elements_carry_no_slice() -> None:
    """arrow-rs refuses an empty slice of strings whose first offset is not 0, and so would the kernel."""
    rows = pa.record_batch(
        {"l": pa.array([["ab"], [], None]), "m": pa.array([[("k", "v")], [], []], pa.map_(pa.string(), pa.string()))}
    )
    out = plan_write(parse_ddl("l ARRAY<STRING>, m MAP<STRING, STRING>"), rows.schema).apply(rows.slice(1))
    assert out.to_pylist() == [{"l": [], "m": []}, {"l": None, "m": []}]
    assert [a.offset for a in (out["l"].values, out["m"].keys, out["m"].items)] == [0, 0, 0]


def test_lists_may_all_be_empty_whatever_their_elements_are() -> None:
    """Arrow makes no empty array of views with a dictionary, nor of runs in a struct."""
    words = pa.DictionaryArray.from_arrays([0], pa.array(["x"], pa.string_view()))
    structs = pa.StructArray.from_arrays([pa.RunEndEncodedArray.from_arrays([1], pa.array(["x"]))], ["r"])
    rows = pa.record_batch({n: pa.ListArray.from_arrays([0, None, 1, 1], v) for n, v in (("w", words), ("s", structs))})
    plan = plan_write(parse_ddl("w ARRAY<STRING>, s ARRAY<STRUCT<r: STRING>>"), rows.schema)
    assert plan.apply(rows).to_pylist()[0] == {"w": ["x"], "s": [{"r": "x"}]}
    found = plan.apply(rows.slice(1))
    found.validate(full=True)
    assert found.to_pylist() == [{"w": None, "s": None}, {"w": [], "s": []}]
