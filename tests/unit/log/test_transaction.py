"""Transactions: what a commit holds, what it obeys, and when it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mica
from mica.errors import ConflictError, CorruptDataError, UnsupportedTableError, UserError
from mica.log.actions import Protocol
from mica.log.added import ADDED
from mica.log.creation import altered
from mica.log.history import history
from mica.log.replay import REMOVES
from mica.log.snapshot import Snapshot, load
from mica.log.transaction import Transaction
from mica.storage import Storage
from tests.unit.log.tables import added, append, create, in_partition, line, paths


def lines(root: Path, version: int) -> list[dict[str, dict[str, object]]]:
    return [orjson.loads(text) for text in (root / "_delta_log" / f"{version:020d}.json").read_bytes().splitlines()]


def test_a_commit_is_commit_info_first_and_one_action_a_line(tmp_path: Path) -> None:
    table = create(tmp_path)
    transaction = Transaction(table, "WRITE", {"mode": "Append", "partitionBy": ["a"]}, {"numFiles": 2})
    transaction.add_files(pa.Table.from_pylist([added("a"), added("b")], ADDED))
    transaction.add_files([added("c"), added("d")])
    done = transaction.commit()
    assert [next(iter(action)) for action in lines(tmp_path, 1)] == ["commitInfo", "add", "add", "add", "add"]
    info = lines(tmp_path, 1)[0]["commitInfo"]
    assert info["operation"] == "WRITE"
    assert info["operationParameters"] == {"mode": "Append", "partitionBy": '["a"]'}
    assert info["operationMetrics"] == {"numFiles": "2"}
    assert info["engineInfo"] == f"mica/{mica.__version__}"
    assert (info["isBlindAppend"], info["readVersion"], info["txnId"]) == (True, 0, transaction.id)
    assert paths(done.snapshot) == ["a", "b", "c", "d"]
    assert done.version == done.snapshot.version == 1


def test_overwriting_removes_with_all_that_is_known(tmp_path: Path) -> None:
    table = create(tmp_path, "id BIGINT, p STRING", ("p",))
    table = append(table, "a", partition_values={"p": "x"}, tags={"t": "1"}).snapshot
    transaction = Transaction(table, "WRITE", {"mode": "Overwrite"})
    transaction.read()
    transaction.remove_files()
    transaction.add_files([added("b", partition_values={"p": None})])
    done = transaction.commit().snapshot
    assert paths(done) == ["b"]
    info, removed, _ = lines(tmp_path, 2)
    assert info["commitInfo"]["isBlindAppend"] is False
    remove = removed["remove"]
    assert {key: remove[key] for key in ("path", "dataChange", "partitionValues", "size", "tags")} == {
        "path": "a",
        "dataChange": True,
        "partitionValues": {"p": "x"},
        "size": 100,
        "tags": {"t": "1"},
    }


def test_removing_a_file_with_a_deletion_vector_names_the_vector(tmp_path: Path) -> None:
    table = create(tmp_path, delta__enableDeletionVectors="true")
    vector = {
        "storageType": "i",
        "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 40,
        "cardinality": 6,
    }
    transaction = Transaction(table, "WRITE")
    transaction.add_files([added("a", deletion_vector=vector)])
    table = transaction.commit().snapshot
    transaction = Transaction(table, "DELETE")
    transaction.remove_files([0])
    done = transaction.commit().snapshot
    assert paths(done) == []
    assert lines(tmp_path, 2)[1]["remove"]["deletionVector"] == vector
    # Also when a checkpoint stands between.
    assert done.state.removes.schema == REMOVES


def test_append_only_refuses_removing_and_lets_rearrange(tmp_path: Path) -> None:
    table = append(create(tmp_path, delta__appendOnly="true"), "a").snapshot
    transaction = Transaction(table, "DELETE")
    transaction.remove_files()
    with pytest.raises(UserError) as caught:
        transaction.commit()
    assert caught.value.code == "APPEND_ONLY"
    transaction = Transaction(table, "OPTIMIZE")
    transaction.remove_files(data_change=False)
    transaction.add_files([added("b", data_change=False)])
    assert paths(transaction.commit().snapshot) == ["b"]


def test_a_domain_needs_its_feature(tmp_path: Path) -> None:
    transaction = Transaction(create(tmp_path / "a"), "WRITE")
    transaction.set_domain("d", "x")
    with pytest.raises(UserError, match="domainMetadata"):
        transaction.commit()
    table = create(tmp_path / "b", **{"delta.feature.domainMetadata": "supported"})
    for configuration, left in [("x", {"d": "x"}), ("y", {"d": "y"}), (None, {})]:
        transaction = Transaction(table, "WRITE")
        transaction.set_domain("d", configuration)
        table = transaction.commit().snapshot
        assert table.domains == load(table.storage).domains == left


def test_a_transaction_is_committed_once(tmp_path: Path) -> None:
    transaction = Transaction(create(tmp_path), "WRITE")
    transaction.add_files([added("a")])
    transaction.commit()
    with pytest.raises(UserError, match="already"):
        transaction.commit()


def test_a_table_is_made_once(tmp_path: Path) -> None:
    create(tmp_path)
    with pytest.raises(ConflictError) as caught:
        create(tmp_path)
    assert caught.value.code == "TABLE_EXISTS"


def test_positions_that_are_not_there_are_refused(tmp_path: Path) -> None:
    table = append(create(tmp_path), "a").snapshot
    for wrong in ([1], [-1], [0, 5]):
        with pytest.raises(UserError):
            Transaction(table, "DELETE").remove_files(wrong)
    with pytest.raises(UserError):
        Transaction(table.storage, "DELETE").remove_files()
    with pytest.raises(UserError):
        Transaction(Storage.open(tmp_path / "new"), "CREATE TABLE").commit()


def test_a_checkpoint_follows_every_interval(tmp_path: Path) -> None:
    table = create(tmp_path, delta__checkpointInterval="3")
    for number in range(7):
        table = append(table, f"f{number}").snapshot
    log = tmp_path / "_delta_log"
    assert [int(p.name[:20]) for p in sorted(log.glob("*.checkpoint.parquet"))] == [3, 6]
    pointer = orjson.loads((log / "_last_checkpoint").read_bytes())
    assert (pointer["version"], pointer["size"], pointer["numOfAddFiles"]) == (6, 8, 6)
    assert pq.read_metadata(log / f"{6:020d}.checkpoint.parquet").num_rows == 8


def test_a_checkpoint_that_fails_does_not_undo_the_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = create(tmp_path, delta__checkpointInterval="1")
    (tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet").mkdir()
    done = append(table, "a")
    assert done.version == 1
    assert "version 1" in caplog.text
    assert paths(load(table.storage)) == ["a"]


# --- losing the race ---


def overwrite(table: Snapshot, name: str, predicate=None) -> Transaction:
    transaction = Transaction(table, "WRITE")
    transaction.read() if predicate is None else transaction.read(predicate)
    files = table.files
    keep = predicate(files).to_pylist() if predicate else [True] * files.num_rows
    transaction.remove_files([at for at, gone in enumerate(keep) if gone])
    transaction.add_files([added(name, partition_values={"p": "x"})])
    return transaction


@pytest.fixture
def base(tmp_path: Path) -> Snapshot:
    table = create(tmp_path, "id BIGINT, p STRING", ("p",), **{"delta.feature.domainMetadata": "supported"})
    table = append(table, "x0", partition_values={"p": "x"}).snapshot
    return append(table, "y0", partition_values={"p": "y"}).snapshot


def test_an_append_goes_on_top_of_anything_but_metadata(base: Snapshot) -> None:
    mine = Transaction(base, "WRITE")
    mine.add_files([added("mine", partition_values={"p": "x"})])
    append(base, "theirs", partition_values={"p": "x"})
    overwrite(base.refresh(), "new").commit()
    done = mine.commit()
    assert done.version == base.version + 3
    assert paths(done.snapshot) == ["mine", "new"]


def test_overwriting_a_partition_lets_others_write_elsewhere(base: Snapshot) -> None:
    mine = overwrite(base, "mine", in_partition("x"))
    append(base, "theirs", partition_values={"p": "y"})
    assert paths(mine.commit().snapshot) == ["mine", "theirs", "y0"]


def test_overwriting_a_partition_conflicts_with_what_came_into_it(base: Snapshot) -> None:
    mine = overwrite(base, "mine", in_partition("x"))
    append(base, "theirs", partition_values={"p": "x"})
    with pytest.raises(ConflictError) as caught:
        mine.commit()
    assert caught.value.code == "CONCURRENT_APPEND"
    assert caught.value.context["version"] == base.version + 1
    assert paths(base.refresh()) == ["theirs", "x0", "y0"]


def test_rearranged_data_is_no_new_data(base: Snapshot) -> None:
    mine = Transaction(base, "MERGE")
    mine.read(in_partition("x"))
    mine.add_files([added("mine", partition_values={"p": "x"})])
    theirs = Transaction(base, "OPTIMIZE")
    theirs.add_files([added("packed", partition_values={"p": "x"}, data_change=False)])
    theirs.commit()
    assert "mine" in paths(mine.commit().snapshot)


def test_removing_what_another_removed_conflicts(base: Snapshot) -> None:
    mine = Transaction(base, "DELETE")
    mine.remove_files([0])
    theirs = Transaction(base, "DELETE")
    theirs.remove_files([0])
    theirs.commit()
    with pytest.raises(ConflictError) as caught:
        mine.commit()
    assert caught.value.code == "CONCURRENT_DELETE"


def test_removing_another_file_does_not_conflict(base: Snapshot) -> None:
    mine = Transaction(base, "DELETE")
    mine.remove_files([0])
    theirs = Transaction(base, "DELETE")
    theirs.remove_files([1])
    theirs.commit()
    assert paths(mine.commit().snapshot) == []


def test_reading_what_another_removed_conflicts(base: Snapshot) -> None:
    mine = Transaction(base, "MERGE")
    mine.read(in_partition("x"))
    mine.add_files([added("mine", partition_values={"p": "y"})])
    names = base.files["path"].to_pylist()
    theirs = Transaction(base, "DELETE")
    theirs.remove_files([names.index("x0")])
    theirs.commit()
    with pytest.raises(ConflictError) as caught:
        mine.commit()
    assert caught.value.code == "CONCURRENT_DELETE"


def test_a_change_of_metadata_or_protocol_conflicts_with_everything(base: Snapshot) -> None:
    for changes, code in [
        ({"owner": "them"}, "METADATA_CHANGED"),
        ({"delta.enableVariantShredding": "true"}, "PROTOCOL_CHANGED"),
    ]:
        mine = Transaction(base, "WRITE")
        mine.add_files([added("mine")])
        theirs = Transaction(base, "SET TBLPROPERTIES")
        protocol, metadata = altered(base.protocol, base.metadata, changes=changes)
        theirs.update_protocol(protocol)
        theirs.update_metadata(metadata)
        theirs.commit()
        with pytest.raises(ConflictError) as caught:
            mine.commit()
        assert caught.value.code == code
        base = base.refresh()


def test_two_of_one_application_conflict(base: Snapshot) -> None:
    def batch(app: str) -> Transaction:
        transaction = Transaction(base, "STREAMING UPDATE")
        transaction.set_application_transactions({app: 7})
        transaction.add_files([added(f"of-{app}")])
        return transaction

    mine, other = batch("a"), batch("b")
    batch("a").commit()
    with pytest.raises(ConflictError) as caught:
        mine.commit()
    assert caught.value.code == "CONCURRENT_TRANSACTION"
    assert other.commit().snapshot.app_transactions == {"a": 7, "b": 7}


def test_two_for_one_domain_conflict(base: Snapshot) -> None:
    def change(domain: str) -> Transaction:
        transaction = Transaction(base, "WRITE")
        transaction.set_domain(domain, "x")
        return transaction

    mine, other = change("a"), change("b")
    change("a").commit()
    with pytest.raises(ConflictError) as caught:
        mine.commit()
    assert caught.value.code == "CONCURRENT_DOMAIN"
    watching = {domain: Transaction(base, "WRITE") for domain in "ab"}
    for domain, transaction in watching.items():
        transaction.watch(domain)
    with pytest.raises(ConflictError):
        watching["a"].commit()
    assert set(watching["b"].commit().snapshot.domains) == {"a"}
    assert set(other.commit().snapshot.domains) == {"a", "b"}


def test_upgrading_writes_the_protocol_once(base: Snapshot, tmp_path: Path) -> None:
    transaction = Transaction(base, "SET TBLPROPERTIES")
    transaction.update_protocol(base.protocol)
    transaction.update_metadata(base.metadata)
    version = transaction.commit().version
    assert [next(iter(action)) for action in lines(tmp_path, version)] == ["commitInfo", "metaData"]


def test_a_new_protocol_that_we_cannot_write_is_not_written(base: Snapshot) -> None:
    transaction = Transaction(base, "WRITE")
    transaction.update_protocol(Protocol(1, 7, frozenset(), frozenset({"icebergCompatV3"})))
    with pytest.raises(UnsupportedTableError, match="icebergCompatV3"):
        transaction.commit()


def test_history_shows_what_was_done(base: Snapshot) -> None:
    rows = history(base.storage).to_pylist()
    assert [row["version"] for row in rows] == [2, 1, 0]
    assert [row["operation"] for row in rows] == ["WRITE", "WRITE", "CREATE TABLE"]
    assert rows[0]["operation_parameters"] == [("mode", "Append")]
    assert [row["is_blind_append"] for row in rows] == [True, True, False]
    assert [row["version"] for row in history(base.storage, limit=1).to_pylist()] == [2]


def test_history_of_commits_without_commit_info(tmp_path: Path) -> None:
    table = create(tmp_path)
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_bytes(line('a"commitInfo"b').encode() + b"\n")
    assert [row["operation"] for row in history(table.storage).to_pylist()] == [None, "CREATE TABLE"]


def test_no_version_is_of_a_later_millisecond_than_a_log_can_name(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "id INT", properties={"delta.enableInCommitTimestamps": "true"})
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    text = re.sub(r'"inCommitTimestamp":\d+', f'"inCommitTimestamp":{2**63 - 1}', commit.read_text())
    commit.write_text(text)
    with pytest.raises(CorruptDataError) as raised:
        mica.Table.open(tmp_path).append([{"id": 1}])
    assert raised.value.code == "CORRUPT_LOG"
    assert mica.Table.open(tmp_path).version == table.version
