"""Features added and dropped: nothing of a dropped one is left, the rows stay, and history is protected or old."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import ConflictError, StorageError, UserError
from mica.log import features
from mica.log.actions import Protocol
from mica.log.clustering import cluster_by
from mica.log.transaction import Transaction
from mica.maintain import features as dropping
from mica.maintain.features import without
from mica.stats.columns import physical_name
from tests.unit.log.tables import before_commit

ALL = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true", "delta.enableTypeWidening": "true"}
DROPPED = ["deletionVectors", "typeWidening", "columnMapping", "variantShredding"]


@pytest.fixture
def table(tmp_path: Path) -> mica.Table:
    made = mica.Table.create(tmp_path / "t", "id INT, p STRING, s STRUCT<x: INT>, v VARIANT", ["p"], ALL)
    made.append([{"id": i, "p": "ab"[i % 2], "s": {"x": i}, "v": {"a": i}} for i in range(6)])
    made.rename_column("id", "key").rename_column("p", "part").alter_column("key", type="BIGINT").delete("key = 2")
    return made


def rows(table: mica.Table) -> list[tuple[object, ...]]:
    columns = {"key": "key", "part": "part", "x": "s.x", "a": "v:a::int"}
    return sorted(tuple(row.values()) for row in table.scan(columns=columns).to_arrow().to_pylist())


@pytest.mark.parametrize("name", DROPPED)
def test_nothing_of_a_dropped_feature_is_left(table: mica.Table, name: str) -> None:
    before, files = rows(table), set(table.files()["path"].to_pylist())
    table.drop_feature(name)
    assert rows(table) == before
    assert not features.supports(table.protocol, name)
    assert table.properties["delta.requireCheckpointProtectionBeforeVersion"] == str(table.version)
    assert (Path(table.path) / "_delta_log" / f"{table.version:020}.checkpoint.parquet").exists()
    assert set(table.files()["path"].to_pylist()) != files
    assert mica.check(table.path).ok
    if name == "deletionVectors":
        assert table.files()["deletion_vector"].null_count == table.files().num_rows
    if name == "columnMapping":
        assert "delta.columnMapping" not in table.metadata.schema_string
        paths = [Path(table.path) / path for path in table.files()["path"].to_pylist()]
        assert all(pq.ParquetFile(path).schema_arrow.names == ["key", "s", "v"] for path in paths)
    if name == "typeWidening":
        assert "delta.typeChanges" not in table.metadata.schema_string
    if name == "variantShredding":
        table.drop_feature("deletionVectors")
        for uri in table.file_uris():
            assert all("typed_value" not in n for n in pq.ParquetFile(uri).schema.names)


@pytest.mark.parametrize(("change", "empty"), [("append", False), ("delete", False), ("append", True)])
@pytest.mark.parametrize("name", DROPPED)
def test_what_comes_while_a_feature_is_dropped_keeps_its_rows(
    table: mica.Table, monkeypatch: pytest.MonkeyPatch, name: str, change: str, empty: bool
) -> None:
    """An appended file had names that nobody looked for, a deletion vector was left that no feature named."""
    if empty:
        table.delete()
    other = mica.Table.open(table.path)
    if change == "delete":
        before_commit(monkeypatch, lambda: other.delete("key = 3"))
    else:
        before_commit(monkeypatch, lambda: other.append([{"key": 9, "part": "a", "s": {"x": 9}, "v": {"a": 9}}]))
    with pytest.raises(mica.ConflictError):
        mica.Table.open(table.path).drop_feature(name)
    wanted = rows(other)
    now = mica.Table.open(table.path).drop_feature(name)
    assert rows(now) == wanted
    assert mica.check(now.path).ok
    assert name != "deletionVectors" or now.files()["deletion_vector"].null_count == now.files().num_rows


def test_a_vacuum_while_a_feature_is_dropped_moves_what_protects_its_history(
    table: mica.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commits hold no files, so they are no conflict, and are of versions that still have the feature."""
    other, wanted, dropped = mica.Table.open(table.path), rows(table), dropping._dropped

    def late(*given: Any) -> Any:
        before_commit(monkeypatch, other.vacuum)
        return dropped(*given)

    monkeypatch.setattr(dropping, "_dropped", late)
    now = mica.Table.open(table.path).drop_feature("deletionVectors")
    log = {row["version"]: row["operation"] for row in now.history().to_pylist()}
    last = int(now.properties["delta.requireCheckpointProtectionBeforeVersion"])
    assert [log[last - 1], log[last], last + 1] == ["VACUUM END", "DROP FEATURE", now.version]
    assert rows(mica.Table.open(table.path)) == wanted
    assert (Path(table.path) / "_delta_log" / f"{now.version:020}.checkpoint.parquet").exists()


