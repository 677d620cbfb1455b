"""`mica check`: each kind of violation in a file or a log that has it, and nothing in those that are sound."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.checking import statistics
from mica.stats.read import read_stats
from mica.stats.variant import encode_bounds
from mica.variant.encode import encode
from tests.faulty_s3 import FaultyS3
from tests.parquet_schema import LOGICAL, Element
from tests.table_log import edit
from tests.variant_files import (
    AB,
    ABC,
    BINARY,
    EMPTY,
    HELLO,
    NEITHER,
    ONE,
    TWO,
    arrays,
    column,
    container,
    file,
    leaf,
    metadata,
    objects,
)

Change = Callable[[dict[str, Element]], None]


def found(path: Path, **options: Any) -> list[tuple[str, int | None, str, int | None]]:
    return [(v.kind, v.rule, v.path, v.row) for v in mica.check(path, **options)]


BOTH = {"value": container([ONE], [1]), "typed_value": {"a": {}, "b": {"typed_value": 1}}}
LIST = arrays(leaf(pa.int32()))
ROWS = [
    ("unsorted_ids", 10, "v.value", column([ONE, container([ONE, TWO], [2, 0])])),
    ("utf16_order", 10, "v.value", column([ONE, container([ONE, TWO], [1, 0])], names=metadata("￰", "\U00010000"))),
    ("name_not_in_metadata", 20, "v.value", column([ONE, container([ONE], [3])])),
    (
        *("name_not_in_metadata", 20, "v.typed_value.a"),
        column([ONE, {"typed_value": {"a": {"typed_value": 1}, "b": {}}}], AB, names=metadata("b")),
    ),
    ("shredded_field_in_value", 35, "v.value", column([ONE, {**BOTH, "typed_value": NEITHER}], AB)),
    ("field_in_both", 37, "v.value", column([ONE, BOTH], AB)),
    ("residual_no_object", 36, "v.value", column([ONE, {"value": ONE, "typed_value": NEITHER}], AB)),
    ("value_and_typed_value", 25, "v.value", column([ONE, {"value": ONE, "typed_value": 1}], pa.int32())),
    ("value_and_typed_value", 30, "v.value", column([ONE, {"value": ONE, "typed_value": []}], LIST)),
    ("missing_element", 31, "v.typed_value.list.element", column([ONE, {"typed_value": [{}]}], LIST)),
    ("array_in_value", 30, "v.value", column([ONE, container([ONE])], LIST)),
    ("object_in_value", 32, "v.value", column([ONE, container([ONE], [2])], AB)),
    ("object_in_value", 33, "v.value", column([ONE, EMPTY], AB)),
    ("missing_value", 22, "v", column([ONE, {}], pa.int32())),
    ("metadata_version", 3, "v.metadata", column([ONE, {"value": ONE, "metadata": b"\x02\0\0"}])),
    ("metadata_offsets", 4, "v.metadata", column([ONE, {"value": ONE, "metadata": b"\x11\1\1\1a"}])),
    ("metadata_names", 5, "v.metadata", column([ONE, {"value": ONE, "metadata": metadata("b", "a", ordered=True)}])),
    ("string_not_utf8", 6, "v.value", column([ONE, b"\x05\xff"])),
    ("unknown_type", 7, "v.value", column([ONE, b"\x54"])),
    ("decimal", 8, "v.value", column([ONE, b"\x20\x27" + bytes(4)])),
    ("name_twice", 12, "v.value", column([ONE, container([ONE, TWO], [1, 1])])),
    ("wrong_length", 15, "v.value", column([ONE, b"\x18\x01"])),
]


@pytest.mark.parametrize(("kind", "rule", "at", "array"), ROWS, ids=[f"{row[0]}-{row[1]}-{row[2]}" for row in ROWS])
def test_rows_that_break_a_rule(tmp_path: Path, kind: str, rule: int, at: str, array: pa.Array) -> None:
    assert found(file(tmp_path / "v.parquet", array)) == [(kind, rule, at, 1)]


def _set(path: str, repetition: int) -> Change:
    return lambda elements: elements[path].repetition(repetition)


def _optional(array: pa.Array, *path: str) -> pa.Array:
    """The array with the field at this path nullable."""

    def field(f: pa.Field, names: tuple[str, ...]) -> pa.Field:
        return f.with_type(loosened(f.type, names)) if names else f.with_nullable(True)

    def loosened(type_: pa.DataType, names: tuple[str, ...]) -> pa.DataType:
        if pa.types.is_list(type_):
            return pa.list_(field(type_.value_field, names[1:]))
        return pa.struct([field(f, names[1:]) if f.name == names[0] else f for f in type_])

    return pa.array(array.to_pylist(), loosened(array.type, path))


def _annotation(version: int | None) -> Change:
    return lambda elements: elements["v"].variant(version)


TYPED = column([{"typed_value": {"a": {"typed_value": 1}, "b": {}}}], AB)
ELEMENTS = column([{"typed_value": [{"typed_value": 1}]}], LIST)
SCHEMAS: list[tuple[str, int, str, pa.Array, Change | None]] = [
    ("missing_annotation", 1, "v", column([ONE]), lambda elements: elements["v"].drop(LOGICAL)),
    ("missing_version", 1, "v", column([ONE]), _annotation(None)),
    ("missing_version", 1, "v", column([ONE]), _annotation(2)),
    ("required_or_optional", 2, "v.metadata", _optional(column([ONE]), "metadata"), None),
    ("required_or_optional", 2, "v.value", _optional(column([ONE]), "value"), None),
    ("required_or_optional", 34, "v.typed_value.a", _optional(TYPED, "typed_value", "a"), None),
    ("required_or_optional", 29, "v.typed_value.list.element", _optional(ELEMENTS, "typed_value", "element"), None),
    ("unsupported_type", 21, "v.typed_value", column([ONE], pa.uint32()), None),
    ("unsupported_type", 21, "v.typed_value.a.typed_value", column([ONE], objects(a=leaf(pa.timestamp("ms")))), None),
    ("field_no_group", 34, "v.typed_value.a", column([ONE], pa.struct([("a", pa.int32())])), None),
    ("not_three_levels", 29, "v.typed_value.list.element", column([ONE], pa.list_(pa.int32())), None),
]


@pytest.mark.parametrize(
    ("kind", "rule", "at", "array", "change"), SCHEMAS, ids=[f"{row[0]}-{row[1]}-{row[2]}" for row in SCHEMAS]
)
def test_schemas_that_break_a_rule(
    tmp_path: Path, kind: str, rule: int, at: str, array: pa.Array, change: Change | None
) -> None:
    assert (kind, rule, at, None) in found(file(tmp_path / "v.parquet", array, change))


def test_required_where_optional_is_asked_for(tmp_path: Path) -> None:
    type_ = pa.struct(
        [
            pa.field("metadata", BINARY, nullable=False),
            pa.field("value", BINARY, nullable=False),
            pa.field("typed_value", pa.int32(), nullable=False),
        ]
    )
    array = pa.array([{"metadata": ABC, "value": ONE, "typed_value": 1}], type_)
    kinds = found(file(tmp_path / "v.parquet", array))
    assert kinds[:2] == [("required_or_optional", 2, f"v.{name}", None) for name in ("value", "typed_value")]


def test_a_child_that_no_variant_has(tmp_path: Path) -> None:
    type_ = pa.struct([pa.field("metadata", BINARY, nullable=False), ("value", BINARY), ("object", pa.int32())])
    assert ("unknown_child", 1, "v", None) in found(file(tmp_path / "v.parquet", pa.array([{"metadata": ABC}], type_)))


def test_a_check_goes_on_and_counts_what_it_does_not_list(tmp_path: Path) -> None:
    rows = [container([ONE, TWO], [1, 0])] * 500 + [b"\x54"] + [ONE] * 20_000 + [container([ONE, TWO], [1, 1])]
    path = file(tmp_path / "v.parquet", column(rows), row_group_size=6_000)
    report = mica.check(path, limit=3)
    assert [(v.kind, v.row_group, v.row) for v in report] == [
        *(("unsorted_ids", 0, row) for row in range(3)),
        ("unknown_type", 0, 500),
        ("name_twice", 3, 20_501),
    ]
    assert len(report) == 502
    assert {(t["kind"], t["count"]) for t in report.totals.to_pylist()} == {
        ("unsorted_ids", 500),
        ("unknown_type", 1),
        ("name_twice", 1),
    }


def test_variants_inside_of_lists_maps_and_structs(tmp_path: Path) -> None:
    bad = column([container([ONE, TWO], [1, 0])])[0]
    table = pa.table(
        {
            "l": pa.array([[], [bad.as_py()]], pa.list_(pa.field("element", bad.type))),
            "m": pa.array([None, [("k", bad.as_py())]], pa.map_(pa.string(), bad.type)),
            "s": pa.array([{"v": None}, {"v": bad.as_py()}], pa.struct([("v", bad.type)])),
        }
    )
    path = tmp_path / "v.parquet"
    pq.write_table(table, path)
    from tests.parquet_schema import edit

    def mark(elements: dict[str, Element]) -> None:
        for name in ("l.list.element", "m.key_value.value", "s.v"):
            elements[name].variant()

    edit(path, mark)
    assert [(kind, at, row) for kind, _, at, row in found(path)] == [
        ("unsorted_ids", "l.list.element.value", 1),
        ("unsorted_ids", "m.key_value.value.value", 1),
        ("unsorted_ids", "s.v.value", 1),
    ]


def test_files_that_mica_writes_are_sound(tmp_path: Path) -> None:
    from mica.cli.events import lines

    (tmp_path / "events.ndjson").write_bytes(lines(0, 3_000, seed=3))
    table = tmp_path / "t"
    mica.ingest_json(tmp_path / "events.ndjson", table, target_file_size="200KB")
    report = mica.check(table)
    assert report.files > 1
    assert list(report) == []
    assert mica.check([*table.glob("*.parquet")]).ok


# --- Tables ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    schema = "id BIGINT, s STRING, d DATE, ts TIMESTAMP, dec DECIMAL(10,2), f DOUBLE, v VARIANT"
    made = mica.Table.create(tmp_path / "t", schema, properties={"delta.enableVariantShredding": "true"})
    documents = [f'{{"a": {i}, "b": "t{i}", "c": {i}.5}}' for i in range(5)]
    variants = mica.variant.from_json([*documents, None])
    import datetime as dt

    rows = pa.table(
        {
            "id": pa.array([*range(5), None], pa.int64()),
            "s": [*"abcde", None],
            "d": pa.array([dt.date(2024, 1, day) for day in range(1, 7)]),
            "ts": pa.array([dt.datetime(2024, 1, 1, microsecond=7 * n, tzinfo=dt.UTC) for n in range(6)]),
            "dec": pa.array([Decimal(n) / 4 for n in range(6)], pa.decimal128(10, 2)),
            "f": [0.5, float("nan"), 2.0, None, -0.0, float("inf")],
        }
    )
    rows = rows.append_column(mica.schema.arrow.variant_field("v"), variants)
    made.append(rows, shredding={"v": "struct<a: bigint, b: string, c: decimal(10,1)>"})
    assert mica.check(tmp_path / "t").ok
    return tmp_path / "t"


def _of(side: str, column: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(stats: dict[str, Any]) -> None:
        stats[side][column] = value

    return change


def _path(key: str, value: bytes) -> str:
    return encode_bounds({key: value})


SIDES = ("minValues", "maxValues")
BOUNDS = [
    ("bound", "id", 0, _of("minValues", "id", 1)),
    ("bound", "id", 4, _of("maxValues", "id", 3)),
    ("bound", "s", 4, _of("maxValues", "s", "d")),
    ("bound", "d", 0, _of("minValues", "d", "2024-01-02")),
    ("bound", "ts", 0, _of("minValues", "ts", "2024-01-01T00:00:00.001Z")),
    ("bound", "dec", 5, _of("maxValues", "dec", 1.24)),
    ("bound", "f", 5, _of("maxValues", "f", 2.0)),
    ("bound", "v:$['a']", 0, _of("minValues", "v", _path("$['a']", ONE))),
    ("bound", "v:$['a']", 3, _of("maxValues", "v", _path("$['a']", TWO))),
    ("bound", "v:$['b']", 3, _of("maxValues", "v", _path("$['b']", b"\x09t2"))),
    ("bound", "v:$['c']", 0, _of("minValues", "v", _path("$['c']", b"\x20\x02" + (51).to_bytes(4, "little")))),
    ("bound_other_type", "v:$['b']", 0, lambda stats: [_of(side, "v", _path("$['b']", ONE))(stats) for side in SIDES]),
    ("bound_types", "v:$['a']", None, _of("minValues", "v", _path("$['a']", HELLO))),
    ("path_not_normalized", 'v:$["a"]', None, _of("minValues", "v", _path('$["a"]', ONE))),
    ("path_not_normalized", "v:$.a", None, _of("maxValues", "v", _path("$.a", ONE))),
    ("z85_length", "minValues.v", None, _of("minValues", "v", "0rr93000")),
    ("z85", "minValues.v", None, _of("minValues", "v", "~~~~~")),
    ("bounds_object", "minValues.v", None, _of("minValues", "v", "00000")),
    ("null_count", "id", None, _of("nullCount", "id", 0)),
    ("null_count", "v", None, _of("nullCount", "v", 3)),
    ("number_of_rows", "numRecords", None, lambda stats: stats.update(numRecords=7)),
]


@pytest.mark.parametrize(
    ("kind", "at", "row", "change"), BOUNDS, ids=[f"{i}-{case[0]}-{case[1]}" for i, case in enumerate(BOUNDS)]
)
def test_bounds_that_do_not_hold(
    table: Path, kind: str, at: str, row: int | None, change: Callable[[dict[str, Any]], None]
) -> None:
    edit(table, change)
    row_group = None if row is None else 0
    assert (kind, at, row_group, row) in [(v.kind, v.path, v.row_group, v.row) for v in mica.check(table)]


@pytest.mark.parametrize(("low", "rows"), [("0.5", []), ("1.5", [0])])
def test_exact_bounds_that_no_one_decimal_holds(table: Path, low: str, rows: list[int]) -> None:
    def change(stats: dict[str, Any]) -> None:
        for side, value in zip(SIDES, (Decimal(low), 10**37), strict=True):
            stats[side]["v"] = _path("$['c']", encode(value)[1])

    edit(table, change)
    assert [(v.kind, v.path, v.row) for v in mica.check(table)] == [("bound", "v:$['c']", row) for row in rows]


def test_a_bound_of_the_log_names_the_row_group_too(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    table.append(pa.table({"id": pa.array(range(70_000))}))
    edit(tmp_path / "t", _of("maxValues", "id", 69_000))
    (one,) = mica.check(tmp_path / "t")
    assert (one.kind, one.row_group, one.row) == ("bound", 1, 69_001)


def test_the_statistics_of_a_file_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each column took as long as the square of the columns."""
    asked = []
    monkeypatch.setattr(
        statistics, "read_stats", lambda texts, wanted: asked.append(wanted) or read_stats(texts, wanted)
    )
    table = mica.Table.create(tmp_path / "t", "a INT, b STRUCT<c: STRING, d: BINARY>, v VARIANT, e DATE")
    table.append([{"a": 1}])
    assert mica.check(tmp_path / "t").ok
    assert [[leaf.names for leaf in wanted] for wanted in asked] == [[("a",), ("b", "c"), ("e",)]]


