"""A write keeps every value or fails."""

import pyarrow as pa
import pytest

from mica.errors import UserError
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


def test_nested_not_null() -> None:
    table = parse_ddl("s STRUCT<x: INT NOT NULL>")
    ok = pa.record_batch({"s": pa.array([{"x": 1}, None])})
    assert plan_write(table, ok.schema).apply(ok).to_pylist() == [{"s": {"x": 1}}, {"s": None}]
    bad = pa.record_batch({"s": pa.array([{"x": None}], pa.struct([("x", pa.int32())]))})
    with pytest.raises(UserError, match="NOT NULL"):
        plan_write(table, bad.schema).apply(bad)


def test_lists_without_elements_carry_no_slice() -> None:
    """arrow-rs refuses an empty slice of strings whose first offset is not 0, and so would the kernel."""
    rows = pa.record_batch(
        {"l": pa.array([["ab"], [], None]), "m": pa.array([[("k", "v")], [], []], pa.map_(pa.string(), pa.string()))}
    )
    out = plan_write(parse_ddl("l ARRAY<STRING>, m MAP<STRING, STRING>"), rows.schema).apply(rows.slice(1))
    assert out.to_pylist() == [{"l": [], "m": []}, {"l": None, "m": []}]
    assert [a.offset for a in (out["l"].values, out["m"].keys, out["m"].items)] == [0, 0, 0]
