"""Bloom filters: what is asked of them, and that they never deny a value that is there."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.expressions.bind import bind
from mica.schema.ddl import parse_ddl
from mica.skipping.bloom import questions, searches
from mica.variant import from_json, kernel
from mica.variant.kernel import FileReader, FileWriter, Request

SCHEMA = parse_ddl("id BIGINT, s STRING, d DECIMAL(9, 2), x DOUBLE, v VARIANT, c STRING COLLATE UTF8_LCASE")


@pytest.mark.parametrize(
    ("where", "asked"),
    [
        ("v:a::string = 'k'", [(0, 0, ["k"])]),
        ("'k' = v:a::string", [(0, 0, ["k"])]),
        ("v:a::string <=> 'k'", [(0, 0, ["k"])]),
        ("v:a::string IN ('k', 'l') AND id = 3", [(0, 0, ["k", "l"]), (1, 1, [3])]),
        ("s = 'b' OR s = 'c'", []),
        ("NOT (v:a::string = 'k')", []),
        ("v:a::string > 'k'", []),
        ("v:a::string <=> NULL", []),
        ("x = 1.5D", []),
        ("d = 1.5", []),
        ("v:a::bigint + 1 = 2", []),
        ("(v:a::string) COLLATE UTF8_LCASE = 'K'", []),
        ("'K' <=> (v:a::string) COLLATE UTF8_LCASE", []),
        ("(v:a::string) COLLATE UTF8_LCASE IN ('K', 'l')", []),
        ("c = 'K'", []),
        ("c IN ('K') AND id = 3", [(1, 1, [3])]),
        ("c COLLATE UTF8_BINARY = 'K'", [(0, 0, ["K"])]),
        ("s COLLATE UTF8_LCASE = 'K'", []),
        ("id = 1.5", []), ("id = 1e0", []), ("s = 7", []), ("id IN (3, NULL)", [(0, 0, [3])]), ("id IN (NULL)", []),
    ],
)  # fmt: skip
def test_only_equality_of_one_class_is_asked(where: str, asked: list[Any]) -> None:
    found = [(part, leaf, values.to_pylist()) for part, leaf, values in questions(bind(where, SCHEMA))]
    assert found == asked


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("v:a::string = 'x' AND s IN ('y', 'z')", [(0, ["x"]), (1, ["y", "z"])]),
        ("id = 1 AND s = 'x'", [(1, ["x"])]),
        ("v:a::bigint = 1 AND s = 'x'", []),  # the cast may fail
        ("s LIKE 'a%' AND s = 'x'", []),
        ("s = 'x' AND s LIKE 'a%' AND s = 'y'", [(0, ["x"])]),
    ],
)
def test_texts_are_searched_up_to_the_first_part_that_may_fail(where: str, found: list[Any]) -> None:
    assert [(leaf, values.to_pylist()) for leaf, values in searches(bind(where, SCHEMA))] == found


def file_of(folder: Path, texts: list[str | None], tree: pa.DataType) -> FileReader:
    """The documents as a file of row groups of four, with a filter on path `a`."""
    batch = pa.record_batch([from_json(pa.array(texts, pa.string()))], schema=pa.schema([_variant()]))
    shredded = kernel.shred(batch, {("v",): pa.struct([("a", tree)])})
    path = str(folder / "f.parquet")
    leaf = ["v", "typed_value", "a", "typed_value"]
    writer = FileWriter(shredded.schema, path=path, row_group_rows=4, bloom_filters=[leaf])
    writer.write(shredded)
    writer.close()
    return FileReader(path=path, name=path)


def _variant() -> pa.Field:
    from mica.schema.arrow import variant_field

    return variant_field("v")


def asked(reader: FileReader, type_: pa.DataType, values: list[Any], of: pa.DataType | None = None) -> list[bool]:
    item = Request(("v",), ("a",), type_)
    answers = reader.may_contain(item, pa.array(values, of or type_))
    return [answer != "no" for answer in answers]


def test_each_row_group_is_asked_and_only_those_of_the_rows(tmp_path: Path) -> None:
    texts = [f'{{"a":"id{n}"}}' for n in range(12)]
    reader = file_of(tmp_path, list(texts), pa.string())
    before = reader.bytes_read
    assert asked(reader, pa.string(), ["id5"]) == [False, True, False]
    assert asked(reader, pa.string(), ["id0", "id11"]) == [True, False, True]
    assert asked(reader, pa.string(), ["other"]) == [False] * 3
    item = Request(("v",), ("a",), pa.string())
    assert reader.may_contain(item, pa.array(["other"]), ranges=[(4, 6)]) == ["yes", "no", "yes"]
    assert reader.bytes_read - before < 8_000


@pytest.mark.parametrize("stored", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.int64()])
def test_integers_are_equal_however_they_are_stored(tmp_path: Path, stored: pa.DataType, type_: pa.DataType) -> None:
    reader = file_of(tmp_path, [f'{{"a":{n}}}' for n in (1, 2, 3, -4, 50, 60, 70, 80)], stored)
    assert asked(reader, type_, [3]) == [True, False]
    assert asked(reader, type_, [-4]) == [True, False]
    assert asked(reader, type_, [70]) == [False, True]
    assert asked(reader, type_, [9]) == [False, False]
    # No row of it holds what its type cannot.
    assert asked(reader, pa.int64(), [1 << 40]) == [False, False]


def test_what_casts_into_the_type_is_never_denied(tmp_path: Path) -> None:
    texts = ['{"a":"5"}', '{"a":"x"}']
    strings = file_of(tmp_path, list(texts), pa.string())
    assert asked(strings, pa.int64(), [5]) == [True]
    (tmp_path / "f.parquet").unlink()
    decimals = file_of(tmp_path, ['{"a":5.00}', '{"a":6.25}'], pa.decimal128(9, 2))
    assert asked(decimals, pa.int64(), [5]) == [True]
    assert asked(decimals, pa.int64(), [7]) == [True]
    assert asked(decimals, pa.decimal128(9, 2), [Decimal("7.00")]) == [True]
    (tmp_path / "f.parquet").unlink()
    doubles = file_of(tmp_path, ['{"a":0e0}', '{"a":-0e0}'], pa.float64())
    assert asked(doubles, pa.float64(), [-0.0]) == [True]


def test_a_value_in_the_residual_is_never_denied(tmp_path: Path) -> None:
    reader = file_of(tmp_path, ['{"a":"k"}', '{"a":7}', None, "{}", *['{"a":"k"}'] * 4], pa.string())
    assert asked(reader, pa.string(), ["7"]) == [True, False]


def test_where_the_filter_denies_only_the_residual_is_read(tmp_path: Path) -> None:
    from mica.table import Table

    def text(n: int) -> str:
        return f"{n * 7919 % 1_000_003:06}-{n}"

    table = Table.create(str(tmp_path / "t"), "v VARIANT", properties={"mica.bloomFilter.paths": "v:a"})
    rows = from_json(pa.array([f'{{"a":{n}}}' if n % 999 == 50 else f'{{"a":"{text(n)}"}}' for n in range(20_000)]))
    table.append(pa.table([rows], schema=pa.schema([_variant()])))

    def read(where: str, rows: int) -> int:
        scan = table.scan(where=where, columns={"b": "v:b::string"})
        explained = scan.explain(analyze=True).to_dict()
        assert explained["analyze"]["rows"] == scan.to_arrow().num_rows == rows
        assert explained["analyze"]["bytes"] <= explained["bytes"]["read"] <= explained["bytes"]["columns"]
        return int(explained["analyze"]["bytes"])

    hidden, typed, no = (read(f"v:a::string = '{a}'", n) for a, n in (("50", 1), (text(7), 1), ("x", 0)))
    assert no <= hidden < typed / 4
    # The typed values are null to what stands before as well, and what stands behind never meets them: its cast of a
    # text would fail.
    assert read("v:a::string LIKE '%' AND v:a::string = '50'", 1) == hidden
    read("v:a::string = '50' AND v:a::bigint = 50", 1)
    read("v:a::string = 'x' AND v:a::bigint = 50", 0)


def test_a_scan_asks_them(tmp_path: Path) -> None:
    from mica.table import Table

    table = Table.create(str(tmp_path / "t"), "v VARIANT", properties={"mica.bloomFilter.paths": "v:a"})
    rows = from_json(pa.array([f'{{"a":"{n % 97:02}-{n}"}}' for n in range(500)]))
    table.append(pa.table([rows], schema=pa.schema([_variant()])))
    scan = table.scan(where="v:a::string = '50-1'")
    assert scan.to_arrow().num_rows == 0
    dropped = scan.explain().to_dict()["row_groups"]["dropped"]
    assert [(d["by"], d["spans"], d["rows"]) for d in dropped] == [("bloom filters", 1, 500)]
    assert table.scan(where="v:a::string = '50-147'").to_arrow().num_rows == 1


def test_a_key_of_any_letters_has_one(tmp_path: Path) -> None:
    from mica.table import Table

    for number, path in enumerate((r"v:['it\'s, a.b[0]']", "v:`a ``b``, c`", r'v:o["\\"]')):
        table = Table.create(tmp_path / str(number), "v VARIANT")
        properties = {"mica.bloomFilter.paths": f"v:x, {path}", "mica.variantStats.paths": path}
        table.set_properties(properties)
        values = (f"{n % 97:02}-{n}" for n in range(500))
        keys = ("it's, a.b[0]", "a `b`, c", "\\")
        table.append([{"v": {keys[number]: value} if number < 2 else {"o": {keys[2]: value}}} for value in values])
        scan = table.scan(where=f"{path}::string = '50-1'")
        assert [d["by"] for d in scan.explain().to_dict()["row_groups"]["dropped"]] == ["bloom filters"]
        assert table.scan(where=f"{path}::string = '50-147'").to_arrow().num_rows == 1
        assert table.scan(where=f"{path}::string > '97'").explain().to_dict()["files"]["kept"] == 0


@pytest.mark.parametrize("where", ["{} = 'ABC1'", "'ABC1' <=> {}", "{} IN ('x', 'ABC1')"])
def test_a_filter_holds_bytes_and_denies_nothing_that_is_compared_by_a_collation(tmp_path: Path, where: str) -> None:
    from mica.table import Table

    table = Table.create(str(tmp_path / "t"), "v VARIANT", properties={"mica.bloomFilter.paths": "v:a"})
    rows = from_json(pa.array([f'{{"a":"aBc{n}"}}' for n in range(50)]))
    table.append(pa.table([rows], schema=pa.schema([_variant()])))
    asked = "(v:a::string) COLLATE UTF8_LCASE"
    assert table.scan(where=where.format(asked), columns={"a": "v:a::string"}).to_arrow()["a"].to_pylist() == ["aBc1"]
    # A plain column, in another writer's file.
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"c": [f"aBc{n}" for n in range(50)]}), path, bloom_filter_options={"c": {"ndv": 50}})
    found = mica.read_parquet(str(path), where=where.format("c COLLATE UTF8_LCASE")).to_arrow()
    assert found["c"].to_pylist() == ["aBc1"]
    assert not mica.read_parquet(str(path), where=where.format("c")).to_arrow()
