"""The early shredding layout, read: what its rows may hold, and how its columns are told from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from tests.early import DOCUMENTS, LEAF, TEXT, foreign, untyped, values, variants, written
from tests.parquet_schema import BINARY, NAME, REPEATED, Element, write

# --- what a row may hold ---------------------------------------------------------------------------------------------

ROW = {"untyped_value": None, "object": None}


def leaf(typed: Any = None, left: Any = ...) -> dict[str, Any]:
    return {"untyped_value": None if left is ... else untyped(left), "typed_value": typed}


LEGAL = [
    ({"untyped_value": None, "object": None}, None),
    ({"untyped_value": untyped({"a": 5, "b": {"c": "x"}}), "object": None}, {"a": 5, "b": {"c": "x"}}),
    ({"untyped_value": None, "object": {"a": leaf(7), "b": None}}, {"a": 7}),
    ({"untyped_value": untyped({"z": 1}), "object": {"a": leaf(7), "b": None}}, {"a": 7, "z": 1}),
    ({"untyped_value": untyped({}), "object": {"a": leaf(7), "b": None}}, {"a": 7}),
    # A field that is null in `object` and present in the untyped object is taken from there.
    ({"untyped_value": untyped({"a": 9}), "object": {"a": leaf(), "b": None}}, {"a": 9}),
    ({"untyped_value": untyped({"a": 9, "z": 1}), "object": {"a": None, "b": None}}, {"a": 9, "z": 1}),
    ({"untyped_value": untyped({"b": {"c": 1}}), "object": {"a": leaf(1), "b": None}}, {"a": 1, "b": {"c": 1}}),
    # The pseudocode yields the untyped Variant null.
    ({"untyped_value": None, "object": {"a": leaf(7, None), "b": None}}, {"a": None}),
]


@pytest.mark.parametrize(("row", "expected"), LEGAL)
def test_legal_rows(tmp_path: Path, row: Any, expected: Any) -> None:
    path = foreign(tmp_path / "v.parquet", [row, None], TEXT)
    assert values(path) == [expected, None]
    expected_a = expected.get("a") if isinstance(expected, dict) else None
    scan = mica.read_parquet(path, columns={"a": "v:a::int", "b": "v:b"})
    assert scan.to_arrow()["a"].to_pylist()[0] == expected_a
    assert scan.to_pandas()["b"].tolist()[0] == (expected.get("b") if isinstance(expected, dict) else None)


SHAPES = pa.struct(
    [
        ("untyped_value", pa.binary()),
        ("typed_value", pa.int64()),
        ("object", pa.struct([("a", LEAF)])),
        ("array", pa.list_(LEAF)),
    ]
)


def shapes(**given: Any) -> dict[str, Any]:
    return {"untyped_value": None, "typed_value": None, "object": None, "array": None, **given}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (shapes(typed_value=1), 1),
        (shapes(object={"a": leaf(1)}), {"a": 1}),
        (shapes(array=[leaf(1), leaf(left="x"), leaf()]), [1, "x", None]),
        (shapes(array=[]), []),
        (shapes(untyped_value=untyped([1])), [1]),
        (shapes(), None),
    ],
)
def test_a_level_of_several_shapes_holds_one_a_row(tmp_path: Path, row: Any, expected: Any) -> None:
    path = foreign(tmp_path / "v.parquet", [row], SHAPES)
    assert values(path) == [expected]
    columns = {name: f"try_variant_get(v, '{step}', 'string')" for name, step in (("a", "$.a"), ("i", "$[0]"))}
    first = str(expected[0]) if isinstance(expected, list) and expected else None
    found = mica.read_parquet(path, columns=columns).to_arrow().to_pydict()
    assert found == {"a": ["1" if expected == {"a": 1} else None], "i": [first]}


ILLEGAL = [
    (SHAPES, shapes(typed_value=1, object={"a": leaf(1)})),
    (SHAPES, shapes(typed_value=1, array=[])),
    (SHAPES, shapes(array=[], object={"a": leaf()})),
    (SHAPES, shapes(array=[leaf(1)], untyped_value=untyped(1))),
    (SHAPES, shapes(array=[leaf(1)], untyped_value=untyped(None))),
    (SHAPES, shapes(typed_value=1, untyped_value=untyped(1))),
    (SHAPES, shapes(object={"a": leaf()}, untyped_value=untyped([]))),
    (SHAPES, shapes(object={"a": leaf()}, untyped_value=untyped(None))),
    (SHAPES, shapes(object={"a": leaf(1)}, untyped_value=untyped({"a": 1}))),
    (SHAPES, shapes(array=[leaf(), leaf(1, 2)])),
    (TEXT, {"untyped_value": None, "object": {"a": leaf(1, "x"), "b": None}}),
]


@pytest.mark.parametrize(("type_", "row"), ILLEGAL)
def test_illegal_rows_are_refused_with_path_and_row(tmp_path: Path, type_: pa.DataType, row: Any) -> None:
    fine = {name: untyped(1) if name == "untyped_value" else None for name in row}
    path = foreign(tmp_path / "v.parquet", [fine, fine, row], type_)
    with pytest.raises(mica.CorruptDataError) as caught:
        values(path)
    assert caught.value.code == "MALFORMED_SHREDDING"
    assert caught.value.context["row"] == 2
    assert caught.value.context["path"].startswith("v")
    # An array is not looked into for a field, nor an object for an element.
    step = "$[1]" if row.get("array") and row["typed_value"] is row["untyped_value"] is None else "$.a"
    for text in (f"variant_get(v, '{step}', 'variant')", f"try_variant_get(v, '{step}', 'string')"):
        with pytest.raises(mica.CorruptDataError):
            mica.read_parquet(path, columns={"x": text}).to_arrow()


BROKEN = {
    "empty": b"",
    "metadata cut short": b"\x01\x05",
    "metadata longer than the binary": b"\x01\x01\x00\x63hi",
    "no value": b"\x01\x00\x00",
    "version 2": b"\x02\x00\x00\x00",
    "value cut short": b"\x01\x00\x00\x18\x01",
    "bytes after the value": b"\x01\x00\x00\x00\x00",
    "a field that the metadata lacks": b"\x01\x00\x00\x02\x01\x00\x00\x01\x00",
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_binaries_are_refused(tmp_path: Path, name: str) -> None:
    rows = [None, {"untyped_value": BROKEN[name], "object": None}]
    path = foreign(tmp_path / "v.parquet", rows, TEXT, row_group_size=1)
    for columns in (None, {"x": "v:a"}, {"x": "v:b.c::string"}):
        with pytest.raises(mica.CorruptDataError) as caught:
            mica.read_parquet(path, columns=columns).to_arrow()
        assert caught.value.context["row"] == 1
        assert caught.value.context["path"] == "v.untyped_value"
        assert "row group 1 of" in str(caught.value)
        assert "v.parquet" in str(caught.value)


def test_check_lists_every_row_that_is_refused(tmp_path: Path) -> None:
    fine = shapes(typed_value=1)
    bad = [shapes(typed_value=1, array=[]), shapes(untyped_value=b"\x01\x05"), shapes(object={"a": leaf(1, 2)})]
    path = foreign(tmp_path / "v.parquet", [fine, *bad, fine, None], SHAPES)
    report = mica.check(path)
    found = [(row["kind"], row["path"], row["row"]) for row in report.violations.to_pylist()]
    assert found == [
        ("early_row", "v", 1),
        ("wrong_length", "v.untyped_value", 2),
        ("early_row", "v.object.a", 3),
    ]
    assert not mica.check(written(tmp_path / "w.parquet", *[d for d in DOCUMENTS if d is not ...])).violations.num_rows


# --- telling the layouts apart ---------------------------------------------------------------------------------------


def group(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (group(untyped_value=pa.binary()), "variant"),
        (group(untyped_value=pa.binary(), typed_value=pa.int64()), "variant"),
        (group(object=group(a=LEAF)), "variant"),
        (group(array=pa.list_(LEAF)), "variant"),
        (group(untyped_value=pa.binary(), typed_value=pa.int64(), _metadata_key_paths=pa.int32()), "variant"),
        (group(typed_value=pa.int64()), "struct"),
        (group(untyped_value=pa.string()), "struct"),
        (group(untyped_value=pa.string(), typed_value=pa.int64()), "struct"),
        (group(untyped_value=pa.binary(), note=pa.string()), "struct"),
        (group(object=group(a=pa.int64())), "struct"),
        (group(array=pa.list_(pa.int64())), "struct"),
        (group(object=pa.int64()), "struct"),
    ],
)
def test_columns_are_told_by_their_fields(tmp_path: Path, type_: pa.DataType, found: str) -> None:
    path = foreign(tmp_path / "v.parquet", [None], type_)
    kinds = [type(mica.read_parquet(path, early=early).schema.field("v").type).__name__ for early in (None, False)]
    assert kinds == ["Primitive" if found == "variant" else "StructType", "StructType"]


def test_early_columns_can_be_forced_and_denied(tmp_path: Path) -> None:
    path = foreign(tmp_path / "v.parquet", [{"typed_value": 7}], group(typed_value=pa.int64()))
    assert values(path) == [{"typed_value": 7}]
    assert values(path, early=["v"]) == [7]
    path = foreign(tmp_path / "w.parquet", [{"untyped_value": untyped(1)}], group(untyped_value=pa.binary()))
    assert values(path) == [1]
    assert values(path, early=[]) == values(path, early=False) == [{"untyped_value": untyped(1)}]
    for wrong, code in (("v", "INVALID_ARGUMENT"), (["v", "nope"], "UNKNOWN_COLUMN")):
        with pytest.raises(mica.UserError) as caught:
            mica.read_parquet(path, early=wrong)
        assert caught.value.code == code
    pq.write_table(pa.table({"v": [1]}), tmp_path / "x.parquet")
    with pytest.raises(mica.CorruptDataError):
        mica.read_parquet(tmp_path / "x.parquet", early=["v"])


@pytest.mark.parametrize(
    "type_",
    [
        group(untyped_value=pa.binary(), typed_value=pa.int64(), extra=pa.int64()),
        group(untyped_value=pa.binary(), object=group(a=group(value=pa.binary()))),
        group(untyped_value=pa.binary(), object=group(a=group(_x=pa.int64()))),
        group(untyped_value=pa.binary(), object=group(a=pa.int64())),
        group(untyped_value=pa.binary(), object=pa.int64()),
        group(untyped_value=pa.binary(), array=pa.int64()),
        group(untyped_value=pa.binary(), array=pa.list_(pa.int64())),
        group(untyped_value=pa.binary(), array=LEAF),
        group(untyped_value=pa.binary(), typed_value=pa.list_(pa.int64())),
        group(untyped_value=pa.binary(), typed_value=pa.uint32()),
        group(untyped_value=pa.binary(), metadata=pa.binary(), object=group(a=LEAF)),
        group(untyped_value=pa.list_(pa.binary()), object=group(a=group(untyped_value=pa.list_(pa.binary())))),
    ],
)
def test_unsound_schemas_are_refused_with_file_and_path(tmp_path: Path, type_: pa.DataType) -> None:
    path = foreign(tmp_path / "v.parquet", [None], type_)
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.read_parquet(path, early=["v"])
    assert caught.value.code == "MALFORMED_SHREDDING"
    assert "v.parquet" in str(caught.value)
    assert caught.value.context["path"].startswith("v")


REPEATS = ["v.untyped_value", "v.object", "v.object.a", "v.object.a.typed_value"]


@pytest.mark.parametrize("path", [*REPEATS, "v.object.b > a", "v.object > untyped_value", "v.untyped_value > object"])
def test_repeated_and_double_fields_are_refused(tmp_path: Path, path: str) -> None:
    """Groups that no writer would make: a field that may stand several times, and two of one name."""
    at, _, other = path.partition(" > ")

    def change(elements: dict[str, Element]) -> None:
        if other:
            elements[at].set(NAME, BINARY, other.encode())
        else:
            elements[at].repetition(REPEATED)

    table = pa.table({"v": pa.array([{"untyped_value": None, "object": None}], TEXT)})
    file = write(tmp_path / "v.parquet", table, change, variants=())
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.read_parquet(file, early=["v"]).to_arrow()
    assert "v.parquet" in str(caught.value)
    # A leaf that is called otherwise in the schema than in the row groups is found before the layout is looked at.
    assert caught.value.code == ("CORRUPT_FILE" if path == "v.untyped_value > object" else "MALFORMED_SHREDDING")
    assert caught.value.code == "CORRUPT_FILE" or caught.value.context["path"].startswith("v")


def test_fields_with_an_underscore_are_ignored(tmp_path: Path) -> None:
    type_ = pa.struct([*TEXT, ("_metadata_key_paths", pa.list_(pa.string())), ("_spark_x", pa.int64())])
    row = {"untyped_value": untyped(5), "object": None, "_metadata_key_paths": ["x"], "_spark_x": 1}
    assert values(foreign(tmp_path / "v.parquet", [row], type_)) == [5]


def test_layouts_mix_in_one_folder(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", {"a": 1, "z": [1]})
    written(tmp_path / "b.parquet", {"a": "x"}, shredding={"v": "struct<a: string>"})
    written(tmp_path / "c.parquet", {"a": 3}, shredding={"v": None})
    mica.write_parquet(variants({"a": 4}), tmp_path / "d.parquet")
    row = variants({"a": 5}).column("v").combine_chunks()
    row = row.storage if isinstance(row, pa.ExtensionArray) else row
    spark = pa.StructArray.from_arrays([row.field("value"), row.field("metadata")], ["value", "metadata"])
    pq.write_table(pa.table({"v": spark}), tmp_path / "e.parquet")
    assert values(tmp_path) == [{"a": 1, "z": [1]}, {"a": "x"}, {"a": 3}, {"a": 4}, {"a": 5}]
    found = mica.read_parquet(tmp_path, columns={"a": "v:a::string"}, where="v:a::string != '4'")
    assert found.to_pandas()["a"].tolist() == ["1", "x", "3", "5"]


def test_variants_inside_structs_are_shredded_and_told(tmp_path: Path) -> None:
    column = variants({"a": 1}, {"a": "x"}, None).column("v").combine_chunks()
    field = variants().schema.field("v")
    inner = pa.StructArray.from_arrays([column], fields=[field])
    table = pa.Table.from_arrays([inner], schema=pa.schema([pa.field("s", pa.struct([field]))]))
    path = tmp_path / "v.parquet"
    mica.write_parquet(table, path, layout="early", shredding={"s.v": "struct<a: int>"})
    assert [row["v"] for row in mica.read_parquet(path).to_pandas()["s"]] == [{"a": 1}, {"a": "x"}, None]
    assert mica.read_parquet(path, where="s.v:a::string = 'x'").count() == 1
