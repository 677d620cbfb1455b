"""Columns of a table: what changes of them keep, need and refuse, with files that have other names and types."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import UserError
from mica.log.column_mapping import assigned
from mica.schema import char, special
from mica.schema.ddl import parse_ddl, to_ddl
from mica.schema.edit import fields_of
from mica.tasks.physical import physical

SCHEMA = (
    "id INT, p STRING, s STRUCT<x: INT, l: ARRAY<STRUCT<y: INT>>, m: MAP<STRING, STRUCT<k: INT>>>, v VARIANT, "
    "c STRING COLLATE UTF8_LCASE"
)
ROW = {"id": 1, "p": "a", "s": {"x": 1, "l": [{"y": 1}], "m": [("k", {"k": 1})]}, "v": {"a": 1}, "c": "Abc"}
MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.fixture(params=["name", "id"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> mica.Table:
    properties = {"delta.columnMapping.mode": request.param, "delta.enableTypeWidening": "true"}
    made = mica.Table.create(tmp_path / "t", SCHEMA, ["p"], properties)
    made.append([ROW])
    return made


def one(table: mica.Table, **columns: str) -> list[dict[str, Any]]:
    return table.scan(columns=columns).to_arrow().to_pylist()


def test_files_have_physical_names_and_ids(table: mica.Table) -> None:
    (path,) = Path(table.path).rglob("*.parquet")
    schema = pq.ParquetFile(path).schema_arrow
    ids = [f.metadata["delta.columnMapping.id"] for f in fields_of(table.schema)]
    assert sorted(ids) == list(range(1, 11))
    assert table.properties["delta.columnMapping.maxColumnId"] == "10"
    assert all(name.startswith("col-") for name in schema.names)
    assert {int(schema.field(n).metadata[b"PARQUET:field_id"]) for n in schema.names} < set(ids)
    ((_, text),) = table.files()["partition_values"].to_pylist()[0]
    assert text == "a"
    assert "Abc" in table.files()["stats"][0].as_py()


def test_every_name_changes_and_every_bound_holds(table: mica.Table) -> None:
    for old, new in (("id", "i"), ("p", "part"), ("v", "w"), ("c", "d"), ("s.l.element.y", "yy"), ("s.m.value.k", "kk"),
                     ("s.x", "xx"), ("s", "t")):  # fmt: skip
        table.rename_column(old, new)
    assert to_ddl(table.schema).startswith("i INT,part STRING,t STRUCT<xx: INT, l: ARRAY<STRUCT<yy: INT>>, m:")
    table.append([{"i": 2, "part": "b", "t": {"xx": 2, "l": [{"yy": 2}]}, "w": {"a": 2}, "d": "X"}])
    for where in ("i = 2", "part = 'b'", "w:a::int = 2", "d = 'x'", "t.xx = 2"):
        scan = table.scan(where)
        assert (scan.count(), len(scan.plan.kept)) == (1, 1), where
    assert mica.check(table.path).ok
    assert table.partition_by == ("part",)


def test_no_change_of_columns_is_no_commit(table: mica.Table) -> None:
    assert table.alter_columns({}).version == mica.Table.open(table.path).version == 1


def test_a_column_may_be_gone_already(table: mica.Table) -> None:
    version, names = table.version, table.schema.names
    assert table.drop_columns(["nope", "s.nope"], if_exists=True).version == version
    table.drop_columns([names[-1], "nope"], if_exists=True)
    assert (table.version, table.schema.names) == (version + 1, names[:-1])


def test_a_dropped_column_never_comes_back(table: mica.Table) -> None:
    table.drop_columns(["id", "v"]).add_columns("id STRING, v VARIANT")
    assert one(table, id="id", v="to_json(v)", x="s.x") == [{"id": None, "v": None, "x": 1}]
    assert int(table.properties["delta.columnMapping.maxColumnId"]) == 12


def test_fields_are_added_where_one_asks(table: mica.Table) -> None:
    table.add_columns("n INT", first=True).add_columns("o INT", after="n").add_columns("q INT", into="s", after="x")
    table.add_columns("z INT", into="s.l.element").add_columns("z INT", into="s.m.value", first=True)
    assert to_ddl(table.schema).startswith(
        "n INT,o INT,id INT,p STRING,s STRUCT<x: INT, q: INT, l: ARRAY<STRUCT<y: INT, z: INT>>, m: MAP<STRING, STRUCT<z"
    )
    assert one(table, s="s", n="n")[0]["s"]["l"] == [{"y": 1, "z": None}]
    table.alter_column("n", after="id").alter_column("s.q", first=True).alter_column("v", comment="the document")
    assert table.schema.names[:3] == ["o", "id", "n"]
    assert table.schema.field("v").metadata["comment"] == "the document"
    assert "comment" not in table.alter_column("v", comment="").schema.field("v").metadata


def test_a_string_with_a_collation_has_no_length(tmp_path: Path) -> None:
    """Spark's ALTER COLUMN c TYPE STRING COLLATE x; `set_collation` changes the collation alone."""
    table = mica.Table.create(tmp_path / "c", "c CHAR(3), d VARCHAR(3), s STRUCT<x: CHAR(2)>, t STRING COLLATE de")
    table.alter_column("c", type="STRING COLLATE UTF8_LCASE").alter_column("d", type="STRING COLLATE UTF8_BINARY")
    table.alter_column("t", type="STRING COLLATE UNICODE")
    table.append([{"c": "Abcd", "d": "abcd", "s": {"x": "a"}, "t": "t"}])
    assert "c STRING COLLATE UTF8_LCASE,d STRING,s" in to_ddl(char.sized(table.schema))
    assert table.scan(where="c = 'aBCD'").count() == 1
    table = mica.Table.create(tmp_path / "d", "c CHAR(3)").set_collation("c", "UTF8_LCASE")
    assert to_ddl(char.sized(table.schema)) == "c CHAR(3) COLLATE UTF8_LCASE"


