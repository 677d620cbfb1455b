"""What null rows hide comes to no other row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from mica.engines.spark.batches import for_spark
from mica.readers.variants import json_array
from mica.schema import char
from mica.schema.arrow import from_arrow
from mica.schema.lists import with_offsets
from mica.schema.types import STRING, VARIANT, MapType
from mica.tasks.file_columns import aligned
from mica.variant import from_json

WORDS = pa.array([*"abcdefghi"])
STRUCTS = pa.StructArray.from_arrays([WORDS], ["s"])
ENTRIES = pa.StructArray.from_arrays(
    [WORDS, STRUCTS], fields=[pa.field("key", pa.string(), nullable=False), pa.field("value", STRUCTS.type)]
)
VARIANTS = from_json(pa.array([*"123456789"]))
VARIANT_ENTRIES = pa.StructArray.from_arrays(
    [WORDS, VARIANTS], fields=[ENTRIES.type[0], pa.field("value", VARIANTS.type)]
)


def hiding(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Two values a row, of a slice; the second of its four rows is null and hides its two."""
    offsets = np.array([0, 1, 3, 5, 7, 9], np.int64 if pa.types.is_large_list(kind) else np.int32)
    buffers = [pa.py_buffer(bytes([0b11011])), pa.py_buffer(offsets)]
    found = pa.Array.from_buffers(kind, 5, buffers, children=[values]).slice(1)
    found.validate(full=True)
    return found


def of_spark(array: pa.Array) -> pa.Array:
    batch = pa.record_batch([array], names=["a"])
    return for_spark(batch, from_arrow(batch.schema)).column(0)


def of_file(array: pa.Array) -> pa.Array:
    wanted = from_arrow(pa.schema([pa.field("a", array.type)])).fields[0]
    return aligned(pa.field("a", array.type), wanted, "a")(array)


def padded(array: pa.Array) -> pa.Array:
    inside = "struct<s:char(1)>"
    return char.padded(array, f"map<char(1),{inside}>" if pa.types.is_map(array.type) else f"array<{inside}>")


def rebuilt(array: pa.Array) -> pa.Array:
    offsets, shown = with_offsets(array)
    if pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(offsets, shown.keys, shown.items, type=array.type)
    made = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
    return made.from_arrays(offsets, shown.values, type=array.type)


@pytest.mark.parametrize("change", [rebuilt, of_spark, of_file, padded])
@pytest.mark.parametrize("kind", ["list", "map"])
def test_hidden_values_stay_hidden(kind: str, change: Callable[[pa.Array], pa.Array]) -> None:
    array = (
        hiding(pa.list_(STRUCTS.type), STRUCTS)
        if kind == "list"
        else hiding(pa.map_(WORDS.type, STRUCTS.type), ENTRIES)
    )
    found = change(array)
    found.validate(full=True)
    assert found.to_pylist() == array.to_pylist()
    assert [None if row is None else len(row) for row in array.to_pylist()] == [2, None, 2, 2]


@pytest.mark.parametrize(
    "array",
    [hiding(pa.large_list(STRUCTS.type), STRUCTS), hiding(pa.map_(WORDS.type, VARIANTS.type), VARIANT_ENTRIES)],
    ids=["large list", "map of Variants"],
)
def test_values_of_any_type_may_be_hidden(array: pa.Array) -> None:
    found = rebuilt(array)
    found.validate(full=True)
    assert found.equals(array)


def test_variants_under_a_null_map_are_hidden_from_readers() -> None:
    array = hiding(pa.map_(WORDS.type, VARIANTS.type), VARIANT_ENTRIES)
    texts = [[("b", "2"), ("c", "3")], None, [("f", "6"), ("g", "7")], [("h", "8"), ("i", "9")]]
    assert json_array(array, MapType(STRING, VARIANT), "UTC").to_pylist() == texts


def test_arrays_that_hide_nothing_are_returned_as_they_are() -> None:
    for array in (pa.array([[1], None, [2, 3]]), pa.array([[1], []]), pa.array([], pa.list_(pa.int32()))):
        assert with_offsets(array)[1] is array
