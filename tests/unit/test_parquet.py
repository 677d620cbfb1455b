"""Bare Parquet files: many at once, none of a kind, and files without rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import mica
from mica.checking.inspect import inspect_file
from mica.cli.app import app
from mica.schema import ddl
from mica.schema.arrow import variant_field


def _variants(*texts: str) -> pa.Table:
    return pa.Table.from_arrays([mica.variant.from_json(list(texts))], schema=pa.schema([variant_field("v")]))


def test_many_files_are_one_scan(tmp_path: Path) -> None:
    mica.write_parquet(_variants('{"a":1}', "null"), tmp_path / "a.parquet", shredding={"v": "struct<a: bigint>"})
    mica.write_parquet(_variants('{"a":2}'), tmp_path / "b.parquet", shredding={"v": None})
    pq.write_table(pa.table({"x": [1]}), tmp_path / "c.parquet")
    scan = mica.read_parquet(tmp_path)
    assert scan.schema.names == ["v", "x"]
    assert scan.to_pandas()["v"].tolist() == [{"a": 1}, None, {"a": 2}, None]
    assert mica.read_parquet([tmp_path / "a.parquet", tmp_path / "b.parquet"], where="v:a::int = 2").count() == 1


def test_columns_of_two_types_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(mica.UserError) as caught:
        mica.read_parquet(tmp_path)
    assert caught.value.code == "INCOMPATIBLE_FILES"


def test_a_file_without_rows_is_a_file(tmp_path: Path) -> None:
    written = mica.write_parquet(_variants("1").slice(1), tmp_path / "a.parquet")
    assert (written.rows, len(written.files)) == (0, 1)
    scan = mica.read_parquet(tmp_path / "a.parquet")
    assert (scan.schema.names, scan.to_arrow().num_rows, scan.count()) == (["v"], 0, 0)


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parq")
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n4\n5\n")
    assert mica.read_parquet(tmp_path / "a.parq").count() == 1
    assert CliRunner().invoke(app, ["scan", str(tmp_path / "a.parq"), "--count"]).stdout == "1\n"
    assert mica.check(tmp_path / "a.parq").files == 1
    with pytest.raises(mica.CorruptDataError, match="is not a Parquet file"):
        mica.read_parquet(tmp_path / "a.csv")


def test_dates_beyond_python_are_texts(tmp_path: Path) -> None:
    rows = pa.table(
        {"d": pa.array([3_000_000, None], pa.date32()), "l": pa.array([[3_000_000], []], pa.list_(pa.date32()))}
    )
    mica.write_parquet(rows, tmp_path / "a.parquet")
    frame = mica.read_parquet(tmp_path / "a.parquet").to_pandas()
    assert frame.to_dict("list") == {"d": ["10183-09-21", None], "l": [["10183-09-21"], []]}


def test_a_directory_cannot_be_inspected_but_says_which_files_can(tmp_path: Path) -> None:
    mica.write_parquet(_variants('{"a":1}'), tmp_path / "d" / "a.parquet")
    for path in (str(tmp_path / "d"), str(tmp_path / "d") + "/"):
        with pytest.raises(mica.StorageError) as caught:
            inspect_file(path)
        assert caught.value.code == "IS_A_DIRECTORY"
        assert str(tmp_path / "d" / "a.parquet") in (caught.value.hint or "")
    assert inspect_file(str(tmp_path / "d" / "a.parquet"))


def test_a_data_file_that_is_gone_is_named_with_the_version(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append(_variants('{"a":1}'))
    (gone,) = (tmp_path / "t").glob("*.parquet")
    gone.unlink()
    for run in (table.scan().to_arrow, table.scan("v:a::int = 1").count):
        with pytest.raises(mica.StorageError) as caught:
            run()
        assert caught.value.code == "NOT_FOUND"
        assert str(gone) in caught.value.message
        assert "version 1 of the table" in caught.value.message


@pytest.mark.parametrize("column", ["id", "v"])
def test_a_file_of_another_type_than_the_table_is_named_with_the_column(tmp_path: Path, column: str) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, v VARIANT")
    table.append(_variants('{"a":1}').append_column("id", pa.array([1])))
    (path,) = (tmp_path / "t").glob("*.parquet")
    before, found = path.stat().st_size, pq.read_table(path)
    pq.write_table(found.set_column(found.schema.get_field_index(column), column, pa.array(["x"])), path)
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace(f'"size":{before}', f'"size":{path.stat().st_size}'))
    for where in (None, f"{column}{':a::int' if column == 'v' else ''} = 1"):
        with pytest.raises(mica.CorruptDataError) as caught:
            mica.Table.open(tmp_path / "t").scan(where).to_arrow()
        assert caught.value.code in ("INCOMPATIBLE_TYPE", "MALFORMED_SHREDDING")
        assert str(path) in caught.value.message
        assert f"column {column}" in caught.value.message


def test_a_folder_is_read_for_what_it_is(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "n INT, p STRING", ["p"])
    for n in range(3):
        table.overwrite(pa.table({"n": [n], "p": ["x"]}))
    assert mica.read_parquet(tmp_path / "t").to_arrow().to_pylist() == [{"n": 2, "p": "x"}]
    assert mica.read_parquet(tmp_path / "t", ["p"], "n = 2").to_arrow().to_pylist() == [{"p": "x"}]
    for taken in (tmp_path / "t" / "p=x", tmp_path / "t" / "*" / "*.parquet", [tmp_path / "t"], tmp_path):
        with pytest.raises(mica.UserError, match="selects files of the Delta table") as caught:
            mica.read_parquet(taken)
        assert caught.value.code == "DELTA_TABLE"
    assert mica.check(str(tmp_path / "t" / "p=x" / "*.parquet")).files == 3  # bytes are bytes
    (kept,) = table.file_uris()
    assert mica.read_parquet(kept).to_arrow().to_pylist() == [{"n": 2}]
    rows = pa.table({"n": [1]})
    for place in (tmp_path / "t", tmp_path / "t" / "x.parquet", tmp_path / "t" / "sub"):
        with pytest.raises(mica.UserError) as caught:
            mica.write_parquet(rows, place)
        assert caught.value.code == "DELTA_TABLE"


def test_a_folder_with_files_takes_no_others(tmp_path: Path) -> None:
    mica.write_parquet(pa.table({"n": [1]}), tmp_path / "f")
    with pytest.raises(mica.UserError) as caught:
        mica.write_parquet(pa.table({"n": [2]}), tmp_path / "f")
    assert caught.value.code == "FILE_EXISTS"
    assert mica.read_parquet(tmp_path / "f").count() == 1


def test_an_array_of_variants_says_so_in_whatever_table_it_is_put(tmp_path: Path) -> None:
    array = mica.variant.from_json(['{"a":1}', None, "[2]"])
    plain = pa.table({"v": array})
    tables = {
        "arrow": plain,
        "taken": pa.concat_tables([plain, plain]).take([0, 1, 2]),
        "pandas": plain.to_pandas(types_mapper=pd.ArrowDtype),
        "nested": pa.table({"s": pa.StructArray.from_arrays([array], ["v"])}),
    }
    for name, rows in tables.items():
        mica.write_parquet(rows, tmp_path / f"{name}.parquet")
        found = mica.read_parquet(tmp_path / f"{name}.parquet")
        assert ddl.to_ddl(found.schema) == ("s STRUCT<v: VARIANT>" if name == "nested" else "v VARIANT")
        table = mica.Table.create(tmp_path / name, found.schema)
        assert table.append(rows).rows == 3
        again = mica.Table.create(
            tmp_path / f"{name}-again", pa.table(rows).schema if name != "pandas" else "v VARIANT"
        )
        again.append(
            pa.table({f.name: c for f, c in zip(found.to_arrow().schema, found.to_arrow().columns, strict=True)})
        )
        assert again.scan().to_arrow().to_pylist() == table.scan().to_arrow().to_pylist()


def test_variants_are_handed_to_polars_and_duckdb_and_come_back(tmp_path: Path) -> None:
    rows = _variants('{"a":1}', '{"a":"x"}')
    mica.write_parquet(rows, tmp_path / "a.parquet")
    scan = mica.read_parquet(tmp_path / "a.parquet")
    assert scan.to_duckdb().query("t", "SELECT v.a::VARCHAR FROM t ORDER BY 1").fetchall() == [("1",), ("x",)]
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append(pl.from_arrow(scan.to_arrow()))
    table.append(duckdb.sql("SELECT {'a': 2}::VARIANT AS v").to_arrow_table())
    mica.write_parquet(pl.from_arrow(scan.to_arrow()), tmp_path / "b.parquet")
    assert ddl.to_ddl(mica.read_parquet(tmp_path / "b.parquet").schema) == "v VARIANT"
    assert table.scan(columns={"a": "v:a::string"}).to_arrow()["a"].to_pylist() == ["1", "x", "2"]


def test_what_looks_like_a_variant_is_not_written_as_a_struct_without_a_word(tmp_path: Path) -> None:
    frame = pl.from_arrow(pa.table({"v": mica.variant.from_json(["1"])}))
    with pytest.warns(UserWarning, match="'v' has the fields of a Variant"):
        mica.write_parquet(frame, tmp_path / "a.parquet")
    mica.write_parquet(frame, tmp_path / "b.parquet", shredding={"v": None})
    assert ddl.to_ddl(mica.read_parquet(tmp_path / "b.parquet").schema) == "v VARIANT"


def test_a_column_may_be_named_in_any_case(tmp_path: Path) -> None:
    rows = pa.table({"v": ['{"a":1}'], "A b": ["2"]})
    mica.write_parquet(rows, tmp_path / "a.parquet", shredding={"V": "struct<a: int>", "`a B`": None})
    assert ddl.to_ddl(mica.read_parquet(tmp_path / "a.parquet").schema) == "v VARIANT,`A b` VARIANT"


def _numbers(path: Path) -> list[int]:
    found: list[int] = sorted(mica.read_parquet(path).to_arrow()["n"].to_pylist())
    return found


def test_modes_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    for mode, rows in ((None, [1]), ("append", [1, 2]), ("ignore", [1, 2]), ("overwrite", [4])):
        done = mica.write_parquet([{"n": n} for n in rows[-1:]], folder, mode=mode)  # type: ignore[arg-type]
        assert (_numbers(folder), bool(done.files)) == (rows, mode != "ignore")
    for refused in (None, "error"):
        with pytest.raises(mica.UserError) as caught:
            mica.write_parquet([{"n": 5}], folder, mode=refused)  # type: ignore[arg-type]
        assert (caught.value.code, _numbers(folder)) == ("FILE_EXISTS", [4])
    (folder / "notes.txt").write_text("kept")
    mica.write_parquet(mica.read_parquet(folder), folder, mode="overwrite")
    assert (_numbers(folder), (folder / "notes.txt").read_text()) == ([4], "kept")

    def broken() -> Iterator[dict[str, int]]:
        yield {"n": 6}
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        mica.write_parquet(broken(), folder, mode="overwrite")
    assert _numbers(folder) == [4], "what is replaced goes last"
    with pytest.raises(mica.UserError) as caught:
        mica.write_parquet([{"n": 5}], folder, mode="replace")  # type: ignore[arg-type]
    assert caught.value.code == "INVALID_ARGUMENT"


def test_an_overwrite_says_which_files_it_cannot_replace(tmp_path: Path) -> None:
    """Files behind a link stay, and readers found them beside the new ones."""
    folder = tmp_path / "d"
    mica.write_parquet([{"n": 1, "p": "a"}, {"n": 2, "p": "b"}], folder, partition_by=["p"])
    (folder / "p=a").rename(tmp_path / "elsewhere")
    (folder / "p=a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mica.UserError, match="behind a link") as caught:
        mica.write_parquet([{"n": 3, "p": "a"}], folder, partition_by=["p"], mode="overwrite")
    assert (caught.value.code, _numbers(folder)) == ("FILE_EXISTS", [1, 2])
    (folder / "p=a").unlink()
    mica.write_parquet([{"n": 3, "p": "a"}], folder, partition_by=["p"], mode="overwrite")
    assert _numbers(folder) == [3]


def test_modes_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    for mode, n in (("error", 1), (None, 2), ("overwrite", 3), ("ignore", 3)):
        mica.write_parquet([{"n": n if mode != "ignore" else 9}], file, mode=mode)  # type: ignore[arg-type]
        assert _numbers(file) == [n]
    for mode, code in (("error", "FILE_EXISTS"), ("append", "INVALID_ARGUMENT")):
        with pytest.raises(mica.UserError) as caught:
            mica.write_parquet([{"n": 5}], file, mode=mode)  # type: ignore[arg-type]
        assert (caught.value.code, _numbers(file)) == (code, [3])


def _partitioned(folder: Path) -> pa.Table:
    rows = _variants('{"a":1}', '{"a":2}', '{"a":3}', '{"a":4}')
    rows = rows.append_column("kind", pa.array(["post", "like/it", None, "post"]))
    rows = rows.append_column("n", pa.array([1, 2, 3, 1], pa.int64()))
    mica.write_parquet(rows, folder, partition_by=["kind", "n"])
    return rows


@pytest.mark.parametrize("variants", [False, True])
def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path, variants: bool) -> None:
    """Before a sample of rows was there, the old file was deleted as if it were the unfinished new one."""
    path = tmp_path / "one.parquet"
    schema = pa.schema([variant_field("v") if variants else pa.field("v", pa.int64())])
    rows = pa.Table.from_arrays([mica.variant.from_json(["1", "2"]) if variants else pa.array([1, 2])], schema=schema)
    mica.write_parquet(rows, path)
    before = path.read_bytes()

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows.to_batches()[0]
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError):
        mica.write_parquet(pa.RecordBatchReader.from_batches(schema, batches()), path, mode="overwrite")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_partitioned_as_hive_does_it(tmp_path: Path) -> None:
    _partitioned(tmp_path / "t")
    names = {str(path.parent.relative_to(tmp_path / "t")) for path in (tmp_path / "t").rglob("*.parquet")}
    assert names == {"kind=post/n=1", "kind=like%2Fit/n=2", "kind=__HIVE_DEFAULT_PARTITION__/n=3"}
    scan = mica.read_parquet(tmp_path / "t")
    assert str(scan.schema) == "v VARIANT,kind STRING,n INT"
    found = scan.to_pandas().sort_values("n", kind="stable")
    assert [v["a"] for v in found["v"]] == [1, 4, 2, 3]
    assert found["kind"].tolist()[:3] == ["post", "post", "like/it"]
    assert duckdb.sql(f"SELECT count(*) FROM read_parquet('{tmp_path}/t/**/*.parquet') WHERE n = 1").fetchall() == [
        (2,)
    ]


def test_partition_directories_skip_files(tmp_path: Path) -> None:
    _partitioned(tmp_path / "t")
    scan = mica.read_parquet(
        tmp_path / "t", where="kind = 'post' AND v:a::int > 1", columns={"a": "v:a::int", "n": "n"}
    )
    assert scan.kept.num_rows == 1
    assert scan.to_arrow().to_pylist() == [{"a": 4, "n": 1}]
    assert mica.read_parquet(tmp_path / "t", where="n < 0").kept.num_rows == 0
    assert mica.read_parquet(f"{tmp_path}/t/*/n=1/*.parquet").to_arrow().column("kind").to_pylist() == ["post"] * 2
    # The folder that was asked for is no column, and neither is a file's that is named alone.
    assert mica.read_parquet(tmp_path / "t" / "kind=post").schema.names == ["v", "n"]
    (file,) = (tmp_path / "t" / "kind=post").rglob("*.parquet")
    assert mica.read_parquet(file).schema.names == ["v"]


def test_a_directory_wins_over_the_column_of_its_files(tmp_path: Path) -> None:
    for n in (1, 2):
        (tmp_path / f"n={n}").mkdir()
        pq.write_table(pa.table({"n": ["of the file"], "x": [n]}), tmp_path / f"n={n}" / "a.parquet")
    pq.write_table(pa.table({"x": [3]}), tmp_path / "b.parquet")
    scan = mica.read_parquet(tmp_path)
    assert str(scan.schema) == "x BIGINT,n INT"
    assert sorted(scan.to_arrow().to_pylist(), key=lambda row: row["x"]) == [
        {"x": 1, "n": 1}, {"x": 2, "n": 2}, {"x": 3, "n": None},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "partition_by", "code"),
    [
        ("t.parquet", ["n"], "INVALID_ARGUMENT"),
        ("t", ["v"], "INVALID_PARTITION_COLUMN"),
        ("t", ["m"], "UNKNOWN_COLUMN"),
    ],
)
def test_partition_columns_that_cannot_be(tmp_path: Path, path: str, partition_by: list[str], code: str) -> None:
    rows = _variants("1").append_column("n", pa.array([1]))
    with pytest.raises(mica.UserError) as caught:
        mica.write_parquet(rows, tmp_path / path, partition_by=partition_by)
    assert caught.value.code == code
    assert not list(tmp_path.rglob("*.parquet"))
