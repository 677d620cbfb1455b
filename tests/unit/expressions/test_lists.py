"""Functions of arrays and maps, on rows with nulls, of slices, and of rows whose elements NULL hides."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from mica.errors import UserError
from mica.expressions.bind import bind_value
from mica.expressions.evaluate import evaluate
from mica.schema.ddl import parse_ddl

SCHEMA = parse_ddl("a array<int>, w array<string>, r array<double>, m map<string, int>, aa array<array<int>>, n int")
NAN = float("nan")


def rows() -> pa.RecordBatch:
    """Four rows of a slice, the second of which is NULL and has elements."""
    offsets, valid = pa.array([0, 1, 5, 7, 7, 9], pa.int32()), pa.array([False, False, True, False, False])
    ints = pa.ListArray.from_arrays(offsets, pa.array([9, 3, None, 3, 1, 7, 7, 2, 1], pa.int32()), mask=valid)
    return pa.record_batch(
        [
            ints.cast(pa.list_(pa.field("element", pa.int32()))),
            pa.array([["x"], ["b", None, "a"], None, [], ["é"]]),
            pa.array([[], [0.0, -0.0, NAN, None, NAN], None, [], [1.5]]),
            pa.array([[("z", 1)], [("k", 1), ("l", None)], None, [], [("é", 2)]], pa.map_(pa.string(), pa.int32())),
            pa.array([[], [[1], [2, None]], None, [], [[1], None]], pa.list_(pa.list_(pa.int32()))),
            pa.array([0, 2, 1, None, -1], pa.int32()),
        ],
        names=SCHEMA.names,
    ).slice(1)


def values(text: str) -> list[Any]:
    bound, batch = bind_value(text, SCHEMA), rows()
    return evaluate(bound, [batch[leaf.column[0]] for leaf in bound.leaves], num_rows=4).to_pylist()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("array_distinct(a)", [[3, None, 1], None, [], [2, 1]]),
        ("array_compact(a)", [[3, 3, 1], None, [], [2, 1]]),
        ("array_max(a)", [3, None, None, 2]),
        ("array_min(a)", [1, None, None, 1]),
        ("array_max(r)", [NAN, None, None, 1.5]),
        ("array_min(w)", ["a", None, None, "é"]),
        ("array_distinct(r)", [[0.0, NAN, None], None, [], [1.5]]),
        ("array_position(a, 3)", [1, None, 0, 0]),
        ("array_position(a, n)", [0, None, None, 0]),
        ("array_remove(a, 3)", [[None, 1], None, [], [2, 1]]),
        ("array_remove(a, n)", [[3, None, 3, 1], None, None, [2, 1]]),
        ("array_append(a, n)", [[3, None, 3, 1, 2], None, [None], [2, 1, -1]]),
        ("array_prepend(a, n)", [[2, 3, None, 3, 1], None, [None], [-1, 2, 1]]),
        ("array_union(a, array(1, NULL, 4))", [[3, None, 1, 4], None, [1, None, 4], [2, 1, None, 4]]),
        ("array_intersect(a, array(1, NULL))", [[None, 1], None, [], [1]]),
        ("array_except(a, array(1, NULL))", [[3], None, [], [2]]),
        ("arrays_overlap(a, array(4))", [None, None, False, False]),
        ("arrays_overlap(a, array(1))", [True, None, False, True]),
        ("array_repeat(n, 2)", [[2, 2], [1, 1], [None, None], [-1, -1]]),
        ("array_repeat('x', n)", [["x"] * 2, ["x"], None, []]),
        ("array_join(w, '-')", ["b-a", None, "", "é"]),
        ("array_join(w, '-', '?')", ["b-?-a", None, "", "é"]),
        ("sort_array(a)", [[None, 1, 3, 3], None, [], [1, 2]]),
        ("sort_array(a, false)", [[3, 3, 1, None], None, [], [2, 1]]),
        ("array_sort(a)", [[1, 3, 3, None], None, [], [1, 2]]),
        ("reverse(a)", [[1, 3, None, 3], None, [], [1, 2]]),
        ("slice(a, 2, 2)", [[None, 3], None, [], [1]]),
        ("slice(a, -2, 9)", [[3, 1], None, [], [2, 1]]),
        ("flatten(aa)", [[1, 2, None], None, [], None]),
        ("get(a, n)", [3, None, None, None]),
        ("try_element_at(a, n)", [None, None, None, 1]),
        ("map_keys(m)", [["k", "l"], None, [], ["é"]]),
        ("map_values(m)", [[1, None], None, [], [2]]),
        (
            "map_entries(m)",
            [[{"key": "k", "value": 1}, {"key": "l", "value": None}], None, [], [{"key": "é", "value": 2}]],
        ),
        ("try_element_at(m, 'k')", [1, None, None, None]),
        ("map_contains_key(m, 'k')", [True, None, False, False]),
    ],
)
def test_functions_of_arrays(text: str, found: list[Any]) -> None:
    assert repr(values(text)) == repr(found)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("array_distinct(aa)", "TYPE_MISMATCH"),
        ("array_max(m)", "TYPE_MISMATCH"),
        ("array_position(a, 'x')", "TYPE_MISMATCH"),
        ("slice(a, 0, 1)", "INVALID_ARRAY_INDEX"),
        ("slice(a, 1, -1)", "INVALID_ARRAY_INDEX"),
        ("flatten(a)", "TYPE_MISMATCH"),
        ("map_contains_key(m, 1)", "TYPE_MISMATCH"),
        ("array_join(a, ',')", "TYPE_MISMATCH"),
        ("array_union(a, array(1.5))", "TYPE_MISMATCH"),
        ("arrays_overlap(array(1.5), array(1.25))", "TYPE_MISMATCH"),
    ],
)
def test_refuses(text: str, code: str) -> None:
    with pytest.raises(UserError) as raised:
        values(text)
    assert raised.value.code == code
