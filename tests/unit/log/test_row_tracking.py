"""Row ids: given once, kept by files that are added again, and counted on by whoever commits next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import CorruptDataError, UserError
from mica.log import row_tracking
from mica.log.tombstones import tombstones

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


def test_removed_files_keep_their_ids(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT", properties=ON)
    for n in range(3):
        table.append([{"n": n}, {"n": n}])
    table.delete("n = 1")
    for _ in range(2):  # from a commit, then from a checkpoint
        [gone] = tombstones(mica.Table.open(tmp_path).snapshot).to_pylist()
        assert (gone["baseRowId"], gone["defaultRowCommitVersion"]) == (2, 2)
        table.checkpoint()
        table.append([{"n": 9}])


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


def test_files_get_ids_where_another_writer_added_the_feature_alone(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT")
    table.append([{"n": 1}, {"n": 2}])
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking", "domainMetadata"]}
    line = json.dumps({"protocol": protocol})
    (tmp_path / "_delta_log" / f"{2:020}.json").write_text(line)
    table.refresh().append([{"n": 3}])
    assert ids_or_none(table) == [(0, 3), (None, None)]
    table.set_properties(ON)
    assert sorted(rows(table)) == [1, 2, 3]
    assert ids(table) == [(0, 3), (1, 4)]


def ids_or_none(table: mica.Table) -> list[tuple[int | None, int | None]]:
    found = mica.Table.open(table.path).snapshot.file_ids().to_pylist()
    return sorted(((row["base_row_id"], row["default_row_commit_version"]) for row in found), key=str)


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


def rows(table: mica.Table) -> dict[int, tuple[int, int]]:
    """The ids and versions of rows, by `n`."""
    found = mica.Table.open(table.path).scan(columns={"n": "n", "id": ID, "version": VERSION}).to_arrow()
    kept = {row["n"]: (row["id"], row["version"]) for row in found.to_pylist()}
    assert len({row_id for row_id, _ in kept.values()}) == len(kept) == found.num_rows
    return kept


ID, VERSION = "_metadata.row_id", "_metadata.row_commit_version"
SOURCE = [{"n": 3, "p": 1, "v": {"b": 1}}, {"n": 5, "p": 1, "v": {}}, {"n": 90, "p": 0, "v": {}}]

Chosen = Callable[[int], bool]

#: What is done, the rows that are updated, and those that are gone.
REWRITES: dict[str, tuple[Callable[[mica.Table], Any], Chosen, Chosen]] = {
    "update": (lambda t: t.update({"v": "v", "p": "(p + 1) % 2"}, "n % 3 = 0"), lambda n: n % 3 == 0, lambda _: False),
    "delete": (lambda t: t.delete("n % 3 = 0"), lambda _: False, lambda n: n % 3 == 0),
    "by id": (lambda t: t.delete(f"{ID} < 2 AND {VERSION} = 1"), lambda _: False, lambda n: n in (0, 2)),
    "merge": (
        lambda t: t.merge(SOURCE, "target.n = source.n").when_matched_delete("source.n = 5").when_matched_update_all()
        .when_not_matched_insert_all("source.n > 5").when_not_matched_by_source_update({"p": "0"}, "target.n = 7")
        .execute(),
        lambda n: n in (3, 7), lambda n: n == 5,
    ),
    "merge by id": (
        lambda t: t.merge([{"id": 1, "last": 1}], f"target.{ID} = source.id AND {VERSION} = source.last")
        .when_matched_update({"p": f"cast({ID} AS INT) - 1"}, f"{ID} < 2").execute(),
        lambda n: n == 2, lambda _: False,
    ),
    "optimize": (lambda t: t.optimize(), lambda _: False, lambda _: False),
    "optimize along a curve": (lambda t: t.optimize(zorder_by=["n", "v:a"]), lambda _: False, lambda _: False),
    "reshred": (lambda t: t.reshred("STRUCT<b: INT>"), lambda _: False, lambda _: False),
    "erase": (lambda t: t.erase("v:b", "n > 3"), lambda n: n in (4, 6, 8), lambda _: False),
    "overwrite by a condition": (
        lambda t: t.overwrite([{"n": 90, "p": 1, "v": None}], where="n = 3 OR n = 90"),
        lambda _: False, lambda n: n == 3,
    ),
    "overwrite by matches": (
        lambda t: t.overwrite([{"n": 90, "p": 0, "v": None}], on="target.n = source.n - 84"),
        lambda _: False, lambda n: n == 6,
    ),
    "unmap": (lambda t: t.drop_feature("columnMapping"), lambda _: False, lambda _: False),
}  # fmt: skip


@pytest.mark.parametrize("mapping", ["none", "id"])
@pytest.mark.parametrize("vectors", ["false", "true"])
@pytest.mark.parametrize("what", REWRITES)
def test_rows_that_are_written_again_keep_their_ids(tmp_path: Path, what: str, vectors: str, mapping: str) -> None:
    mapping = "name" if what == "unmap" else mapping
    properties = {**ON, "delta.enableDeletionVectors": vectors, "delta.columnMapping.mode": mapping}
    table = mica.Table.create(tmp_path, "n INT, p INT, v VARIANT", ["p"], properties)
    table.append([{"n": n, "p": n % 2, "v": {"a": n, "b" if n % 2 == 0 else "c": n}} for n in range(10)])
    table.append([{"n": n, "p": n % 2, "v": {"a": n}} for n in range(10, 16)])
    table.delete("n = 1")
    table.update({"p": "p"}, "n = 14")  # the ids of some rows are in files already
    before, last = rows(table), highest(table)
    change, updated, gone = REWRITES[what]
    change(table)
    after = rows(table)
    new = {90} if what == "merge" or what.startswith("overwrite") else set()
    assert after.keys() == {n for n in before if not gone(n)} | new
    assert all(after[n][0] > last for n in new)
    assert all(after[n][0] == before[n][0] for n in after.keys() - new)
    touched = {n for n in after if after[n] != before.get(n)}
    assert touched == {n for n in after if updated(n)} | new
    [info] = {version for _, version in map(after.get, touched)} or {table.version}  # type: ignore[misc]
    commit = json.loads((tmp_path / "_delta_log" / f"{info:020}.json").read_bytes().splitlines()[0])
    assert commit["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}
    assert mica.check(table).ok


def test_change_files_have_no_ids(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT", properties={**ON, "delta.enableChangeDataFeed": "true"})
    table.append([{"n": n} for n in range(5)])
    table.update({"n": "n + 10"}, "n > 2")
    [file] = tmp_path.glob("_change_data/*.parquet")
    assert pq.read_schema(file).names == ["n", "_change_type"]
    feed = table.changes(from_version=2)
    assert sorted(feed.to_arrow()["n"].to_pylist()) == [3, 4, 13, 14]


def test_ids_need_tracked_rows(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT")
    table.append([{"n": 1}])
    for asked in ({"columns": [ID]}, {"where": f"{VERSION} > 1"}):
        with pytest.raises(UserError, match="does not track rows") as caught:
            table.scan(**asked)
        assert caught.value.code == "FEATURE_NEEDED"
    with pytest.raises(UserError, match="does not track rows"):
        table.merge([{"id": 1}], f"{ID} = source.id").when_matched_delete().execute()
    table.set_properties(ON)
    with pytest.raises(UserError, match="there is no column"):
        table.merge([{"id": 1}], "target.n = source.id").when_matched_update({ID: "1"}).execute()
    assert table.scan(columns=["n", ID, VERSION.upper()]).to_arrow().to_pylist() == [
        {"n": 1, "row_id": 0, "row_commit_version": 2}
    ]
    for asked in ({"columns": ["_metadata"]}, {"columns": {"x": "_metadata.other"}}):
        with pytest.raises(UserError) as caught:
            table.scan(**asked)
        assert caught.value.code == "UNKNOWN_COLUMN"
    own = mica.Table.create(tmp_path / "own", "`_metadata` STRUCT<row_id: STRING>", properties=ON)
    own.append([{"_metadata": {"row_id": "mine"}}])
    assert own.scan(columns={"x": ID}).to_arrow()["x"].to_pylist() == ["mine"]


def test_rows_without_a_count_have_no_ids(tmp_path: Path) -> None:
    with pytest.raises(CorruptDataError) as caught:
        row_tracking.numbered([{"path": "a", "stats": json.dumps({})}], 4, 1)
    assert caught.value.code == "MISSING_STATISTICS"
    with pytest.raises(CorruptDataError) as caught:
        row_tracking.highest("[]")
    assert caught.value.code == "INVALID_DOMAIN"
    assert not (tmp_path / "t").exists()
