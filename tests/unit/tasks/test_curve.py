"""Rows along a Hilbert curve: neighbours are neighbours, and every value has a place."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from mica.tasks.curve import Dimension, bits_for, hilbert
from mica.tasks.ranges import sort_indices


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 5), (2, 3), (3, 2), (4, 2), (2, 1), (5, 1)])
def test_the_curve_visits_each_cell_once_and_goes_from_neighbour_to_neighbour(dimensions: int, bits: int) -> None:
    cells = np.array(list(itertools.product(range(1 << bits), repeat=dimensions)), np.uint64).T
    places = hilbert(list(cells), bits)
    assert sorted(places.tolist()) == list(range(1 << bits * dimensions))
    steps = np.abs(np.diff(cells[:, np.argsort(places)].astype(int), axis=1)).sum(axis=0)
    assert set(steps.tolist()) == {1}


def test_places_fit_an_integer() -> None:
    assert [bits_for(count) for count in (1, 2, 6, 7, 16, 62)] == [10, 10, 10, 8, 3, 1]
    far = [np.array([1023], np.uint64)] * 6
    assert 0 <= int(hilbert(far, 10)[0]) < 1 << 62


def test_each_value_of_a_path_has_a_place_by_its_type() -> None:
    types = ["STRING", None, "BIGINT", "VOID", "OBJECT<a: BIGINT>", "DECIMAL(3,1)", "TIMESTAMP", "STRING"]
    batch = pa.record_batch({
        "t": pa.array(types), "n": pa.array([7.0, None, 5.0, None, None, 2.5, None, None]),
        "s": pa.array(["7", None, "5", None, "{}", "2.5", "2020", "b"]),
        "w": pa.array([None, None, None, None, None, None, 5, None], pa.timestamp("us", "UTC")),
    })  # fmt: skip
    keys = Dimension(("t", "n", "s", "w"), variant=True).keys(batch)
    names = [str(i) for i in range(len(keys))]
    order = sort_indices(pa.table(keys, names), [(name, False) for name in names]).to_pylist()
    assert [types[i] for i in order] == [
        None, "VOID", "DECIMAL(3,1)", "BIGINT", "STRING", "STRING", "TIMESTAMP", "OBJECT<a: BIGINT>",
    ]  # fmt: skip


def test_strings_are_ordered_by_their_collation() -> None:
    batch = pa.record_batch({"s": pa.array(["b", "Ä", None])})
    assert Dimension(("s",)).keys(batch)[0].to_pylist() == ["b", "Ä", None]
    assert Dimension(("s",), collation="icu.UNICODE").keys(batch)[0].to_pylist() == ["b", "a", None]
    assert Dimension(("s",), collation="spark.UTF8_LCASE").keys(batch)[0].to_pylist() == ["b", "ä", None]
