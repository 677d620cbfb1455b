"""By what a table's columns are found in its files: display names, physical names or field ids, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import CorruptDataError, MicaError
from mica.log.file_lines import add_line
from mica.schema.ddl import to_ddl
from mica.schema.types import LONG, StructField, StructType
from mica.tasks.file_columns import Level, locate
from tests.variant_files import AB, NULL, ONE, TWO, column, container

MAPPED = {"minReaderVersion": 2, "minWriterVersion": 5}
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}


def field(name: str, type_: Any, physical: str | None = None, id_: int | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {} if physical is None else {"delta.columnMapping.physicalName": physical}
    metadata |= {} if id_ is None else {"delta.columnMapping.id": id_}
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def table(
    path: Path,
    schema: dict[str, Any],
    rows: pa.Table,
    *,
    mode: str | None = None,
    protocol: dict[str, Any] = MAPPED,
    partition_columns: list[str] | None = None,
    partition_values: dict[str, str] | None = None,
) -> mica.Table:
    """A table of one file, as another writer left it."""
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(rows, path / "f.parquet")
    metadata = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": orjson.dumps(schema).decode(),
        "partitionColumns": partition_columns or [],
        "configuration": {} if mode is None else {"delta.columnMapping.mode": mode},
    }
    size = (path / "f.parquet").stat().st_size
    file = {"path": "f.parquet", "size": size, "modification_time": 1, "partition_values": partition_values}
    add = add_line(file)
    lines = [orjson.dumps({"protocol": protocol}), orjson.dumps({"metaData": metadata}), add.encode()]
    (path / "_delta_log" / f"{0:020}.json").write_bytes(b"\n".join(lines) + b"\n")
    return mica.Table.open(path)


def with_id(name: str, type_: pa.DataType, id_: int) -> pa.Field:
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(id_)})


def rows(found: mica.Table, **options: Any) -> list[dict[str, Any]]:
    return found.scan(**options).to_arrow().to_pylist()


STALE = struct(field("a", "long", "col-1", 1), field("s", struct(field("x", "string", "col-3", 3)), "col-2", 2))


@pytest.mark.parametrize(("mode", "protocol"), [(None, MAPPED), ("none", MAPPED), ("name", PLAIN), ("id", PLAIN)])
def test_keys_of_column_mapping_count_in_mapped_tables_alone(
    tmp_path: Path, mode: str | None, protocol: dict[str, Any]
) -> None:
    values = pa.table({"a": pa.array([1], pa.int64()), "s": pa.array([{"x": "y"}])})
    found = table(tmp_path / "t", STALE, values, mode=mode, protocol=protocol)
    assert rows(found) == [{"a": 1, "s": {"x": "y"}}]
    assert rows(found, where="a = 1 AND s.x = 'y'") == [{"a": 1, "s": {"x": "y"}}]


def test_a_table_made_of_a_mapped_schema_forgets_the_mapping(tmp_path: Path) -> None:
    values = pa.table({"col-1": pa.array([1], pa.int64()), "col-2": pa.array([{"col-3": "y"}])})
    mapped = table(tmp_path / "mapped", STALE, values, mode="name")
    assert rows(mapped) == [{"a": 1, "s": {"x": "y"}}]
    made = mica.Table.create(tmp_path / "t", mapped.schema)
    made.append(mapped.scan().to_arrow())
    assert rows(mica.Table.open(tmp_path / "t")) == [{"a": 1, "s": {"x": "y"}}]
    assert "columnMapping" not in made.snapshot.metadata.schema_string


def test_partition_values_are_found_by_display_names_where_nothing_is_mapped(tmp_path: Path) -> None:
    for protocol, key in ((PLAIN, "p"), (MAPPED, "col-9")):
        found = table(
            tmp_path / key, struct(field("a", "long", "a", 1), field("p", "integer", "col-9", 2)),
            pa.table({"a": pa.array([1], pa.int64())}), mode="name", protocol=protocol,
            partition_columns=["p"], partition_values={key: "7"},
        )  # fmt: skip
        assert rows(found, where="p = 7") == [{"a": 1, "p": 7}]


IDS = struct(
    field("a", "long", "p1", 1),
    field("b", "long", "p2", 2),
    field("s", struct(field("x", "string", "p4", 4), field("y", "string", "p5", 5)), "p3", 3),
    field("l", {"type": "array", "elementType": struct(field("z", "long", "p7", 7)), "containsNull": True}, "p6", 6),
    field(
        "m",
        {
            "type": "map", "keyType": "string", "valueContainsNull": True,
            "valueType": struct(field("w", "long", "p9", 9)),
        },
        "p8",
        8,
    ),
    field("new", "long", "p10", 10),
)  # fmt: skip


def test_id_mode_finds_columns_by_their_ids_at_any_depth(tmp_path: Path) -> None:
    inner = pa.struct([with_id("p4", pa.string(), 5), with_id("p5", pa.string(), 4)])
    elements = pa.list_(pa.field("element", pa.struct([with_id("odd", pa.int64(), 7)])))
    entries = pa.map_(pa.string(), pa.struct([with_id("other", pa.int64(), 99), with_id("p0", pa.int64(), 9)]))
    schema = pa.schema(
        [
            with_id("p1", pa.int64(), 2),
            with_id("p2", pa.int64(), 1),
            with_id("was", inner, 3),
            with_id("list", elements, 6),
            with_id("map", entries, 8),
            with_id("p10", pa.int64(), 77),
        ]
    )
    row = {
        "p1": 20, "p2": 10, "was": {"p4": "yy", "p5": "xx"}, "list": [{"odd": 1}, None],
        "map": [("k", {"other": 0, "p0": 5})], "p10": 1,
    }  # fmt: skip
    found = table(tmp_path / "t", IDS, pa.Table.from_pylist([row], schema), mode="id")
    expected = {
        "a": 10, "b": 20, "s": {"x": "xx", "y": "yy"}, "l": [{"z": 1}, None], "m": [("k", {"w": 5})], "new": None,
    }  # fmt: skip
    assert rows(found) == [expected]
    assert rows(found, where="a = 10 AND s.x = 'xx' AND new IS NULL") == [expected]
    assert rows(found, where="a = 20 OR s.x = 'yy'") == []


def test_id_mode_refuses_a_file_without_ids(tmp_path: Path) -> None:
    values = pa.table({"p1": pa.array([1], pa.int64())})
    found = table(tmp_path / "t", struct(field("a", "long", "p1", 1)), values, mode="id")
    with pytest.raises(CorruptDataError) as caught:
        found.scan().to_arrow()
    assert (caught.value.code, "f.parquet" in str(caught.value)) == ("MISSING_FIELD_ID", True)


def test_id_mode_finds_variants_that_the_file_calls_otherwise(tmp_path: Path) -> None:
    (value,) = pa.array([mica.variant.from_json(['{"n":5}'])[0]])
    kind = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    values = pa.Table.from_arrays([pa.array([value.as_py()], kind)], schema=pa.schema([with_id("other", kind, 1)]))
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping", "variantType"],
        "writerFeatures": ["columnMapping", "variantType"],
    }  # fmt: skip
    found = table(tmp_path / "t", struct(field("v", "variant", "p1", 1)), values, mode="id", protocol=protocol)
    assert found.scan(where="v:n::int = 5", columns={"n": "v:n::int"}).to_arrow().to_pylist() == [{"n": 5}]


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MicaError) as caught:
        rows(table(tmp_path / "t", STALE, pa.table({"a": [1]}), mode="uuid"))
    assert caught.value.code == "UNSUPPORTED_READER_FEATURE"


def test_names_that_differ_in_case_alone_are_the_same_column(tmp_path: Path) -> None:
    schema = struct(field("Id", "long"), field("S", struct(field("Inner", "long"))))
    values = pa.table({"iD": pa.array([1], pa.int64()), "s": pa.array([{"INNER": 2}])})
    found = table(tmp_path / "t", schema, values, protocol=PLAIN)
    assert rows(found) == rows(found, where="id = 1 AND s.inner = 2") == [{"Id": 1, "S": {"Inner": 2}}]
    twice = pa.table({"iD": pa.array([1], pa.int64()), "ID": pa.array([2], pa.int64())})
    with pytest.raises(CorruptDataError) as caught:
        rows(table(tmp_path / "twice", schema, twice, protocol=PLAIN))
    assert (caught.value.code, caught.value.context["column"]) == ("AMBIGUOUS_COLUMN", "Id")


def test_a_partition_column_in_another_case_is_refused_as_by_delta_spark(tmp_path: Path) -> None:
    schema = struct(field("a", "long"), field("p", "integer"))
    values = pa.table({"a": pa.array([1], pa.int64())})
    found = table(
        tmp_path / "t", schema, values, protocol=PLAIN, partition_columns=["P"], partition_values={"P": "7"}
    )  # fmt: skip
    with pytest.raises(CorruptDataError, match="partitioned by 'P'"):
        rows(found)


def test_fields_that_the_table_lacks_are_skipped_at_any_depth(tmp_path: Path) -> None:
    schema = struct(
        field("s", struct(field("x", "long"), field("later", "string"))),
        field("l", {"type": "array", "elementType": struct(field("z", "long")), "containsNull": True}),
    )
    values = pa.table({"l": pa.array([[{"gone": "g", "z": 1}], None]), "s": pa.array([{"gone": 1, "x": 2}, None])})
    found = table(tmp_path / "t", schema, values, protocol=PLAIN)
    expected = [{"s": {"x": 2, "later": None}, "l": [{"z": 1}]}, {"s": None, "l": None}]
    assert rows(found) == expected


@pytest.mark.parametrize("spelling", ["n", "p1"])
def test_collations_of_mapped_columns_are_read_by_either_name(tmp_path: Path, spelling: str) -> None:
    plain = field("n", "string", "p1", 1)
    plain["metadata"]["__COLLATIONS"] = {spelling: "spark.UTF8_LCASE"}
    inner = field("l", {"type": "array", "elementType": "string", "containsNull": True}, "p2", 2)
    inner["metadata"]["__COLLATIONS"] = {("l" if spelling == "n" else "p2") + ".element": "icu.de"}
    values = pa.table({"p1": ["A", "b"], "p2": pa.array([["x"], []], pa.list_(pa.string()))})
    found = table(tmp_path / "t", struct(plain, inner), values, mode="name")
    assert rows(found, where="n = 'a'") == [{"n": "A", "l": ["x"]}]
    assert to_ddl(found.schema) == "n STRING COLLATE UTF8_LCASE,l ARRAY<STRING COLLATE de>"


class Counted:
    """A field that counts how often its name is asked."""

    asked = 0
    metadata = None

    def __init__(self, name: str) -> None:
        self._name, self.type = name, pa.int64()

    @property
    def name(self) -> str:
        Counted.asked += 1
        return self._name


@pytest.mark.parametrize("spelling", [str, str.upper, "no {}".format])
def test_each_column_of_a_wide_file_is_found_without_a_look_at_all(spelling: Callable[[str], str]) -> None:
    """A scan of 2,000 columns took 6 s, as each of them looked at the fields of the file."""
    wide = Level(Counted(f"c{n}") for n in range(300))
    schema = StructType(tuple(StructField(spelling(f"c{n}"), LONG) for n in range(300)))
    Counted.asked = 0
    for f in schema:
        locate(wide, schema, (f.name,))
    assert Counted.asked <= 3 * 300


PLAIN_VARIANT = column([container([ONE, TWO], [2, 0]), ONE, NULL])
SHREDDED = column([{"typed_value": {"a": {"typed_value": 2}, "b": {}}}, ONE, {"value": NULL}], AB)
VARIANT_TABLE = {"minReaderVersion": 3, "minWriterVersion": 7} | {
    f"{side}Features": ["variantType", "columnMapping"] for side in ("reader", "writer")
}


def _held(kind: str, cells: pa.Array, name: str = "v") -> tuple[pa.Array, Any]:
    """The Variants as an array, as values of a map, or in structs of an array, with the table's type."""
    ends = pa.array([0, 2, 2, 3], pa.int32())
    if kind == "map":
        made = pa.MapArray.from_arrays(ends, pa.array(list("xyz")), cells)
        return made, {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}
    inside: Any = "variant"
    if kind == "struct":
        cells = pa.StructArray.from_arrays([cells], fields=[with_id(name, cells.type, 2)])
        inside = struct(field("v", "variant", "col-2", 2))
    made = pa.ListArray.from_arrays(ends, cells, type=pa.list_(pa.field("element", cells.type)))
    return made, {"type": "array", "elementType": inside, "containsNull": True}


