"""Converting files from layout to layout: the same values, column by column where the other layout has the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import mica
from tests.early import TEXT, foreign, untyped, values, variants

DOCUMENTS: list[Any] = [
    {"a": 1, "b": {"c": "x"}}, {"a": "odd", "b": {"c": None, "d": {"e": [1]}}, "z": [{"y": 1}]}, [1, {"a": 2}], None,
    ..., {}, {"b": {}}, "text", {"a": 2**40, "l": [1, "two", None, {"m": 3}]},
]  # fmt: skip
SHREDDING = {"v": "struct<a: bigint, b: struct<c: string>, l: array<bigint>>"}


def expected(documents: list[Any] = DOCUMENTS) -> list[Any]:
    return [None if d is ... else d for d in documents]


def test_files_of_mica_move_column_by_column(tmp_path: Path) -> None:
    mica.write_parquet(variants(*DOCUMENTS), tmp_path / "src" / "a.parquet", layout="early", shredding=SHREDDING)
    mica.write_parquet(variants(*DOCUMENTS), tmp_path / "src" / "b.parquet", layout="early", shredding={"v": "bigint"})
    done = mica.convert_files(tmp_path / "src", tmp_path / "table")
    assert (done.rows, done.rebuilt, done.files, done.version) == (2 * len(DOCUMENTS), 0, 2, 0)
    table = mica.Table.open(tmp_path / "table")
    found = table.scan().to_pandas()["v"].tolist()
    assert sorted(map(str, found)) == sorted(map(str, expected() * 2))
    assert not mica.check(table).violations.num_rows
    assert {row["path"] for row in mica.files.inspect_file(str(tmp_path / "table" / table.files()["path"][0].as_py()))}


def test_and_back(tmp_path: Path) -> None:
    mica.write_parquet(variants(*DOCUMENTS), tmp_path / "a.parquet", shredding=SHREDDING)
    done = mica.convert_files(tmp_path / "a.parquet", tmp_path / "early", layout="early")
    assert (done.rows, done.rebuilt, done.version) == (len(DOCUMENTS), 0, None)
    assert values(tmp_path / "early") == expected()
    [path] = (tmp_path / "early").iterdir()
    assert pq.read_schema(path).field("v").type.get_field_index("object") >= 0
    again = mica.convert_files(path, tmp_path / "again", to="parquet")
    assert (again.rebuilt, values(tmp_path / "again")) == (0, expected())
    mica.write_parquet(variants(*DOCUMENTS), tmp_path / "direct.parquet", layout="early", shredding=SHREDDING)
    direct = tmp_path / "direct.parquet"
    assert pq.read_schema(path) == pq.read_schema(direct)
    typed = [pc.struct_field(pq.read_table(p)["v"], ["object", "a", "typed_value"]) for p in (path, direct)]
    assert typed[0] == typed[1]


def test_rows_without_a_place_are_built_anew_and_counted(tmp_path: Path) -> None:
    rows = [
        {"untyped_value": untyped({"a": 5, "b": {"c": "x"}}), "object": None},
        {"untyped_value": untyped({"z": 1}), "object": {"a": {"untyped_value": None, "typed_value": 7}, "b": None}},
        {"untyped_value": untyped({"a": 9}), "object": {"a": None, "b": None}},
        None,
        {"untyped_value": untyped([1]), "object": None},
    ]
    path = foreign(tmp_path / "v.parquet", rows, TEXT)
    done = mica.convert_files(path, tmp_path / "t")
    assert (done.rows, done.rebuilt) == (5, 2)
    table = mica.Table.open(tmp_path / "t")
    documents = [{"a": 5, "b": {"c": "x"}}, {"a": 7, "z": 1}, {"a": 9}, None, [1]]
    assert table.scan().to_pandas()["v"].tolist() == documents
    assert not mica.check(table).violations.num_rows


def test_other_columns_and_mixed_folders_come_along(tmp_path: Path) -> None:
    table = variants({"a": 1}, {"a": 2}).append_column("n", pa.array([1, None], pa.int32()))
    mica.write_parquet(table, tmp_path / "src" / "a.parquet", layout="early", shredding={"v": "struct<a: int>"})
    mica.write_parquet(table, tmp_path / "src" / "b.parquet", shredding={"v": "struct<a: int>"})
    mica.write_parquet(variants(7), tmp_path / "src" / "c.parquet", shredding={"v": None})
    done = mica.convert_files(tmp_path / "src", tmp_path / "t")
    assert (done.rows, done.copied, done.rebuilt) == (5, 2, 0)  # what is in the wanted layout is copied, whole files
    assert "2 rows were copied, 0 built anew, 3 moved" in str(done)
    found = mica.Table.open(tmp_path / "t").scan().to_pandas()
    assert sorted(map(str, found["v"])) == sorted(map(str, [{"a": 1}, {"a": 2}] * 2 + [7]))


def test_variants_inside_structs_move(tmp_path: Path) -> None:
    field = variants().schema.field("v")
    inner = pa.StructArray.from_arrays([variants({"a": 1}, "x").column("v").combine_chunks()], fields=[field])
    table = pa.Table.from_arrays([inner], schema=pa.schema([pa.field("s", pa.struct([field]))]))
    mica.write_parquet(table, tmp_path / "a.parquet", layout="early", shredding={"s.v": "struct<a: int>"})
    done = mica.convert_files(tmp_path / "a.parquet", tmp_path / "t")
    assert done.rebuilt == 0
    found = mica.Table.open(tmp_path / "t").scan().to_pandas()["s"].tolist()
    assert found == [{"v": {"a": 1}}, {"v": "x"}]


def test_what_cannot_be_converted_is_refused(tmp_path: Path) -> None:
    path = foreign(tmp_path / "v.parquet", [{"untyped_value": b"\x01", "object": None}], TEXT)
    with pytest.raises(mica.CorruptDataError):
        mica.convert_files(path, tmp_path / "t")
    assert not (tmp_path / "t" / "_delta_log").exists()
    mica.write_parquet(variants(1), tmp_path / "a.parquet")
    mica.Table.create(tmp_path / "table", "v variant")
    for target, options in (("table", {}), ("table", {"layout": "early"}), ("x", {"layout": "early", "to": "delta"})):
        with pytest.raises(mica.UserError):
            mica.convert_files(tmp_path / "a.parquet", tmp_path / target, **options)
