"""The early shredding layout: the examples of its text, and what is shredded, left over and shown."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.checking.inspect import inspect_file
from tests.early import DOCUMENTS, SHREDDING, TEXT, foreign, untyped, values, variants, written


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
    assert values(tmp_path / "v.parquet") == mica.variant.frames.to_pandas(before, _schema())["v"].tolist()


def _schema() -> Any:
    from mica.schema.arrow import from_arrow

    return from_arrow(variants().schema)


def test_a_decimal_is_printed_as_the_number_that_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "v.parquet", 123, {"a": 123}, shredding={"v": "decimal(9,2)"})
    found = mica.read_parquet(path, columns={"t": "cast(v as string)"}).to_pandas()["t"].tolist()
    assert found == ["123", '{"a":123}']


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
    assert caught.value.context["row"] == 20_000
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


# --- inspect ---------------------------------------------------------------------------------------------------------


def test_inspect_shows_the_tree_of_both_layouts_alike(tmp_path: Path) -> None:
    documents = [{"a": i or "x", "b": {"c": "s", "d": [i]}} for i in range(50)]
    early = written(tmp_path / "e.parquet", *documents)
    mica.write_parquet(variants(*documents), tmp_path / "s.parquet", shredding=SHREDDING)
    keys = ("column", "path", "type", "typed_rows", "residual_rows")
    trees = [
        [tuple(row[key] for key in keys) for row in inspect_file(str(path))] for path in (early, tmp_path / "s.parquet")
    ]
    assert trees[0] == trees[1]
    assert trees[0][1] == ("v", "$['a']", "bigint", 49, 1)


@pytest.mark.parametrize(
    "cast",
    [
        "v:l::array<bigint>", "v:l::array<string>", "v:b::struct<c: string, d: int>", "v:b::map<string, string>",
        "v::struct<a: decimal(9,2), l: array<int>>", "v:l[1]::bigint", "v:b::variant",
    ],
)  # fmt: skip
def test_casts_to_arrays_maps_and_structs_are_those_of_the_standard_layout(tmp_path: Path, cast: str) -> None:
    """Elements that are shredded, left over or both, and rows in which another value is in the array's place."""
    documents = [
        {"a": 1, "b": {"c": "x", "d": 4}, "l": [1, 2, 3]}, {"a": 1.5, "b": {"c": "7"}, "l": [4, None, 5]}, {"l": []},
        {"a": 2, "b": {}, "l": None}, {"b": None}, {"a": None, "l": [6]}, {}, ...,
    ]  # fmt: skip
    schema = {"v": "struct<a: decimal(9,2), b: struct<c: string>, l: array<bigint>>"}
    found = []
    for layout in ("early", "standard"):
        mica.write_parquet(variants(*documents), tmp_path / layout, layout=layout, shredding=schema)
        scan = mica.read_parquet(tmp_path / layout, columns={"x": cast})
        texts = mica.variant.to_json(scan.to_arrow()["x"]).to_pylist() if cast.endswith("variant") else None
        found.append(texts or scan.to_arrow()["x"].to_pylist())
    assert found[0] == found[1]
    assert any(value is not None for value in found[0])
    if cast == "v:l::array<bigint>":
        assert found[0] == [[1, 2, 3], [4, None, 5], [], None, None, [6], None, None]
