"""`mica repair`: the same rows, sound; tables in one commit that changes no data; nothing in place."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica import compute as pc
from mica.checking.inspect import inspect_file
from mica.schema.arrow import variant_field
from tests.early import TEXT as EARLY
from tests.early import foreign, untyped, values, variants
from tests.parquet_schema import LOGICAL, write
from tests.variant_files import AB, HELLO, ONE, TWO, arrays, column, container, file, leaf, metadata, objects, read

Z = objects(z=leaf(pa.int32()))
UNSORTED = container([ONE, TWO], [2, 0])
UNSORTED_AB = container([ONE, TWO], [1, 0])


@pytest.mark.parametrize(
    "array",
    [
        column([ONE, UNSORTED, None, container([UNSORTED])]),
        column([ONE, container([ONE, TWO], [1, 0])], names=metadata("￰", "\U00010000")),
        column([{"value": UNSORTED, "typed_value": {"z": {"typed_value": 1}}}], Z, names=metadata("a", "b", "c", "z")),
        column([{"typed_value": [{"typed_value": 1}, {}]}, HELLO], arrays(leaf(pa.int32()))),
        column([{}, {"typed_value": 1}], pa.int32()),
    ],
)  # fmt: skip
def test_a_file_holds_the_same_rows_and_no_violations(tmp_path: Path, array: pa.Array) -> None:
    path = file(tmp_path / "in.parquet", array)
    before = path.read_bytes()
    assert not mica.check(path).ok
    done = mica.repair(path, tmp_path / "out.parquet")
    assert (done.rows, done.version, len(done.report)) == (len(array), None, len(mica.check(path)))
    assert mica.check(tmp_path / "out.parquet").ok
    assert read(tmp_path / "out.parquet") == read(path)
    assert path.read_bytes() == before


def test_an_early_file_stays_one(tmp_path: Path) -> None:
    """Ids out of order are read all the same; a row without one meaning is refused, and nothing is left."""
    rows = variants({"a": 1}, {"a": 2}, {"a": "x", "z": [1]}, None, ...)
    unsorted = metadata("a", "b") + UNSORTED_AB
    sound = [
        {"untyped_value": None, "object": {"a": {"untyped_value": None, "typed_value": i}, "b": None}}
        for i in range(60)
    ]
    odd = {"untyped_value": unsorted, "object": None}
    path = foreign(tmp_path / "in.parquet", [*sound, odd, None], EARLY)
    kinds = {v.kind for v in mica.check(path)}
    assert kinds == {"unsorted_ids"}
    done = mica.repair(path, tmp_path / "out.parquet")
    assert (done.rows, mica.check(tmp_path / "out.parquet").ok) == (62, True)
    assert values(tmp_path / "out.parquet") == values(path)
    assert "untyped_value" in str(pq.read_schema(tmp_path / "out.parquet").field("v").type)
    mica.write_parquet(rows, tmp_path / "fine.parquet", layout="early", shredding={"v": "struct<a: int>"})
    mica.repair(tmp_path / "fine.parquet", tmp_path / "again.parquet")
    assert values(tmp_path / "again.parquet") == values(tmp_path / "fine.parquet")
    both = {"untyped_value": untyped({"a": 1}), "object": {"a": {"untyped_value": None, "typed_value": 1}, "b": None}}
    broken = foreign(tmp_path / "broken.parquet", [both], EARLY)
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.repair(broken, tmp_path / "none.parquet")
    assert caught.value.code == "MALFORMED_SHREDDING"
    assert not (tmp_path / "none.parquet").exists()


def test_an_annotation_is_added_and_other_columns_keep_their_types(tmp_path: Path) -> None:
    array = column([ONE, HELLO])
    table = pa.table(
        {"n": pa.array([1, 2], pa.uint8()), "v": array, "t": pa.array([1, 2], pa.time32("ms"))},
        schema=pa.schema([pa.field("n", pa.uint8(), nullable=False), ("v", array.type), ("t", pa.time32("ms"))]),
    )
    path = write(tmp_path / "in.parquet", table, lambda elements: elements["v"].drop(LOGICAL))
    assert [(v.kind, v.path) for v in mica.check(path)] == [("missing_annotation", "v")]
    mica.repair(path, tmp_path / "out.parquet")
    schema = str(pq.ParquetFile(tmp_path / "out.parquet").schema)
    assert "required int32 field_id=-1 n (Int(bitWidth=8, isSigned=false))" in schema
    assert "v (Variant(1))" in schema
    assert "t (Time(isAdjustedToUTC=false, timeUnit=milliseconds" in schema
    assert mica.check(tmp_path / "out.parquet").ok


def _nodes(path: Path) -> list[tuple[str, str]]:
    return [(row["path"], row["type"]) for row in inspect_file(str(path))]


@pytest.mark.parametrize(
    ("typed", "row"),
    [
        (None, UNSORTED),
        (objects(a=leaf(pa.int8()), q=leaf(pa.string())), {"value": UNSORTED, "typed_value": {"a": {}, "q": {}}}),
        (arrays(leaf(pa.decimal128(38, 2))), {"value": UNSORTED}),
        (pa.time64("us"), {"value": UNSORTED}),
        (
            objects(q=leaf(), r=leaf(objects(s=leaf(pa.float32())))),
            {"value": UNSORTED, "typed_value": {"q": {}, "r": {}}},
        ),
    ],
)
def test_the_shredding_schema_stays(tmp_path: Path, typed: pa.DataType | None, row: object) -> None:
    """Rows of other types than the leaves' would be inferred otherwise."""
    names = metadata("a", "b", "c", "q", "r", "s")
    if isinstance(row, dict) and "typed_value" in row and "a" in row["typed_value"]:
        row = {**row, "value": container([ONE, TWO], [2, 1])}
    path = file(tmp_path / "in.parquet", column([row], typed, names=names))
    assert [v.kind for v in mica.check(path)] == ["unsorted_ids"]
    mica.repair(path, tmp_path / "out.parquet")
    assert mica.check(tmp_path / "out.parquet").ok
    assert sorted(_nodes(tmp_path / "out.parquet")) == sorted(_nodes(path))
    assert read(tmp_path / "out.parquet") == read(path)