def test_strings_that_are_added_have_the_tables_collation(table: mica.Table) -> None:
    """Where delta-spark keeps it; a name that no Spark has counts as not set."""
    table.set_properties({"collation": "unicode_ci"})
    table.add_columns("a STRING, b STRING COLLATE UTF8_BINARY").add_columns("z STRING", into="s")
    table.set_properties({"collation": "none"}).add_columns("k STRING")
    assert "a STRING COLLATE UNICODE_CI,b STRING,k STRING" in to_ddl(table.schema)
    assert "z: STRING COLLATE UNICODE_CI" in to_ddl(table.schema)


def test_a_text_may_say_where_each_column_goes(table: mica.Table) -> None:
    version = table.version
    table.add_columns("n INT FIRST, o INT AFTER n COMMENT 'why', s.q INT AFTER x, `c.d` INT, d INT AFTER `c.d`, e INT")
    assert table.version == version + 1
    assert to_ddl(table.schema).startswith("n INT,o INT COMMENT 'why',id INT,p STRING,s STRUCT<x: INT, q: INT, l: ")
    assert table.schema.names[-3:] == ["c.d", "d", "e"]
    table.add_columns("s.l.element.z INT FIRST, s.m.value.z INT")
    assert one(table, s="s", n="n")[0]["s"]["l"] == [{"z": None, "y": 1}]
    for text, code in (
        ("a INT AFTER b, b INT", "UNKNOWN_COLUMN"), ("a INT, s.x INT", "DUPLICATE_COLUMN"),
        ("id.x INT", "TYPE_MISMATCH"), ("a INT FIRST AFTER id", "INVALID_DDL"),
    ):  # fmt: skip
        with pytest.raises(UserError) as raised:
            table.add_columns(text)
        assert raised.value.code == code
    with pytest.raises(UserError, match="says where"):
        table.add_columns("a INT FIRST", after="id")


