"""Auto compaction: many small files of a partition are joined after a write, which stands whatever happens to that."""

from __future__ import annotations

import logging
from pathlib import Path

import orjson
import pytest

import mica
from mica.errors import ConflictError, StorageError
from mica.log.clustering import PROVIDER
from mica.log.domains import CLUSTERING_DOMAIN
from mica.log.transaction import Transaction
from mica.write import compact, flow

ON = {"delta.autoOptimize.autoCompact": "true"}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "MANY", 5)


def filled(path: Path, files: int, **properties: str) -> mica.Table:
    table = mica.Table.create(path, "id INT, p STRING, v VARIANT", ["p"], properties=properties)
    for i in range(files):
        table.append([{"id": i, "p": "a", "v": {"a": i}}])
    return table


def operations(table: mica.Table) -> list[str]:
    return table.history().column("operation").to_pylist()[::-1]


def test_many_small_files_are_joined(tmp_path: Path) -> None:
    table = filled(tmp_path, 4, **ON)
    assert operations(table) == ["CREATE TABLE", *["WRITE"] * 4]
    done = table.append([{"id": 4, "p": "a", "v": None}])
    assert (done.version, table.version, table.files().num_rows, table.count()) == (5, 6, 1, 5)
    assert operations(table)[-1] == "OPTIMIZE"
    assert dict(table.history(limit=1).to_pylist()[0]["operation_parameters"])["auto"] == "true"
    assert sorted(table.scan(columns=["id"]).to_arrow().column("id").to_pylist()) == list(range(5))


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_rows_keep_their_ids_and_the_feed_tells_no_change(tmp_path: Path, mapping: str) -> None:
    others = {f"delta.enable{name}": "true" for name in ("DeletionVectors", "ChangeDataFeed", "RowTracking")}
    table = filled(tmp_path, 0, **ON, **others, **{"delta.columnMapping.mode": mapping})
    ids: dict[int, int] = {}
    for i in range(12):
        table.append([{"id": 2 * i, "p": "a", "v": {"a": i}}, {"id": 2 * i + 1, "p": "a", "v": None}])
        if i % 4 == 2:
            table.delete(f"id = {2 * i}")
        now = table.scan(columns={"id": "id", "row": "_metadata.row_id"}).to_arrow().to_pylist()
        assert all(ids.setdefault(row["id"], row["row"]) == row["row"] for row in now)
    assert "OPTIMIZE" in operations(table)
    assert len(now) == 21
    assert len({row["row"] for row in now}) == 21
    told = table.changes(1).to_arrow().column("_change_type").to_pylist()
    assert (told.count("insert"), told.count("delete"), len(told)) == (24, 3, 27)


def test_a_clustered_table_is_ordered_by_its_columns(tmp_path: Path) -> None:
    """New files and those that mica clustered are ordered together; those of others stay."""
    table = mica.Table.create(tmp_path, "id INT, v VARIANT", properties={"delta.feature.clustering": "supported", **ON})
    transaction = Transaction(table.snapshot, "CLUSTER BY")
    transaction.set_domain(CLUSTERING_DOMAIN, orjson.dumps({"clusteringColumns": [["id"]]}).decode())
    transaction.commit()
    table = mica.Table.open(tmp_path)
    for i in range(5):
        table.append([{"id": (i * 3 + n) % 5, "v": {"a": n}} for n in range(2)])
    assert table.snapshot.clustering_providers().to_pylist() == [PROVIDER]
    assert table.to_arrow()["id"].to_pylist() == sorted((i * 3 + n) % 5 for i in range(5) for n in range(2))
    assert dict(table.history(limit=1).to_pylist()[0]["operation_parameters"])["clusterBy"] == '["id"]'
    transaction = Transaction(table.snapshot, "OPTIMIZE")
    file = table.files().to_pylist()[0]
    transaction.remove_files([0])
    transaction.add_files([{**file, "path": f"{file['path']}", "clustering_provider": "liquid"}])
    liquid = file["path"]
    transaction.commit()
    table.refresh()
    for i in range(5):
        assert liquid in table.files()["path"].to_pylist()
        table.append([{"id": i, "v": None}])
    assert sorted(map(str, table.snapshot.clustering_providers().to_pylist())) == ["liquid", PROVIDER]
    assert table.count() == 15


def test_only_partitions_with_many_are_joined(tmp_path: Path) -> None:
    table = filled(tmp_path, 0, **ON)
    for i in range(4):
        table.append([{"id": i, "p": p, "v": None} for p in "ab"])
    table.append([{"id": 9, "p": None, "v": None}, {"id": 9, "p": "b", "v": None}])
    found = {row["p"]: row["files"] for row in table.partitions().to_pylist()}
    assert (found, table.count()) == ({None: 1, "a": 4, "b": 1}, 10)


@pytest.mark.parametrize(
    ("properties", "compacts"),
    [
        ({}, False), ({"delta.autoOptimize.autoCompact": "false"}, False), ({"delta.autoOptimize": "true"}, True),
        ({"delta.autoOptimize.autoCompact": "auto"}, True), (ON | {"delta.targetFileSize": "1kb"}, False),
        ({"delta.autoOptimize": "true", "delta.autoOptimize.autoCompact": "false"}, False),
    ],
)  # fmt: skip
def test_properties_decide(tmp_path: Path, properties: dict[str, str], compacts: bool) -> None:
    assert ("OPTIMIZE" in operations(filled(tmp_path, 6, **properties))) is compacts


def test_updates_merges_and_ingests_compact_too(tmp_path: Path) -> None:
    table = filled(tmp_path / "a", 6)
    table.set_properties(ON)
    table.update({"id": "id + 1"}, "id = 3")
    assert (operations(table)[-2:], table.files().num_rows) == (["UPDATE", "OPTIMIZE"], 1)
    table = filled(tmp_path / "b", 6)
    table.set_properties(ON)
    merge = table.merge([{"id": 3, "p": "z"}], "source.id = target.id").when_matched_update({"id": "source.id + 1"})
    merge.execute()
    assert (operations(table)[-2:], table.files().num_rows) == (["MERGE", "OPTIMIZE"], 1)
    source = tmp_path / "a.json"
    source.write_text('{"a": 1}\n')
    for _ in range(5):
        report = mica.ingest_json(source, tmp_path / "c", properties=ON)
    table = mica.Table.open(tmp_path / "c")
    assert (report.version, table.version, table.files().num_rows, table.count()) == (4, 5, 1, 5)


@pytest.mark.parametrize("error", [ConflictError("CONCURRENT_DELETE", "x"), StorageError("IO", "x"), ValueError("x")])
def test_a_failure_does_not_fail_the_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    table = filled(tmp_path, 4, **ON)
    commit = flow.commit

    def failing(engine: object, target: object, *rest: object, **more: object) -> object:
        if target.operation == "OPTIMIZE":  # type: ignore[attr-defined]
            raise error
        return commit(engine, target, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(flow, "commit", failing)
    with caplog.at_level(logging.INFO, "mica"):
        done = table.append([{"id": 4, "p": "a", "v": None}])
    assert (done.version, table.version, table.count()) == (5, 5, 5)
    assert "compacted" in caplog.text
    monkeypatch.undo()
    monkeypatch.setattr(compact, "MANY", 5)
    table.append([{"id": 5, "p": "a", "v": None}])
    assert (table.files().num_rows, table.count()) == (1, 6)