@pytest.mark.parametrize("names", [("b", "a"), ("b", "a", "b"), ("\U00010000", "\ufff0")])
def test_a_broken_promise_of_the_sorted_bit_is_not_passed_on(tmp_path: Path, names: tuple[str, ...]) -> None:
    inner, path = container([ONE, TWO], [1, 0]), tmp_path / "in.parquet"
    file(path, column([inner, container([inner]), None], names=metadata(*names, ordered=True)))
    found = mica.read_parquet(path, columns={"v": "v", "w": "variant_get(v, '$[0]', 'variant')"}).to_arrow()
    for column_of in found.columns:
        marks = [one.as_py()[0] & 0x10 for one in pc.struct_field(column_of.drop_null(), "metadata")]
        assert not any(marks)
    mica.repair(path, tmp_path / "out.parquet")
    assert mica.check(tmp_path / "out.parquet").ok
    assert read(tmp_path / "out.parquet") == read(path)


def test_annotations_that_no_arrow_type_has_stay(tmp_path: Path) -> None:
    ids, texts = pa.array([b"0123456789abcdef"], pa.uuid()), pa.array(["{}"], pa.json_())
    columns = {
        "v": column([UNSORTED]),
        "u": ids,
        "s": pa.StructArray.from_arrays([texts, pa.array([1])], ["j", "n"]),
        "l": pa.ListArray.from_arrays([0, 1], ids),
        "ll": pa.LargeListArray.from_arrays([0, 1], texts),
        "m": pa.MapArray.from_arrays([0, 1], pa.array(["k"]), ids),
    }
    path = write(tmp_path / "in.parquet", pa.table(columns))
    mica.repair(path, tmp_path / "out.parquet")
    before, after = (pq.ParquetFile(p).schema for p in (path, tmp_path / "out.parquet"))
    kinds = [[(s.column(i).path, s.column(i).logical_type.type) for i in range(len(s))] for s in (before, after)]
    assert kinds[0] == kinds[1]
    assert [kind for _, kind in kinds[1]].count("UUID") == 3
    assert mica.read_parquet(tmp_path / "out.parquet").to_arrow() == mica.read_parquet(path).to_arrow()
    (tmp_path / "none").mkdir()
    pq.write_table(pq.read_table(path, columns=["u"]).slice(0, 0), tmp_path / "none" / "in.parquet")
    mica.repair(tmp_path / "none" / "in.parquet", tmp_path / "none" / "out.parquet")
    assert pq.ParquetFile(tmp_path / "none" / "out.parquet").schema.column(0).logical_type.type == "UUID"