@pytest.mark.parametrize("mode", [None, "name", "id"])
@pytest.mark.parametrize("kind", ["array", "map", "struct"])
@pytest.mark.parametrize("cells", [PLAIN_VARIANT, SHREDDED], ids=["plain", "shredded"])
def test_variants_in_arrays_and_maps_need_no_annotation(
    tmp_path: Path, cells: pa.Array, kind: str, mode: str | None
) -> None:
    outer, inner = {None: ("l", "v"), "name": ("col-1", "col-2"), "id": ("other", "inner")}[mode]
    made, type_ = _held(kind, cells, inner)
    schema = struct(field("l", type_, "col-1", 1))
    values = pa.Table.from_arrays([made], schema=pa.schema([with_id(outer, made.type, 1)]))
    found = table(tmp_path / "t", schema, values, mode=mode, protocol=VARIANT_TABLE)
    read = [dict(row["l"]) if kind == "map" else row["l"] for row in found.scan().to_pandas().to_dict("records")]
    of = lambda row: list(row.values() if kind == "map" else row)  # noqa: E731
    got = [[next(iter(v.values())) if kind == "struct" else v for v in of(row)] for row in read]
    first = {"a": 2, "c": 1} if cells is PLAIN_VARIANT else {"a": 2}
    assert got == [[first, 1], [], [None]]
    if mode != "id":
        assert {v.kind for v in mica.check(tmp_path / "t")} <= {"missing_annotation", "unsorted_ids"}


