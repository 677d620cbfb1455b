"""A scan as a pyarrow Dataset: columns, filters, shapes of Variants, and what is read for them."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import mica
from mica.errors import UserError

DDL = "id BIGINT, s STRING, d DATE, v VARIANT, a ARRAY<VARIANT>, m MAP<STRING, VARIANT>, st STRUCT<x: VARIANT, k: INT>"


def variants(*texts: str | None) -> Any:
    return mica.variant.from_json(pa.array(texts))


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    table = mica.Table.create(tmp_path / "table", DDL)
    for low in (0, 100, 200):
        day = dt.date(2020, 1, 1 + low // 100)
        columns = {"id": [low, low + 1, None], "s": ["a", "b", None], "d": [day] * 3}
        table.append(pa.table({**columns, "v": variants(f'{{"q": {low}}}', "null", None)}))
    return table


def test_reads_what_is_asked_for(table: mica.Table) -> None:
    reader = mica.dataset(table)
    wanted = (pc.field("id") > 150) & pc.field("s").is_valid()
    assert reader.narrowed(["s"], wanted).where == "(id > 150) AND (s IS NOT NULL)"
    assert list(reader.narrowed(["s"], wanted).outputs) == ["id", "s"]
    assert len(reader.narrowed(["s"], wanted).plan.kept) == 1
    assert reader.to_table(["s"], wanted) == pa.table({"s": ["a", "b"]})
    assert reader.filter(pc.field("id") < 250).filter(pc.field("id") > 199).count_rows() == 2
    assert reader.count_rows() == 9
    assert reader.head(2, ["id"]).to_pydict() == {"id": [0, 1]}
    doubled = reader.to_table({"twice": pc.add(pc.field("id"), pc.field("id"))}, pc.field("id") == 1)
    assert doubled.to_pydict() == {"twice": [2]}
    assert [b.num_rows for b in reader.to_batches(["id"], batch_size=2)] == [2, 2, 2, 2, 1]
    assert isinstance(reader.scanner(), ds.Scanner)
    assert pa.table(reader.filter(pc.field("s") == "a")).num_rows == 3
    assert reader.schema == table.scan().to_arrow().schema


def test_typed_paths_skip_as_columns(table: mica.Table) -> None:
    reader = mica.dataset(table.path, columns={"q": "v:q::bigint", "s": "s"}, where="id IS NOT NULL")
    wanted = pc.field("q") == 100
    assert reader.narrowed(filter=wanted).where == "(id IS NOT NULL\n) AND (v:q::BIGINT = 100)"
    assert len(reader.narrowed(filter=wanted).plan.kept) == 1
    assert reader.to_table(filter=wanted).to_pydict() == {"q": [100], "s": ["a"]}


def test_variants_are_arrow_s_or_json_texts(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "table", DDL)
    schema = table.scan().to_arrow().schema
    one = variants('{"q":[1]}', "2", None)
    inner = pa.StructArray.from_arrays([variants("1", None, "3"), pa.array([1, 2, None], pa.int32())], names=["x", "k"])
    columns = {
        "v": one,
        "a": pa.ListArray.from_arrays(pa.array([0, 2, None, 3], pa.int32()), one),
        "m": pa.MapArray.from_arrays([0, 1, 3, 3], ["k", "l", "m"], one),
        "st": inner,
    }
    fields = [schema.field(name) for name in columns]
    rows = [columns[f.name].cast(f.type) for f in fields]
    table.append(pa.table(rows, schema=pa.schema(fields)))
    assert mica.dataset(table, variants="json").to_table(list(columns)).to_pydict() == {
        "v": ['{"q":[1]}', "2", None],
        "a": [['{"q":[1]}', "2"], [None], None],
        "m": [[("k", '{"q":[1]}')], [("l", "2"), ("m", None)], []],
        "st": [{"x": "1", "k": 1}, {"x": None, "k": 2}, {"x": "3", "k": None}],
    }
    assert mica.dataset(table).schema.field("v").metadata == {b"ARROW:extension:name": b"arrow.parquet.variant"}


@pytest.mark.parametrize("shape", ["arrow", "json"])
def test_columns_without_a_value_in_any_row_are_there(table: mica.Table, shape: Any) -> None:
    """Of a column that was added the parts of Variants are null too, which a cast refuses."""
    table.add_columns("w VARIANT, more STRUCT<v: VARIANT, l: ARRAY<VARIANT>>")
    found = mica.dataset(table, variants=shape).to_table(columns=["w", "more"])
    assert (found.num_rows, found["w"].null_count, found["more"].null_count) == (9, 9, 9)


@pytest.mark.parametrize("many", [11, 1000, 1001])
def test_long_lists_skip(table: mica.Table, many: int) -> None:
    reader, column = mica.dataset(table), pc.field("id")
    values = pa.array([*range(199, 200 + many), None], pa.int64())
    for wanted, rows in ((column.isin(values.drop_null()), 2), (column.isin(values), 5)):
        assert reader.to_table(filter=wanted).num_rows == rows
    assert len(reader.narrowed(filter=column.isin(values.drop_null())).plan.kept) == 1
    assert reader.count_rows(~column.isin(values)) == 4
    assert reader.narrowed(filter=pc.field("s").isin([f"{n}" for n in range(many)])).plan.kept.size == 0


def test_a_long_list_with_nan_is_not_a_range(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "table", "x DOUBLE")
    table.append(pa.table({"x": [0.5, math.nan, math.inf, None]}))
    for more, rows in (([math.nan], 2), ([math.inf], 2), ([0.1], 1)):
        wanted = pc.field("x").isin([*map(float, range(1, 2000)), 0.5, *more])
        assert mica.dataset(table).to_table(filter=wanted).num_rows == rows


@pytest.mark.parametrize(
    "wanted",
    [
        pc.field("d") < pa.scalar(10**7, pa.date32()),
        pc.field("d").isin(pa.array([10**7, 18262], pa.date32())),
        pc.field("t") < pa.scalar(2**62, pa.timestamp("us", "UTC")),
        pc.field(0) >= 0,
        (pc.field("id") >= 0) & (pc.field(1) == "a"),
    ],
)
def test_what_arrow_can_evaluate_is_evaluated(table: mica.Table, wanted: pc.Expression) -> None:
    reader = mica.dataset(table, columns={"id": "id", "s": "s", "d": "d", "t": "d::timestamp"})
    expected = ds.dataset(reader.scan.to_arrow()).to_table(filter=wanted)
    assert expected.num_rows > 0
    assert reader.to_table(filter=wanted) == expected


def test_a_list_may_name_hidden_columns(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "table", "file_name STRING, `end` INT")
    for number in range(2):
        table.append([{"file_name": "own", "end": number}])
    scan = table.scan(columns=["_metadata.file_name", "end", "_metadata.file_size"])
    rows = scan.to_arrow()
    reader, name = mica.dataset(scan), rows["file_name"][0].as_py()
    assert reader.to_table() == rows
    wanted = pc.field("file_name") == name
    assert reader.to_table(["end"], wanted).to_pylist() == rows.filter(wanted).select(["end"]).to_pylist()
    assert reader.narrowed(filter=wanted).where == f"(_metadata.file_name = '{name}')"


def test_where_may_end_in_a_comment(table: mica.Table) -> None:
    reader = mica.dataset(table, where="id > 0 -- positive ones")
    assert reader.count_rows(pc.field("id") < 200) == 3


def test_a_limit_comes_before_a_filter(table: mica.Table) -> None:
    reader = mica.dataset(table.scan(limit=2))
    assert reader.count_rows(pc.field("id") > 0) == 1
    assert reader.narrowed(filter=pc.field("id") > 0).where is None


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda t: mica.dataset(t.path, variants="python"), "INVALID_ARGUMENT"),
        (lambda _: mica.dataset(7), "INVALID_ARGUMENT"),
        (lambda t: mica.dataset(t.scan(), where="id = 1"), "INVALID_ARGUMENT"),
        (lambda t: mica.dataset(t).to_table(filter="id = 1"), "INVALID_ARGUMENT"),
        (lambda t: mica.dataset(t).to_table(["nope"]), "UNKNOWN_COLUMN"),
        (lambda t: mica.dataset(t).to_table(filter=pc.field("nope") == 1), "UNKNOWN_COLUMN"),
    ],
)
def test_refuses(table: mica.Table, call: Any, code: str) -> None:
    with pytest.raises(UserError) as raised:
        call(table)
    assert raised.value.code == code
