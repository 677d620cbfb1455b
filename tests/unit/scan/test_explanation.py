"""What a plan says of row groups, pages, rows and bytes, and what it opens to say so."""

from __future__ import annotations

import io
import re
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import mica
from mica.scan.explanation import FOOTERS
from mica.schema.arrow import variant_field
from mica.table import Table
from mica.variant import from_json, kernel

ROWS = 1_000


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of ten row groups of ten pages each, in the order of `n`."""
    texts = [f'{{"n":{n},"s":"text {n % 7}","deep":{{"x":{n}}}}}' for n in range(ROWS)]
    batch = pa.record_batch([from_json(pa.array(texts))], schema=pa.schema([variant_field("v")]))
    tree = pa.struct([("n", pa.int64()), ("s", pa.string()), ("deep", pa.struct([("x", pa.int64())]))])
    shredded = kernel.shred(batch, {("v",): tree})
    path = str(tmp_path_factory.mktemp("explain") / "f.parquet")
    writer = kernel.FileWriter(shredded.schema, path=path, row_group_rows=100, page_rows=10)
    for at in range(0, ROWS, 10):
        writer.write(shredded.slice(at, 10))
    writer.close()
    return path


def test_row_groups_pages_and_rows_are_counted(file: str) -> None:
    scan = mica.read_parquet(file, where="v:n::bigint BETWEEN 250 AND 259", columns={"s": "v:s::string"})
    found = scan.explain().to_dict()
    assert found["files"]["total"] == found["files"]["kept"] == 1
    assert found["footers"] == {"opened": 1, "of": 1, "why": None}
    assert (found["row_groups"]["total"], found["row_groups"]["kept"]) == (10, 1)
    assert found["rows"] == {"total": ROWS, "kept": 10}
    assert found["pages"] == {"total": 200, "kept": 2}
    assert 0 < found["bytes"]["read"] < found["bytes"]["columns"] < found["bytes"]["total"]
    reasons: list[dict[str, Any]] = found["row_groups"]["dropped"]
    assert {(r["by"], r["spans"], r["rows"]) for r in reasons} == {
        ("row groups", 2, 200),
        ("row groups", 7, 700),
        ("pages", 5, 50),
        ("pages", 4, 40),
    }
    assert all("v:n" in r["reason"] for r in reasons)


def test_to_analyze_counts_what_happened(file: str) -> None:
    scan = mica.read_parquet(file, where="v:n::bigint >= 250 AND v:s::string = 'text 1'")
    found = scan.explain(analyze=True).to_dict()["analyze"]
    assert found["rows"] == scan.count() == len([n for n in range(250, ROWS) if n % 7 == 1])
    assert found["rows_judged"] == 750
    assert found["row_groups"] == 8
    assert found["bytes_fetched"] >= found["bytes"] > 0
    assert [f["rows_passed"] for f in found["files"]] == [found["rows"]]


def test_rows_that_fail_spare_the_pages_of_other_columns(file: str) -> None:
    few = mica.read_parquet(file, where="abs(v:deep.x::bigint) = 5", columns={"s": "v:s::string"})
    found = few.explain(analyze=True).to_dict()
    assert found["analyze"]["rows"] == 1
    assert found["analyze"]["rows_judged"] == ROWS
    assert found["analyze"]["pages"] == 100 + 1
    assert found["pages"]["total"] == 200


def test_values_are_counted_by_where_they_come_from(tmp_path: Path) -> None:
    texts = [f'{{"n":{n},"x":{n if n % 10 else f"{chr(34)}{n}{chr(34)}"},"u":true}}' for n in range(100)]
    batch = pa.record_batch([from_json(pa.array(texts))], schema=pa.schema([variant_field("v")]))
    shredded = kernel.shred(batch, {("v",): pa.struct([("n", pa.int64()), ("x", pa.int64())])})
    writer = kernel.FileWriter(shredded.schema, path=str(tmp_path / "f.parquet"))
    writer.write(shredded)
    writer.close()
    columns = {"x": "v:x::string", "u": "v:u::boolean", "none": "v:none::int"}
    found = mica.read_parquet(tmp_path / "f.parquet", where="v:n::bigint < 50", columns=columns).explain(analyze=True)
    counts = {one["path"]: (one["typed"], one["residual"]) for one in found.to_dict()["analyze"]["paths"]}
    assert counts == {"v:n": (100, 0), "v:none": (0, 0), "v:u": (0, 50), "v:x": (45, 5)}
    assert "v:x: 45 values from the typed column, 5 from the residual" in str(found)


def test_a_limit_stops_the_reading(file: str) -> None:
    found = mica.read_parquet(file, where="abs(v:n::bigint) >= 0", limit=3).explain(analyze=True).to_dict()["analyze"]
    assert found["rows"] == 3
    whole = mica.read_parquet(file, where="abs(v:n::bigint) >= 0").explain(analyze=True).to_dict()["analyze"]
    assert found["bytes_fetched"] < whole["bytes_fetched"]


def test_many_footers_are_opened_only_when_asked_for(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), "i BIGINT, p BIGINT", partition_by=["p"])
    count = FOOTERS + 1
    table.append(pa.table({"i": pa.array(range(count)), "p": pa.array(range(count))}))
    plain = table.scan().explain().to_dict()
    assert plain["footers"]["opened"] == 0
    assert "footers=True" in plain["footers"]["why"]
    assert "row_groups" not in plain
    assert table.scan().explain(footers=True).to_dict()["row_groups"] == {"total": count, "kept": count, "dropped": []}
    assert table.scan(where="p < 3").explain().to_dict()["footers"]["opened"] == 3
    assert table.scan(where="p < 3").explain(footers=False).to_dict()["footers"]["opened"] == 0


def test_that_bounds_meet_the_condition_is_said_of_more_than_one_file(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "i BIGINT")
    for first in (0, 5, 100):
        table.append(pa.table({"i": pa.array([first, first + 10], pa.int64())}))
    line = "  kept 2 files: their bounds do not exclude the condition"
    assert line in str(table.scan(where="i = 7").explain()).splitlines()
    assert "kept" not in str(table.scan(where="i = 100").explain())
    assert "kept" not in str(table.scan().explain())


def test_a_narrow_terminal_shows_the_condition_once_and_ends_of_names(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", "i BIGINT")
    for first in (0, 5, 100):
        table.append(pa.table({"i": pa.array([first, first + 10], pa.int64())}))
    console = Console(width=80, file=io.StringIO())
    console.print(table.scan(where="i = 100").explain())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("i = 100") == 2, "in the title and before the skipped files"
    for path in table.files().column("path").to_pylist()[:2]:
        assert f"…{path.partition('.')[0][-13:]} " in text
    assert "i is between 0 and 10" in text


@pytest.mark.parametrize("width", [50, 58, 200])
def test_numbers_are_whole_and_bars_tell_in_every_terminal(tmp_path: Path, width: int) -> None:
    """In 60 columns the bytes were `103,5…`, and without colours every bar was full."""
    table = Table.create(tmp_path / "t", "i BIGINT, s STRING")
    for first in (0, 100):
        rows = {"i": pa.array(range(first, first + 9)), "s": [Random(i).randbytes(40_000).hex() for i in range(9)]}
        table.append(pa.table(rows))
    scan = table.scan(where="i = 104")
    for encoding, (mark, rest) in (("utf-8", "━─"), ("latin-1", "#-")):
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
        console = Console(width=width, file=file)
        console.print(scan.explain())
        file.seek(0)
        text = file.read()
        numbers = {f"{n:,}" for _, *both in scan.explain().levels() for n in both}
        assert max(map(len, numbers)) > 5
        assert numbers <= set(text.split())
        (bar,) = re.findall(rf"^files +1 +2 +([{mark}{rest}]*)(?= 50)", text, re.MULTILINE) or [""]
        assert abs(bar.count(mark) - bar.count(rest)) <= 1
        assert bool(bar) == (width > 50)


def test_a_file_that_is_gone_does_not_hide_the_plan(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), "i BIGINT")
    table.append(pa.table({"i": pa.array([1], pa.int64())}))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    explained = table.scan().explain()
    assert explained.to_dict()["files"]["kept"] == 1
    assert "NOT_FOUND" in str(explained)
    with pytest.raises(mica.MicaError, match="is gone"):
        str(table.scan().explain(analyze=True))


def test_a_condition_on_a_hidden_column_is_explained(tmp_path: Path) -> None:
    """It was UNKNOWN_COLUMN: of each value without bounds the nearest path was looked for."""
    table = Table.create(tmp_path / "t", "id BIGINT")
    table.append([{"id": 1}, {"id": 2}])
    table.append([{"id": 3}])
    shown = str(table.scan(where="_metadata.row_index > 0").explain())
    assert "kept 2 files: they have no bounds of _metadata.row_index" in shown


def test_footers_are_opened_where_this_process_compares_by_the_collation(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path / "t", "s STRING COLLATE UTF8_LCASE, u STRING COLLATE UNICODE_CI")
    table.append([{"s": "A", "u": "A"}])
    assert table.scan(where="s = 'a'").explain().to_dict()["footers"] == {"opened": 1, "of": 1, "why": None}
    why = table.scan(where="u = 'a'").explain().to_dict()["footers"]["why"]
    assert why == "only Spark can compare by this collation"
