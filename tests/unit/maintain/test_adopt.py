"""A folder of Parquet files becomes a table in place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import mica
from mica.cli.app import app
from mica.errors import MicaError
from tests.parquet_schema import CONVERTED, I32, Element, write


def folder(path: Path) -> Path:
    """Two partitions of two files each, one with a blank in its directory's name."""
    for number in range(4):
        place = path / f"day=2020-01-0{1 + number % 2}" / "k=a%20b"
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            pa.table({"id": range(number * 10, number * 10 + 10), "s": [f"s{number}"] * 10}),
            place / f"{number}.parquet",
        )
    (path / "_SUCCESS").write_text("")
    (path / ".hidden.parquet").write_bytes(b"no file")
    return path


def test_files_stay_and_the_log_names_them(tmp_path: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in folder(tmp_path).rglob("*") if file.is_file()}
    table = mica.Table.convert_to_delta(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in before} == before
    assert str(table.schema) == "id BIGINT,s STRING,day DATE,k STRING"
    assert (table.version, table.partition_by, table.count()) == (0, ("day", "k"), 40)
    rows = table.to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], str(row["day"]), row["k"]) for row in rows] == [
        (i, f"2020-01-0{1 + i // 10 % 2}", "a b") for i in range(40)
    ]
    assert len(table.scan(where="id = 25").plan.kept) == 1
    assert len(table.scan(where="day = date'2020-01-01'").plan.kept) == 2
    info = table.history().to_pylist()[0]
    assert (info["operation"], dict(info["operation_metrics"])) == ("CONVERT", {"numConvertedFiles": "4"})
    assert mica.check(table).ok
    table.delete("id < 5")
    table.append([{"id": 99, "s": "n", "day": rows[0]["day"], "k": None}])
    assert mica.Table.open(tmp_path).count() == 36


def test_partition_columns_get_the_given_types(tmp_path: Path) -> None:
    table = mica.Table.convert_to_delta(folder(tmp_path), "K STRING, day STRING")
    assert str(table.schema) == "id BIGINT,s STRING,day STRING,k STRING"


def test_variants_keep_the_bounds_of_their_paths(tmp_path: Path) -> None:
    for number in range(3):
        mica.write_parquet([{"id": i, "v": {"a": i, "s": f"t{i:03}"}} for i in range(number * 50, number * 50 + 50)],
                           tmp_path / "d", {"v": "STRUCT<a: BIGINT, s: STRING>"}, mode="append")  # fmt: skip
    table = mica.Table.convert_to_delta(tmp_path / "d")
    assert table.files().num_rows == 3
    assert len(table.scan(where="v:a::int = 70").plan.kept) == 1
    assert len(table.scan(where="v:s::string > 't120'").plan.kept) == 1
    assert table.scan(where="v:a::int = 70").count() == 1
    assert mica.check(table).ok


