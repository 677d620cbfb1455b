"""Ingests in process: what the lines of a file become, and what happens to those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica import inputs, variant
from mica.tasks.ingest import IngestSpec, open_reader
from mica.variant import kernel


def _ingest(tmp_path: Path, text: str, **options: Any) -> mica.IngestReport:
    (tmp_path / "in.json").write_text(text)
    return mica.ingest_json(tmp_path / "in.json", tmp_path / "table", **options)


def _documents(tmp_path: Path) -> list[Any]:
    found: list[Any] = mica.Table.open(tmp_path / "table").scan(columns=["v"]).to_pandas()["v"].tolist()
    return found


def test_names_match_without_regard_to_case(tmp_path: Path) -> None:
    _ingest(tmp_path, '{"a":"x"}', columns={"Day": "v:a::string"})
    _ingest(tmp_path, '{"a":"y"}', columns={"day": "V:a::string"})
    _ingest(tmp_path, '{"a":"z"}', column="V", columns={"DAY": "v:a::string"}, sort_by=["DaY"])
    assert mica.Table.open(tmp_path / "table").scan(columns=["Day"]).to_arrow()["Day"].to_pylist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("[1,2]\n[3]\n", [[1, 2], [3]]),
        ('[1,2]\n{"a":1}', [[1, 2], {"a": 1}]),
        ("[1,2]\n\n", [1, 2]),
        ("[1,\n2]\n", [1, 2]),
        ('{\n "a": 1\n}\n{"a":2}', [{"a": 1}, {"a": 2}]),
        ('{"a":[{"x":1},\n{"x":2}]}\n', [{"a": [{"x": 1}, {"x": 2}]}]),
    ],
)
def test_an_array_or_lines_of_documents(tmp_path: Path, text: str, documents: list[Any]) -> None:
    _ingest(tmp_path, text)
    assert _documents(tmp_path) == documents


@pytest.mark.parametrize(
    ("name", "format_", "documents"),
    [
        ("a.json", "auto", [1, 2]),
        ("a.ndjson", "auto", [[1, 2]]),
        ("a.jsonl", "auto", [[1, 2]]),
        ("a.json", "ndjson", [[1, 2]]),
        ("a.ndjson", "json", [1, 2]),
    ],
)
def test_an_array_alone_on_its_line_is_what_the_caller_or_the_name_says(
    tmp_path: Path, name: str, format_: str, documents: list[Any]
) -> None:
    (tmp_path / name).write_text("[1,2]\n")
    (split,) = inputs.find(tmp_path / name, format=format_)
    spec = IngestSpec(write=None, column="v")  # type: ignore[arg-type] - nothing is written
    reader = open_reader(spec, split)
    batch = reader.next_batch(pa.null(), 100, 1 << 20)
    assert variant.to_python(kernel.unshred(batch).column(0)) == documents


def test_two_arrays_on_a_line_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(mica.CorruptDataError, match="line 1, column 6") as caught:
        _ingest(tmp_path, "[1,2][3,4]")
    assert caught.value.code == "INVALID_JSON"
    with pytest.raises(mica.CorruptDataError, match=r"line 3, column 1.*behind the array"):
        _ingest(tmp_path, "[1,\n2]\n[3]")


@pytest.mark.parametrize("first", ['{"a":1,', "{", '{"a":['])
def test_a_first_line_that_was_cut_short_spoils_itself_alone(tmp_path: Path, first: str) -> None:
    report = _ingest(tmp_path, f'{first}\n{{"a":2}}\n{{"a":3}}\n', on_error="quarantine")
    assert (report.rows, report.bad_lines, _documents(tmp_path)) == (2, 1, [{"a": 2}, {"a": 3}])


def test_rows_are_not_sorted_by_what_has_no_order(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError, match="VARIANT") as caught:
        _ingest(tmp_path, '{"a":1}\n{"a":2}', sort_by=["v:a"])
    assert caught.value.code == "TYPE_MISMATCH"
    assert not (tmp_path / "table").exists()


@pytest.mark.parametrize(
    "options", [{}, {"sort_by": ["v:a::int"]}, {"columns": {"a": "v:a::int"}, "partition_by": ["a"]}]
)
def test_bad_lines_are_counted_whoever_reads_them(tmp_path: Path, options: dict[str, Any]) -> None:
    report = _ingest(tmp_path, '{"a":1}\n{"a":,}\n{"a":2}\nno\n', on_error="quarantine", **options)
    assert (report.rows, report.bad_lines) == (2, 2)
    assert report.quarantine is not None
    (kept,) = Path(report.quarantine).iterdir()
    assert kept.read_text().count('"line":') == 2


def test_a_limit_beyond_spark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError, match="max_size"):
        _ingest(tmp_path, "1", max_size="129MB")


def test_a_time_zone_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mica.UserError) as caught:
        _ingest(tmp_path, "{}", timezone="Nowhere/At_All")
    assert caught.value.code == "UNKNOWN_TIME_ZONE"
    assert not (tmp_path / "table").exists()


def test_paths_for_statistics_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    for text, code in (("v.a", "INVALID_PROPERTY"), ("w:a", "UNKNOWN_VARIANT_COLUMN")):
        with pytest.raises(mica.UserError) as caught:
            _ingest(tmp_path, "{}", properties={"mica.variantStats.paths": text})
        assert caught.value.code == code
        assert not (tmp_path / "table").exists()


def test_bytes_that_are_not_utf8_are_refused_with_their_place_or_replaced(tmp_path: Path) -> None:
    source = tmp_path / "in.json"
    source.write_bytes(b'{"a":"\xc3\xa9"}\n{"a":"\xe9t\xe9"}\n{"a":"z"}\n')
    with pytest.raises(mica.CorruptDataError, match=r"in\.json, line 2, column 7: the byte 0xe9 is not UTF-8") as caught:
        mica.ingest_json(source, tmp_path / "table")
    assert caught.value.code == "INVALID_UTF8"
    report = mica.ingest_json(source, tmp_path / "table", on_error="quarantine")
    assert (report.rows, report.bad_lines) == (2, 1)
    mica.ingest_json(source, tmp_path / "table", mode="overwrite", invalid_utf8="replace")
    assert _documents(tmp_path) == [{"a": "é"}, {"a": "\ufffdt\ufffd"}, {"a": "z"}]
