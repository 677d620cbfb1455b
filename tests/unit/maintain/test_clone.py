"""Shallow clones: a table of its own over the files of another, which neither's changes and vacuums take from it."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import mica
from mica.errors import ConflictError, OtherNameError, StorageError, UnsupportedTableError, UserError
from mica.log.clustering import cluster_by
from mica.log.domains import CLUSTERING_DOMAIN
from mica.log.transaction import Transaction
from tests.faulty_s3 import FaultyS3

#: A folder and a partition value that a URI escapes, or must not.
FOLDER, VALUE = "a b%ä#", "50% +#&=ü/x"
VECTORS = {"delta.enableDeletionVectors": "true"}


def table_of(path: Path, **properties: str) -> mica.Table:
    table = mica.Table.create(path, "id BIGINT, p STRING", partition_by=["p"], properties=VECTORS | properties)
    table.append([{"id": n, "p": VALUE if n % 2 else None} for n in range(6)])
    return table


def ids(table: mica.Table | Path) -> list[int]:
    opened = mica.Table.open(table) if isinstance(table, Path) else table
    return sorted(opened.to_arrow().column("id").to_pylist())


def actions(path: Path, version: int, kind: str) -> list[dict[str, Any]]:
    lines = (path / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    return [found[kind] for found in map(orjson.loads, lines) if kind in found]


def parquet(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet"))


def test_the_commit_names_the_files_of_the_source_and_copies_none(tmp_path: Path) -> None:
    source = table_of(tmp_path / FOLDER, own="x")
    source.delete("id = 3")
    clone = source.clone(tmp_path / "clone", properties={"own": "y", "delta.checkpointInterval": "7"})
    assert (clone.version, ids(clone), parquet(tmp_path / "clone")) == (0, [0, 1, 2, 4, 5], [])
    root = f"file:{tmp_path}/a%20b%25ä%23/"
    adds = actions(tmp_path / "clone", 0, "add")
    theirs = {
        add["path"]: add for version in (1, 2) for add in actions(tmp_path / FOLDER, version, "add")
    }  # the newest of a path
    assert {add["path"] for add in adds} == {root + path for path in theirs}
    for add in adds:
        other = theirs[add["path"].removeprefix(root)]
        same = ("partitionValues", "size", "modificationTime", "stats")
        assert [add.get(key) for key in same] == [other.get(key) for key in same]
    [vector] = [add["deletionVector"] for add in adds if "deletionVector" in add]
    assert vector["storageType"] == "p"
    assert vector["pathOrInlineDv"].startswith(f"{root}deletion_vector_")
    [info] = actions(tmp_path / "clone", 0, "commitInfo")
    assert (info["operation"], info["isBlindAppend"]) == ("CLONE", False)
    assert info["operationParameters"] == {"source": f"delta.`file:{tmp_path / FOLDER}`", "sourceVersion": "2"}
    assert info["operationMetrics"]["sourceNumOfFiles"] == "2"
    assert clone.metadata.id != source.metadata.id
    assert clone.protocol == source.protocol
    assert clone.properties == source.properties | {"own": "y", "delta.checkpointInterval": "7"}


def test_neither_table_takes_part_in_the_changes_of_the_other(tmp_path: Path) -> None:
    source = table_of(tmp_path / "source")
    source.delete("id = 3")
    clone = source.clone(tmp_path / "clone")
    clone.append([{"id": 9, "p": "n"}])
    clone.delete("id = 5")  # a vector of its own in place of the source's
    clone.update({"id": "id + 100"}, "id = 0")
    (clone.merge([{"id": 1, "p": VALUE}, {"id": 7, "p": "n"}], "target.id = source.id")
        .when_matched_delete().when_not_matched_insert_all().execute())  # fmt: skip
    assert (ids(tmp_path / "clone"), ids(tmp_path / "source")) == ([2, 4, 7, 9, 100], [0, 1, 2, 4, 5])
    second = clone.clone(tmp_path / "second", properties={"delta.enableDeletionVectors": "false"})
    second.delete("id = 4")  # rewrites a file of the first source
    shutil.rmtree(tmp_path / "clone" / "_delta_log")  # paths lead to the files themselves
    assert ids(tmp_path / "second") == [2, 7, 9, 100]
    second.optimize()
    assert mica.check(tmp_path / "second").ok
    second.restore(version=0)
    second.checkpoint()
    assert ids(tmp_path / "second") == [2, 4, 7, 9, 100]
    assert second.scan("id = 2").count() == 1
    assert [h["operation"] for h in second.history(limit=4).to_pylist()] == ["RESTORE", "OPTIMIZE", "DELETE", "CLONE"]


def test_a_vacuum_of_the_clone_deletes_none_of_the_sources_files(tmp_path: Path) -> None:
    source = table_of(tmp_path / "source")
    clone = source.clone(tmp_path / "clone")
    clone.optimize()
    clone.delete()
    before = parquet(tmp_path / "source")
    clone.vacuum(0, enforce_retention=False)
    assert (parquet(tmp_path / "source"), ids(source)) == (before, [0, 1, 2, 3, 4, 5])


def test_a_file_that_the_source_vacuumed_is_named(tmp_path: Path) -> None:
    source = table_of(tmp_path / "source")
    clone = source.clone(tmp_path / "clone")
    [name] = [name for name in source.file_uris() if "HIVE" not in name]
    source.delete(f"p = '{VALUE}'")
    source.vacuum(0, enforce_retention=False)
    with pytest.raises(StorageError, match=r"source/.* is gone: version 0 of the table names it") as caught:
        clone.to_arrow()
    assert (caught.value.code, caught.value.context["path"]) == ("NOT_FOUND", name)
    assert clone.scan("p IS NULL").count() == 3


def test_an_older_version_is_cloned_by_number_and_time(tmp_path: Path) -> None:
    source = table_of(tmp_path / "source")
    then = source.snapshot.timestamp
    source.delete("id > 2")
    assert ids(source.clone(tmp_path / "a", version=1)) == [0, 1, 2, 3, 4, 5]
    assert source.clone(tmp_path / "b", version=0).count() == 0
    if source.snapshot.timestamp > then:
        assert ids(source.clone(tmp_path / "c", timestamp=then)) == [0, 1, 2, 3, 4, 5]
    assert ids(mica.Table.open(tmp_path / "source", version=1).clone(tmp_path / "d")) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(UserError, match="has no version 9") as caught:
        source.clone(tmp_path / "e", version=9)
    assert caught.value.code == "VERSION_NOT_FOUND"
    assert not (tmp_path / "e").exists()


def test_rows_get_ids_of_the_clones_own(tmp_path: Path) -> None:
    """As delta-spark gives them: two tables that go on with the same ids would give them twice."""
    source = table_of(tmp_path / "source", **{"delta.enableRowTracking": "true"})
    source.update({"id": "id + 10"}, "id = 5")
    clone = source.clone(tmp_path / "clone")
    names = (
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    )
    assert all(clone.properties[name] != source.properties[name] for name in names)
    columns = {"id": "id", "row": "_metadata.row_id", "version": "_metadata.row_commit_version"}

    def tracked() -> dict[int, tuple[int, int]]:
        return {row["id"]: (row["row"], row["version"]) for row in clone.scan(columns=columns).to_arrow().to_pylist()}

    before = tracked()
    assert len({row for row, _ in before.values()}) == 6
    assert {version for _, version in before.values()} == {0}
    clone.append([{"id": 50, "p": "n"}])
    clone.optimize()
    after = tracked()
    assert {key: after[key] for key in before} == before
    assert after[50][0] > max(row for row, _ in before.values())


def test_clustering_timestamps_and_the_feed_are_those_of_a_new_table(tmp_path: Path) -> None:
    source = mica.Table.create(tmp_path / "source", "id BIGINT, s STRING COLLATE UTF8_LCASE", cluster_by=["id"])
    source.append([{"id": 1, "s": "A"}], txn=("job", 4))
    source.set_properties({"delta.enableInCommitTimestamps": "true", "delta.enableChangeDataFeed": "true"})
    clone = source.clone(tmp_path / "clone")
    assert cluster_by(clone.snapshot) == cluster_by(source.snapshot) == ["id"]
    assert clone.snapshot.domains == source.snapshot.domains
    assert str(clone.schema) == str(source.schema)
    # Of the source's log: in the clone each commit has its timestamp.
    assert not [name for name in clone.properties if "Enablement" in name]
    assert [h for h in source.properties if "Enablement" in h]
    assert clone.snapshot.timestamp >= source.snapshot.timestamp
    assert clone.changes(0).to_arrow().column("_change_type").to_pylist() == ["insert"]
    assert not clone.append([{"id": 2, "s": "b"}], txn=("job", 4)).repeated
    assert clone.scan("s = 'B'").count() == 1
    assert mica.check(tmp_path / "clone").ok


def test_a_table_without_rows_becomes_a_clone(tmp_path: Path) -> None:
    source = table_of(tmp_path / "source")
    target = mica.Table.create(
        tmp_path / "target", "x INT", properties={"own": "1", "comment": "other", "delta.enableChangeDataFeed": "true"},
        cluster_by=["x"],
    )  # fmt: skip
    target.append([{"x": 1}])
    for replace, match in ((False, "already exists"), (True, "has rows")):
        with pytest.raises(UserError, match=match) as caught:
            source.clone(tmp_path / "target", replace=replace)
        assert caught.value.code == "TABLE_EXISTS"
    target.delete()
    clone = source.clone(tmp_path / "target", replace=True)
    assert (clone.version, ids(clone), clone.partition_by) == (3, [0, 1, 2, 3, 4, 5], ("p",))
    assert (clone.metadata.id, clone.metadata.description) == (target.metadata.id, "other")
    assert clone.properties == source.properties
    assert CLUSTERING_DOMAIN not in clone.snapshot.domains
    assert {"clustering", "deletionVectors"} <= clone.protocol.writer_features  # it is never lowered
    assert mica.Table.open(tmp_path / "target", version=1).count() == 1


def test_rows_that_come_meanwhile_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = table_of(tmp_path / "source")
    mica.Table.create(tmp_path / "target", "id BIGINT, p STRING", partition_by=["p"])
    commit = Transaction.commit

    def second(transaction: Transaction) -> Any:
        monkeypatch.undo()
        mica.Table.open(tmp_path / "target").append([{"id": 9, "p": "n"}])
        return commit(transaction)

    monkeypatch.setattr(Transaction, "commit", second)
    with pytest.raises(ConflictError):
        source.clone(tmp_path / "target", replace=True)
    assert ids(tmp_path / "target") == [9]


@pytest.mark.parametrize("other", ["source", "source/inside", ".", "link/inside"])
def test_a_clone_and_its_source_are_beside_each_other(tmp_path: Path, other: str) -> None:
    """A vacuum of the outer table would delete files of the inner one."""
    source = table_of(tmp_path / "source")
    (tmp_path / "link").symlink_to(tmp_path / "source")
    with pytest.raises(UserError, match="a clone and its source cannot be in") as caught:
        source.clone(tmp_path / other, replace=True)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_log_may_name_no_more_through_a_clone(tmp_path: Path) -> None:
    """What its source may not name would be read all the same where the clone is opened without that limit."""
    source = table_of(tmp_path / "source")
    strict = {"allow_external_paths": "false"}
    with pytest.raises(StorageError, match=r"a shallow clone .* names files of its source") as caught:
        source.clone(tmp_path / "clone", storage_options=strict)
    assert caught.value.code == "EXTERNAL_PATH"
    source.clone(tmp_path / "clone")
    with pytest.raises(StorageError, match="outside of the table's folder"):
        mica.Table.open(tmp_path / "clone", storage_options=strict).to_arrow()
    with pytest.raises(StorageError, match="outside of the table's folder"):
        mica.Table.open(tmp_path / "clone", storage_options=strict).clone(tmp_path / "second")
    log = tmp_path / "source" / "_delta_log" / f"{1:020}.json"
    log.write_text(log.read_text().replace('"path":"', '"path":"s3://elsewhere/'))
    with pytest.raises(StorageError, match="beyond the table's own storage"):
        mica.Table.open(tmp_path / "source").clone(tmp_path / "third")
    log.write_text(log.read_text().replace("s3://elsewhere/", "sub/../../"))
    with pytest.raises(StorageError, match="is not a name below"):
        mica.Table.open(tmp_path / "source").clone(tmp_path / "third")
    assert not (tmp_path / "third").exists()


def test_what_is_refused(tmp_path: Path) -> None:
    source = table_of(tmp_path / "source")
    with pytest.raises(UserError, match="is_shallow=False") as caught:
        source.clone(tmp_path / "clone", is_shallow=False)
    assert caught.value.code == "INVALID_ARGUMENT"
    for properties, code in (
        ({"delta.nope": "1"}, "UNKNOWN_TABLE_PROPERTY"),
        ({"delta.columnMapping.maxColumnId": "9"}, "INVALID_PROPERTY"),
    ):
        with pytest.raises(UserError) as caught:
            source.clone(tmp_path / "clone", properties=properties)
        assert caught.value.code == code
    with pytest.raises(OtherNameError, match="cloneAtVersion"):
        source.cloneAtVersion  # type: ignore[attr-defined]  # noqa: B018
    log = tmp_path / "source" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"deletionVectors"', '"catalogManaged","deletionVectors"'))
    with pytest.raises(UnsupportedTableError, match="catalogManaged"):
        mica.Table.open(tmp_path / "source").clone(tmp_path / "clone")
    assert not (tmp_path / "clone").exists()


def test_options_of_a_store_are_those_of_the_source_where_none_are_given(tmp_path: Path) -> None:
    allow = {"allow_external_paths": "true"}
    with FaultyS3() as store:
        source = mica.Table.create("s3://b/source", "n BIGINT", storage_options=store.options)
        source.append(pa.table({"n": [1, 2]}))
        for target, given in (("s3://b/clone", None), ("s3a://b/other", allow), (tmp_path / "disk", allow)):
            clone = source.clone(target, storage_options=given)
            assert clone.scan().to_arrow()["n"].to_pylist() == [1, 2]
        opened = mica.Table.open(tmp_path / "disk", storage_options={**store.options, **allow})
        assert pickle.loads(pickle.dumps(opened.snapshot.storage)).like("s3://b/clone").options["region"] == "us-east-1"
        assert opened.scan("n > 1").to_arrow().num_rows == 1
        mine = mica.Table.create(tmp_path / "mine", "n BIGINT", storage_options=store.options)
        assert mine.clone("s3://b/of a disk", storage_options={**store.options, **allow}).version == 0
        closed = mica.Table.open("s3://b/source", storage_options={**store.options, "allow_external_paths": "false"})
        assert closed.clone("s3://b/from closed").scan().count() == 2, "what a log may name is asked of each"
