"""parquet-java writes a value that was part of another with what followed it there: that is not read, and not kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from tests.variant_files import NULL, arrays, column, file, leaf, metadata, objects, read

NAMES = metadata("a", "b")
#: Of `[null, "x"]`, of `{"a": "y", "b": 2}` and of an int8, each with the bytes that follow.
NULL_X, Y_2, ONE = NULL + b"\x05x", b"\x05y\x0c\x02", b"\x0c\x01\x00"


def by(writer: str, path: Path) -> Path:
    """The file as one of another writer."""
    data = path.read_bytes()
    [old] = re.findall(rb"parquet-cpp-arrow version [0-9.]+", data)
    path.write_bytes(data.replace(old, writer.encode().ljust(len(old))[: len(old)]))
    return path


def rows_of_lists() -> pa.Array:
    elements = [{"typed_value": 1}, {"value": NULL_X}, {"value": b"\x05x"}]
    return column([{"typed_value": elements}, {"value": ONE}, None], arrays(leaf(pa.int32())), names=NAMES)


def rows_of_objects() -> pa.Array:
    fields = {"a": {"value": Y_2}, "b": {"typed_value": 2}}
    typed = objects(a=leaf(pa.int32()), b=leaf(pa.int32()))
    return column([{"typed_value": fields}, {"value": ONE}, None], typed, names=NAMES)


@pytest.mark.parametrize(
    ("array", "first"), [(rows_of_lists(), [1, None, "x"]), (rows_of_objects(), {"a": "y", "b": 2})]
)
def test_values_end_where_they_say(tmp_path: Path, array: pa.Array, first: Any) -> None:
    path = by("parquet-mr version 1.18.1", file(tmp_path / "v.parquet", array))
    assert read(path) == [first, 1, None]
    assert {(v.kind, v.rule) for v in mica.check(path)} == {("wrong_length", 15)}
    mica.repair(path, target=tmp_path / "repaired.parquet")
    assert read(tmp_path / "repaired.parquet") == [first, 1, None]
    assert not len(mica.check(tmp_path / "repaired.parquet"))


def test_a_path_alone_ends_where_it_says(tmp_path: Path) -> None:
    path = by("parquet-mr version 1.18.1", file(tmp_path / "v.parquet", rows_of_objects()))
    scan = mica.read_parquet(path, columns={"a": "v:a::string", "b": "v:b::int"}, where="v:a::string = 'y'")
    assert scan.to_arrow().to_pylist() == [{"a": "y", "b": 2}]


def test_other_writers_have_no_such_bytes(tmp_path: Path) -> None:
    path = file(tmp_path / "v.parquet", rows_of_lists())
    with pytest.raises(mica.CorruptDataError, match="bytes follow the end of the value"):
        read(path)