def test_wide_bounds_and_empty_objects_are_legal(table: Path) -> None:
    def change(stats: dict[str, Any]) -> None:
        stats["minValues"] |= {"id": -100, "s": "", "v": "0rr9300000"}
        stats["maxValues"] |= {"s": "d\U0010ffff\U0010ffff" * 9 + "z", "ts": "2024-01-01T00:00:00.000Z"}

    edit(table, change)
    assert [(v.kind, v.path) for v in mica.check(table)] == [("bound", "s")], "e lies beyond d…"


def test_a_file_that_is_gone_and_one_that_is_cut(table: Path) -> None:
    (path,) = table.glob("*.parquet")
    shutil.copy(path, table / "copy")
    path.write_bytes(path.read_bytes()[:-20])
    (one,) = mica.check(table)
    assert (one.kind, one.file) == ("unreadable", path.name)
    path.unlink()
    (one,) = mica.check(table)
    assert one.kind == "missing_file"


def test_a_file_of_a_store_that_is_cut_is_a_violation_as_on_a_disk() -> None:
    """The check ended with FILE_TOO_SHORT, and said nothing of the other files."""
    with FaultyS3() as store:
        made = mica.Table.create("s3://b/t", "n BIGINT", storage_options=store.options)
        for number in range(2):
            made.append([{"n": number}])
        home = made.snapshot.storage
        first, second = (entry.path for entry in home.list() if entry.path.endswith(".parquet"))
        home.put(first, home.read(first)[:-20])
        home.delete(second)
        found = {one.file: one.kind for one in mica.check("s3://b/t", storage_options=store.options)}
        assert found == {first: "unreadable", second: "missing_file"}


