"""Trees of several files as one: sums of rows and bytes, each type named, columns as the table names them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.checking.inspect import inspect_file
from mica.scan.shredded import LOOKED, shredding_of
from mica.scan.table import TableSource
from mica.tasks.parts import parts_of


def test_rows_are_summed_and_types_that_differ_are_named(tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", "v VARIANT, s STRUCT<w: VARIANT>", properties=mapped)
    table.rename_column("v", "value")
    for n in (1, "x", 2):
        table.append([{"value": {"n": n, "o": {"k": i}}, "s": {"w": i}} for i in range(10)])
    source = TableSource(table.snapshot)
    parts = parts_of(source.files(pa.array(range(3))))
    rows, looked = shredding_of(source, parts)
    found = {(row["column"], row["path"]): (row["type"], row["typed_rows"], row["residual_rows"]) for row in rows}
    assert looked == 3
    assert list(found) == sorted(found), "parents are first"
    assert found["value", "$['o']['k']"] == ("bigint", 30, 0)
    assert found["s.w", "$"] == ("bigint", 30, 0)
    type_, typed, residual = found["value", "$['n']"]
    assert (set(type_.split(" or ")), typed, residual) == ({"bigint", "string"}, 30, 0)
    assert shredding_of(source, parts * 50)[1] == LOOKED
    for file in (tmp_path / "t").rglob("*.parquet"):
        file.unlink()
    assert shredding_of(source, parts) == ([], 0)


def test_a_column_with_a_dot_is_not_summed_with_the_field_of_a_struct(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a STRUCT<b: VARIANT>, `a.b` VARIANT")
    table.append([{"a.b": i, "a": {"b": True}} for i in range(10)])
    source = TableSource(table.snapshot)
    rows, _ = shredding_of(source, parts_of(source.files(pa.array([0]))))
    assert [(row["column"], row["type"], row["typed_rows"]) for row in rows] == [
        ("`a.b`", "bigint", 10),
        ("a.b", "boolean", 10),
    ]


@pytest.mark.parametrize("layout", ["standard", "early"])
def test_objects_with_rare_fields_are_typed_and_other_values_beside_them_are_not(tmp_path: Path, layout: str) -> None:
    """Both have a residual: of an object it holds what has no column, of another value all of it."""
    objects = [{"o": {"x": i}} for i in range(300)] + [{"o": {"x": 1, "rare": True}}]
    rows = [*objects, *({"o": "text"} for _ in range(99)), {}, {"o": None}]
    texts, file = pa.table({"v": pa.array(map(json.dumps, rows))}), str(tmp_path / "f.parquet")
    mica.write_parquet(texts, file, shredding={"v": "struct<o: struct<x: bigint>>"}, layout=layout)
    (place,) = [row for row in inspect_file(file) if row["path"] == "$['o']"]
    assert (place["typed_rows"], place["residual_rows"], place["other_rows"]) == (301, 101, 100)
