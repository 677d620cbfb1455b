"""New bounds for files that exist: their lines change, their data does not."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, UserError
from mica.stats.collated import CollatedBounds, CollatedColumn, with_bounds
from mica.stats.shown import decoded
from mica.variant import from_json


def table_of(path: Path, *, shred: bool = True) -> mica.Table:
    """Two files of a Variant column; their statistics lack the paths where `shred` is False."""
    table = mica.Table.create(path, "id INT, d DECIMAL(38, 2), v VARIANT")
    if not shred:
        table.set_properties({"mica.variantStats.maxPaths": "0"})
    for i in range(2):
        ids = pa.array(range(i * 100, i * 100 + 100), pa.int32())
        documents = pa.array([f'{{"a":{n},"s":{{"b":"x{n}"}}}}' for n in ids.to_pylist()])
        big = pa.array([Decimal("123456789012345678901234567890123456.78")] * 100, pa.decimal128(38, 2))
        v = from_json(documents)
        schema = pa.schema(
            [
                ("id", pa.int32()),
                ("d", big.type),
                pa.field("v", v.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"}),
            ]
        )
        table.append(pa.table([ids, big, v], schema=schema))
    if not shred:
        table.set_properties({"mica.variantStats.maxPaths": None})
    return table


def paths(table: mica.Table) -> list[list[tuple[str, object, object]]]:
    found = [decoded(text, table.schema)["columns"] for text in table.files().column("stats").to_pylist()]
    return [[(c["column"], c["min"], c["max"]) for c in columns if ":" in c["column"]] for columns in found]


def test_files_get_the_bounds_that_a_writer_gives(tmp_path: Path) -> None:
    table = table_of(tmp_path / "bare", shred=False)
    assert paths(table) == [[], []]
    assert len(table.scan("v:a::int = 5").plan.dropped) == 0
    before = table.files().to_pylist()
    files = {p: p.stat().st_mtime_ns for p in (tmp_path / "bare").glob("*.parquet")}
    commit = table.restats()
    assert (commit.version, commit.files) == (table.version, 2)
    assert paths(table) == paths(table_of(tmp_path / "whole"))
    assert len(table.scan("v:a::int = 5").plan.dropped) == 1
    assert files == {p: p.stat().st_mtime_ns for p in (tmp_path / "bare").glob("*.parquet")}
    for old, new in zip(before, table.files().to_pylist(), strict=True):
        kept = [name for name in old if name != "stats"]
        assert [old[name] for name in kept] == [new[name] for name in kept]
        # Every digit of what is not ours stays.
        assert '"d":123456789012345678901234567890123456.78' in new["stats"]
    lines = (tmp_path / "bare" / "_delta_log" / f"{commit.version:020}.json").read_bytes().splitlines()
    assert all(not orjson.loads(line)["add"]["dataChange"] for line in lines if b'"add"' in line)
    assert table.history(limit=1).to_pylist()[0]["operation"] == "COMPUTE STATS"
    assert table.scan().count() == 200
    again = table.restats()
    assert (again.version, again.files) == (commit.version, 0)


def test_a_file_that_was_removed_meanwhile_does_not_come_back(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", shred=False)
    other = mica.Table.open(tmp_path / "t")
    other.overwrite(other.scan("id < 5").to_arrow())
    with pytest.raises(ConflictError) as raised:
        table.restats()
    assert raised.value.code == "CONCURRENT_DELETE"
    assert mica.Table.open(tmp_path / "t").scan().count() == 5


def test_columns_are_named(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", shred=False)
    with pytest.raises(UserError) as raised:
        table.restats(["id"])
    assert raised.value.code == "UNKNOWN_COLUMN"
    assert table.restats(["V"]).files == 2


def test_bounds_that_are_there_in_another_order_are_no_change(tmp_path: Path) -> None:
    properties = {"delta.enableVariantShredding": "true"}
    table = mica.Table.create(tmp_path / "t", "a VARIANT, b VARIANT", properties=properties)
    table.append([{"a": {"k": 1}, "b": {"k": 1}}])
    assert [table.restats(columns=[name]).version for name in ("a", "b", "a")] == [1, 1, 1]


def test_collated_bounds_need_a_session(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "s STRING COLLATE de")
    table.append(pa.table({"s": ["a"]}))
    with pytest.raises(UserError) as raised:
        table.restats()
    assert raised.value.code == "NEEDS_SPARK"


def test_lcase_is_compared_in_process(tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path / "t", "p INT, s STRUCT<x: STRING COLLATE UTF8_LCASE>, d STRING COLLATE de", ["p"]
    )
    rows = [{"p": 1, "s": {"x": x}, "d": "z"} for x in ("b", "A", "Σ", None)] + [{"p": 2, "s": None, "d": None}]
    schema = pa.schema([("p", pa.int32()), ("s", pa.struct([("x", pa.string())])), ("d", pa.string())])
    table.append(pa.Table.from_pylist(rows, schema))
    found = [orjson.loads(text).get("statsWithCollation") for text in table.files().column("stats").to_pylist()]
    ours = {"spark.UTF8_LCASE.78.3": {"minValues": {"s": {"x": "A"}}, "maxValues": {"s": {"x": "Σ"}}}}
    assert sorted(found, key=str) == sorted([ours, None], key=str)
    assert orjson.loads(table.snapshot.domains["collations"]) == {"writeVersions": {"spark.UTF8_LCASE": ["78.3"]}}
    scan = table.scan("s.x > 'ς'")
    assert scan.plan.dropped.tolist() == [0, 1]
    assert table.scan("s.x = 'a'").count() == 1
    assert table.restats(["s.x"]).files == 0
    with pytest.raises(UserError) as raised:
        table.restats()
    assert raised.value.code == "NEEDS_SPARK"
    assert "column d " in raised.value.message


def test_other_columns_keep_their_bounds(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "a STRING COLLATE UTF8_LCASE, b STRING COLLATE UTF8_LCASE")
    table.append([{"a": "x", "b": "y"}])
    (before,) = table.files().column("stats").to_pylist()
    assert '"b":"y"' in before
    assert table.restats(["a"]).files == 0
    assert table.files().column("stats").to_pylist() == [before]


def test_numbers_keep_their_digits() -> None:
    leaf = CollatedColumn(("s",), ("s",), "icu.de")
    text = '{"numRecords":1,"minValues":{"d":123456789012345678901234567890.12,"x":1e-300,"i":99999999999999999999}}'
    found = with_bounds(text, [CollatedBounds(leaf, "a", "b")], "78.3", None, ())
    assert found.startswith(text[:-1] + ',"statsWithCollation"')
