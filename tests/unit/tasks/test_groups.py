"""Rows of one partition are brought together, in their order."""

from __future__ import annotations

import pyarrow as pa

from mica.tasks.groups import MAX_OPEN, groups, scattered, together


def test_many_columns_of_many_values_keep_their_rows() -> None:
    rows = 3000
    texts = [[None if (i * (k + 7)) % rows == 5 else str((i * (k + 7)) % rows) for i in range(rows)] for k in range(7)]
    found = {values: indices.to_pylist() for values, indices in groups([pa.array(t, pa.string()) for t in texts])}
    expected: dict[tuple[str | None, ...], list[int]] = {}
    for i, values in enumerate(zip(*texts, strict=True)):
        expected.setdefault(values, []).append(i)
    assert found == expected


def test_rows_keep_their_order_within_a_group() -> None:
    found = [(v, i.to_pylist()) for v, i in groups([pa.array(["b", "a", "b", None]), pa.array(["x", "x", "x", None])])]
    assert found == [(("b", "x"), [0, 2]), (("a", "x"), [1]), ((None, None), [3])]


def test_rows_are_scattered_if_their_partitions_are_more_than_open_files() -> None:
    values = pa.table({"p": [*range(MAX_OPEN - 1), None] * 3, "q": ["x"] * MAX_OPEN * 3})
    assert not scattered(values)
    assert scattered(pa.concat_tables([values, pa.table({"p": [0], "q": ["y"]})]))


def test_rows_of_a_group_follow_each_other_and_are_copied_only_if_they_did_not() -> None:
    rows = pa.record_batch({"p": ["b", "a", "b"], "n": [0, 1, 2]})
    assert together(rows, groups([rows["p"]])).to_pydict() == {"p": ["b", "b", "a"], "n": [0, 2, 1]}
    ordered = rows.take(pa.array([1, 0, 2]))
    assert together(ordered, groups([ordered["p"]])) is ordered
