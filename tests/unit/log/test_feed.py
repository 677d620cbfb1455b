"""The change data feed in the log: names that it needs, versions that it covers, files that hold it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import mica
from mica.errors import CorruptDataError, UserError
from mica.log import feed, feed_commits, shares
from mica.log.snapshot import load
from mica.storage import Storage


def test_names_that_the_feed_needs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        mica.Table.create(tmp_path / "a", "_Change_Type STRING", properties={"delta.enableChangeDataFeed": "true"})
    assert raised.value.code == "INVALID_NAME"
    table = mica.Table.create(tmp_path / "b", "id INT, _commit_version INT")
    with pytest.raises(UserError) as raised:
        table.set_properties({"delta.enableChangeDataFeed": "true"})
    assert raised.value.code == "INVALID_NAME"


@pytest.mark.parametrize("deleted", [0, 1])
def test_a_merge_that_counted_no_row_changed_none(tmp_path: Path, deleted: int) -> None:
    """delta-spark's merge rewrites files even where it changes no row, and its own reader of the feed knows that."""
    table = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 1}])
    (path,), root = table.files()["path"].to_pylist(), tmp_path / "t"
    shutil.copy(root / path, root / "copy.parquet")
    metrics = {"numTargetRowsInserted": "0", "numTargetRowsUpdated": "0", "numTargetRowsDeleted": str(deleted)}
    size = (root / path).stat().st_size
    commit = [
        {"commitInfo": {"timestamp": 0, "operation": "MERGE", "operationMetrics": metrics}},
        {"remove": {"path": path, "deletionTimestamp": 0, "dataChange": True, "partitionValues": {}, "size": size}},
        {
            "add": {
                "path": "copy.parquet", "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True,
            }
        },
    ]  # fmt: skip
    (root / "_delta_log" / f"{2:020}.json").write_text("".join(json.dumps(action) + "\n" for action in commit))
    changed = mica.Table.open(root).changes(2).to_arrow()
    assert changed["_change_type"].to_pylist() == (["delete", "insert"] if deleted else [])


def test_files_of_many_commits_are_made_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's objects for a file of each of 10,000 commits took 500 MB, and their parse 16 s."""
    monkeypatch.setattr(shares, "COMMITS", 4)
    table = mica.Table.create(tmp_path / "t", "id INT", properties={"delta.enableChangeDataFeed": "true"})
    for number in range(10):
        table.append([{"id": number}])
    files, _ = feed.changed_files(load(Storage.open(str(tmp_path / "t"))), 1)
    assert files["path"].num_chunks == 3  # of four commits, twice, and of the last two
    rows = table.changes(1).to_arrow()
    assert rows["id"].to_pylist() == list(range(10))
    assert rows["_commit_version"].to_pylist() == list(range(1, 11))


def test_removes_have_the_partition_values_of_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each such commit loaded the version before it: all of the log, again and again."""
    loaded = []
    monkeypatch.setattr(feed_commits, "load", lambda *given: loaded.append(given) or load(*given))
    monkeypatch.setattr(shares, "COMMITS", 4)
    enabled = {"delta.enableChangeDataFeed": "true"}
    table = mica.Table.create(tmp_path / "t", "id INT, p STRING", partition_by=["p"], properties=enabled)
    for number in range(10):
        table.overwrite([{"id": number, "p": f"p{number}"}])
    for log in (tmp_path / "t" / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            action.get("remove", {}).pop("partitionValues", None)
        log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    rows = mica.Table.open(tmp_path / "t").changes(2).to_arrow().select(["p", "_change_type"]).to_pylist()
    assert [row["p"] for row in rows if row["_change_type"] == "delete"] == [f"p{number}" for number in range(9)]
    assert len(loaded) == 1


@pytest.mark.parametrize("add", ['{"add":{"size":1}}', '{"add":{"path": ', '{"add":{"path":5}}', '{"add":5}', "[]"])
def test_a_damaged_commit_is_named_although_a_checkpoint_stands_for_it(tmp_path: Path, add: str) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableChangeDataFeed": "true"})
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    table.checkpoint()
    commit = tmp_path / "_delta_log" / f"{1:020}.json"
    info, _ = (line for line in commit.read_text().splitlines())
    commit.write_text(f"{info}\n{add}\n")
    table = mica.Table.open(tmp_path)
    assert (table.count(), table.changes(2).to_arrow().num_rows) == (2, 1)
    with pytest.raises(CorruptDataError, match=commit.name) as caught:
        table.changes(1)
    assert caught.value.code == "CORRUPT_LOG"
