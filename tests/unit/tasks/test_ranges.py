"""Ranges of a sorted job: equal keys in one range, ranges in the order of the keys, evenly cut."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mica
from mica.arrays import to_numpy
from mica.engines import local
from mica.storage import Storage
from mica.tasks.packed import collected
from mica.tasks.ranges import MOST_RANGES, Ranges, finer, plan, sample, sort_indices, weighted
from mica.write import ingest_plan
from mica.write.ingest_options import IngestOptions
from mica.write.inputs import find

ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.sampled_from(["", "a", "aa", "é"])), min_size=1)


def sampled(keys: list[pa.Array], weight: float = 1.0) -> pa.Table:
    return weighted(keys, np.full(len(keys[0]), weight))


def arrays(rows: list[tuple[int | None, str]]) -> list[pa.Array]:
    return [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())]


@given(ROWS, ROWS, st.integers(1, 5), st.booleans())
def test_ranges_follow_the_order_and_equal_keys_stay_together(
    sample: list[tuple[int | None, str]], rows: list[tuple[int | None, str]], count: int, down: bool
) -> None:
    ranges = plan(sampled(arrays(sample)), count, [down, False])
    assert ranges is not None
    assert 1 <= len(ranges) <= count
    keys = arrays(rows)
    found = ranges.of(keys)
    assert set(found.to_pylist()) <= set(range(len(ranges)))
    table = pa.table([*keys, found], ["a", "b", "range"])
    numbers = table.column("range").take(sort_indices(table, [("a", down), ("b", False)])).to_pylist()
    assert numbers == sorted(numbers)
    assert table.group_by(["a", "b"]).aggregate([("range", "count_distinct")]).column(2).unique().to_pylist() == [1]


@pytest.mark.parametrize("down", [False, True])
def test_ranges_are_even_by_weight(down: bool) -> None:
    # The second sample stands for nine times as many rows as the first.
    both = [sampled([pa.array(range(1000))], 1.0), sampled([pa.array(range(1000, 2000))], 9.0)]
    ranges = plan(pa.concat_tables(both), 10, [down])
    assert ranges is not None
    assert len(ranges) == 10
    rows = pa.array([*range(0, 1000, 9), *range(1000, 2000)])
    counts = pc.value_counts(ranges.of([rows])).field("counts").to_pylist()
    assert len(counts) == 10
    assert max(counts) - min(counts) <= 20


def test_ranges_of_documents_are_even_by_their_bytes(tmp_path: Path) -> None:
    size = {key: 3_000 if 500 <= key < 600 else 40 for key in np.random.default_rng(0).permutation(2_000).tolist()}
    lines = (f'{{"k":{key},"x":"{"x" * count}"}}\n' for key, count in size.items())
    (tmp_path / "a.ndjson").write_text("".join(lines))
    splits = find(tmp_path / "a.ndjson")
    options = IngestOptions.of({"sort_by": ["v:k::bigint"]})
    spec = ingest_plan.plan(Storage.open(tmp_path / "t"), None, options).spec
    ranges = plan(collected(sample(spec, splits[0].size, splits)), 8, [False])
    assert ranges is not None
    bytes_of = np.bincount(to_numpy(ranges.of([pa.array(list(size))])), weights=list(size.values()))
    assert len(bytes_of) == 8
    assert max(bytes_of) < 1.5 * min(bytes_of)


def test_no_rows_make_no_ranges_and_equal_rows_one_file() -> None:
    assert plan(None, 4, [False]) is None
    same = plan(sampled([pa.array([7] * 100)]), 4, [False])
    assert same is not None
    assert set(same.of([pa.array([7, 7, 7])]).to_pylist()) == {same.of([pa.array([8])])[0].as_py()}


def test_partition_columns_come_first_and_ascend() -> None:
    ranges = plan(sampled([pa.array(["a", "b"] * 50), pa.array(range(100))]), 2, [True])
    assert isinstance(ranges, Ranges)
    assert ranges.of([pa.array(["a", "b"]), pa.array([0, 99])]).to_pylist() == [0, 1]


@pytest.mark.parametrize("down", [False, True])
def test_rows_are_sorted_as_spark_sorts_them(down: bool) -> None:
    rows = pa.table({"x": [2.0, None, math.nan, -math.inf, 1.0, None], "y": [1, 1, 1, 1, 1, 0]})
    order = sort_indices(rows, [("x", down), ("y", False)])
    found = [repr(value) for value in rows["x"].take(order).to_pylist()]
    ascending = ["None", "None", "-inf", "1.0", "2.0", "nan"]
    assert found == (ascending[::-1] if down else ascending)
    nulls = slice(4, 6) if down else slice(0, 2)
    assert rows["y"].take(order).to_pylist()[nulls] == [0, 1]


def test_ranges_are_neither_too_large_nor_too_many() -> None:
    assert finer(1 << 20, 1) == 1
    assert finer(10 << 30, 4) == 40
    assert finer(10 << 50, 1_000) == MOST_RANGES // 1_000
    assert finer(10 << 30, 10 * MOST_RANGES) == 1


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(
    ("collation", "key"),
    [("UTF8_LCASE", "name"), ("UTF8_BINARY", "(v:n::string) COLLATE UTF8_LCASE DESC"), ("UNICODE_CI", "name")],
)
def test_strings_are_sorted_by_their_collation_as_bounds_are(
    tmp_path: Path, collation: str, key: str, on_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their bytes each file had `a` to `z`: the capitals come before all others, and no file was skipped."""
    monkeypatch.setattr(local, "SORT_BYTES", 0 if on_disk else local.SORT_BYTES)
    names = [case(f"{letter}{i:03}") for i in range(100) for letter in "qbxmé" for case in (str.upper, str.lower)]
    (tmp_path / "a.ndjson").write_text("".join(f'{{"n":"{name}"}}\n' for name in names))
    table = mica.Table.create(tmp_path / "t", f"v VARIANT, name STRING COLLATE {collation}")
    mica.ingest_json(tmp_path / "a.ndjson", table.path, columns={"name": "v:n::string"}, sort_by=[key],
                     target_file_size="1KB")  # fmt: skip
    columns = {"n": "v:n::string", "f": "_metadata.file_path", "i": "_metadata.row_index"}
    rows = mica.Table.open(table.path).scan(columns=columns).to_arrow().to_pylist()
    assert sorted(row["n"] for row in rows) == sorted(names)
    files: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row["i"]):
        files.setdefault(row["f"], []).append(row["n"].lower())
    assert len(files) > 2
    if collation == "UNICODE_CI":  # nearly: é is between b and m
        files = {name: [text.replace("é", "e") for text in texts] for name, texts in files.items()}
    down = key.endswith("DESC")
    found = [text for texts in sorted(files.values(), reverse=down) for text in texts]
    assert found == sorted(found, reverse=down)
