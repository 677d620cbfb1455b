"""What mica says of the types in the Variants of its files; Spark's part is in tests/spark/test_late_types.py."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import mica
from mica.schema.arrow import variant_field
from mica.tasks.late_types import TAG
from mica.variant import kernel
from tests.variant_files import EMPTY, ONE, arrays, column, container, leaf, metadata, objects

TIME = bytes([17 << 2]) + (3_600_000_000).to_bytes(8, "little")
NANOS = bytes([18 << 2]) + bytes(8)
UUID = bytes([20 << 2]) + bytes(16)
NAMES = metadata("a")


def batch(array: pa.Array, type_: pa.DataType | None = None) -> pa.RecordBatch:
    """One Variant column, or a column of another type around one."""
    v = variant_field("v").with_type(array.type)
    return pa.record_batch([array], schema=pa.schema([v if type_ is None else pa.field("c", type_)]))


@pytest.mark.parametrize("late", [TIME, NANOS, bytes([19 << 2]) + bytes(8), UUID])
def test_late_types_are_found_wherever_they_stand(late: bytes) -> None:
    inside = container([container([ONE, late])], [0])
    assert kernel.may_hold_late_types(batch(column([inside], names=NAMES)))
    residual = {"value": inside, "typed_value": {"b": {"value": None, "typed_value": 1}}}
    assert kernel.may_hold_late_types(batch(column([residual], objects(b=leaf(pa.int64())), names=NAMES)))
    element = {"value": None, "typed_value": [{"value": late, "typed_value": None}]}
    assert kernel.may_hold_late_types(batch(column([element], arrays(leaf(pa.int64())), names=NAMES)))
    v = variant_field("item").with_type(column([inside], names=NAMES).type)
    rows = pa.ListArray.from_arrays([0, 1], column([inside], names=NAMES), type=pa.list_(v))
    assert kernel.may_hold_late_types(batch(rows, rows.type))


def test_typed_leaves_of_late_types_are_enough() -> None:
    for typed in (pa.time64("us"), pa.timestamp("ns"), pa.binary(16)):
        assert kernel.may_hold_late_types(batch(column([], objects(a=leaf(typed)), names=NAMES)))


def test_other_values_are_no_reason() -> None:
    kept = container([ONE, EMPTY, bytes([16 << 2]) + (1).to_bytes(4, "little") + b"\x50"])
    assert not kernel.may_hold_late_types(batch(column([kept, None], names=NAMES)))
    plain = pa.array([{"value": TIME}], pa.struct([("value", pa.binary())]))
    assert not kernel.may_hold_late_types(batch(plain, plain.type))


def test_children_that_overlap_do_not_multiply_the_work() -> None:
    value = ONE
    for _ in range(60):
        # Two offsets that point at one child: 2**60 nodes to whoever counts them all.
        value = bytes([3 | 3 << 2, 2]) + b"".join(n.to_bytes(4, "little") for n in (0, 0, len(value))) + value
    assert kernel.may_hold_late_types(batch(column([value], names=NAMES)))


def _tags(root: Path) -> list[object]:
    lines = [line for path in sorted((root / "_delta_log").glob("*.json")) for line in path.read_bytes().splitlines()]
    return [(add.get("tags") or {}).get(TAG) for line in lines if (add := orjson.loads(line).get("add")) is not None]


def test_files_say_that_they_hold_none(tmp_path: Path) -> None:
    (tmp_path / "e.ndjson").write_text('{"a": 1}\n{"b": "12:00:00"}\n')
    mica.ingest_json(tmp_path / "e.ndjson", tmp_path / "json")
    assert _tags(tmp_path / "json") == ["no"]
    table = mica.Table.create(tmp_path / "t", "v VARIANT", properties={"delta.enableVariantShredding": "true"})
    for value in (container([ONE], [0]), container([UUID], [0])):
        array = column([value], names=NAMES)
        table.append(batch(array.cast(variant_field("v").type)))
    assert _tags(tmp_path / "t") == ["no", None]
    plain = mica.Table.create(tmp_path / "p", "a INT")
    plain.append(pa.record_batch({"a": pa.array([1], pa.int32())}))
    assert _tags(tmp_path / "p") == [None]
