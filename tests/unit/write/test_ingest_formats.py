"""How the text of an input is laid out and compressed: lines of documents, an array, frames of gzip and zstd."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica import variant
from mica.tasks.ingest import IngestSpec, open_reader
from mica.variant import kernel
from mica.write import inputs
from tests.unit.write.test_ingest import documents_of, ingested


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
    ingested(tmp_path, text)
    assert documents_of(tmp_path) == documents


@pytest.mark.parametrize("zeros", [1, 512, 100_000])
@pytest.mark.parametrize("text", ['{\n "a": 1\n}\n{"a":2}', '{"a": 1}\n{"a":2}\n', '[{"a": 1},\n{"a":2}]'])
def test_zeros_behind_gzip_are_read_past(tmp_path: Path, text: str, zeros: int) -> None:
    ingested(tmp_path, gzip.compress(text.encode()) + bytes(zeros), "in.json.gz")
    assert documents_of(tmp_path) == [{"a": 1}, {"a": 2}]


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
    batch = reader.next_batch(pa.null(), 100, 1 << 20).to_arrow()
    assert variant.to_python(kernel.unshred(batch).column(0)) == documents


def test_two_arrays_on_a_line_are_no_rows(tmp_path: Path) -> None:
    with pytest.raises(mica.CorruptDataError, match="line 1, column 6") as caught:
        ingested(tmp_path, "[1,2][3,4]")
    assert caught.value.code == "INVALID_JSON"
    with pytest.raises(mica.CorruptDataError, match=r"line 3, column 1.*after the array"):
        ingested(tmp_path, "[1,\n2]\n[3]")


def test_an_array_ends_once(tmp_path: Path) -> None:
    """Whoever sorts asks again after the last document."""
    ingested(tmp_path, gzip.compress(b'[{"n":2},{"n":1}]'), "in.json.gz", sort_by=["v:n::int"])
    assert documents_of(tmp_path) == [{"n": 1}, {"n": 2}]


def test_a_zstd_file_may_begin_with_a_frame_to_skip(tmp_path: Path) -> None:
    frame = pa.compress(b'{"a":1}\n{"a":2}\n', codec="zstd", asbytes=True)
    sized = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + len(frame).to_bytes(4, "little") + frame
    ingested(tmp_path, sized * 2)
    assert documents_of(tmp_path) == [{"a": 1}, {"a": 2}] * 2


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ('[1,2\n{"a":2}\n', [{"a": 2}]),
        ('[1,\n{"a":1}\n{"a":2}\n', [{"a": 1}, {"a": 2}]),
        ('[\n{"a":1}\n', [{"a": 1}]),
        ("[1,2\n", []),
        ("[1,2", []),
    ],
)
def test_an_array_that_was_cut_short_is_one_bad_line_of_a_file_that_is_named_ndjson(
    tmp_path: Path, text: str, documents: list[Any]
) -> None:
    report = ingested(tmp_path, text, "in.ndjson", on_error="quarantine")
    assert (report.bad_lines, documents_of(tmp_path)) == (1, documents)


@pytest.mark.parametrize("first", ['{"a":1,', "{", '{"a":['])
def test_a_first_line_that_was_cut_short_spoils_itself_alone(tmp_path: Path, first: str) -> None:
    report = ingested(tmp_path, f'{first}\n{{"a":2}}\n{{"a":3}}\n', on_error="quarantine")
    assert (report.rows, report.bad_lines, documents_of(tmp_path)) == (2, 1, [{"a": 2}, {"a": 3}])