@pytest.mark.parametrize("how", ["missing", "cut", "changed"])
def test_a_deletion_vector_that_cannot_be_read(tmp_path: Path, how: str) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT", properties={"delta.enableDeletionVectors": "true"})
    for _ in range(2):
        table.append([{"id": number} for number in range(9)])
    table.delete("id = 3")
    [vector] = tmp_path.glob("*.bin")
    data = vector.read_bytes()
    vector.unlink()
    if how != "missing":
        vector.write_bytes(data[:20] if how == "cut" else data[:-1] + bytes([data[-1] ^ 1]))
    kinds = [one.kind for one in mica.check(tmp_path)]
    assert kinds == ["deletion_vector"] * (1 if how == "changed" else 2)


def test_wrong_arguments(table: Path) -> None:
    with pytest.raises(mica.UserError):
        mica.check(table, limit=-1)
    with pytest.raises(mica.UserError):
        mica.check([*table.glob("*.parquet")], version=0)
    with pytest.raises(mica.MicaError) as caught:
        mica.check(table / "nothing")
    assert caught.value.code == "NOT_FOUND"


def test_statistics_are_named_physically_where_files_know_columns_by_id(tmp_path: Path) -> None:
    """PROTOCOL.md, "Reader Requirements for Column Mapping": columns of files by id, statistics by physical name."""
    mica.Table.create(tmp_path, "a BIGINT, b BIGINT").append(pa.table({"a": [1, 2], "b": [8, 9]}))
    log = tmp_path / "_delta_log"
    made = orjson.loads((log / f"{0:020}.json").read_bytes().splitlines()[2])["metaData"]
    schema = orjson.loads(made["schemaString"])
    for number, f in enumerate(schema["fields"], 1):
        f["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"p{f['name']}"}
    made |= {"schemaString": orjson.dumps(schema).decode(), "configuration": {"delta.columnMapping.mode": "id"}}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["columnMapping"],
                "writerFeatures": ["columnMapping"]}  # fmt: skip
    (log / f"{0:020}.json").write_bytes(b"\n".join(map(orjson.dumps, ({"protocol": protocol}, {"metaData": made}))))
    # Whoever made the file called each column by the other's name.
    ids = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": n}) for name, n in (("pb", "1"), ("pa", "2"))]
    [file] = tmp_path.glob("*.parquet")
    pq.write_table(pa.table([[1, 2], [8, 9]], schema=pa.schema(ids)), file)

    def state(bounds: dict[str, int]) -> mica.Report:
        stats = {"numRecords": 2, "minValues": bounds, "maxValues": {"pa": 2, "pb": 9}, "nullCount": {"pa": 0, "pb": 0}}
        add = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1,
               "dataChange": True, "stats": orjson.dumps(stats).decode()}  # fmt: skip
        (log / f"{1:020}.json").write_bytes(orjson.dumps({"add": add}))
        return mica.check(tmp_path)

    assert list(state({"pa": 1, "pb": 8})) == []
    assert mica.Table.open(tmp_path).scan(where="a = 2").to_arrow().to_pylist() == [{"a": 2, "b": 9}]
    assert [(v.kind, v.path) for v in state({"pa": 1, "pb": 9})] == [("bound", "b")]


