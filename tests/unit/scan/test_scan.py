"""What comes out of a scan for people's tools, and what is too large to go in."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.scan.scan import BOUND


def test_polars_gets_variants_as_python_values(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    table = mica.Table.create(tmp_path / "t", "id BIGINT, d DATE, r DECIMAL(10, 2), v VARIANT, l ARRAY<VARIANT>")
    variants = mica.variant.from_json(['{"a":[1,2.50]}', None, "null"])
    rows = {
        "id": [1, 2, None],
        "d": pa.array([dt.date(2020, 1, 1), None, None]),
        "r": pa.array([Decimal("1.50"), None, None], pa.decimal128(10, 2)),
        "v": variants,
        "l": pa.ListArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), variants),
    }
    table.append(pa.table(rows))
    frame = table.scan().to_polars()
    assert frame.columns == ["id", "d", "r", "v", "l"]
    assert frame["id"].to_list() == [1, 2, None]
    assert frame["d"].to_list() == [dt.date(2020, 1, 1), None, None]
    assert frame["r"].to_list() == [Decimal("1.50"), None, None]
    assert frame["v"].dtype == frame["l"].dtype == polars.Object
    assert frame["v"].to_list() == [{"a": [1, Decimal("2.50")]}, None, None]
    assert frame["l"].to_list() == [[{"a": [1, Decimal("2.50")]}], [], [None, None]]


def test_a_path_in_a_list_of_names_is_told_to_get_a_name(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT, `a:b` INT")
    with pytest.raises(mica.UserError, match="no column 'v:kind::string'") as refused:
        table.scan(columns=["v:kind::string"])
    assert refused.value.code == "UNKNOWN_COLUMN"
    assert refused.value.hint == "A path gets a name: give a dict, such as {'name': 'v:kind::string'}."
    assert table.scan(columns=["a:b"]).schema.names == ["a:b"]
    with pytest.raises(mica.UserError, match="There are: v, a:b"):
        table.scan(columns=["w:kind"])


@pytest.mark.parametrize("on_error", ["fail", "quarantine"])
def test_a_value_beyond_the_limit_is_refused_and_one_below_goes_in(tmp_path: Path, on_error: str) -> None:
    texts = [b'{"a":"%s"}' % (b"x" * size) for size in (1000, 3000)]
    (tmp_path / "a.ndjson").write_bytes(b"\n".join(texts))
    options = {"max_size": "2KB", "on_error": on_error}
    if on_error == "fail":
        with pytest.raises(mica.MicaError) as caught:
            mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", **options)  # type: ignore[arg-type]
        assert caught.value.code == "TOO_LARGE"
        assert "line 2" in caught.value.message
    else:
        report = mica.ingest_json(tmp_path / "a.ndjson", tmp_path / "t", **options)  # type: ignore[arg-type]
        assert (report.rows, report.bad_lines) == (1, 1)


def test_the_default_limit_is_16_mib_and_128_mib_can_be_had(tmp_path: Path) -> None:
    text = b'{"a":"%s"}' % (b"x" * (16 << 20))
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(mica.MicaError) as caught:
        mica.ingest_json(tmp_path / "a.json", tmp_path / "t")
    assert caught.value.code == "TOO_LARGE"
    mica.ingest_json(tmp_path / "a.json", tmp_path / "t", max_size="128MB")
    (value,) = mica.Table.open(tmp_path / "t").scan().to_pandas()["v"]
    assert len(value["a"]) == 16 << 20


def test_rows_of_partitions_are_counted_by_the_log(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT, p INT, q STRING", partition_by=["p", "q"])
    rows = [(i, i % 5 or None, "x" if i % 2 else "50% {off}") for i in range(100)]
    columns = zip(*rows, strict=True)
    table.append(pa.table([pa.array(c) for c in columns], names=["id", "p", "q"]))
    questions = ["p = 1", "p IS NULL OR q = 'x'", "q LIKE '50%' AND p > 2", "p <=> NULL", "NOT p = 1", "p + 1 = 3"]
    expected = {where: table.scan(where).to_arrow().num_rows for where in questions}
    assert 0 < min(expected.values()) < max(expected.values()) < 100
    for file in (tmp_path / "t").rglob("*.parquet"):
        file.unlink()
    assert {where: table.scan(where).count() for where in questions} == expected
    with pytest.raises(mica.StorageError, match="is gone"):
        table.scan("p = 1 AND id > 3").count()


def test_what_ansi_alone_refuses_is_refused_when_the_scan_runs_by_it(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "i INT, b BOOLEAN")
    table.append(pa.table({"i": pa.array([1, None], pa.int32()), "b": [True, False]}))
    for where, code in (("i = 'x'", "INVALID_CAST"), ("b = 1", "TYPE_MISMATCH")):
        scan = table.scan(where=where)  # a Spark session may be without ANSI
        for run in (scan.count, scan.to_arrow, scan.explain):
            with pytest.raises(mica.UserError) as refused:
                str(run())
            assert refused.value.code == code
    assert table.scan(where="i = 'x'", ansi=False).count() == 0
    assert table.scan(where="b = 1", ansi=False).count() == 1
    assert table.scan(columns={"d": "cast(b AS TIMESTAMP)"}).source is not None
    for where, columns in (("j = 1", None), ("i = 'x' AND", None), (None, ["i", "i"]), (None, {"x": "i + d"})):
        with pytest.raises(mica.UserError):
            table.scan(where=where, columns=columns)


def test_outputs_that_are_paths_have_their_names_values_and_errors(tmp_path: Path) -> None:
    lines = [f'{{"a": {i}, "b": "{i}", "c": {i if i < 9_000 else chr(34) + "x" + chr(34)}}}' for i in range(10_000)]
    (tmp_path / "in.ndjson").write_text("\n".join(lines))
    mica.ingest_json(tmp_path / "in.ndjson", tmp_path / "t")
    table = mica.Table.open(tmp_path / "t")
    columns = {"0": "v:b::string", "x!": "v:a::bigint", "x": "try_cast(v:c AS bigint)", "1\0": "v:c::string"}
    found = table.scan(columns=columns).to_arrow()
    assert found.column_names == list(columns)
    wanted = [*range(9_000), *[None] * 1_000]
    assert found.column(0).to_pylist() == [str(i) for i in range(10_000)]
    assert found.column(1).to_pylist() == list(range(10_000))
    assert found.column(2).to_pylist() == wanted
    assert found.column(3).to_pylist() == [str(i) if i < 9_000 else "x" for i in range(10_000)]
    # An output that is more than its path is evaluated, whatever it is called.
    assert table.scan(columns={"0": "v:a::bigint + 1"}).to_arrow().column(0).to_pylist() == list(range(1, 10_001))
    twice = table.scan(columns={"p": "v:a::bigint", "q": "v:a::bigint"}, where="v:a::bigint >= 9998").to_arrow()
    assert twice.to_pydict() == {"p": [9_998, 9_999], "q": [9_998, 9_999]}
    with pytest.raises(mica.UserError, match='v:c cannot be cast to BIGINT: the value is "x"'):
        table.scan(columns={"x": "v:c::bigint", "y": "v:a::bigint"}).to_arrow()
    assert table.scan(columns={"x": "v:c::bigint"}, where="v:a::bigint < 9000").to_arrow().num_rows == 9_000


def test_columns_that_are_paths_are_bound_once_for_all_scans_of_a_version(tmp_path: Path) -> None:
    (tmp_path / "in.ndjson").write_text('{"a": "1", "b": 1}\n{"a": "x", "b": 2}\n')
    mica.ingest_json(tmp_path / "in.ndjson", tmp_path / "t", columns={"d": "v:b::int"})
    table = mica.Table.open(tmp_path / "t")
    paths = {"x": "try_cast(v:a AS INT)", "d": "d"}
    first, second = table.scan(columns=paths), table.scan(columns=paths)
    assert first.outputs["d"] is second.outputs["d"]
    assert first.to_arrow() == second.to_arrow()
    # In which order they are asked for, under which names, and strictly.
    assert table.scan(columns=["d", "v"]).to_arrow().column_names == ["d", "v"]
    assert table.scan(columns=["v", "d"]).to_arrow().column_names == ["v", "d"]
    assert table.scan(columns={"a": "d"}).to_arrow().column_names == ["a"]
    with pytest.raises(mica.UserError, match="INVALID_CAST"):
        table.scan(columns={"x": "v:a::int"}).to_arrow()
    # The table moves on, and its columns with it.
    table.add_columns("late INT")
    with pytest.raises(mica.UserError, match="late"):
        mica.Table.open(tmp_path / "t", version=0).scan(columns=["late"])
    assert table.scan(columns=["late"]).to_arrow()["late"].to_pylist() == [None, None]


def test_the_current_time_is_that_of_each_scan(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    first, second = (table.scan(columns={"now": "current_timestamp()"}).to_arrow()["now"][0].as_py() for _ in range(2))
    assert first < second


def test_more_columns_than_are_kept_bound_are_read(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT")
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    for number in range(9):
        columns = {f"x{number}_{i}": "a" for i in range(BOUND // 4)}
        assert table.scan(columns=columns).to_arrow().to_pydict() == {name: [1] for name in columns}
        assert sum(map(len, table.scan().source.bound.values())) <= BOUND


@pytest.mark.parametrize(
    "columns",
    [None, ["s"], {"x": "cast(null AS variant)"}, {"x": "CASE WHEN id = 2 THEN v END"}, {"x": "s.u", "id": "id"}],
)
def test_a_stream_has_the_variants_that_no_row_has(tmp_path: Path, columns: dict[str, str] | list[str] | None) -> None:
    table = mica.Table.create(tmp_path, "id BIGINT, s STRUCT<a: INT>")
    table.append([{"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}])
    table.add_columns("v VARIANT, s.u VARIANT")
    scan = table.scan(columns=columns)
    streamed = scan.to_reader().read_all()
    assert streamed == scan.to_arrow() == pa.table(scan)
    assert streamed.schema.equals(scan.to_arrow().schema, check_metadata=True)
    assert len(scan.to_duckdb().fetchall()) == 2


@pytest.mark.parametrize(("shredding", "value"), [("BIGINT", 1), ("STRING", "a"), ("ARRAY<BIGINT>", [1]), (None, True)])
def test_a_row_without_a_variant_is_null_where_its_root_is_a_column(
    tmp_path: Path, shredding: str | None, value: Any
) -> None:
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    rows = pa.table({"v": mica.variant.from_json([json.dumps(value), None, "null"])})
    table.append(rows, **({"shredding": shredding} if shredding else {}))
    found = table.scan(columns={"j": "to_json(v)", "whole": "variant_get(v, '$', 'variant') IS NULL"}).to_arrow()
    assert found["whole"].to_pylist() == [False, True, False]
    assert table.scan(columns={"j": "to_json(v)"}).to_arrow()["j"].to_pylist() == [json.dumps(value), None, "null"]


def test_a_scan_names_what_it_reads(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "id BIGINT")
    named = f"TableSource('{table.path}', version=0)"
    assert repr(table.scan("id = 1")).startswith(f"Scan(source={named}, where='id = 1', ")
    assert repr(mica.dataset(table)).startswith(f"Dataset(Scan(source={named}, ")
