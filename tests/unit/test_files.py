"""Bare Parquet files: many at once, none of a kind, and files without rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.files import inspect_file
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