def test_required_columns_become_nullable(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    pq.write_table(pa.table({"id": [1]}, schema=schema), tmp_path / "a.parquet")
    table = mica.Table.convert_to_delta(tmp_path)
    assert table.schema.field("id").nullable
    table.append([{"id": None}])
    assert table.count() == 2


def test_an_enum_is_a_string(tmp_path: Path) -> None:
    enum = 4

    def annotate(elements: dict[str, Element]) -> None:
        elements["kind"].set(CONVERTED, I32, enum)

    write(tmp_path / "a.parquet", pa.table({"kind": [b"a", b"b", None]}), annotate, variants=())
    table = mica.Table.convert_to_delta(tmp_path)
    assert str(table.schema) == "kind STRING"
    assert table.scan(where="kind = 'b'").to_arrow().to_pylist() == [{"kind": "b"}]


def code(path: Path, *arguments: Any) -> str:
    with pytest.raises(MicaError) as raised:
        mica.Table.convert_to_delta(path, *arguments)
    assert not (path / "_delta_log").exists() or raised.value.code == "TABLE_EXISTS"
    return raised.value.code


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    mica.Table.create(tmp_path / "t", "id INT")
    assert code(tmp_path / "t") == "TABLE_EXISTS"
    (tmp_path / "empty").mkdir()
    assert code(tmp_path / "empty") == "NOT_FOUND"
    (tmp_path / "begun" / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "begun" / "a.parquet")
    assert mica.read_parquet(str(tmp_path / "begun")).count() == mica.Table.convert_to_delta(tmp_path / "begun").count()
    found = folder(tmp_path / "f")
    assert code(found, "day DATE") == "INVALID_PARTITION_COLUMN"
    assert code(found, "day INT, k STRING") == "INVALID_PARTITION_VALUE"
    pq.write_table(pa.table({"id": [1]}), found / "stray.parquet")
    assert code(found) == "INVALID_PARTITION_COLUMN"
    (tmp_path / "g").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "g/a.parquet")
    pq.write_table(pa.table({"id": ["x"]}), tmp_path / "g/b.parquet")
    assert code(tmp_path / "g") == "INCOMPATIBLE_FILES"
    (tmp_path / "h").mkdir()
    (tmp_path / "h/a.parquet").write_bytes(b"PAR1 nothing PAR1")
    assert code(tmp_path / "h") == "CORRUPT_FILE"
    (tmp_path / "i" / "a:").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "i/a:/a.parquet")
    assert code(tmp_path / "i") == "INVALID_NAME"