def test_wider_types_read_old_files(table: mica.Table) -> None:
    table.alter_column("id", type="BIGINT").alter_column("s.l.element.y", type="DOUBLE")
    table.append([{"id": 2**40, "p": "b", "s": {"x": 1, "l": [{"y": 0.5}]}}])
    assert one(table, id="id", l="s.l") == [{"id": 1, "l": [{"y": 1.0}]}, {"id": 2**40, "l": [{"y": 0.5}]}]
    assert len(table.scan("id > 5000000000").plan.kept) == 1
    assert table.schema.field("id").metadata["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda t: t.drop_columns(["p"]), "INVALID_PARTITION_COLUMN"),
        (lambda t: t.drop_columns(["zz"]), "UNKNOWN_COLUMN"),
        (lambda t: t.drop_columns(["s.l.element.y"]), "INVALID_ARGUMENT"),
        (lambda t: t.rename_column("id", "P"), "DUPLICATE_COLUMN"),
        (lambda t: t.rename_column("s.zz", "a"), "UNKNOWN_COLUMN"),
        (lambda t: t.add_columns("n INT NOT NULL"), "MISSING_COLUMN"),
        (lambda t: t.add_columns("n INT DEFAULT 1"), "MISSING_COLUMN"),
        (lambda t: t.add_columns("x INT", into="s"), "DUPLICATE_COLUMN"),
        (lambda t: t.add_columns("x INT", into="id"), "TYPE_MISMATCH"),
        (lambda t: t.add_columns("n INT", after="zz"), "UNKNOWN_COLUMN"),
        (lambda t: t.alter_column("id", type="SMALLINT"), "INCOMPATIBLE_TYPE"),
        (lambda t: t.alter_column("id", type="STRING"), "INCOMPATIBLE_TYPE"),
        (lambda t: t.alter_column("s.x", default="1"), "INVALID_ARGUMENT"),
        (lambda t: t.alter_column("s.l.element.y", nullable=False), "UNSUPPORTED_EXPRESSION"),
        (lambda t: t.set_properties({"delta.columnMapping.mode": "none"}), "INVALID_PROPERTY"),
    ],
)
def test_mistakes_have_codes_and_change_nothing(
    table: mica.Table, call: Callable[[mica.Table], object], code: str
) -> None:
    version = table.version
    with pytest.raises(UserError) as caught:
        call(table)
    assert (caught.value.code, table.refresh().version) == (code, version)


def test_without_mapping_files_hold_names(tmp_path: Path) -> None:
    table = (
        mica.Table.create(tmp_path, "id INT, n INT").rename_column("n", "m").drop_columns(["m"]).add_columns("n INT")
    )
    table.append([{"id": 1, "n": 1}])
    for call in (lambda: table.rename_column("n", "m"), lambda: table.drop_columns(["n"])):
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.code == "NEEDS_COLUMN_MAPPING"
    with pytest.raises(UserError) as caught:
        table.alter_column("id", type="BIGINT")
    assert caught.value.code == "FEATURE_NEEDED"
    table.set_properties(MAPPED).rename_column("n", "m").append([{"id": 2, "m": 2}])
    assert sorted(table.to_arrow()["m"].to_pylist()) == [1, 2]


