"""A scan as a polars LazyFrame: what polars asks for is what is read."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.errors import UserError
from mica.readers.source import ScanSource

pl = pytest.importorskip("polars")

SHAPES: Any = ("json", "python", "arrow")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = mica.Table.create(tmp_path / "table", "id BIGINT, s STRING, v VARIANT")
    for low in (0, 100, 200):
        document = mica.variant.from_json(pa.array([f'{{"q": {low}}}', "[1]"]))
        table.append(pa.table({"id": [low, low + 1], "s": ["a", None], "v": document}))
    return tmp_path / "table"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """(columns, where, limit) of the scans that are run."""
    seen: list[tuple[Any, ...]] = []
    batches = ScanSource.batches

    def watched(source: ScanSource, size: int | None = None) -> Any:
        seen.append((list(source.scan.outputs), source.scan.where, source.scan.limit))
        return batches(source, size)

    monkeypatch.setattr(ScanSource, "batches", watched)
    return seen


def test_filters_columns_and_limits_are_pushed(path: Path, read: list[tuple[Any, ...]]) -> None:
    lazy = mica.scan_polars(path)
    found = lazy.filter(pl.col("id") > 150, pl.col("s").is_not_null()).select("s").collect()
    assert found.to_dict(as_series=False) == {"s": ["a"]}
    assert lazy.select("id").head(3).collect()["id"].to_list() == [0, 1, 100]
    assert lazy.select(pl.len()).collect().item() == 6
    (columns, where, limit), head, counted = read
    assert (columns, limit) == (["id", "s"], None)
    assert set(where.split(" AND ")) == {"(id > 150)", "(s IS NOT NULL)"}
    assert head == (["id"], None, 3)
    assert (len(counted[0]), counted[1]) == (1, None)


def test_typed_paths_are_columns(path: Path, read: list[tuple[Any, ...]]) -> None:
    lazy = mica.scan_polars(path, columns={"q": "v:q::bigint", "id": "id"}, where="id IN (0, 100)")
    assert lazy.filter(pl.col("q") == 100).collect().to_dict(as_series=False) == {"q": [100], "id": [100]}
    assert read[0][1] == "(id IN (0, 100)\n) AND (v:q::BIGINT = 100)"


@pytest.mark.parametrize(("many", "where"), [(11, "(id IN ("), (1001, "(id >= 199) AND (id <= 1199)")])
def test_long_lists_are_pushed(path: Path, read: list[tuple[Any, ...]], many: int, where: str) -> None:
    values = [*range(199, 199 + many)]
    for given in (values, [*values, None]):
        assert mica.scan_polars(path).filter(pl.col("id").is_in(given)).collect()["id"].to_list() == [200, 201]
        assert mica.scan_polars(path).filter(~pl.col("id").is_in(given)).collect().height == 4
    assert read[0][1].startswith(where)


def test_every_digit_of_a_decimal_is_pushed(tmp_path: Path, read: list[tuple[Any, ...]]) -> None:
    value = Decimal("123456789012345678901234567890.12345678")
    table = mica.Table.create(tmp_path / "table", "n DECIMAL(38,8)")
    table.append([{"n": value}])
    assert mica.scan_polars(table).filter(pl.col("n") == value).collect()["n"].to_list() == [value]
    assert read[0][1] == f"(n = {value})"


def test_a_list_may_name_hidden_columns(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "table", "file_name STRING, a INT")
    table.append([{"file_name": "own", "a": 1}])
    scan = table.scan(columns=["_metadata.file_name", "a"])
    assert mica.scan_polars(scan).filter(pl.col("a") == 1).collect().to_dicts() == scan.to_arrow().to_pylist()


def test_variants_are_texts_values_or_structs(path: Path) -> None:
    first = {shape: mica.scan_polars(path, variants=shape).select("v").head(2).collect() for shape in SHAPES}
    assert first["json"]["v"].to_list() == ['{"q":0}', "[1]"]
    assert first["python"]["v"].to_list() == [{"q": 0}, [1]]
    assert first["python"].schema == {"v": pl.Object}
    assert mica.scan_polars(path).collect_schema() == {"id": pl.Int64, "s": pl.String, "v": pl.String}
    assert first["arrow"].height == 2


def test_a_lazy_frame_reads_the_version_of_its_table(path: Path) -> None:
    table = mica.Table.open(path)
    lazy = mica.scan_polars(table)
    table.append(pa.table({"id": [7]}))
    assert lazy.collect().height == 6
    assert mica.scan_polars(table).collect().height == 7


def test_refuses(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape: Any = "text"
    with pytest.raises(UserError, match="variants"):
        mica.scan_polars(path, variants=shape)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UserError) as raised:
        mica.scan_polars(path)
    assert raised.value.code == "NOT_INSTALLED"