def test_a_column_that_cannot_be_told_hides_no_other(tmp_path: Path) -> None:
    made, type_ = _held("array", SHREDDED)
    values = pa.Table.from_arrays([made] * 3, names=["AA", "Aa", "z"])
    found = table(tmp_path / "t", struct(field("aa", type_), field("z", type_)), values, protocol=VARIANT_TABLE)
    assert found.scan(columns=["z"]).to_pandas()["z"].tolist() == [[{"a": 2}, 1], [], [None]]
    with pytest.raises(CorruptDataError, match="AMBIGUOUS_COLUMN"):
        found.to_arrow()


@pytest.mark.parametrize("kind", ["array", "map", "struct"])
def test_variants_in_arrays_and_maps_are_validated(tmp_path: Path, kind: str) -> None:
    made, type_ = _held(kind, column([ONE, container([ONE, ONE], [1, 1]), ONE]))
    values = pa.Table.from_arrays([made], names=["l"])
    found = table(tmp_path / "t", struct(field("l", type_)), values, protocol=VARIANT_TABLE)
    with pytest.raises(MicaError, match="MALFORMED_VARIANT"):
        found.to_arrow()
    with pytest.raises(MicaError, match="MALFORMED_VARIANT"):
        found.update({"l": "l"})
    assert {"missing_annotation", "name_twice"} == {v.kind for v in mica.check(found.path)}


