"""Variants as JSON texts at any depth, of whole columns and of slices."""

from __future__ import annotations

import pyarrow as pa
import pytest

from mica import variant
from mica.readers.variants import json_array, json_type
from mica.schema.types import STRING, VARIANT, ArrayType, DataType, MapType, StructField, StructType

ROWS = [["1", None], None, [], ['{"a":2}'], None, ["[]"]]


def nested() -> dict[DataType, pa.Array]:
    """The rows in a list, a map and a struct, null where they are."""
    values = variant.from_json([text for row in ROWS for text in row or []])
    ends = [0]
    for row in ROWS:
        ends.append(ends[-1] + len(row or []))
    starts = [None if row is None else end for row, end in zip([*ROWS, []], ends, strict=True)]
    offsets = pa.array(starts, pa.int32())
    lists = pa.ListArray.from_arrays(offsets, values)
    keys = pa.array([str(at) for at in range(len(values))])
    return {
        ArrayType(VARIANT): lists,
        MapType(STRING, VARIANT): pa.MapArray.from_arrays(offsets, keys, values),
        StructType((StructField("l", ArrayType(VARIANT)),)): pa.StructArray.from_arrays(
            [lists], ["l"], mask=pa.array([row == [] for row in ROWS])
        ),
    }


@pytest.mark.parametrize("type_", nested(), ids=str)
def test_slices_are_what_the_whole_has_there(type_: DataType) -> None:
    column = nested()[type_]
    whole = json_array(column, type_, "UTC").to_pylist()
    assert str(whole).count("None") == {ArrayType: 3, MapType: 3, StructType: 4}[type(type_)]
    assert '{"a":2}' in str(whole)
    for start in range(len(ROWS)):
        for size in range(len(ROWS) - start + 1):
            found = json_array(column.slice(start, size), type_, "UTC")
            found.validate(full=True)
            assert found.to_pylist() == whole[start : start + size]


def test_values_of_a_map_stay_not_null() -> None:
    type_ = MapType(STRING, VARIANT, value_contains_null=False)
    offsets = pa.array([0, None, 1, 1], pa.int32())
    column = pa.MapArray.from_arrays(offsets, pa.array(["a"]), variant.from_json(["1"]))
    found = json_array(column, type_, "UTC")
    assert found.type == json_type(type_)
    assert not found.type.item_field.nullable
    assert found.to_pylist() == [[("a", "1")], None, []]