def test_a_checkpoint_that_fails_does_not_make_a_dropped_feature_seem_to_be_there(
    table: mica.Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    written = dropping.write_checkpoint

    def second_fails(snapshot: Any) -> int:
        monkeypatch.setattr(dropping, "write_checkpoint", failing)
        return written(snapshot)

    def failing(snapshot: Any) -> int:
        raise StorageError("IO", "the disk is full")

    monkeypatch.setattr(dropping, "write_checkpoint", second_fails)
    now = table.drop_feature("deletionVectors")
    assert "deletionVectors" not in now.protocol.writer_features
    assert "the disk is full" in caplog.text


def test_all_of_them_in_turn_and_back(table: mica.Table) -> None:
    before = rows(table)
    for name in DROPPED:
        table.drop_feature(name)
    assert table.protocol.reader_features == {"variantType"}
    table.set_properties(ALL).rename_column("key", "k").delete("k = 0")
    assert len(rows_of(table, "k")) == len(before) - 1


def rows_of(table: mica.Table, column: str) -> list[object]:
    return table.to_arrow()[column].to_pylist()


def test_history_is_deleted_only_when_it_is_old(table: mica.Table) -> None:
    with pytest.raises(UserError) as caught:
        table.drop_feature("deletionVectors", truncate_history=True)
    assert caught.value.code == "FEATURE_IN_HISTORY"
    log = Path(table.path) / "_delta_log"
    for path in log.iterdir():
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 48 * 3600))
    before = rows(table)
    table.drop_feature("deletionVectors", truncate_history=True)
    assert not features.supports(table.protocol, "deletionVectors")
    assert "checkpointProtection" not in features.names(table.protocol)
    assert rows(mica.Table.open(table.path)) == before
    assert not any('"deletionVector":' in path.read_text() for path in log.glob("*.json"))


def test_the_protection_of_checkpoints_goes_when_what_it_protects_is_old(table: mica.Table) -> None:
    table.drop_feature("deletionVectors")
    table.append([{"key": 9, "part": "a", "s": {"x": 9}, "v": {"a": 9}}])
    with pytest.raises(UserError) as caught:
        table.drop_feature("checkpointProtection", truncate_history=True)
    assert caught.value.code == "FEATURE_IN_HISTORY"
    for path in (Path(table.path) / "_delta_log").iterdir():
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 48 * 3600))
    before = rows(table)
    table.drop_feature("checkpointProtection", truncate_history=True)
    table = mica.Table.open(table.path)
    assert "checkpointProtection" not in features.names(table.protocol)
    assert "delta.requireCheckpointProtectionBeforeVersion" not in table.properties
    assert rows(table) == before