def test_partitions_with_odd_names(tmp_path: Path) -> None:
    for number, version in enumerate(["1.2.3", "10.0.0.1", "%25a"]):
        place = tmp_path / f"_v={version}"
        place.mkdir()
        hidden = pa.nulls(1) if number else ["the directory's stands for it"]  # also for a type that tables cannot have
        pq.write_table(pa.table({"id": [number], "_V": hidden}), place / "a.parquet")
    table = mica.Table.convert_to_delta(tmp_path)
    assert str(table.schema) == "id BIGINT,_v STRING"
    assert {row["id"]: row["_v"] for row in table.to_arrow().to_pylist()} == {0: "1.2.3", 1: "10.0.0.1", 2: "%a"}
    assert table.scan(where="_v = '10.0.0.1'").to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("type_", "inner"),
    [
        (pa.timestamp("ns"), False),
        (pa.timestamp("ns", "UTC"), True),
        (pa.float16(), False),
        (pa.null(), False),
    ],
)
def test_types_that_no_delta_reader_knows_are_refused(tmp_path: Path, type_: pa.DataType, inner: bool) -> None:
    values = pa.nulls(2, type_)
    values = pa.StructArray.from_arrays([values], ["x"]) if inner else values
    pq.write_table(pa.table({"id": [1, 2], "t": values}), tmp_path / "a.parquet")
    if type_ == pa.null():
        pq.write_table(pa.table({"id": [3], "t": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(MicaError, match=r"a\.parquet holds .* in the column 't'") as caught:
        mica.Table.convert_to_delta(tmp_path)
    assert caught.value.code == "UNSUPPORTED_TYPE"
    assert not (tmp_path / "_delta_log").exists()
    mica.convert_files(tmp_path, tmp_path / "t")  # the way out
    assert mica.Table.open(tmp_path / "t").count() == 2 + (type_ == pa.null())


@pytest.mark.parametrize("column", ["v", "s.v"])
def test_early_variants_are_refused(tmp_path: Path, column: str) -> None:
    """They became structs of the groups of their layout."""
    document = {"v": {"a": 1}}
    rows = [document if column == "v" else {"s": document}]
    ddl = "v VARIANT" if column == "v" else "s STRUCT<v: VARIANT>"
    table = mica.Table.create(tmp_path / "t", ddl)
    table.append(rows)
    mica.write_parquet(table.to_arrow(), tmp_path / "early", {column: "STRUCT<a: BIGINT>"}, layout="early")
    with pytest.raises(MicaError, match=f"early layout in the column '{column[0]}'") as caught:
        mica.Table.convert_to_delta(tmp_path / "early")
    assert caught.value.code == "UNSUPPORTED_TYPE"
    mica.convert_files(tmp_path / "early", tmp_path / "way_out")
    assert str(mica.Table.open(tmp_path / "way_out").schema) == ddl
    lists = {"l": [{"array": [1], "object": 1}]}
    pq.write_table(pa.Table.from_pylist([lists]), tmp_path / "plain.parquet")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain.parquet").rename(tmp_path / "plain" / "a.parquet")
    assert mica.Table.convert_to_delta(tmp_path / "plain").scan().to_arrow().to_pylist() == [lists]


def test_partition_columns_keep_comments_and_nothing_else(tmp_path: Path) -> None:
    found = folder(tmp_path)
    for more, told in (
        ("STRING COLLATE UTF8_LCASE", "a collation"),
        ("STRING NOT NULL", "NOT NULL"),
        ("VARCHAR(9)", r"VARCHAR\(9\)"),
    ):
        with pytest.raises(MicaError, match=f"'k' .*{told}, which it cannot have") as caught:
            mica.Table.convert_to_delta(found, f"day DATE, k {more}")
        assert caught.value.code == "INVALID_PARTITION_COLUMN"
    table = mica.Table.convert_to_delta(found, "day DATE COMMENT 'when', k STRING")
    assert [table.schema.field(name).metadata for name in ("day", "k")] == [{"comment": "when"}, {}]


def test_on_the_command_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["convert-to-delta", str(folder(tmp_path)), "--json"])
    assert (done.exit_code, '"files":4' in done.stdout.replace(" ", "")) == (0, True)


def test_columns_are_mapped_to_the_names_of_the_files(tmp_path: Path) -> None:
    """They had names that no file has, and every value was null."""
    (tmp_path / "p=1").mkdir()
    pq.write_table(pa.table({"a": [1, 2], "s": [{"x": 1}, {"x": 2}]}), tmp_path / "p=1" / "f.parquet")
    with pytest.raises(mica.UserError, match="cannot become 'id'"):
        mica.Table.convert_to_delta(tmp_path, properties={"delta.columnMapping.mode": "id"})
    table = mica.Table.convert_to_delta(tmp_path, "p INT", properties={"DELTA.columnmapping.mode": "name"})
    table.rename_column("a", "b").rename_column("p", "q").append([{"b": 3, "s": {"x": 3}, "q": 2}])
    rows = table.scan("b >= 2 AND s.x >= 2 AND q >= 1").to_arrow().to_pylist()
    assert sorted((row["b"], row["s"]["x"], row["q"]) for row in rows) == [(2, 2, 1), (3, 3, 2)]
    assert mica.check(table).ok


@pytest.mark.parametrize("folder", ["x:y", "T10:00.d", "a.b+c-d:z"])
@pytest.mark.parametrize("spelled", ["{}", "./{}", ".//{}", "././/{}"])
def test_a_name_with_a_colon_is_a_name(tmp_path: Path, folder: str, spelled: str) -> None:
    """It was taken for the URL of a file elsewhere, and a vacuum deleted what the table reads."""
    (tmp_path / "e" / folder).mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "e" / folder / "part-1.parquet")
    table = mica.Table.convert_to_delta(tmp_path / "e")
    log = tmp_path / "e" / "_delta_log" / f"{0:020}.json"
    name = orjson.loads(log.read_text().splitlines()[-1])["add"]["path"]
    log.write_text(log.read_text().replace(f'"{name}"', f'"{spelled.format(name)}"'))
    for file in (tmp_path / "e").rglob("*"):
        os.utime(file, (1, 1))
    table = mica.Table.open(tmp_path / "e")
    assert table.vacuum(0, enforce_retention=False).files == 0
    assert table.to_arrow().num_rows == 2
    assert table.delete("id = 1").metrics["numDeletedRows"] == 1
    assert mica.Table.open(tmp_path / "e").to_arrow()["id"].to_pylist() == [2]
