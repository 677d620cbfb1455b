"""Converting files from layout to layout: the same values, column by column where the other layout has the place."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import mica
from mica.checking.inspect import inspect_file
from mica.log.transaction import Transaction
from mica.variant import kernel
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
    assert {row["path"] for row in inspect_file(str(tmp_path / "table" / table.files()["path"][0].as_py()))}


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


@pytest.mark.parametrize("layout", ["early", "standard"])
def test_variants_that_are_never_null_move(tmp_path: Path, layout: Any) -> None:
    """Pages of a column without levels got some, which no reader expects: the rows could not be read."""
    documents = [{"a": i, "b": {"c": f"x{i}"}, "l": [i]} for i in range(9)]
    rows = variants(*documents)
    rows = rows.cast(pa.schema([rows.schema.field("v").with_nullable(False)]))
    mica.write_parquet(rows, tmp_path / "a.parquet", layout=layout, shredding=SHREDDING)
    assert not pq.read_schema(tmp_path / "a.parquet").field("v").nullable
    other: Any = {"early": "standard", "standard": "early"}[layout]
    done = mica.convert_files(tmp_path / "a.parquet", tmp_path / "t", to="parquet", layout=other)
    assert done.rebuilt == 0
    assert values(tmp_path / "t") == documents
    assert mica.read_parquet(tmp_path / "t", where="v:b.c::string = 'x3'").count() == 1


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
    assert "2 rows copied, 0 rebuilt, 3 converted" in str(done)
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


def test_a_column_that_is_called_as_a_mask_keeps_its_values(tmp_path: Path) -> None:
    """The kernel's mask of the rows of `v` that were rebuilt has the name of another column here."""
    table = mica.Table.create(tmp_path / "t", "v VARIANT, `v!` STRING, z STRING")
    rows = [{"v": {"a": a}, "v!": f"x{a}", "z": "z"} for a in (1, "odd", 2)]  # the odd one is no page to copy
    table.append(rows, shredding="struct<a: bigint>")
    done = mica.convert_files(table, tmp_path / "early", layout="early")
    assert (done.rows, done.copied) == (3, 0)
    assert mica.read_parquet(tmp_path / "early").to_arrow().column("v!").to_pylist() == ["x1", "xodd", "x2"]


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


def rows(scan: mica.Scan) -> list[str]:
    return sorted(map(str, scan.to_pandas().to_dict("records")))


def test_a_table_is_converted_by_its_log(tmp_path: Path) -> None:
    """Files that were replaced stay where they are until somebody vacuums: they are no part of the table."""
    table = mica.Table.create(tmp_path / "table", "v variant", properties={"delta.enableVariantShredding": "true"})
    table.append(variants({"a": 1}, {"a": 2}))
    table.overwrite(variants(*DOCUMENTS))
    table.append(variants(*([{"a": 7}] * 50)))
    done = mica.convert_files(tmp_path / "table", tmp_path / "early", layout="early")
    assert (done.rows, done.files, done.rebuilt) == (len(DOCUMENTS) + 50, 2, 0)
    assert rows(mica.read_parquet(tmp_path / "early")) == rows(table.scan())
    old = mica.convert_files(mica.Table.open(tmp_path / "table", 1), tmp_path / "old", layout="early")
    assert (old.rows, values(tmp_path / "old")) == (2, [{"a": 1}, {"a": 2}])
    again = mica.convert_files(table, tmp_path / "again")
    assert (again.rows, again.copied, again.rebuilt) == (len(DOCUMENTS) + 50, len(DOCUMENTS) + 50, 0)
    assert rows(mica.Table.open(tmp_path / "again").scan()) == rows(table.scan())
    assert not mica.check(mica.Table.open(tmp_path / "again")).violations.num_rows
    with pytest.raises(mica.UserError) as caught:
        mica.convert_files([str(tmp_path / "table"), str(tmp_path / "early")], tmp_path / "both")
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("layout", ["standard", "early"])
def test_no_rows_become_a_file_that_has_the_columns(tmp_path: Path, layout: str) -> None:
    mica.write_parquet(variants(), tmp_path / "a.parquet", layout=layout, shredding=SHREDDING)
    for to in ("standard", "early"):
        done = mica.convert_files(tmp_path / "a.parquet", tmp_path / to, layout=to, to="parquet")
        assert (done.rows, done.files, done.copied) == (0, 1, 0)
        assert str(mica.read_parquet(tmp_path / to).schema) == "v VARIANT"
    mica.convert_files(tmp_path / "a.parquet", tmp_path / "table")
    assert mica.Table.open(tmp_path / "table").scan().count() == 0