def test_versions_that_a_feature_was_set_for_before_are_in_its_history(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.columnMapping.mode": "name"})
    log = tmp_path / "_delta_log"
    os.utime(log / f"{0:020}.json", (1, 1))  # the only line that sets the mode is old
    for a in range(3):
        table.append([{"a": a}])
    for _ in range(2):
        with pytest.raises(UserError, match="FEATURE_IN_HISTORY"):
            mica.Table.open(tmp_path).drop_feature("columnMapping", truncate_history=True)
    shutil.rmtree(tmp_path)
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.columnMapping.mode": "name"})
    table.append([{"a": 1}])
    table.checkpoint()
    for version in range(table.version):  # as a cleanup leaves the log: the checkpoint alone names the mode
        (log / f"{version:020}.json").unlink()
    with pytest.raises(UserError, match="FEATURE_IN_HISTORY"):
        mica.Table.open(tmp_path).drop_feature("columnMapping", truncate_history=True)


@pytest.mark.parametrize("shreds", ["true", "false", None])
def test_shredded_files_go_with_the_feature_whatever_the_property_says(tmp_path: Path, shreds: str | None) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT")
    table.append([{"v": {"a": i}} for i in range(9)])
    table.set_properties({"delta.enableVariantShredding": "false"}).append([{"v": {"a": 9}}])
    table.set_properties({"delta.enableVariantShredding": shreds})
    before = set(table.file_uris())
    table.drop_feature("variantShredding")
    assert len(before & set(table.file_uris())) == 1, "one file was not shredded"
    for uri in table.file_uris():
        assert all("typed_value" not in name for name in pq.ParquetFile(uri).schema.names)
    assert table.to_arrow().num_rows == 10
    version = table.add_feature("variantShredding").version
    table.drop_feature("variantShredding")
    assert table.version == version + 1, "nothing is rewritten"


@pytest.mark.parametrize("truncate", [False, True])
def test_who_does_not_know_v2_checkpoints_starts_from_a_classic_one(tmp_path: Path, truncate: bool) -> None:
    """Also where the log begins with a V2 checkpoint: the commit that asked for it is gone."""
    table = mica.Table.create(tmp_path, "n INT", properties={"delta.checkpointPolicy": "v2"})
    table.append([{"n": 1}])
    table.checkpoint()
    log = tmp_path / "_delta_log"
    for version in range(2):
        (log / f"{version:020}.json").unlink()
    for path in log.iterdir():
        os.utime(path, (0, 0))
    table.drop_feature("v2Checkpoint", truncate_history=truncate)
    assert not features.supports(table.protocol, "v2Checkpoint")
    assert any(log.glob("*.checkpoint.parquet"))
    v2 = [path for path in log.glob("*.checkpoint.*") if len(path.name) > 50]
    assert bool(v2) != truncate
    for path in v2:
        path.unlink()
    assert mica.Table.open(tmp_path).count() == 1


def test_features_of_writers_leave_at_once(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT", properties={"delta.enableInCommitTimestamps": "true"})
    table.add_constraint("c", "n > 0").append([{"n": 1}])
    with pytest.raises(UserError, match="c") as caught:
        table.drop_feature("checkConstraints")
    assert caught.value.code == "FEATURE_NOT_REMOVABLE"
    table.drop_constraint("c").drop_feature("checkConstraints").drop_feature("inCommitTimestamp")
    assert features.names(table.protocol) == set()
    assert table.append([{"n": -1}]).rows == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_dropped_row_tracking_leaves_no_ids(tmp_path: Path, enabled: bool) -> None:
    table = mica.Table.create(tmp_path, "n INT", properties={"delta.enableRowTracking": "true"})
    table.append([{"n": 1}, {"n": 2}])
    table.update({"n": "n + 10"}, where="n = 1")  # its ids are in the file
    if not enabled:
        table.set_properties({"delta.enableRowTracking": "false"})
    with pytest.raises(UserError, match="rowTracking needs domainMetadata") as caught:
        table.drop_feature("domainMetadata")
    assert caught.value.code == "FEATURE_NOT_REMOVABLE"
    version = table.drop_feature("rowTracking").version
    lines = (tmp_path / "_delta_log" / f"{version:020d}.json").read_text()
    assert [word in lines for word in ('"add"', '"remove"', "baseRowId")] == [True, False, False]
    table.drop_feature("domainMetadata")
    assert (features.names(table.protocol), table.properties, table.snapshot.domains) == (set(), {}, {})
    table.append([{"n": 3}])
    again = mica.Table.open(tmp_path).checkpoint()
    assert sorted(again.to_arrow()["n"].to_pylist()) == [2, 3, 11]
    again.set_properties({"delta.enableRowTracking": "true"})
    ids = again.scan(columns={"id": "_metadata.row_id"}).to_arrow()["id"].to_pylist()
    assert len({*ids} - {None}) == 3


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda t: t.drop_feature("rowTracking"), "UNKNOWN_FEATURE"),
        (lambda t: t.drop_feature("nonsense"), "UNKNOWN_FEATURE"),
        (lambda t: t.drop_feature("variantType"), "FEATURE_NOT_REMOVABLE"),
        (lambda t: t.add_feature("nonsense"), "UNKNOWN_TABLE_PROPERTY"),
    ],
)
def test_mistakes_have_codes(table: mica.Table, call: Callable[[mica.Table], object], code: str) -> None:
    version = table.version
    with pytest.raises(UserError) as caught:
        call(table)
    assert (caught.value.code, table.refresh().version) == (code, version)