def test_not_null_asks_the_rows(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<x: INT>")
    table.append([{"id": 1, "s": {"x": 1}}, {"id": None, "s": None}])
    with pytest.raises(UserError) as caught:
        table.alter_column("id", nullable=False)
    assert "violates NOT NULL of 'id' (id IS NOT NULL): id = NULL" in str(caught.value)
    assert caught.value.code == "CONSTRAINT_VIOLATED"
    table.alter_column("s.x", nullable=False).delete("id IS NULL")
    table.alter_column("id", nullable=False)
    with pytest.raises(UserError):
        table.append([{"id": None}])
    table.alter_column("id", nullable=True).append([{"id": None}])


def test_properties_follow_the_names(tmp_path: Path) -> None:
    computed = '{"id": "v:v.a::int + V:`v`", "z": "v:"}'  # the second cannot be read
    properties = {**MAPPED, "delta.dataSkippingStatsColumns": "id, s.x", "mica.bloomFilter.paths": "v:a, v:b.c",
                  "mica.variantStats.paths": "v:a", "mica.ingest.columns": computed}  # fmt: skip
    table = mica.Table.create(tmp_path, "id INT, s STRUCT<x: INT, y: INT>, v VARIANT, z INT", properties=properties)
    table.rename_column("id", "key").rename_column("s", "t").rename_column("v", "the doc")
    found = table.properties
    assert found["delta.dataSkippingStatsColumns"] == "key, t.x"
    assert found["mica.bloomFilter.paths"] == "`the doc`:a, `the doc`:b.c"
    assert json.loads(found["mica.ingest.columns"]) == {"key": "`the doc`:v.a::int + `the doc`:`v`", "z": "v:"}
    assert table.append([{"key": 1, "t": {"x": 1}, "the doc": {"a": 1}}]).rows == 1
    table.drop_columns(["key", "z"])
    assert table.properties["delta.dataSkippingStatsColumns"] == "t.x"
    assert "mica.ingest.columns" not in table.properties


@pytest.mark.parametrize("name", ["x", "value", "key", "element"])
def test_what_the_table_is_clustered_by_stays(tmp_path: Path, name: str) -> None:
    ddl = f"s STRUCT<{name}: INT, b: INT>, l ARRAY<STRUCT<{name}: INT, b: INT>>"
    mapped = {"delta.columnMapping.mode": "name"}
    table = mica.Table.create(tmp_path / "t", ddl, properties=mapped, cluster_by=[f"s.{name}"])
    with pytest.raises(mica.UserError, match="clustered by") as caught:
        table.drop_columns([f"s.{name}"])
    assert caught.value.code == "COLUMN_IN_USE"
    assert table.drop_columns([f"l.element.{name}"]).version == 1


def test_what_rules_use_stays(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT, g INT GENERATED ALWAYS AS (n * 2), s STRUCT<x: INT, y: INT>, o INT, "
                              "`d.x` INT", properties={**MAPPED, "delta.enableTypeWidening": "true"})  # fmt: skip
    table.add_constraint("c", "s.x > 0").add_constraint("d", "`d.x` > 0")
    for call in (lambda: table.rename_column("n", "m"), lambda: table.drop_columns(["n"]),
                 lambda: table.drop_columns(["s.x"]), lambda: table.drop_columns(["s"]),
                 lambda: table.drop_columns(["`d.x`"]), lambda: table.rename_column("`d.x`", "e"),
                 lambda: table.alter_column("s.x", type="BIGINT")):  # fmt: skip
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.code == "COLUMN_IN_USE"
    with pytest.raises(UserError, match="its expression n \\* 2 is INT") as caught:
        table.alter_column("g", type="BIGINT")
    assert caught.value.code == "TYPE_MISMATCH"
    table.rename_column("s.y", "z").drop_columns(["o"]).alter_column("n", default="4")
    table.append([{"s": {"x": 1, "z": 2}, "d.x": 3}])
    assert table.to_arrow().to_pylist() == [{"n": 4, "g": 8, "s": {"x": 1, "z": 2}, "d.x": 3}]


@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_rows_bring_columns_and_fields(tmp_path: Path, mode: str) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, s STRUCT<x: INT>, l ARRAY<STRUCT<x: INT>>, v VARIANT",
                              properties={"delta.columnMapping.mode": mode})  # fmt: skip
    row = {"id": 1, "s": {"x": 1, "n": "new"}, "l": [{"x": 1, "n": 1.5}], "v": {"a": 1}, "t": "text"}
    with pytest.raises(UserError, match="'t'") as caught:
        table.append([row])
    assert "schema_evolution=True" in str(caught.value.hint)
    table.append([{"id": 0}])
    table.append([row], schema_evolution=True)
    assert to_ddl(table.schema) == (
        "id INT,s STRUCT<x: INT, n: STRING>,l ARRAY<STRUCT<x: INT, n: DOUBLE>>,v VARIANT,t STRING"
    )
    assert [r["t"] for r in table.scan("s.n = 'new'").to_arrow().to_pylist()] == ["text"]
    table.overwrite([{"id": 3, "u": True}], schema_evolution=True)
    assert table.to_arrow()["u"].to_pylist() == [True]
    path = tmp_path / "docs.json"
    path.write_text('{"a": 4}\n')
    with pytest.raises(UserError):
        mica.ingest_json(path, table.path, columns={"a": "v:a::int"})
    mica.ingest_json(path, table.path, columns={"a": "v:a::int"}, schema_evolution=True)
    mica.ingest_json(path, table.path)
    assert table.refresh().scan("a = 4").count() == 2
    assert mica.check(table.path).ok


