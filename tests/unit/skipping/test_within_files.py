"""Row ranges from footers and page indexes of files that pyarrow and Spark wrote."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.expressions.bind import bind
from mica.schema.ddl import parse_ddl
from mica.skipping.within_files import interval, verdicts
from mica.variant.kernel import FileReader, Request

SCHEMA = parse_ddl(
    "id bigint, i int, s string, x double, ts timestamp, n decimal(10,2), b boolean, st struct<k: int>, p int, "
    "v variant"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = 1000
    table = pa.table(
        {
            "id": pa.array([None if i < 100 else i for i in range(rows)], pa.int64()),
            "i": pa.array(range(rows), pa.int32()),
            "s": [f"k{i:04}" for i in range(rows)],
            "x": [float(i) if i != 550 else float("nan") for i in range(rows)],
            "ts": pa.array([i * 1000 for i in range(rows)], pa.timestamp("us", "UTC")),
            "n": pa.array(range(rows), pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2)),
            "b": [i >= 500 for i in range(rows)],
            "st": [{"k": i} for i in range(rows)],
        }
    )
    path = tmp_path_factory.mktemp("footer") / "rows.parquet"
    pq.write_table(table, path, row_group_size=100, data_page_size=64, write_batch_size=10, write_page_index=True)
    return str(path)


def ranges(path: str, where: str, *, pages: bool = False, part: int | None = 1) -> list[tuple[int, int]]:
    bound = bind(where, SCHEMA, partition_columns=["p"])
    columns = {i: str(i) for i, leaf in enumerate(bound.leaves) if not leaf.partition}
    items = [replace(bound.leaves[i].request(), name=name) for i, name in columns.items()]
    found = FileReader(path=path, name=path).bounds(items, pages=pages)
    constants = {i: pa.scalar(part, pa.int32()) for i, leaf in enumerate(bound.leaves) if leaf.partition}
    return verdicts(bound, found, columns, constants).kept


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 250", [(200, 300)]), ("id > 850 or i < 50", [(0, 100), (800, 1000)]), ("id is null", [(0, 100)]),
        ("id is not null and i < 200", [(100, 200)]), ("s = 'k0450'", [(400, 500)]), ("s >= 'k09'", [(900, 1000)]),
        ("x < 100", [(0, 100)]), ("x = 550e0", [(500, 600)]), ("x > 950", [(0, 1000)]), ("n = 42.5", [(0, 100)]),
        ("i = 42.5", [(0, 100)]), ("ts < '1970-01-01 00:00:00.05'", [(0, 100)]),
        ("st.k between 100 and 199", [(100, 200)]),
        ("p = 2", []), ("p = 1 and id = 250", [(200, 300)]), ("id = 5000", []), ("true", [(0, 1000)]),
    ],
)  # fmt: skip
def test_row_groups(path: str, where: str, expected: list[tuple[int, int]]) -> None:
    assert ranges(path, where) == expected


def test_pages_are_finer(path: str) -> None:
    (found,) = ranges(path, "i = 250", pages=True)
    assert found[0] <= 250 < found[1]
    assert found[1] - found[0] < 100


def test_a_missing_column_is_null(path: str) -> None:
    bound = bind("i = 1 and p is null", SCHEMA)
    found = FileReader(path=path, name=path).bounds([Request(("i",), name="i")])
    assert verdicts(bound, found, {0: "i"}, {1: pa.scalar(None, pa.int32())}).kept == [(0, 100)]


# --- paths, and bounds that say less than they seem to

#: The metadata of a Variant whose only key is `a`.
KEY = b"\x01\x01\x00\x01a"
SEVEN = b"\x0c\x07"


def shredded(path: Path, values: list[Any], type_: pa.DataType, left: dict[int, bytes] | None = None) -> str:
    """A file of row groups of ten rows, in which the column `v` has only the path `a`."""
    rows = len(values)
    residual = pa.array([(left or {}).get(i) for i in range(rows)], pa.binary())
    a = pa.StructArray.from_arrays([residual, pa.array(values, type_)], ["value", "typed_value"])
    typed = pa.StructArray.from_arrays([a], ["a"])
    parts = [pa.array([KEY] * rows), pa.nulls(rows, pa.binary()), typed]
    v = pa.StructArray.from_arrays(parts, ["metadata", "value", "typed_value"])
    pq.write_table(pa.table({"v": v}), path, row_group_size=10)
    return str(path)


def test_a_path_in_its_column(tmp_path: Path) -> None:
    path = shredded(tmp_path / "a.parquet", [2**40 + i for i in range(20)], pa.int64())
    assert ranges(path, "v:a::bigint = 1099511627777") == [(0, 10)]
    assert ranges(path, "v:a::bigint is null") == [(0, 20)]
    assert ranges(path, "try_variant_get(v, '$.a', 'int') is null") == [(0, 20)]  # the cast gives null


def test_rows_beside_the_column_of_a_path_keep_their_row_group(tmp_path: Path) -> None:
    values = [None if i == 3 else i for i in range(20)]
    path = shredded(tmp_path / "a.parquet", values, pa.int64(), {3: SEVEN})
    assert ranges(path, "v:a::bigint = 1000") == [(0, 10)]
    assert ranges(path, "v:a::bigint = 15") == [(0, 20)]


def test_texts_say_nothing_of_numbers(tmp_path: Path) -> None:
    path = shredded(tmp_path / "a.parquet", [f"{i}" for i in range(10, 30)], pa.string())
    assert ranges(path, "v:a::bigint = 100") == [(0, 20)]
    assert ranges(path, "v:a::string = '100'") == [(0, 10)]
    assert ranges(path, "v:a::string = '7'") == []
    assert ranges(path, "v:a::boolean") == [(0, 20)]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_every_unit(tmp_path: Path, unit: str) -> None:
    seconds = pa.array(range(20), pa.timestamp("s", "UTC"))
    pq.write_table(pa.table({"ts": seconds.cast(pa.timestamp(unit, "UTC"))}), tmp_path / "t.parquet", row_group_size=10)
    assert ranges(str(tmp_path / "t.parquet"), "ts < '1970-01-01 00:00:05'") == [(0, 10)]


def test_times_finer_than_microseconds_are_not_used(tmp_path: Path) -> None:
    times = pa.array([1, 1001, 2002], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"ts": times}), tmp_path / "t.parquet", row_group_size=1)
    assert ranges(str(tmp_path / "t.parquet"), "ts < '1960-01-01'") == [(0, 3)]


def test_a_bound_that_is_not_usable_takes_the_other_with_it() -> None:
    leaf = bind("id = 1", SCHEMA).leaves[0]
    one = {"min": 5, "null_count": 0}
    column = pa.array(
        [{**one, "max": None, "usable": False}, {**one, "max": 7, "usable": True}],
        pa.struct([("min", pa.int64()), ("max", pa.int64()), ("null_count", pa.int64()), ("usable", pa.bool_())]),
    )
    found = interval(leaf, column, pa.array([10, 10]), "UTC")
    assert found.low.to_pylist() == [None, 5]