def test_a_feature_is_added_with_what_it_needs(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "n INT").add_feature("collations").add_feature("vacuumProtocolCheck")
    assert {"collations", "domainMetadata", "vacuumProtocolCheck"} <= features.names(table.protocol)
    table.drop_feature("vacuumProtocolCheck")
    assert not features.supports(table.protocol, "vacuumProtocolCheck")


def test_a_legacy_protocol_loses_one_of_what_it_implies() -> None:
    found = without(Protocol(2, 5), "columnMapping")
    assert (found.reader, found.writer) == (1, 7)
    assert found.writer_features == features.names(Protocol(2, 5)) - {"columnMapping"}


def test_clustering_columns_have_statistics_and_stay(tmp_path: Path) -> None:
    properties = {"delta.feature.clustering": "supported", "delta.dataSkippingNumIndexedCols": "1",
                  "delta.columnMapping.mode": "name"}  # fmt: skip
    table = mica.Table.create(tmp_path, "a INT, b INT, s STRUCT<c: INT, d: INT>", properties=properties)
    names = [[physical_name(table.schema.field("s")), physical_name(table.schema.field("s").type.field("d"))]]  # type: ignore[attr-defined]
    transaction = Transaction(table.snapshot, "CLUSTER BY")
    transaction.set_domain(
        "delta.clustering", json.dumps({"clusteringColumns": names, "domainName": "delta.clustering"})
    )
    transaction.commit()
    table.refresh().append([{"a": 1, "b": 1, "s": {"c": 1, "d": n}} for n in range(3)])
    stats = json.loads(table.files()["stats"][0].as_py())
    assert len(stats["minValues"]) == 2  # a, and s.d
    assert len(table.scan("s.d = 9").plan.kept) == 0
    with pytest.raises(UserError) as caught:
        table.drop_columns(["s.d"])
    assert caught.value.code == "COLUMN_IN_USE"
    table.rename_column("s", "t").optimize()
    assert "delta.clustering" in table.snapshot.domains
    mica.Table.create(tmp_path, "a INT", mode="overwrite")
    assert "delta.clustering" not in table.refresh().snapshot.domains


def test_files_hold_partition_columns_if_the_table_asks_for_it(tmp_path: Path) -> None:
    table = mica.Table.create(
        tmp_path, "a INT, p STRING", ["p"], {"delta.feature.materializePartitionColumns": "supported"}
    )
    table.append([{"a": 1, "p": "x"}, {"a": 2, "p": None}])
    table.update({"a": "a + 1"}, "p = 'x'")
    for path in table.files()["path"].to_pylist():
        assert pq.ParquetFile(tmp_path / path).schema_arrow.names == ["a", "p"]
    assert sorted(table.to_arrow().to_pylist(), key=repr) == [{"a": 2, "p": "x"}, {"a": 2, "p": None}]
    assert "p" not in json.loads(table.files()["stats"][0].as_py())["nullCount"]