def test_groups_without_the_annotation_are_found_by_names_with_dots_and_in_maps(tmp_path: Path) -> None:
    value = mica.variant.from_json(["[1]"])
    bare = pa.StructArray.from_arrays([value.field(0), value.field(1)], ["metadata", "value"])
    columns = {
        "a.b": bare,
        "c": pa.StructArray.from_arrays([bare], ["d.e"]),
        "m": pa.MapArray.from_arrays([0, 1], pa.array(["k"]), bare),
        "l": pa.ListArray.from_arrays([0, 1], bare),
    }
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), path)
    assert [v.kind for v in mica.check(path)].count("missing_annotation") == 4
    mica.repair(path, tmp_path / "out.parquet")
    found = "`a.b` VARIANT,c STRUCT<`d.e`: VARIANT>,m MAP<STRING, VARIANT>,l ARRAY<VARIANT>"
    assert str(mica.read_parquet(tmp_path / "out.parquet").schema) == found


@pytest.mark.parametrize(
    ("version", "legacy", "kept"), [("3.2.0", True, "3.2.0"), ("2.4.8", False, None), ("4.2.1", False, "4.2.1")]
)
def test_dates_of_the_old_calendar_are_told_once(tmp_path: Path, version: str, legacy: bool, kept: str | None) -> None:
    """The footer said again of dates that were today's already that they are the old ones."""
    footer = {"org.apache.spark.version": version, "other": "stays"}
    footer |= {"org.apache.spark.legacyDateTime": "", "org.apache.spark.timeZone": "UTC"} if legacy else {}
    days = pa.array([-280_000, 18_000], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"d": days}).replace_schema_metadata(footer), tmp_path / "in.parquet")
    mica.repair(tmp_path / "in.parquet", tmp_path / "out.parquet")
    found = [mica.read_parquet(tmp_path / name).to_arrow() for name in ("in.parquet", "out.parquet")]
    assert found[0] == found[1]
    left = {key.decode(): text.decode() for key, text in pq.read_metadata(tmp_path / "out.parquet").metadata.items()}
    left.pop("ARROW:schema", None)
    assert left == {"other": "stays"} | ({} if kept is None else {"org.apache.spark.version": kept})


def test_an_early_column_stays_early_beside_a_faulty_standard_one(tmp_path: Path) -> None:
    row = {"untyped_value": None, "object": {"a": {"typed_value": 7}, "b": None}}
    early = pa.array([row, {"untyped_value": untyped([1, {"z": None}])}, None], EARLY)
    standard = column([UNSORTED, ONE, None])
    path = write(tmp_path / "in.parquet", pa.table({"e": early, "v": standard}))
    assert [(v.kind, v.path, v.row) for v in mica.check(path)] == [("unsorted_ids", "v.value", 0)]
    mica.repair(path, tmp_path / "out.parquet")
    assert mica.check(tmp_path / "out.parquet").ok
    both = [mica.read_parquet(p, early=True).to_pandas()["e"].tolist() for p in (path, tmp_path / "out.parquet")]
    assert both == [[{"a": 7}, [1, {"z": None}], None]] * 2
    assert sorted(_nodes(tmp_path / "out.parquet")) == sorted(_nodes(path))
    assert "object" in {f.name for f in pq.read_schema(tmp_path / "out.parquet").field("e").type}


def test_an_early_row_without_one_meaning_is_refused(tmp_path: Path) -> None:
    rows = [None, {"untyped_value": untyped({"a": 1}), "object": {"a": {"typed_value": 7}, "b": None}}]
    path = foreign(tmp_path / "in.parquet", rows, EARLY)
    assert [(v.kind, v.row) for v in mica.check(path)] == [("early_row", 1)]
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.repair(path, tmp_path / "out.parquet")
    assert caught.value.context["row"] == 1
    assert not (tmp_path / "out.parquet").exists()