def test_ids_are_given_once_and_names_are_new() -> None:
    schema, last = assigned(parse_ddl("a INT, s STRUCT<x: ARRAY<STRUCT<y: INT>>>"), 5, keeps_names=False)
    assert last == 9
    assert [f.metadata["delta.columnMapping.id"] for f in fields_of(schema)] == [6, 7, 8, 9]
    again, same = assigned(schema, 9, keeps_names=True)
    assert (again, same) == (schema, 9)


def test_renaming_copies_slices_and_nulls_right() -> None:
    columns = "s STRUCT<x: INT NOT NULL, l: ARRAY<STRUCT<y: INT>>, m: MAP<STRING, STRUCT<k: INT>>>"
    schema, _ = assigned(parse_ddl(columns), 0, keeps_names=False)
    rows = [None, {"x": 1, "l": None, "m": [("a", {"k": 1})]}, {"x": 2, "l": [{"y": 1}, None], "m": None}, None]
    type_ = pa.struct([pa.field("x", pa.int32(), False), ("l", pa.list_(pa.struct([("y", pa.int32())]))),
                       ("m", pa.map_(pa.string(), pa.struct([("k", pa.int32())])))])  # fmt: skip
    batch = pa.RecordBatch.from_arrays([pa.array(rows, type_)], names=["s"])
    for start, count in ((0, 4), (1, 2), (2, 2)):
        found = physical(batch.slice(start, count), schema).column(0)
        found.validate(full=True)
        assert [None if r is None else list(map(repr, r.values())) for r in found.to_pylist()] == [
            None if r is None else [repr(r["x"]), *list(map(repr, _renamed(r, found.type)))]
            for r in rows[start : start + count]
        ]


def _renamed(row: dict[str, Any], type_: pa.StructType) -> list[Any]:
    y = type_.field(1).type.value_type.field(0).name
    k = type_.field(2).type.item_type.field(0).name
    listed = None if row["l"] is None else [None if e is None else {y: e["y"]} for e in row["l"]]
    mapped = None if row["m"] is None else [(key, {k: value["k"]}) for key, value in row["m"]]
    return [listed, mapped]


def test_properties_of_a_later_version_stay_and_who_writes_variants_says_so(tmp_path: Path) -> None:
    later = {
        "mica.shredding": "a: hash(8)",
        "mica.variantStats.paths": "v:a, most(v)",
        "mica.bloomFilter.paths": "v:a[?]",
        "mica.ingest.columns": "[1]",
    }
    mica.Table.create(tmp_path / "t", "v VARIANT, n INT, p STRING", properties={"delta.columnMapping.mode": "name"})
    log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["configuration"] |= later
    log.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    table = mica.Table.open(tmp_path / "t")
    table.add_columns("more STRING")
    table.rename_column("v", "w")
    table.drop_columns(["n"])
    with pytest.warns(UserWarning, match="is kept, but counts as not set") as said:
        table.append([{"w": {"a": 1}, "p": "x"}])
    assert len(said) == 3
    assert {name: table.properties[name] for name in later} == later
    for name, value in later.items():
        with pytest.raises(UserError):
            table.set_properties({name: value})
    table.set_properties({"mica.shredding": "w:a: skip"})
    table.rename_column("w", "v")
    assert table.properties["mica.shredding"] == "v:a: skip"