def test_no_variant_is_shredded_to_a_map(tmp_path: Path) -> None:
    """Rule 21."""
    typed = pa.map_(pa.string(), pa.int64())
    cells = column([{"typed_value": [("a", 1)]}, ONE], typed)
    schema = struct(field("v", "variant"), field("n", "long"))
    values = pa.table({"v": cells, "n": pa.array([1, 2], pa.int64())})
    found = table(tmp_path / "t", schema, values, protocol=VARIANT_TABLE)
    asked: list[dict[str, Any]] = [{}, {"columns": {"x": "v:a::int"}}, {"where": "v:a::int IS NULL"}]
    for options in asked:
        with pytest.raises(MicaError, match=r"v\.typed_value of .* is Map.* \(rule: 21\)"):
            rows(found, **options)
    assert rows(found, columns=["n"]) == [{"n": 1}, {"n": 2}]
    with pytest.raises(MicaError, match="MALFORMED_SHREDDING"):
        found.update({"n": "3"})


def test_strings_without_their_annotation_and_times_without_their_mark_are_read(tmp_path: Path) -> None:
    """As old writers left them; bytes that are no text are an error."""
    columns = "a STRING, l ARRAY<STRING>, s STRUCT<b: BINARY>, m MAP<STRING, STRING>, t TIMESTAMP, n TIMESTAMP_NTZ"
    made = mica.Table.create(tmp_path, columns)
    made.append([{"a": "x"}])
    (path,) = mica.Table.open(tmp_path).file_uris()
    rows_ = {
        "a": pa.array([b"x", "é".encode(), None]),
        "l": pa.array([[b"q"], None, []]),
        "s": pa.array([{"b": "t"}, None, {"b": None}], pa.struct([("b", pa.string())])),
        "m": pa.array([[(b"k", b"v")], None, []], pa.map_(pa.binary(), pa.binary())),
        "t": pa.array([10**12, None, -1], pa.timestamp("ms")),
        "n": pa.array([10**12, None, -1], pa.timestamp("ms", "UTC")),
    }
    pq.write_table(pa.table(rows_), path)
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    add = {"path": Path(path).name, "size": Path(path).stat().st_size, "partitionValues": {}, "modificationTime": 1}
    log.write_bytes(orjson.dumps({"add": {**add, "dataChange": True}}))
    found = mica.Table.open(tmp_path).scan().to_arrow()
    assert found.column("a").to_pylist() == ["x", "é", None]
    assert found.column("l").to_pylist() == [["q"], None, []]
    assert found.column("s").to_pylist() == [{"b": b"t"}, None, {"b": None}]
    assert found.column("m").to_pylist() == [[("k", "v")], None, []]
    for name in "tn":
        assert found.column(name).cast("int64").to_pylist() == [10**15, None, -1000]
    counts = {"a = 'é'": 1, "a LIKE 'x%'": 1, "m['k'] = 'v'": 1, "s.b = X'74'": 1, "t < TIMESTAMP'1970-01-01'": 1}
    assert {where: mica.Table.open(tmp_path).scan(where).count() for where in counts} == counts
    pq.write_table(pa.table({**rows_, "a": pa.array([b"x", b"\xff", None])}), path)
    log.write_bytes(orjson.dumps({"add": {**add, "size": Path(path).stat().st_size, "dataChange": True}}))
    with pytest.raises(CorruptDataError) as caught:
        mica.Table.open(tmp_path).scan().to_arrow()
    assert caught.value.code == "INCOMPATIBLE_TYPE"
