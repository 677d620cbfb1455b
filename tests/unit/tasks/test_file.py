"""One data file: which rows are asked of it, where its columns come from, and what is said where it cannot be read."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import CorruptDataError, MicaError
from mica.expressions.bind import bind, bind_columns
from mica.schema.ddl import parse_ddl
from mica.skipping.row_ranges import RowRanges, intersect
from mica.storage import Storage
from mica.tasks.file import DataFileReader, FilePart, ReadSpec
from mica.tasks.read import read_ranges

SCHEMA = parse_ddl("id BIGINT, s STRING, added INT, p INT")
ROWS = 1000


def _spec(folder: Path, where: str | None = None, **more: Any) -> ReadSpec:
    outputs = bind_columns(["id", "s", "added", "p"], SCHEMA, partition_columns=["p"])
    assert outputs is not None
    predicate = None if where is None else bind(where, SCHEMA, partition_columns=["p"])
    return ReadSpec(Storage.open(folder), SCHEMA, ("p",), outputs, predicate, **more)


@pytest.fixture
def part(tmp_path: Path) -> FilePart:
    """A file of ten row groups of ten pages each; `id` is the number of the row."""
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": [str(i) for i in range(ROWS)]})
    path = tmp_path / "f.parquet"
    pq.write_table(rows, path, row_group_size=100, data_page_size=1, write_batch_size=10, write_page_index=True)
    return FilePart("f.parquet", path.stat().st_size, {"p": "7"})


def _ids(file: DataFileReader, **more: Any) -> list[int]:
    spec = file.spec
    leaves = [leaf for value in spec.outputs.values() for leaf in value.leaves]
    found = file.read(leaves, spec.predicate, **more)
    return [value for batch in found for value in batch.of(spec.outputs["id"])[0].to_pylist()]


# --- ranges ----------------------------------------------------------------------------------------------------------


def _rows(ranges: Iterable[tuple[int, int]]) -> list[int]:
    return [row for start, end in ranges for row in range(start, end)]


@pytest.mark.parametrize("shares", [1, 2, 3, 10, 13])
def test_shares_of_a_file_are_its_row_groups_each_once(tmp_path: Path, part: FilePart, shares: int) -> None:
    found = []
    for n in range(shares):
        mine = FilePart(part.path, part.size, part.partition, None, n, shares)
        ranges = DataFileReader(_spec(tmp_path), mine).ranges
        assert all(start % 100 == end % 100 == 0 for start, end in ranges)
        found += _rows(ranges)
    assert found == list(range(ROWS))


# --- what a predicate leaves -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "left", "proofs"),
    [
        ("id IN (251, 252)", [(250, 260)], [("row groups", 9), ("pages", 9)]),
        ("id >= 250 AND id < 260", [(250, 260)], [("row groups", 2), ("row groups", 7), ("pages", 5), ("pages", 4)]),
        ("id = 5 OR id = 995", [(0, 10), (990, 1000)], [("row groups", 8), ("pages", 18)]),
        ("id < 0", [], [("row groups", 10)]),
        ("added IS NULL", [(0, 1000)], []),
        ("p = 7", [(0, 1000)], []),
    ],
)
def test_the_footer_and_its_page_index_prove(
    tmp_path: Path, part: FilePart, where: str, left: RowRanges, proofs: list[tuple[str, int]]
) -> None:
    file = DataFileReader(_spec(tmp_path, where), part)
    assert file.spec.predicate is not None
    assert file.possible(file.spec.predicate, file.ranges) == left
    assert [(proof.what, spans) for proof in file.skipper.proofs for _, spans, _ in proof.gone] == proofs
    gone = sum(rows for proof in file.skipper.proofs for _, _, rows in proof.gone)
    assert gone + len(_rows(left)) == ROWS, "each row is left, or one proof counts it"


def test_only_possible_rows_are_read_and_only_passing_ones_given(tmp_path: Path, part: FilePart) -> None:
    file = DataFileReader(_spec(tmp_path, "id >= 255 AND id <= 901 AND s LIKE '%5'"), part)
    assert _ids(file) == list(range(255, 902, 10))
    assert _ids(DataFileReader(_spec(tmp_path, "id >= 255"), part), limit=3) == [255, 256, 257]
    leaves = [leaf for value in file.spec.outputs.values() for leaf in value.leaves]
    ranges: RowRanges = [(250, 260), (300, 302)]
    list(file.passing(leaves, bind("id % 2 = 0", SCHEMA), ranges, tracked=True))
    assert _rows(file.passed) == [row for row in _rows(ranges) if row % 2 == 0]
    assert intersect(file.passed, ranges) == file.passed


@pytest.mark.parametrize(("where", "all_or_none"), [("p = 7", True), ("p > 7", False), ("added = 1", False)])
def test_what_the_file_does_not_give_is_one_value(
    tmp_path: Path, part: FilePart, where: str, all_or_none: bool
) -> None:
    assert len(_ids(DataFileReader(_spec(tmp_path, where), part))) == ROWS * all_or_none
    file = DataFileReader(_spec(tmp_path), part)
    columns = {leaf.name: file.column(leaf) for value in file.spec.outputs.values() for leaf in value.leaves}
    assert [(name, column.request is None) for name, column in columns.items()] == [
        ("id", False), ("s", False), ("added", True), ("p", True),
    ]  # fmt: skip
    assert [array.to_pylist() for array in columns["p"].constant(2)] == [[7, 7]]
    assert [array.to_pylist() for array in columns["added"].constant(2)] == [[None, None]]


# --- errors ----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_gone_names_the_version_that_has_it(tmp_path: Path) -> None:
    part = FilePart("gone.parquet", 100)
    with pytest.raises(MicaError, match="version 3 of the table names it") as caught:
        DataFileReader(_spec(tmp_path, version=3), part)
    assert (caught.value.code, caught.value.context["version"]) == ("NOT_FOUND", 3)
    with pytest.raises(MicaError) as caught:
        DataFileReader(_spec(tmp_path), part)
    assert (caught.value.code, "version" in caught.value.context) == ("NOT_FOUND", False)


def test_a_file_of_another_size_is_not_read(tmp_path: Path, part: FilePart) -> None:
    with pytest.raises(MicaError, match=r"f\.parquet"):
        DataFileReader(_spec(tmp_path), FilePart(part.path, part.size - 1))


def test_a_column_of_another_type_is_named(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": ["text"], "s": ["a"]}), path)
    with pytest.raises(CorruptDataError, match=r"f\.parquet holds string in the column id, which is BIGINT") as caught:
        _ids(DataFileReader(_spec(tmp_path), FilePart("f.parquet", path.stat().st_size, {"p": None})))
    assert (caught.value.code, caught.value.context["column"]) == ("INCOMPATIBLE_TYPE", "id")


def test_a_table_that_maps_by_id_wants_ids(tmp_path: Path, part: FilePart) -> None:
    with pytest.raises(CorruptDataError, match="has no field ids") as caught:
        DataFileReader(_spec(tmp_path, by_id=True), part)
    assert caught.value.code == "MISSING_FIELD_ID"


def test_a_failed_cast_names_file_row_and_value(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "s": ["1", "2", "x"]}), path)
    part = FilePart("f.parquet", path.stat().st_size, {"p": None})
    with pytest.raises(MicaError, match=r"f\.parquet") as caught:
        _ids(DataFileReader(_spec(tmp_path, "s::int = 3"), part))
    assert (caught.value.code, "'x'" in caught.value.message) == ("INVALID_CAST", True)


def test_the_number_of_a_row_is_that_in_its_file(tmp_path: Path) -> None:
    """Whatever is left out, and however the file is split: by it changes that Spark chose find their rows."""
    table = mica.Table.create(
        tmp_path / "t", "id BIGINT, v VARIANT", properties={"delta.enableDeletionVectors": "true"}
    )
    for first in (0, 1000, 2000):
        table.append([{"id": first + i, "v": {"a": i}} for i in range(400)])
    table.delete("id % 3 = 0")
    columns = {"id": "id", "row": "_metadata.row_index"}
    for where in (None, "v:a::int > 200", "_metadata.row_index BETWEEN 100 AND 300", "id IN (2, 1001, 2399)"):
        rows = table.scan(columns=columns, where=where).to_arrow().to_pylist()
        assert rows
        assert all(row["row"] == row["id"] % 1000 for row in rows)
    assert table.scan(where="_metadata.row_index = 5").count() == 2  # of 5, 1005 and 2005 the second is deleted


def test_a_file_is_closed_when_nothing_reads_it_any_more(tmp_path: Path, part: FilePart) -> None:
    """Not when garbage is collected next: a server that answers small queries would run out of open files."""
    spec = _spec(tmp_path, "id > 10")
    gc.disable()
    try:
        file = DataFileReader(spec, part)
        assert sum(batch.num_rows for batch in read_ranges(file, file.ranges, spec.predicate, None)) == ROWS - 11
        gone = weakref.ref(file)
        del file
        assert gone() is None
    finally:
        gc.enable()
