"""Bare Parquet files by path, pattern and directory: what is named is there, and no table is read by its files."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.cli.source import scan_of
from mica.errors import MicaError
from mica.scan.find import find


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = "a.parquet b.parquet d/c.parquet _x/c.parquet d/.c.parquet _b.parquet a.txt d/_SUCCESS"
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (".", ["a.parquet", "b.parquet", "d/c.parquet"]),
        ("d", ["d/c.parquet"]),
        ("*.parquet", ["_b.parquet", "a.parquet", "b.parquet"]),
        ("d/*", ["d/c.parquet"]),
        ("d/_*", ["d/_SUCCESS"]),
        ("d/_SUCCESS", ["d/_SUCCESS"]),
        ("_b.parquet", ["_b.parquet"]),
        ("a.txt", ["a.txt"]),
        (["b.parquet", "a.parquet", "b.parquet"], ["b.parquet", "a.parquet", "b.parquet"]),
        (["d", "a.*"], ["d/c.parquet", "a.parquet", "a.txt"]),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files(folder: Path, asked: str | list[str], names: list[str], scheme: str) -> None:
    paths = [f"{scheme}{folder}/{path}" for path in ([asked] if isinstance(asked, str) else asked)]
    found = find(paths[0] if isinstance(asked, str) else paths)
    assert [str(Path(storage.path(entry.path)).relative_to(folder)) for storage, entry in found] == names
    assert {entry.size for _, entry in found} == {2}


@pytest.mark.parametrize(
    ("asked", "code"),
    [("none.parquet", "NOT_FOUND"), ("*.none", "NOT_FOUND"), ("empty", "NOT_FOUND"), (None, "NO_INPUT")],
)
def test_what_is_not_there_is_an_error(folder: Path, asked: str | None, code: str) -> None:
    with pytest.raises(MicaError) as caught:
        find([] if asked is None else folder / asked)
    assert caught.value.code == code


def test_a_table_is_not_read_by_its_files(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id INT, p STRING", ["p"])
    table.append([{"id": 1, "p": "a"}])
    [file] = (tmp_path / "t").rglob("*.parquet")
    assert [storage.path(entry.path) for storage, entry in find(file)] == [str(file)], "one by one they are"
    for asked in (tmp_path, tmp_path / "t", tmp_path / "t" / "*" / "*.parquet", tmp_path / "t" / "p=a"):
        with pytest.raises(MicaError) as caught:
            find(asked)
        assert (caught.value.code, caught.value.context["path"]) == ("DELTA_TABLE", str(tmp_path / "t"))
        assert len(find(asked, whatever_counts=True)) == 1


def test_directories_of_partitions_are_data_whatever_their_columns_are_called(tmp_path: Path) -> None:
    for name in ("_day=1/a.parquet", "k=1/.h=2/b.parquet", "_day=1/_c.parquet", "_tmp/_day=1/d.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12")
    assert [entry.path for _, entry in find(tmp_path)] == ["_day=1/a.parquet", "k=1/.h=2/b.parquet"]


def test_who_looks_at_bytes_alone_is_given_every_file(folder: Path) -> None:
    assert len(find(f"{folder}/d/*", whatever_counts=True)) == 2


def test_a_folder_has_files_without_the_ending(tmp_path: Path) -> None:
    for number, name in enumerate(["a.parquet", "000000_0", "p=1/b.parq"]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"n": [number]}), tmp_path / name)
    (tmp_path / "notes.md").write_text("no Parquet file")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "c.parquet._COPYING_").write_bytes(b"PAR1PAR1")
    (tmp_path / "_SUCCESS").write_bytes(b"PAR1PAR1")
    assert [entry.path for _, entry in find(str(tmp_path))] == ["000000_0", "a.parquet", "p=1/b.parq"]
    (tmp_path / "p=1" / "b.parq").rename(tmp_path / "b.parq")
    table = mica.Table.convert_to_delta(tmp_path)
    assert sorted(table.to_arrow().column("n").to_pylist()) == [0, 1, 2]


def test_a_name_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.parquet")).write_bytes(b"PAR1")
    with pytest.raises(MicaError, match="not UTF-8") as caught:
        find(str(tmp_path))
    assert caught.value.code == "INVALID_NAME"


def test_a_column_has_one_directory(tmp_path: Path) -> None:
    (tmp_path / "P=1" / "p=2").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "P=1" / "p=2" / "a.parquet")
    with pytest.raises(MicaError, match="two directories of the column 'p'") as caught:
        mica.read_parquet(str(tmp_path))
    assert caught.value.code == "DUPLICATE_COLUMN"


def test_a_folder_may_be_named_like_a_file(tmp_path: Path) -> None:
    place = tmp_path / "t.parquet"
    place.mkdir()
    pq.write_table(pa.table({"n": pa.array([], pa.int64())}), place / "empty.parquet")
    pq.write_table(pa.table({"n": [1]}), place / "a.parquet")
    assert mica.read_parquet(str(place)).count() == 1
    table = mica.Table.convert_to_delta(place)
    table.append([{"n": 2}])
    assert scan_of([str(place)], "n > 0", None).count() == 2
    assert scan_of([place.as_uri()], None, None, version=0).count() == 1
    assert mica.check(place).ok  # by its log, and its empty file is sound
    with pytest.raises(MicaError, match=r"wrong\.parquet"):
        scan_of([str(place / "wrong.parquet")], None, None)