def test_what_has_no_one_meaning_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    both = {"value": container([ONE], [1]), "typed_value": {"a": {}, "b": {"typed_value": 1}}}
    path = file(tmp_path / "in.parquet", column([HELLO, both], AB))
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.repair(path, tmp_path / "out.parquet")
    assert (caught.value.context["rule"], caught.value.context["row"]) == (37, 1)
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_a_type_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    duckdb.sql("SELECT INTERVAL 1 DAY AS i, 1 AS n").write_parquet(str(tmp_path / "in.parquet"))
    with pytest.raises(mica.UserError, match='"i" of type Interval') as caught:
        mica.repair(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert caught.value.code == "UNSUPPORTED_TYPE"
    assert [p.name for p in tmp_path.iterdir()] == ["in.parquet"]


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    path = file(tmp_path / "in.parquet", column([UNSORTED]))
    with pytest.raises(mica.UserError) as caught:
        mica.repair(path, path)
    assert caught.value.code == "FILE_EXISTS"
    with pytest.raises(mica.UserError):
        mica.repair(path)
    assert mica.repair(file(tmp_path / "none.parquet", column([])), tmp_path / "empty.parquet").rows == 0


def test_a_table_gets_one_commit_for_its_faulty_files(tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = mica.Table.create(root, "p STRING, v VARIANT", partition_by=["p"], properties={"delta.appendOnly": "true"})
    for n in range(3):
        variants = mica.variant.from_json([f'{{"c": 1, "a": {n}}}', None])
        rows = pa.Table.from_arrays(
            [pa.array([str(n)] * 2), variants], schema=pa.schema([("p", pa.string()), variant_field("v")])
        )
        table.append(rows)
    # Another writer's file stands where ours stood: ids out of order, and no bounds.
    (first,) = (root / "p=0").glob("*.parquet")
    file(first, column([UNSORTED, None]))
    log = root / "_delta_log" / f"{1:020}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"] |= {"stats": '{"numRecords":2}', "size": first.stat().st_size}
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    table = mica.Table.open(root)
    before = sorted(table.scan().to_pandas().astype(str).to_dict("records"), key=str)

    done = mica.repair(table)
    assert (len(done.files), done.rows, done.version, table.version) == (1, 2, 4, 4)
    assert mica.check(root).ok
    assert sorted(mica.Table.open(root).scan().to_pandas().astype(str).to_dict("records"), key=str) == before
    actions = [orjson.loads(line) for line in (root / "_delta_log" / f"{4:020}.json").read_bytes().splitlines()]
    changed = [action[name] for action in actions for name in ("add", "remove") if name in action]
    assert [action["dataChange"] for action in changed] == [False, False]
    assert changed[1]["partitionValues"] == {"p": "0"}
    assert mica.repair(root).version is None, "nothing is wrong any more"


def test_a_table_that_cannot_be_read_stays_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = mica.Table.create(root, "v VARIANT")
    table.append(pa.Table.from_arrays([mica.variant.from_json(['{"a":1}'])], schema=pa.schema([variant_field("v")])))
    (path,) = root.glob("*.parquet")
    file(path, column([HELLO, {"value": ONE, "typed_value": 1}], pa.int32()))
    files = sorted(root.rglob("*"))
    with pytest.raises(mica.CorruptDataError):
        mica.repair(root)
    assert sorted(root.rglob("*")) == files
    assert mica.Table.open(root).version == 1


def test_a_table_that_mica_cannot_write_is_refused_by_the_feature(tmp_path: Path) -> None:
    root = tmp_path / "t"
    table = mica.Table.create(root, "v VARIANT")
    table.append(pa.Table.from_arrays([mica.variant.from_json(['{"a":1}'])], schema=pa.schema([variant_field("v")])))
    log = root / "_delta_log" / f"{0:020}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"]["writerFeatures"].append("icebergCompatV3")
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    (path,) = root.glob("*.parquet")
    file(path, column([UNSORTED]))
    with pytest.raises(mica.UnsupportedTableError, match="icebergCompatV3") as caught:
        mica.repair(root)
    assert caught.value.code == "UNSUPPORTED_WRITER_FEATURE"
    assert mica.Table.open(root).version == 1