@pytest.mark.parametrize("said", [0, 3, 5])
def test_counts_of_nulls_beside_deleted_rows(tmp_path: Path, said: int) -> None:
    """Of ten rows three are deleted; one of the others is null, so one to four of all are."""
    properties = {"delta.enableDeletionVectors": "true"}
    table = mica.Table.create(tmp_path, "id INT, s STRING", properties=properties)
    table.append([{"id": i, "s": None if i < 1 or i > 8 else "x"} for i in range(10)])
    table.delete("id IN (9, 4, 5)")
    log = tmp_path / "_delta_log" / f"{2:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            stats = json.loads(line["add"]["stats"])
            stats["nullCount"]["s"] = said
            line["add"]["stats"] = json.dumps(stats)
    log.write_text("\n".join(map(json.dumps, lines)))
    kinds = mica.check(tmp_path).violations["kind"].to_pylist()
    assert kinds == ([] if said == 3 else ["null_count"])


@pytest.mark.parametrize(
    ("ddl", "values", "bound", "kinds"),
    [
        ("n BIGINT", pa.array(["abc", "5"]), 1, {"column_type"}),
        ("n INT", pa.array([{"a": 1}]), 1, {"column_type"}),
        ("n TIMESTAMP", pa.array([0, 10**18]).cast(pa.timestamp("us", "UTC")), "2020-01-01T00:00:00.000Z", {"bound"}),
    ],
)  # fmt: skip
def test_columns_of_other_types_and_times_beyond_pythons_years(
    tmp_path: Path, ddl: str, values: pa.Array, bound: Any, kinds: set[str]
) -> None:
    mica.Table.create(tmp_path, ddl)
    pq.write_table(pa.table({"n": values}), tmp_path / "x.parquet")
    ends = {"minValues": {"n": bound}, "maxValues": {"n": bound}, "nullCount": {"n": 0}}
    stats = json.dumps({"numRecords": len(values), **ends})
    size = (tmp_path / "x.parquet").stat().st_size
    add = {"path": "x.parquet", "partitionValues": {}, "size": size, "modificationTime": 1, "dataChange": True}
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"add": {**add, "stats": stats}}))
    assert set(mica.check(tmp_path).violations["kind"].to_pylist()) == kinds


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"path": "../../x.parquet"}, "unreadable"),
        ({"path": "s3://elsewhere/x.parquet"}, "unreadable"),
        ({"deletionVector": {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1}}, "deletion_vector"),
    ],
)
def test_one_entry_that_leads_nowhere_does_not_end_a_check(tmp_path: Path, change: dict[str, Any], kind: str) -> None:
    table = mica.Table.create(tmp_path, "n INT")
    table.append([{"n": 1}])
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    line = next(line for line in map(json.loads, log.read_text().splitlines()) if "add" in line)
    other = {"add": {**line["add"], "path": "y.parquet", **change}}
    log.write_text("\n".join(map(json.dumps, [other, line])))
    if "path" not in change:
        shutil.copy(tmp_path / line["add"]["path"], tmp_path / "y.parquet")
    assert mica.check(tmp_path).violations["kind"].to_pylist() == [kind]


def test_a_partition_without_a_value_of_a_column_that_needs_one(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT, p INT NOT NULL", ["p"])
    table.append([{"id": 1, "p": 1}])
    log = tmp_path / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace('"partitionValues":{"p":"1"}', '"partitionValues":{"p":null}'))
    assert mica.check(tmp_path).totals.column("kind").to_pylist() == ["not_null"]


def test_bounds_of_dates_and_times_in_variants_are_compared_with_the_rows(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 1, 1, 2, 3, 4, dt.UTC)
    values = {"d": moment.date(), "n": moment.replace(tzinfo=None), "t": moment}
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": values}])
    assert mica.check(tmp_path).ok
    other = mica.Table.create(tmp_path / "other", "v VARIANT")
    later = {name: value + dt.timedelta(days=1) for name, value in values.items()}
    other.append([{"v": later}])
    (stats,) = mica.Table.open(tmp_path / "other").files()["stats"].to_pylist()
    edit(tmp_path, lambda told: (told.clear(), told.update(orjson.loads(stats))))
    totals = mica.check(tmp_path).totals
    assert set(totals.column("kind").to_pylist()) == {"bound"}
