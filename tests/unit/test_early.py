"""The early shredding layout: the examples of its text, what its rows may hold, and how its columns are told."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from tests.early import LEAF, TEXT, foreign, untyped, values, variants

SHREDDING = {"v": "struct<a: bigint, b: struct<c: string>>"}


def written(path: Path, *documents: Any, shredding: Any = None, **options: Any) -> Path:
    mica.write_parquet(variants(*documents), path, layout="early", shredding=shredding or SHREDDING, **options)
    return path


def stored(path: Path) -> list[Any]:
    rows: list[Any] = pq.read_table(path).column("v").to_pylist()
    return rows


def at(row: Any, *names: str) -> Any:
    for name in names:
        if row is None:
            return None
        row = row[name]
    return row


# --- "Parquet Example": the mapping table, row by row ----------------------------------------------------------------

TABLE = [
    ({"a": 123, "b": {"c": "hello"}}, None, None, "typed_value", "typed_value"),
    ({"a": 1.23, "b": {"c": "123"}}, None, None, "untyped_value", "typed_value"),
    ({"a": [1, 2, 3], "b": {"c": None}}, None, None, "untyped_value", "untyped_value"),
    ({"a": 123, "c": 456}, {"c": 456}, None, "typed_value", None),
    ({"a": 123, "b": {"c": "hello", "d": 456}}, None, {"d": 456}, "typed_value", "typed_value"),
    ([{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}],) * 2 + (None, None, None),
]


@pytest.mark.parametrize(("document", "top", "below_b", "a", "c"), TABLE)
def test_the_mapping_table_of_the_text(
    tmp_path: Path, document: Any, top: Any, below_b: Any, a: str | None, c: str | None
) -> None:
    path = written(tmp_path / "v.parquet", document)
    [row] = stored(path)
    for found, left_over in ((at(row, "untyped_value"), top), (at(row, "object", "b", "untyped_value"), below_b)):
        assert (found is None) == (left_over is None)
        if left_over is not None:
            assert found == untyped_of(left_over)
    for leaf, set_ in ((at(row, "object", "a"), a), (at(row, "object", "b", "object", "c"), c)):
        assert [name for name, value in (leaf or {}).items() if value is not None] == ([set_] if set_ else [])
    assert values(path) == [decimals(document)]


def untyped_of(document: Any) -> bytes:
    """As mica writes it: the names of one object in the order of their first sight, unsorted where there are any."""
    sorted_ = untyped(document)
    return bytes([sorted_[0] & ~0x10, *sorted_[1:]]) if sorted_[1] else sorted_


def decimals(document: Any) -> Any:
    return {**document, "a": Decimal("1.23")} if isinstance(document, dict) and document["a"] == 1.23 else document


def test_the_schema_is_the_one_of_the_text(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", {})
    assert pq.read_schema(path).field("v").type == TEXT
    schema = pq.ParquetFile(path).schema
    assert schema.column(1).max_definition_level == 4  # v, object, a and untyped_value: all optional


NESTED = [{"a": [1, 2, 3], "b": 100}, {"a": [4, 5, 6], "b": 200}]
NESTED_SCHEMA = {"v": "array<struct<a: array<bigint>, b: bigint>>"}


def test_the_nested_example_of_the_text(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", NESTED, shredding=NESTED_SCHEMA)
    leaf = pa.struct([("untyped_value", pa.binary()), ("typed_value", pa.int64())])
    inner = pa.struct([("untyped_value", pa.binary()), ("array", pa.list_(pa.field("element", leaf)))])
    element = pa.struct([("untyped_value", pa.binary()), ("object", pa.struct([("a", inner), ("b", leaf)]))])
    expected = pa.struct([("untyped_value", pa.binary()), ("array", pa.list_(pa.field("element", element)))])
    assert str(pq.read_schema(path).field("v").type) == str(expected)
    columns = {column.path for column in pq.ParquetFile(path).schema}
    assert "v.array.list.element.object.a.array.list.element.typed_value" in columns
    assert values(path) == [NESTED]


def test_an_array_with_unexpected_elements(tmp_path: Path) -> None:
    document = [{**NESTED[0], "c": "unexpected"}, NESTED[1], "not an object"]
    path = written(tmp_path / "v.parquet", document, shredding=NESTED_SCHEMA)
    [row] = stored(path)
    found = [element["untyped_value"] for element in row["array"]]
    assert found == [untyped_of({"c": "unexpected"}), None, untyped("not an object")]
    assert values(path) == [document]


def test_the_binary_of_the_figure(tmp_path: Path) -> None:
    figure = bytes([0x01, 0x01, 0x00, 0x02]) + b"hi"
    value = bytes([0x02, 0x01, 0x00, 0x00, 0x02, 0x0C, 0x2A])  # {0: int8 42}
    path = foreign(tmp_path / "v.parquet", [{"untyped_value": figure + value, "object": None}], TEXT)
    assert values(path) == [{"hi": 42}]


# --- shredding semantics ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "type_", "typed"),
    [
        ("123", "decimal(9,2)", Decimal("123.00")),
        ("1.23", "bigint", None),
        ("1.00", "int", 1),
        ('"123"', "bigint", None),
        ("123", "string", None),
        ("1e0", "bigint", None),
        ("123", "double", None),
        ("1e0", "float", None),
        ("128", "tinyint", None),
        ("true", "boolean", True),
        ("null", "bigint", None),
        ('"2024-01-01"', "date", None),
    ],
)
def test_numbers_are_widened_where_nothing_is_lost(tmp_path: Path, text: str, type_: str, typed: Any) -> None:
    column = mica.variant.from_json([f'{{"a": {text}}}'])
    table = pa.Table.from_arrays([column], schema=variants().schema)
    mica.write_parquet(table, tmp_path / "v.parquet", layout="early", shredding={"v": f"struct<a: {type_}>"})
    [row] = stored(tmp_path / "v.parquet")
    assert row["object"]["a"]["typed_value"] == typed
    assert (row["object"]["a"]["untyped_value"] is None) == (typed is not None)
    before = pa.Table.from_arrays([column], schema=variants().schema)
    assert values(tmp_path / "v.parquet") == mica.convert.to_pandas(before, _schema())["v"].tolist()


def _schema() -> Any:
    from mica.schema.arrow import from_arrow

    return from_arrow(variants().schema)


def test_a_decimal_is_printed_as_the_number_that_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", 123, {"a": 123}, shredding={"v": "decimal(9,2)"})
    found = mica.read_parquet(path, columns={"t": "cast(v as string)"}).to_pandas()["t"].tolist()
    assert found == ["123", '{"a":123}']


DOCUMENTS = [
    {}, [], [[], {}], {"a": {}, "b": []}, {"b": {}}, {"b": {"c": None}}, [None, {"a": None}, [None]], None, ..., 0, "",
    {"a": 1, "b": {"c": "x", "d": {"e": [1, {"f": None}]}}, "g": {"a": 1}}, {"": {"": ""}}, {"é\U0001f600": 1},
]  # fmt: skip


@pytest.mark.parametrize("schema", [None, "struct<a: bigint, b: struct<c: string>>", "array<array<bigint>>", "bigint"])
def test_empty_and_null_things_come_back(tmp_path: Path, schema: str | None) -> None:
    path = tmp_path / "v.parquet"
    mica.write_parquet(variants(*DOCUMENTS), path, layout="early", shredding={"v": schema} if schema else None)
    assert values(path) == [None if d is ... else d for d in DOCUMENTS]
    nulls = mica.read_parquet(path, columns={"n": "v is null"}).to_pandas()["n"].tolist()
    assert nulls == [d is ... for d in DOCUMENTS]


USER_KEYS = [
    "_id",
    "_spark_x",
    "typed_value",
    "untyped_value",
    "object",
    "array",
    "list",
    "element",
    "",
    "a.b",
    "value",
]


def test_children_of_object_are_keys_of_users(tmp_path: Path) -> None:
    shredding = {"v": pa.struct([(key, pa.int64()) for key in USER_KEYS])}
    documents = [{key: i for i, key in enumerate(USER_KEYS)}, {"_id": "x", "object": {"list": [1]}, "metadata": 2}]
    path = written(tmp_path / "v.parquet", *documents, shredding=shredding)
    assert values(path) == documents
    assert set(stored(path)[0]["object"]) == set(USER_KEYS)
    for i, key in enumerate(USER_KEYS):
        scan = mica.read_parquet(path, columns={"k": f"try_variant_get(v, '$[\"{key}\"]', 'int')"})
        assert scan.to_pandas()["k"].tolist()[0] == i


LEAVES = {
    pa.bool_(): True,
    pa.int8(): -3,
    pa.int16(): 300,
    pa.int32(): 1 << 30,
    pa.int64(): 1 << 60,
    pa.float32(): 0.5,
    pa.float64(): 0.1,
    pa.decimal128(9, 2): Decimal("1.25"),
    pa.decimal128(18, 2): Decimal("1234567890.25"),
    pa.decimal128(38, 10): Decimal("1234567890123456789.0123456789"),
    pa.date32(): dt.date(2024, 1, 2),
    pa.timestamp("us", "UTC"): dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
    pa.timestamp("us"): dt.datetime(2024, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001 - it has no zone
    pa.time64("us"): dt.time(1, 2, 3),
    pa.string(): "x",
    pa.binary(): b"x",
}


@pytest.mark.parametrize("type_", LEAVES)
def test_every_leaf_type_is_read_and_written(tmp_path: Path, type_: pa.DataType) -> None:
    typed = pa.struct([("untyped_value", pa.binary()), ("typed_value", type_)])
    path = foreign(tmp_path / "v.parquet", [{"untyped_value": None, "typed_value": LEAVES[type_]}], typed)
    assert values(path) == [LEAVES[type_]]
    again = tmp_path / "w.parquet"
    mica.write_parquet(mica.read_parquet(path).to_arrow(), again, layout="early", shredding={"v": type_})
    assert stored(again) == stored(path)
    assert values(again) == [LEAVES[type_]]


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
    assert scan.to_pandas()["a"].tolist()[0] == expected_a or expected_a is None
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
    path = foreign(tmp_path / "v.parquet", rows, TEXT)
    for columns in (None, {"x": "v:a"}, {"x": "v:b.c::string"}):
        with pytest.raises(mica.CorruptDataError) as caught:
            mica.read_parquet(path, columns=columns).to_arrow()
        assert caught.value.context["row"] == 1
        assert "v.parquet" in str(caught.value)


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
    with pytest.raises(mica.UserError):
        mica.read_parquet(path, early="v")
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


# --- without untyped_value -------------------------------------------------------------------------------------------


def test_untyped_values_are_left_out_where_every_row_fits(tmp_path: Path) -> None:
    documents = [{"a": i, "b": {"c": "x"}, "d": [i]} for i in range(10)] + [{"b": {"c": 1}}]
    shredding = {"v": "struct<a: bigint, b: struct<c: string>, d: array<bigint>>"}
    path = written(tmp_path / "v.parquet", *documents, shredding=shredding, untyped="where needed")
    columns = [column.path for column in pq.ParquetFile(path).schema]
    assert [c for c in columns if c.endswith("untyped_value")] == ["v.object.b.object.c.untyped_value"]
    assert values(path) == documents


def test_a_late_row_that_does_not_fit_fails_the_write(tmp_path: Path) -> None:
    documents = [{"a": 1, "d": [1]}] * 20_000 + [{"a": 1, "d": [1, "x"]}]
    with pytest.raises(mica.UserError) as caught:
        written(
            tmp_path / "v.parquet", *documents, shredding={"v": "struct<a: int, d: array<int>>"}, untyped="where needed"
        )
    assert caught.value.code == "DOES_NOT_FIT"
    assert caught.value.context["path"] == "v.object.d.array.list.element"
    assert caught.value.context["row"] == 20_000 - 16_384
    assert not list(tmp_path.iterdir())


def test_a_column_of_one_leaf_keeps_what_tells_it(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", 1, 2, shredding={"v": "bigint"}, untyped="where needed")
    assert values(path) == [1, 2]


@pytest.mark.parametrize("options", [{"layout": "late"}, {"untyped": "never"}, {"untyped": "where needed"}])
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(mica.UserError):
        mica.write_parquet(variants(1), tmp_path / "v.parquet", **options)


@pytest.mark.parametrize("inside", ["", "x.parquet", "part=1/x.parquet"])
def test_a_delta_table_takes_no_early_files(tmp_path: Path, inside: str) -> None:
    mica.Table.create(str(tmp_path / "t"), "v variant")
    with pytest.raises(mica.UserError) as caught:
        mica.write_parquet(variants(1), tmp_path / "t" / inside, layout="early")
    assert caught.value.code == "DELTA_TABLE"


# --- the smallest metadata -------------------------------------------------------------------------------------------


def test_untyped_values_name_nothing_that_they_do_not_need(tmp_path: Path) -> None:
    document = {"a": {"x": 1, "y": [{"x": 2}]}, "b": {"c": "s", "long name": 1}, "other": True}
    [row] = stored(written(tmp_path / "v.parquet", document))
    found = [row["untyped_value"], at(row, "object", "a", "untyped_value"), at(row, "object", "b", "untyped_value")]
    for binary, names in zip(found, (["other"], ["x", "y"], ["long name"]), strict=True):
        assert binary[0] >> 6 == 0  # one byte an offset
        assert binary[1] == len(names)
        text = binary[3 + len(names) : 3 + len(names) + sum(map(len, names))].decode()
        assert text == "".join(names)


# --- check and inspect -----------------------------------------------------------------------------------------------


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


def test_inspect_shows_the_tree_of_both_layouts_alike(tmp_path: Path) -> None:
    documents = [{"a": i or "x", "b": {"c": "s", "d": [i]}} for i in range(50)]
    early = written(tmp_path / "e.parquet", *documents)
    mica.write_parquet(variants(*documents), tmp_path / "s.parquet", shredding=SHREDDING)
    keys = ("column", "path", "type", "typed_rows", "residual_rows")
    trees = [
        [tuple(row[key] for key in keys) for row in mica.files.inspect_file(str(path))]
        for path in (early, tmp_path / "s.parquet")
    ]
    assert trees[0] == trees[1]
    assert trees[0][1] == ("v", "$['a']", "bigint", 49, 1)