#: In a footer: 300 nulls are stated, with bounds, and 301, without; SizeStatistics tell of a value, and of none.
STATED = (rb"\x36\xd8\x04\x28\x0a.{10}\x18\x0a.{10}(\x11\x11)?\x00", b"\x36\xda\x04\x00")
SIZES = (rb"\x16\x14\x29\x36\x00\xd8\x04\x02", b"\x16\x00\x29\x36\x00\xda\x04\x00")


@pytest.mark.parametrize("hides", [False, True])
def test_values_that_a_wrong_null_count_denies_are_not_dropped(tmp_path: Path, hides: bool) -> None:
    """They are read if anything else in the footer tells of them; else the file is not repaired.

    The folder of its partition is named with an escape, which the log escapes again.
    """
    root = tmp_path / "t"
    table = mica.Table.create(root, "v VARIANT, p STRING", ["p"])
    values = [{"a": 1, "rest": "here"}, *({"a": n} for n in range(300))]
    table.append([{"v": value, "p": "x=y"} for value in values], shredding="struct<a: int>")
    rows = table.scan(columns={"j": "to_json(v)"}).to_arrow()
    (path,) = root.rglob("*.parquet")
    data = path.read_bytes()
    at = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, count = re.subn(STATED[0], STATED[1], data[at:-8], flags=re.DOTALL)
    assert count == 1
    if hides:
        footer, count = re.subn(SIZES[0], SIZES[1], footer)
        assert count == 1
    path.write_bytes(
        b"".join([data[:at].ljust(len(data) - 8 - len(footer)), footer, struct.pack("<I", len(footer)), b"PAR1"])
    )
    assert ("footer_null_count", "v.value") in [(v.kind, v.path) for v in mica.check(root)]
    files = sorted(root.rglob("*"))
    for source, target in ((path, tmp_path / "out.parquet"), (root, None)):
        if not hides:
            mica.repair(source, target)
            continue
        with pytest.raises(mica.CorruptDataError, match=r"v\.value .* states 301 nulls, but there are 300"):
            mica.repair(source, target)
        assert sorted(root.rglob("*")) == files
    assert (tmp_path / "out.parquet").exists() != hides
    found = mica.Table.open(root).scan(columns={"j": "to_json(v)"}).to_arrow()
    assert (found == rows) != hides
    assert mica.check(root).ok != hides


def test_what_the_log_names_and_is_gone_is_told_as_that(tmp_path: Path) -> None:
    """The hint was to check the path, which the user had not given."""
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableDeletionVectors": "true"})
    table.append([{"id": 1}, {"id": 2}])
    table.delete("id = 1")
    (vectors,), (data,) = tmp_path.glob("*.bin"), tmp_path.glob("*.parquet")
    for path, reading in ((vectors, table.to_arrow), (data, lambda: mica.repair(tmp_path))):
        held = path.read_bytes()
        path.unlink()
        for ask in (reading, lambda: mica.repair(tmp_path)):
            with pytest.raises(mica.StorageError, match=f"{path} is gone: ") as caught:
                ask()
            assert caught.value.code == "NOT_FOUND"
            assert "ut the file back" in str(caught.value.hint)
        path.write_bytes(held)
    vectors.write_bytes(b"\x01abc")
    with pytest.raises(mica.StorageError, match="ends at byte 4") as caught:
        mica.repair(tmp_path)
    assert str(caught.value.hint).startswith("Restore it")


def test_upkeep_tells_what_is_gone_as_a_scan_does(tmp_path: Path) -> None:
    """`restats` and `convert_files` said to check a path that nobody had given."""
    place = tmp_path / "t"
    table = mica.Table.create(place, "id INT, v VARIANT")
    table.append([{"id": 1, "v": 2}])
    (data,) = place.glob("*.parquet")
    data.unlink()
    for ask in (table.restats, lambda: mica.convert_files(place, tmp_path / "other")):
        with pytest.raises(mica.StorageError, match=f"{data} is gone: version 1 of the table names it") as caught:
            ask()
        assert "Table.fsck" in str(caught.value.hint)