def lengths_of(t: mica.Table) -> dict[str, str]:
    metadata = {f.name: f.metadata for f in t._snapshot.schema.fields}
    return {name: found[special.CHAR_VARCHAR] for name, found in metadata.items() if special.CHAR_VARCHAR in found}


def test_lengths_of_texts_inside_of_a_column_follow_its_fields(tmp_path: Path) -> None:
    """Lengths went with a rename, and delta-spark reads no field that the declared type lacks."""
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    t = mica.Table.create(
        tmp_path / "t", "s STRUCT<a: CHAR(3), b: INT>, l ARRAY<STRUCT<x: INT>>", properties=properties
    )
    t.append([{"s": {"a": "x", "b": 1}, "l": []}])
    t.add_columns("s.c STRING, s.n CHAR(2)")
    t.add_columns("m VARCHAR(4)", into="s")
    t.add_columns("l.element.y CHAR(5)")
    t.rename_column("s.a", "q")
    t.alter_column("s.b", type="BIGINT")
    whole = "struct<q:char(3),b:bigint,c:string,n:char(2),m:varchar(4)>"
    assert lengths_of(t) == {"s": whole, "l": "array<struct<x:int,y:char(5)>>"}
    assert t.to_arrow()["s"].to_pylist() == [{"q": "x  ", "b": 1, "c": None, "n": None, "m": None}]
    for value in ({"q": "long"}, {"n": "xyz"}, {"m": "12345"}):
        with pytest.raises(UserError, match="CONSTRAINT_VIOLATED"):
            t.append([{"s": value}])
    t.drop_columns(["s.b", "s.n", "s.c"])
    t.rename_column("s", "r")
    t.drop_columns(["l.element.y"])
    assert lengths_of(t) == {"r": "struct<q:char(3),m:varchar(4)>"}
    t.drop_columns(["r.q", "l"])
    assert t.to_arrow()["r"].to_pylist() == [{"m": None}]


def test_a_type_with_a_collation_sets_that_of_a_string(tmp_path: Path) -> None:
    t = mica.Table.create(tmp_path, "s STRING, st STRUCT<x: STRING>, l ARRAY<STRING>, n INT, p STRING", ["p"])
    t.alter_columns({"s": {"type": "STRING COLLATE UTF8_LCASE"}, "st.x": {"type": "string collate de"}})
    t.alter_column("l.element", type="STRING COLLATE UNICODE_CI", spark=None)
    assert to_ddl(t.schema).startswith(
        "s STRING COLLATE UTF8_LCASE,st STRUCT<x: STRING COLLATE de>,l ARRAY<STRING COLLATE UNICODE_CI>"
    )
    t.append([{"s": "A"}])
    assert t.scan("s = 'a'").count() == 1
    t.alter_column("s", type="STRING COLLATE UTF8_BINARY")
    assert t.scan("s = 'a'").count() == 0
    for column, type_, code in (
        ("s", "STRING COLLATE nowhere", "UNKNOWN_COLLATION"), ("p", "STRING COLLATE de", "INVALID_PARTITION_COLUMN"),
        ("n", "STRING COLLATE de", "UNKNOWN_COLUMN"), ("l", "ARRAY<STRING COLLATE de>", "INVALID_DDL"),
        ("s", "STRING COLLATE de NOT NULL", "INVALID_DDL"), ("s", "STRING COLLATE de, x INT", "INVALID_DDL"),
    ):  # fmt: skip
        with pytest.raises(UserError) as raised:
            t.alter_column(column, type=type_)
        assert raised.value.code == code