@pytest.mark.parametrize(("level", "conflicts"), [("Serializable", True), ("WriteSerializable", False)])
def test_an_append_is_no_conflict_where_writes_are_serializable(tmp_path: Path, level: str, conflicts: bool) -> None:
    table = mica.Table.create(tmp_path, "a INT", properties={"delta.isolationLevel": level})
    table.append([{"a": 1}])
    other = mica.Table.open(tmp_path)
    table.append([{"a": 1}])
    if conflicts:
        with pytest.raises(ConflictError):
            other.delete("a = 1")
        return
    other.delete("a = 1")
    assert other.to_arrow()["a"].to_pylist() == [1]
    assert other.history(1).to_pylist()[0]["isolation_level"] == level
    stale = mica.Table.open(tmp_path)
    other.append([{"a": -5}])
    with pytest.raises(ConflictError):  # what a change of metadata rests on is read as it is
        stale.add_constraint("positive", "a > 0")
    stale = mica.Table.open(tmp_path)
    other.update({"a": "9"}, "a = -5")
    with pytest.raises(ConflictError):
        stale.delete("a = -5")


def test_clustering_columns_keep_their_names_without_mapping(tmp_path: Path) -> None:
    """The domain had names that no file has any more, and neither OPTIMIZE nor CLUSTER BY could read it."""
    properties = {"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "1"}
    for rows in ([], [{"a": 1, "s": {"x": 1}}, {"a": 2, "s": {"x": 2}}]):
        path = tmp_path / str(len(rows))
        table = mica.Table.create(path, "s STRUCT<x: INT>, a INT", properties=properties, cluster_by=["s.x"])
        if rows:
            table.append(rows)
        table.rename_column("s", "t").drop_feature("columnMapping")
        assert table.snapshot.domains["delta.clustering"].count('["t","x"]') == 1
        table.append([{"a": 9, "t": {"x": 9}}])
        table.optimize()
        assert mica.check(table).ok
        with pytest.raises(UserError, match="clustered by 't'"):
            mica.Table.create(tmp_path / f"new{len(rows)}", "t INT", cluster_by=["t"]).rename_column("t", "u")


@pytest.mark.parametrize(("clustered", "rows"), [([], []), ([], [{"id": 1}]), (["id"], [{"id": 1}])])
@pytest.mark.parametrize("change", [
    lambda t: t.drop_columns(["c"]), lambda t: t.restore(version=0), lambda t: t.drop_feature("columnMapping"),
    lambda t: mica.Table.create(t.path, "id INT", mode="overwrite"),
])  # fmt: skip
def test_columns_by_which_another_clusters_meanwhile_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[mica.Table], object],
    clustered: list[str], rows: list[dict[str, int]],
) -> None:  # fmt: skip
    """delta-spark could not even describe a table whose clustering names columns that are gone."""
    properties = {"delta.columnMapping.mode": "name", "delta.feature.clustering": "supported"}
    table = mica.Table.create(tmp_path, "id INT", properties=properties, cluster_by=clustered, data=rows or None)
    table.add_columns("c INT")
    before_commit(monkeypatch, lambda: mica.Table.open(tmp_path).cluster_by(["c"]))
    with pytest.raises(ConflictError) as caught:
        change(table)
    assert caught.value.code == "CONCURRENT_DOMAIN"
    before_commit(monkeypatch, lambda: mica.Table.open(tmp_path).cluster_by(["id", "c"]))
    assert cluster_by(mica.Table.open(tmp_path).rename_column("c", "d").snapshot) == ["id", "d"]


def test_a_table_without_files_is_not_renamed_by_which_another_clusters_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mica.Table.create(tmp_path, "c INT", properties={"delta.feature.clustering": "supported"})
    before_commit(monkeypatch, lambda: mica.Table.open(tmp_path).cluster_by(["c"]))
    with pytest.raises(ConflictError):
        table.rename_column("c", "d")
