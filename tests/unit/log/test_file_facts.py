"""Files are left out by what `_metadata` says of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import mica

FIELDS = ("file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time")


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    found = mica.Table.create(tmp_path / "a table%", "id BIGINT, p STRING", partition_by=["p"])
    for number, value in enumerate(("x=1", "ü b", "it's", "x=1")):
        found.append([{"id": number * 10 + i, "p": value} for i in range(3 + number * 40)])
    return found


def test_each_field_of_a_file_chooses_it(table: mica.Table) -> None:
    columns = {"id": "id", **{name: f"_metadata.{name}" for name in FIELDS}}
    rows = table.scan(columns=columns).to_arrow().to_pylist()
    assert len({row["file_path"] for row in rows}) == 4
    for field, literal in (
        ("file_path", "'{}'"), ("file_name", "'{}'"), ("file_size", "{}"), ("file_block_length", "{}"),
        ("file_modification_time", "TIMESTAMP'{}'"),
    ):  # fmt: skip
        for value in {row[field] for row in rows}:
            asked = literal.format(str(value).replace("'", "''"))
            for condition, wanted in ((f"= {asked}", lambda v, of: v == of), (f"> {asked}", lambda v, of: v > of)):
                scan = table.scan(columns=["id"], where=f"_metadata.{field} {condition}")
                expected = [row for row in rows if wanted(row[field], value)]
                assert sorted(scan.to_arrow().column("id").to_pylist()) == sorted(row["id"] for row in expected)
                assert len(scan.kept) == len({row["file_path"] for row in expected})
    assert len(table.scan(where="_metadata.file_block_start > 0").kept) == 0
    assert len(table.scan(where="_metadata.file_name LIKE 'part-%' AND _metadata.row_index >= 0").kept) == 4


def test_a_file_that_is_left_out_is_not_opened(table: mica.Table) -> None:
    gone, *others = table.scan(columns={"f": "_metadata.file_path"}).to_arrow().column("f").unique().to_pylist()
    [path] = table.scan(where=f"""_metadata.file_path = "{gone}" """).kept.column("path").to_pylist()
    os.unlink(Path(table.path) / path)  # noqa: PTH108 - a name of the log
    rows = table.scan(where=f"""_metadata.file_path <> "{gone}" """)
    assert rows.count() == len(rows.to_arrow())
    assert len(rows.kept) == len(others)
    with pytest.raises(mica.StorageError):
        table.scan().to_arrow()


def test_a_change_by_the_place_of_a_file_is_no_conflict_with_others(table: mica.Table) -> None:
    [place] = table.scan(columns={"f": "_metadata.file_path"}, limit=1).to_arrow().column("f").to_pylist()
    mica.Table.open(table.path).append([{"id": 1, "p": "new"}])
    done = table.delete(f"""_metadata.file_path = "{place}" """)
    assert done.metrics["numDeletedRows"] > 0
    assert "new" in mica.Table.open(table.path).scan().to_arrow().column("p").to_pylist()