def test_partitions_become_columns(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "table", "v variant, p string", partition_by=["p"])
    data = variants({"a": 1}, {"a": 2}, {"a": 3}).append_column("p", pa.array(["x", None, "x"]))
    table.append(data)
    done = mica.convert_files(tmp_path / "table", tmp_path / "early", layout="early")
    assert (done.rows, done.rebuilt) == (3, 3)
    assert rows(mica.read_parquet(tmp_path / "early", columns={"v": "v", "p": "p"})) == rows(table.scan())


def test_types_that_spark_lacks_are_told(tmp_path: Path) -> None:
    """A file whose pages were copied says of its Variants what the one says that a writer made."""
    for shredding, late in (("struct<a: bigint>", False), ({"a": pa.timestamp("ns")}, True)):
        source = tmp_path / f"{late}.parquet"
        mica.write_parquet(variants({"a": 1} if not late else {}), source, layout="early", shredding={"v": shredding})
        mica.convert_files(source, tmp_path / f"{late}")
        [log] = (tmp_path / f"{late}" / "_delta_log").glob("*.json")
        assert ('"mica.lateTypes":"no"' in log.read_text()) == (not late)


def test_a_conversion_that_fails_leaves_nothing(tmp_path: Path) -> None:
    for i in range(3):
        mica.write_parquet(variants({"a": i}), tmp_path / "src" / f"{i}.parquet", layout="early", shredding=SHREDDING)
    foreign(tmp_path / "src" / "z.parquet", [{"untyped_value": b"\x01", "object": None}], TEXT)
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "part-of-others.parquet").touch()
    for target, to in (("table", "delta"), ("folder", "parquet")):
        with pytest.raises(mica.CorruptDataError):
            mica.convert_files(tmp_path / "src", tmp_path / target, to=to)  # type: ignore[arg-type]
        left = [p.name for p in (tmp_path / target).rglob("*") if p.is_file()]
        assert left == (["part-of-others.parquet"] if to == "delta" else [])


def test_a_conversion_whose_commit_may_have_landed_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mica.write_parquet(variants({"a": 1}), tmp_path / "src" / "1.parquet", layout="early", shredding=SHREDDING)
    commit = Transaction.commit

    def lost(self: Transaction, **options: Any) -> None:
        commit(self, **options)
        raise mica.StorageError("IO", "the answer was lost")

    monkeypatch.setattr(Transaction, "commit", lost)
    with pytest.raises(mica.StorageError, match="lost"):
        mica.convert_files(tmp_path / "src", tmp_path / "table")
    assert mica.Table.open(tmp_path / "table").scan().to_arrow().num_rows == 1


