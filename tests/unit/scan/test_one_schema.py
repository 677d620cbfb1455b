"""One schema for files that each have their own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import UserError
from mica.scan.one_schema import one_schema
from mica.schema.ddl import parse_ddl


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["a INT NOT NULL", "a INT NOT NULL"], "a INT NOT NULL"),
        (["a INT NOT NULL", "b INT NOT NULL"], "a INT, b INT"),
        (["a INT", "A INT, b INT"], "a INT, b INT"),
        (["a VOID", "a INT"], "a INT"),
        (["a INT NOT NULL", "a VOID"], "a INT"),
        (["o STRUCT<a: INT NOT NULL>", "o STRUCT<b: STRING, A: INT>"], "o STRUCT<a: INT, b: STRING>"),
        (["o STRUCT<a: INT NOT NULL>", "o STRUCT<a: INT NOT NULL>"], "o STRUCT<a: INT NOT NULL>"),
        (["l ARRAY<STRUCT<a: INT>>", "l ARRAY<STRUCT<b: INT>>"], "l ARRAY<STRUCT<a: INT, b: INT>>"),
        (["m MAP<STRING, VOID>", "m MAP<STRING, INT>"], "m MAP<STRING, INT>"),
        (["v VARIANT", "v STRUCT<metadata: BINARY, value: BINARY>"], "v VARIANT"),
        (["s STRUCT<v: VARIANT>", "s STRUCT<v: VARIANT, x: INT>"], "s STRUCT<v: VARIANT, x: INT>"),
        (["p INT", "P STRING"], "p INT"),
    ],
)
def test_one_for_all(files: list[str], found: str) -> None:
    merged = one_schema([f"{i}.parquet" for i in range(len(files))], [parse_ddl(text) for text in files], {"p"})
    assert merged == parse_ddl(found)


@pytest.mark.parametrize(
    "files",
    [
        ["a INT", "a BIGINT"],
        ["a INT", "A STRING"],
        ["o STRUCT<a: INT>", "o STRUCT<a: STRING>"],
        ["o STRUCT<a: INT>", "o ARRAY<INT>"],
        ["l ARRAY<INT>", "l ARRAY<DATE>"],
        ["t TIMESTAMP", "t TIMESTAMP_NTZ"],
        ["v VOID", "v VARIANT"],
    ],
)
def test_none_for_types_that_differ(files: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        one_schema(["0.parquet", "1.parquet"], [parse_ddl(text) for text in files], ())
    assert caught.value.code == "INCOMPATIBLE_FILES"
    assert "0.parquet" in caught.value.message
    assert "1.parquet" in caught.value.message


@pytest.mark.parametrize(
    ("files", "code"),
    [
        (["a INT", "A INT"], "DUPLICATE_COLUMN"),
        (["o STRUCT<a: INT>", "o STRUCT<A: INT>"], "INCOMPATIBLE_FILES"),
    ],
)
def test_what_only_a_reader_may_take_for_one(files: list[str], code: str) -> None:
    schemas = [parse_ddl(text) for text in files]
    one_schema(["0.parquet", "1.parquet"], schemas, ())
    with pytest.raises(UserError) as caught:
        one_schema(["0.parquet", "1.parquet"], schemas, (), exact=True)
    assert caught.value.code == code


def test_nulls_in_the_elements_of_one_file(tmp_path: Path) -> None:
    """An array without nulls, as Spark writes `array(1)`, beside one that may have them."""
    strict = pa.list_(pa.field("element", pa.int32(), nullable=False))
    pq.write_table(pa.table({"l": pa.array([[1]], strict)}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"l": pa.array([[None]], pa.list_(pa.int32()))}), tmp_path / "b.parquet")
    assert mica.read_parquet(tmp_path).to_arrow()["l"].to_pylist() == [[1], [None]]


def test_fields_that_only_some_files_have(tmp_path: Path) -> None:
    rows = [{"id": 1, "o": {"a": 1}, "n": None}, {"id": 2, "o": {"b": "x", "a": 2}, "n": 7}, {"ID": 3, "o": {"a": 3}}]
    for number, row in enumerate(rows):
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"{number}.parquet")
    expected = [(1, {"a": 1, "b": None}, None), (2, {"a": 2, "b": "x"}, 7), (3, {"a": 3, "b": None}, None)]
    found = mica.read_parquet(tmp_path).to_arrow().to_pylist()
    assert [(row["id"], row["o"], row["n"]) for row in found] == expected
    for convert in (mica.Table.convert_to_delta, lambda path: mica.convert_files(path, path / "t")):
        with pytest.raises(UserError) as caught:
            convert(tmp_path)
        assert caught.value.code in ("DUPLICATE_COLUMN", "UNSUPPORTED_TYPE")
    assert mica.read_parquet(tmp_path, where="o.b = 'x' AND n = 7").count() == 1
    assert mica.read_parquet(tmp_path, where="o.b IS NULL").count() == 2
    del rows[0]["n"]  # a column of nulls is none for a table
    rows[2]["id"] = rows[2].pop("ID")
    for number, row in enumerate(rows):
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"{number}.parquet")
    mica.convert_files(tmp_path, tmp_path / "_new")
    for table in (mica.Table.open(tmp_path / "_new"), mica.Table.convert_to_delta(tmp_path)):
        found = table.to_arrow().sort_by("id").to_pylist()
        assert [(row["id"], row["o"], row["n"]) for row in found] == expected
        assert table.scan(where="o.b IS NULL").count() == 2


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_variants_beside_other_fields(tmp_path: Path, order: tuple[int, ...]) -> None:
    """Conversions move such columns, whichever file is first."""
    kinds = [("x: INT", {"x": 0}), ("x: INT, v: VARIANT", {"x": 1, "v": {"a": 1}}), ("v: VARIANT", {"v": {"a": 2}})]
    files = [tmp_path / f"{number}.parquet" for number in order]
    for file, (fields, row) in zip(files, kinds, strict=True):
        made = mica.Table.create(tmp_path / f"of {file.stem}", f"s STRUCT<{fields}>")
        made.append([{"s": row}])
        mica.write_parquet(made.to_arrow(), file, layout="early" if "x" in row else "standard")
    mica.convert_files(files, tmp_path / "new")
    columns, expected = {"x": "s.x", "a": "s.v:a::int"}, {(0, None), (1, 1), (None, 2)}
    for found in (mica.read_parquet(files, columns), mica.Table.open(tmp_path / "new").scan(columns=columns)):
        assert {(row["x"], row["a"]) for row in found.to_arrow().to_pylist()} == expected
    assert mica.Table.open(tmp_path / "new").scan(where="s.v:a IS NULL").count() == 1


def test_a_column_of_nulls_in_one_file_takes_any_type(tmp_path: Path) -> None:
    """pandas writes a column of None as one without a type."""
    pq.write_table(pa.table({name: pa.nulls(1) for name in "olm"}), tmp_path / "a.parquet")
    row = {"o": {"x": 1}, "l": [1], "m": [("k", 1)]}
    types = [pa.struct([("x", pa.int64())]), pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())]
    full = {name: pa.array([row[name]], type_) for name, type_ in zip(row, types, strict=True)}
    pq.write_table(pa.table(full), tmp_path / "b.parquet")
    assert mica.read_parquet(tmp_path).to_arrow().to_pylist() == [dict.fromkeys(row), row]
    for where in ("o.x = 1", "l[0] = 1", "m['k'] = 1", "o IS NOT NULL"):
        assert mica.read_parquet(tmp_path, where=where).count() == 1, where


def test_fields_that_differ_only_in_case_within_a_file_are_told_apart(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"a": 1, "A": 2}]}), tmp_path / "0.parquet")
    assert mica.read_parquet(tmp_path).to_arrow().to_pydict() == {"s": [{"a": 1, "A": 2}]}
    pq.write_table(pa.table({"s": [{"a": 3}]}), tmp_path / "1.parquet")
    with pytest.raises(UserError) as caught:
        mica.read_parquet(tmp_path)
    assert caught.value.code == "INCOMPATIBLE_FILES"


def test_a_field_of_nulls_alone_beside_a_null_struct(tmp_path: Path) -> None:
    of_nulls = pa.array([{"x": 1, "z": None}, None], pa.struct([("x", pa.int64()), ("z", pa.null())]))
    pq.write_table(pa.table({"s": of_nulls}), tmp_path / "0.parquet")
    scan = mica.read_parquet(tmp_path, where="s.z IS NULL")
    assert scan.to_arrow().to_pylist() == [{"s": {"x": 1, "z": None}}, {"s": None}]
    pq.write_table(pa.table({"s": [{"x": 2, "z": "a"}]}), tmp_path / "1.parquet")
    assert mica.read_parquet(tmp_path, columns={"z": "s.z"}).to_arrow()["z"].to_pylist() == [None, None, "a"]
