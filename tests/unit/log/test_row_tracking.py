"""Row ids: given once, kept by files that are added again, and counted on by whoever commits next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import mica
from mica.errors import CorruptDataError, UnsupportedTableError
from mica.log import row_tracking

ON = {"delta.enableRowTracking": "true"}


def ids(table: mica.Table) -> list[tuple[int, int]]:
    found = mica.Table.open(table.path).snapshot.file_ids().to_pylist()
    return sorted((row["base_row_id"], row["default_row_commit_version"]) for row in found)


def highest(table: mica.Table) -> int:
    return row_tracking.highest(mica.Table.open(table.path).snapshot.domains.get("delta.rowTracking"))


def test_new_files_get_the_next_ids(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT, p INT", ["p"], {**ON, "delta.checkpointInterval": "3"})
    assert {"rowTracking", "domainMetadata"} <= table.protocol.writer_features
    assert table.properties["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    table.append([{"n": n, "p": n % 2} for n in range(5)])
    table.append([{"n": 9, "p": 0}])
    found = ids(table)
    assert {version for _, version in found} == {1, 2}
    assert found[-1] == (5, 2)
    assert highest(table) == 5
    table.append([{"n": 9, "p": 0}])  # behind a checkpoint
    table.append([{"n": 9, "p": 0}])
    assert ids(table)[-2:] == [(6, 3), (7, 4)]
    table.overwrite([{"n": 1, "p": 1}], "p = 1")
    assert ids(table)[-1] == (8, 5)


def test_writers_side_by_side_never_give_the_same_ids(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT", properties=ON)
    others = [mica.Table.open(tmp_path) for _ in range(3)]
    for other in others:
        other.append([{"n": 1}, {"n": 2}])
    assert ids(table) == [(0, 1), (2, 2), (4, 3)]
    assert highest(table) == 5


def test_files_that_exist_get_ids_when_rows_are_tracked(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT, s STRING COLLATE UTF8_LCASE")
    table.append([{"n": 1}, {"n": 2}])
    table.append([{"n": 3}])
    table.set_properties(ON)
    assert sorted(base for base, _ in ids(table)) in ([0, 1], [0, 2])
    assert {version for _, version in ids(table)} == {3}
    assert highest(table) == 2
    assert table.to_arrow().num_rows == 3


def test_files_keep_their_ids(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT, s STRING COLLATE UTF8_LCASE, v VARIANT",
                              properties={**ON, "delta.enableDeletionVectors": "true"})  # fmt: skip
    table.append([{"n": n, "s": "a", "v": {"a": n}} for n in range(4)])
    table.append([{"n": 9}])
    before = ids(table)
    table.delete("n = 1")
    table.restats()
    assert ids(table) == before
    table.delete("n = 9")
    table.restore(version=2)
    assert ids(table) == before
    assert highest(table) == 4
    table.append([{"n": 9}])
    assert ids(table)[-1][0] == 5


@pytest.mark.parametrize("what", ["update", "delete", "optimize", "merge", "reshred"])
def test_rows_are_not_rewritten_without_their_ids(tmp_path: Path, what: str) -> None:
    table = mica.Table.create(tmp_path, "n INT, v VARIANT", properties=ON)
    for number in range(2):
        table.append([{"n": number, "v": {"a": 1}}, {"n": 5, "v": {"a": 1}}])
    calls: dict[str, Any] = {
        "update": lambda: table.update({"n": "n + 1"}, "n = 1"),
        "delete": lambda: table.delete("n = 1"),
        "optimize": table.optimize,
        "merge": lambda: table.merge([{"n": 1}], "target.n = source.n").when_matched_update({"n": "3"}).execute(),
        "reshred": lambda: table.reshred("STRUCT<b: INT>"),
    }
    files = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(UnsupportedTableError, match="tracks rows") as caught:
        calls[what]()
    assert (caught.value.code, mica.Table.open(tmp_path).version) == ("UNSUPPORTED_WRITER_FEATURE", 2)
    assert sorted(tmp_path.glob("*.parquet")) == files
    table.merge([{"n": 77}], "target.n = source.n").when_not_matched_insert({"n": "source.n"}).execute()
    table.delete("n >= 0")
    assert table.count() == 0


def test_rows_without_a_count_have_no_ids(tmp_path: Path) -> None:
    with pytest.raises(CorruptDataError) as caught:
        list(row_tracking.numbered([{"path": "a", "stats": json.dumps({})}], 4, 1))
    assert caught.value.code == "MISSING_STATISTICS"
    with pytest.raises(CorruptDataError) as caught:
        row_tracking.highest("[]")
    assert caught.value.code == "INVALID_DOMAIN"
    assert not (tmp_path / "t").exists()