def test_modes_of_a_conversion(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT, v VARIANT")
    table.append([{"n": 1, "v": {"a": 1}}])
    folder = tmp_path / "early"
    for mode, rows in (("error", 1), ("append", 2), ("ignore", 2), ("overwrite", 1)):
        done = mica.convert_files(table, folder, layout="early", mode=mode)  # type: ignore[arg-type]
        assert mica.read_parquet(folder).count() == rows
        assert done.rows == (0 if mode == "ignore" else 1)
    made = mica.convert_files(folder, tmp_path / "back", mode="ignore")
    again = mica.convert_files(folder, tmp_path / "back", mode="ignore")
    assert (made.version, made.rows, again.version, again.rows) == (0, 1, None, 0)
    for mode in ("append", "overwrite"):
        with pytest.raises(mica.UserError) as caught:
            mica.convert_files(folder, tmp_path / "back", mode=mode)  # type: ignore[arg-type]
        assert caught.value.code == "INVALID_ARGUMENT", "a table that is there has a schema and a history of its own"
    assert mica.Table.open(tmp_path / "back").version == 0


@pytest.mark.parametrize("layout", ["standard", "early"])
def test_partitions_of_the_source_and_of_the_target(tmp_path: Path, layout: str) -> None:
    rows = variants(*DOCUMENTS)
    names = pa.array([f"{i % 2}{i % 3}" for i in range(len(DOCUMENTS))])
    rows = rows.append_column("k", names).append_column("d", pa.array(range(len(DOCUMENTS)), pa.int64()))
    mica.write_parquet(rows, tmp_path / "src", shredding=SHREDDING, partition_by=["k"])
    mica.convert_files(tmp_path / "src", tmp_path / "out", to="parquet", layout=layout, partition_by=["d"])
    found = mica.read_parquet(tmp_path / "out").to_pandas().sort_values("d")
    assert found.columns.tolist() == ["v", "k", "d"]
    assert (found["k"].tolist(), list(map(str, found["v"]))) == (names.to_pylist(), list(map(str, expected())))
    mica.convert_files(tmp_path / "out", tmp_path / "table", partition_by=["k"])
    table = mica.Table.open(tmp_path / "table")
    assert table.partition_by == ("k",)
    assert sorted(table.partitions()["k"].to_pylist()) == sorted(set(names.to_pylist()))
    assert table.count() == len(DOCUMENTS)


def test_names_that_differ_from_the_files_in_case_are_found(tmp_path: Path) -> None:
    """Spark finds them, and delta-spark's CONVERT TO DELTA makes such tables."""
    table = mica.Table.create(tmp_path / "t", "Aa INT, v VARIANT, Ss STRUCT<Xx: INT, v: VARIANT>")
    table.append([{"Aa": 1, "v": {"k": 1}, "Ss": {"Xx": 2, "v": [3]}}])
    for log in (tmp_path / "t" / "_delta_log").glob("*.json"):
        log.write_text(log.read_text().replace("Aa", "aA").replace("Xx", "xX"))
    table = mica.Table.open(tmp_path / "t")
    for target, to in (("table", "delta"), ("folder", "parquet")):
        mica.convert_files(table, tmp_path / target, to=to)  # type: ignore[arg-type]
    found = [mica.Table.open(tmp_path / "table").scan(), mica.read_parquet(tmp_path / "folder")]
    assert [rows(scan) for scan in found] == [rows(table.scan())] * 2
    assert "'aA': 1" in rows(table.scan())[0]


@pytest.mark.parametrize("layout", ["standard", "early"])
def test_variants_that_a_file_lacks_are_variants(tmp_path: Path, layout: str) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT, r STRUCT<v: VARIANT>")
    table.append([{"n": 1, "r": {"v": {"a": 1}}}])
    table.add_columns("w VARIANT, s STRUCT<u: VARIANT>, l ARRAY<VARIANT>").add_columns("m INT", into="r")
    mica.convert_files(table, tmp_path / "out", to="parquet", layout=layout)  # type: ignore[arg-type]
    found = mica.read_parquet(tmp_path / "out")
    assert (str(found.schema), rows(found)) == (str(table.schema), rows(table.scan()))
    mica.convert_files(table, tmp_path / "table")
    assert mica.check(tmp_path / "table").ok


def test_texts_of_char_keep_their_blanks_outside_of_a_table(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT, s STRUCT<h: CHAR(3)>")
    table.append([{"n": 1, "s": {"h": "x"}}])
    for partitions in ([], ["n"]):
        mica.convert_files(table, tmp_path / str(len(partitions)), to="parquet", partition_by=partitions)
        found = mica.read_parquet(tmp_path / str(len(partitions)), columns=["s"])
        assert rows(found) == rows(table.scan(columns=["s"])) == ["{'s': {'h': 'x  '}}"]


def test_dates_of_the_old_calendar_are_no_pages_to_copy(tmp_path: Path) -> None:
    day = pa.array([-280_000], pa.int32()).cast(pa.date32())
    writer = kernel.FileWriter(
        pa.schema([("d", day.type)]),
        path=str(tmp_path / "a.parquet"),
        key_value_metadata={"org.apache.spark.version": "3.2.0", "org.apache.spark.legacyDateTime": ""},
    )
    writer.write(pa.record_batch([day], ["d"]))
    writer.close()
    done = mica.convert_files(tmp_path / "a.parquet", tmp_path / "t")
    assert done.copied == 0
    found = mica.Table.open(tmp_path / "t").scan()
    assert rows(found) == rows(mica.read_parquet(tmp_path / "a.parquet"))


def test_columns_that_were_widened_are_written_with_their_types(tmp_path: Path) -> None:
    """Pages were copied with the old type, and bounds of days were read as microseconds."""
    table = mica.Table.create(
        tmp_path / "src", "d DATE, n INT, f FLOAT, v VARIANT", properties={"delta.enableTypeWidening": "true"}
    )
    table.append([{"d": date(2020, 1, 1), "n": 7, "f": 0.5, "v": {"a": 1}}])
    for column, type_ in {"d": "TIMESTAMP_NTZ", "n": "BIGINT", "f": "DOUBLE"}.items():
        table.alter_column(column, type=type_)
    mica.convert_files(tmp_path / "src", tmp_path / "table")
    found = mica.Table.open(tmp_path / "table")
    where = "d = TIMESTAMP_NTZ'2020-01-01' AND n = 7 AND f = 0.5 AND v:a::int = 1"
    assert found.scan(where).count() == 1
    assert mica.check(found).ok
    assert pq.ParquetFile(found.file_uris()[0]).schema_arrow.field("n").type == pa.int64()


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (pa.array([1_000, 1_234_567], pa.timestamp("ns")), "1234567"),
        (pa.array([0, 2**62], pa.timestamp("ms", "UTC")), str(2**62)),
    ],
)
def test_a_time_that_no_timestamp_holds_is_told_with_the_file(tmp_path: Path, times: pa.Array, why: str) -> None:
    for name, some in (("a", times[:1]), ("b", times)):
        pq.write_table(pa.table({"t": some, "id": range(len(some))}), tmp_path / f"{name}.parquet")
    scan = mica.read_parquet(tmp_path)
    for run in (scan.to_arrow, lambda: mica.convert_files(tmp_path / "b.parquet", tmp_path / "t")):
        with pytest.raises(mica.CorruptDataError, match="round the times") as caught:
            run()
        assert caught.value.code == "INCOMPATIBLE_TYPE"
        assert "column t that is no TIMESTAMP" in caught.value.message
        assert why in caught.value.message
        assert str(tmp_path / "b.parquet") in caught.value.message
    assert mica.read_parquet(tmp_path, columns=["id"]).count() == 3


def test_a_full_disk_is_told_with_the_file() -> None:
    """The error named no file where pages are copied."""

    class Full:
        def call(self, _: object) -> None:
            raise mica.StorageError("DISK_FULL", "No space left on device (os error 28)", hint="Free some space.")

    made: Any = kernel.Transcription(Full(), Mock(), "/t/x.parquet")  # type: ignore[arg-type]
    for step in (made.step, made.close):
        with pytest.raises(mica.StorageError, match=r"/t/x\.parquet could not be written: No space left") as caught:
            step()
        assert caught.value.context["path"] == "/t/x.parquet"
