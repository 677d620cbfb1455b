"""Columns of types that Delta does not have: they refuse a scan that reads them, and no other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import UserError

ROWS = pa.table(
    {
        "a": [1, 2],
        "t": pa.array([dt.time(1), None], pa.time64("us")),
        "wide": pa.array([Decimal(1), None], pa.decimal256(50, 2)),
        "s": [{"x": 1, "t": dt.time(1)}, {"x": 2, "t": None}],
        "l": [[{"x": 1, "t": dt.time(1)}], None],
    }
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "times.parquet"
    pq.write_table(ROWS, path)
    return str(path)


@pytest.mark.parametrize(
    ("columns", "where", "wanted"),
    [
        (["a"], None, [{"a": 1}, {"a": 2}]),
        (["a"], "s.x > 1", [{"a": 2}]),
        ({"x": "s.x", "b": "a + 1"}, None, [{"x": 1, "b": 2}, {"x": 2, "b": 3}]),
    ],
)
def test_others_are_read(file: str, columns, where, wanted):
    scan = mica.read_parquet(file, columns, where)
    assert scan.to_arrow().to_pylist() == wanted
    assert scan.count() == len(wanted)


@pytest.mark.parametrize(
    ("columns", "where", "named"),
    [
        (None, None, "t"),
        (["t"], None, "t"),
        (["wide"], None, "wide"),
        (["s"], None, "s.t"),
        (["l"], None, "l.element.t"),
        (["a"], "t IS NULL", "t"),
        ({"n": "size(l)"}, None, "l.element.t"),
    ],
)
def test_they_are_refused_by_name(file: str, columns, where, named: str):
    with pytest.raises(UserError) as caught:
        mica.read_parquet(file, columns, where)
    assert (caught.value.code, caught.value.context["column"]) == ("UNSUPPORTED_TYPE", named)
    assert "columns=['a']" in caught.value.hint


def test_a_table_takes_none_of_them(file: str, tmp_path: Path):
    with pytest.raises(UserError, match="'t' has the Arrow type") as caught:
        mica.convert_files(file, str(tmp_path / "table"))
    assert caught.value.code == "UNSUPPORTED_TYPE"
    assert not (tmp_path / "table").exists()
