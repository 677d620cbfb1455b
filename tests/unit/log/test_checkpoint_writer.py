"""Checkpoints written: both forms hold the same state, and what a failed one leaves is garbage."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mica.errors import MicaError, StorageError
from mica.log import checkpoint_writer
from mica.log.checkpoint import PartSource
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.snapshot import Snapshot, load
from mica.log.tombstones import tombstones
from mica.log.transaction import Transaction
from mica.storage import Storage
from tests.unit.log.tables import added, append, create

LOG = "_delta_log"
V2 = {"delta__checkpointPolicy": "v2", "delta__checkpointInterval": "1000"}


def state(snapshot: Snapshot) -> list[object]:
    files = snapshot.files.append_column("stats", snapshot.stats()).append_column("tags", snapshot.tags())
    gone = sorted(row["path"] for row in tombstones(snapshot).to_pylist())
    few = [snapshot.protocol, snapshot.metadata, dict(snapshot.domains), dict(snapshot.app_transactions)]
    return [*few, gone, files.sort_by("path").to_pylist()]


def cut(storage: Storage, version: int) -> None:
    """Removes the commits up to a version."""
    for number in range(version + 1):
        storage.delete(f"{LOG}/{number:020d}.json")


def sidecars(storage: Storage) -> list[str]:
    return [entry.path for entry in storage.list(f"{LOG}/_sidecars")]


def a_table(storage: Storage, **properties: str) -> Snapshot:
    table = create(storage, **{"delta.feature.domainMetadata": "supported"}, **V2, **properties)
    for number in range(5):
        transaction = Transaction(table, "WRITE")
        transaction.add_files([added(f"f{number}{letter}", low=number, tags={"n": letter}) for letter in "abc"])
        if number > 2:
            transaction.remove_files([number])
        transaction.set_application_transactions({"app": number})
        transaction.set_domain("other.engine", str(number))
        table = transaction.commit().snapshot
    return table


@pytest.mark.parametrize("struct", ["false", "true"])
def test_sidecars_hold_the_files_and_nothing_else(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, struct: str
) -> None:
    """Written from commits, from sidecars, and from both: always the state that the log gives."""
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_FILES", 4)
    table = a_table(storage, delta__checkpoint__writeStatsAsStruct=struct, delta__checkpoint__writeStatsAsJson="true")
    before = state(table)
    actions = write_checkpoint(table, now=1)
    pointer = orjson.loads(storage.read(f"{LOG}/_last_checkpoint"))
    assert pointer["version"] == 5
    assert pointer["size"] == actions == 1 + 4 + 4 + 1 + 13 + 2  # 4 of the table's, 4 + 1 sidecars, 13 files, 2 removes
    assert pointer["numOfAddFiles"] == 13
    (top,) = [e for e in storage.list(LOG, recursive=False) if ".checkpoint." in e.path]
    whole_top = pq.read_table(pa.BufferReader(storage.read(top.path)))
    assert whole_top.num_rows == 1 + 4 + 5
    assert whole_top["add"].null_count == whole_top["remove"].null_count == 10
    assert len(sidecars(storage)) == 5
    cut(storage, 5)
    again = load(storage)
    assert state(again) == before

    newer = append(load(storage), "last").snapshot
    write_checkpoint(newer, now=1)
    assert not any(source._read for source in newer.state.sources if isinstance(source, PartSource))
    whole = state(newer)
    cut(storage, 6)
    assert state(load(storage)) == whole


def test_sidecars_of_a_checkpoint_that_is_not_written_go(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_writer, "SIDECAR_FILES", 4)
    table = a_table(storage)
    put, written = type(storage).put, []

    def full(self: Storage, rel: str, data: bytes) -> None:
        if len(written) == 2:
            raise StorageError("IO", "the disk is full", hint="Make room.")
        written.append(rel)
        put(self, rel, data)

    monkeypatch.setattr(type(storage), "put", full)
    with pytest.raises(MicaError, match="the disk is full"):
        write_checkpoint(table)
    assert sidecars(storage) == []
    assert state(load(storage)) == state(table)


@pytest.mark.parametrize("written", [True, False])
def test_sidecars_stay_if_the_checkpoint_may_be_there(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    """Its answer was lost, or the user interrupted: without its sidecars the table could not be opened."""
    table = a_table(storage)
    put = type(storage).put

    def lost(self: Storage, rel: str, data: bytes) -> None:
        if ".checkpoint." not in rel or written:
            put(self, rel, data)
        if ".checkpoint." in rel:
            raise KeyboardInterrupt

    monkeypatch.setattr(type(storage), "put", lost)
    with pytest.raises(KeyboardInterrupt):
        write_checkpoint(table)
    assert sidecars(storage)
    assert (load(storage).segment.checkpoint is not None) == written
    assert state(load(storage)) == state(table)


def test_a_missing_sidecar_is_no_loss_while_the_commits_are_there(storage: Storage) -> None:
    table = a_table(storage)
    write_checkpoint(table)
    assert load(storage).segment.checkpoint is not None
    storage.discard(sidecars(storage))
    assert load(storage).segment.checkpoint is None
    assert state(load(storage)) == state(table)
    cut(storage, table.version)
    with pytest.raises(MicaError, match="missing") as error:
        load(storage)
    assert error.value.code == "CORRUPT_CHECKPOINT"


def test_the_policy_decides_the_form(tmp_path: Path) -> None:
    """Without the policy the checkpoint is a classic one, also where the table has the feature."""
    table = create(tmp_path, **{"delta.feature.v2Checkpoint": "supported"})
    write_checkpoint(append(table, "a").snapshot)
    assert (tmp_path / LOG / f"{1:020}.checkpoint.parquet").exists()
    assert not (tmp_path / LOG / "_sidecars").exists()


def test_an_empty_table_has_a_v2_checkpoint_without_sidecars(tmp_path: Path) -> None:
    table = create(tmp_path, **V2)
    assert write_checkpoint(table) == 3
    cut(table.storage, 0)
    assert load(table.storage).files.num_rows == 0


def test_the_checkpoint_of_an_older_version_does_not_move_the_pointer_back(storage: Storage) -> None:
    """The older version may be one that was asked for, or that of a writer who took longer than the next one."""

    def pointer() -> int:
        return int(orjson.loads(storage.read(f"{LOG}/_last_checkpoint"))["version"])

    write_checkpoint(a_table(storage))
    assert pointer() == 5
    write_checkpoint(load(storage, 2))
    assert pointer() == 5
    # What another table left here, with a version that this one does not have, is no newer checkpoint.
    storage.put(f"{LOG}/_last_checkpoint", b'{"version": 90, "size": 1}')
    write_checkpoint(load(storage))
    assert pointer() == 5
