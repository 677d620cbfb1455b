"""`mica check`: nulls and groups that may not be, statistics that are none, and what cannot be judged."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.log.transaction import Transaction
from mica.schema.arrow import variant_field
from tests.variant_files import ABC, BINARY, ONE, arrays, column, file, leaf, objects


def found(path: Path) -> list[tuple[str, int | None, str, int | None]]:
    return [(v.kind, v.rule, v.path, v.row) for v in mica.check(path)]


def test_a_variant_without_metadata(tmp_path: Path) -> None:
    array = pa.array([{"value": ONE}], pa.struct([("value", BINARY), ("typed_value", pa.int32())]))
    assert ("missing_metadata", 2, "v", None) in found(file(tmp_path / "v.parquet", array))


@pytest.mark.parametrize("name", ["metadata", "value"])
def test_metadata_or_value_that_is_text(tmp_path: Path, name: str) -> None:
    row: dict[str, Any] = {"metadata": ABC, "value": ONE, name: "text"}
    types = {"metadata": BINARY, "value": BINARY, name: pa.string()}
    type_ = pa.struct([pa.field(n, of, nullable=False) for n, of in types.items()])
    assert ("not_binary", 2, f"v.{name}", None) in found(file(tmp_path / "v.parquet", pa.array([row], type_)))


def test_a_field_with_neither_value_nor_typed_value(tmp_path: Path) -> None:
    array = column([{"typed_value": {"a": {"_x": 1}}}], objects(a=pa.struct([("_x", pa.int32())])))
    at = "v.typed_value.a"
    assert ("neither_value_nor_typed_value", 29, at, None) in found(file(tmp_path / "v.parquet", array))


@pytest.mark.parametrize(("name", "kind"), [("metadata", "null_metadata"), ("value", "null_value")])
def test_metadata_or_value_that_is_null(tmp_path: Path, name: str, kind: str) -> None:
    rows = [{"metadata": ABC, "value": ONE}, {"metadata": ABC, "value": ONE, name: None}, None]
    array = pa.array(rows, pa.struct([("metadata", BINARY), ("value", BINARY)]))
    assert (kind, 2, f"v.{name}", 1) in found(file(tmp_path / "v.parquet", array))


def test_groups_that_are_null(tmp_path: Path) -> None:
    fields = column([{"typed_value": {"a": {"typed_value": 1}}}, {"typed_value": {"a": None}}], _loose_object())
    assert ("null_group", 34, "v.typed_value.a", 1) in found(file(tmp_path / "f.parquet", fields))
    loose = pa.list_(pa.field("element", arrays(leaf(pa.int32())).value_type))
    elements = column([{"typed_value": [{"typed_value": 1}]}, {"typed_value": [None]}], loose)
    assert ("null_group", 29, "v.typed_value.list.element", 1) in found(file(tmp_path / "e.parquet", elements))


def _loose_object() -> pa.DataType:
    return pa.struct([pa.field("a", leaf(pa.int32()))])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    made = mica.Table.create(tmp_path / "t", "v VARIANT", properties={"delta.enableVariantShredding": "true"})
    rows = mica.variant.from_json(['{"a": 1}', '{"a": 2}'])
    made.append(pa.Table.from_arrays([rows], schema=pa.schema([variant_field("v")])))
    return tmp_path / "t"


@pytest.mark.parametrize("text", ["no JSON", "[]", "7"])
def test_statistics_that_are_no_object(table: Path, text: str) -> None:
    log = table / "_delta_log" / f"{1:020}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = text
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert found(table) == [("statistics", None, "stats", None)]


def test_bounds_of_rows_that_cannot_be_read_are_not_judged(table: Path) -> None:
    (path,) = table.glob("*.parquet")
    log = table / "_delta_log" / f"{1:020}.json"
    size = path.stat().st_size
    both = {"typed_value": {"a": {"value": ONE, "typed_value": 1}}}
    file(path, column([both, None], objects(a=leaf(pa.int64()))))
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{path.stat().st_size}'))
    kinds = {(v.kind, v.rule) for v in mica.check(table)}
    assert kinds == {("value_and_typed_value", 25), ("null_count", None), ("bounds_not_checked", None)}


def test_columns_that_no_scan_can_read(tmp_path: Path) -> None:
    """A check said that nothing was wrong with tables whose every scan failed."""
    table = mica.Table.create(tmp_path, "id INT NOT NULL, s STRING, d DATE", ["d"])
    table.append([{"id": 1, "s": "a", "d": date(2024, 1, 1)}])
    assert mica.check(tmp_path).ok
    (name,) = table.files()["path"].to_pylist()
    pq.write_table(pa.table({"id": pa.array([None], pa.int32()), "s": [1]}), tmp_path / name)
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"] |= {"size": (tmp_path / name).stat().st_size, "partitionValues": {"d": "soon"}, "stats": None}
    log.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    kinds = {(v.kind, v.path) for v in mica.check(tmp_path)}
    assert kinds == {("column_type", "s"), ("partition_value", "d"), ("not_null", "id")}


def test_a_checkpoint_that_has_a_file_twice(tmp_path: Path) -> None:
    """Its rows are read twice; nothing said so."""
    table = mica.Table.create(tmp_path, "id INT, p STRING", ["p"], data=[{"id": 1, "p": "a b"}, {"id": 2, "p": "c"}])
    table.checkpoint()
    (path,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    rows = pq.read_table(path)
    again = rows.filter(pa.compute.equal(pa.compute.struct_field(rows["add"], ["partitionValues"]).is_valid(), True))
    pq.write_table(pa.concat_tables([rows, again.slice(0, 1)]), path)
    assert mica.Table.open(tmp_path).count() == 3
    (one,) = mica.check(tmp_path)
    assert (one.kind, one.file, one.found) == ("named_twice", "_delta_log", "2 times in a checkpoint")
    assert (tmp_path / one.path).exists()


def test_a_clustering_by_what_is_no_column(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", cluster_by=["id"], data=[{"id": 1}])
    transaction = Transaction(table.snapshot, "CLUSTER BY")
    transaction.set_domain("delta.clustering", '{"clusteringColumns": [["gone"]]}')
    transaction.commit()
    (one,) = mica.check(tmp_path)
    assert (one.kind, one.path, one.file) == ("clustering", "delta.clustering", "_delta_log")
