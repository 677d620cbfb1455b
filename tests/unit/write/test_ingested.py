"""The record of ingested files: one transaction for any number of them, as sure as one for each."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import mica
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.snapshot import Snapshot, load
from mica.log.transaction import Transaction
from mica.maintain.vacuum import vacuum
from mica.storage import Storage
from mica.tasks.ingest import Split
from mica.write.ingested import FOLDER, NEVER, RECORD, Ingested, Taken
from mica.write.target import Target


def split(name: str, modified: int = 1) -> Split:
    return Split(Storage.open("/landing"), name, 1, modified=modified)


def taken(snapshot: Snapshot, *names: str) -> Snapshot:
    """The next version, whose commit records these files."""
    known = Ingested(snapshot.storage).move(snapshot)
    transaction = Transaction(snapshot, "WRITE")
    transaction.set_application_transactions({}, Taken(known, known.fresh(map(split, names))))
    return transaction.commit().snapshot


def ingested(snapshot: Snapshot, names: list[str]) -> list[str]:
    known = Ingested(snapshot.storage).move(snapshot)
    return [name for name in names if not known.fresh([split(name)])]


def test_many_batches_are_one_transaction_and_few_records(tmp_path: Path, rng: random.Random) -> None:
    snapshot, names = mica.Table.create(tmp_path, "v VARIANT").snapshot, list[str]()
    for batch in range(40):
        more = [f"{batch}-{i}" for i in range(rng.randrange(1, 4))]
        snapshot, names = taken(snapshot, *more), [*names, *more]
    assert list(snapshot.app_transactions) == [RECORD]
    assert ingested(snapshot, [*names, "other"]) == names
    known = Ingested(snapshot.storage).move(snapshot)
    assert [at >> 31 for at in known._chain] == [40, 39, 38, 37, 36, 35, 34, 33, 32, 16]
    assert known.fresh([split("other"), split("other")]).keys() == {"/landing/other"}
    with pytest.raises(mica.UserError, match="has changed since"):
        known.fresh([split(names[0], modified=2)])


def test_a_run_that_was_overtaken_takes_its_files_unless_they_are_the_same(tmp_path: Path) -> None:
    start = mica.Table.create(tmp_path, "v VARIANT").snapshot
    taken(start, "a")
    after = taken(start, "b")
    assert ingested(after, ["a", "b", "c"]) == ["a", "b"]
    with pytest.raises(mica.ConflictError, match="/landing/b concurrently") as caught:
        taken(start, "c", "b")
    assert caught.value.code == "CONCURRENT_TRANSACTION"
    assert ingested(load(start.storage), ["a", "b", "c"]) == ["a", "b"]


def test_runs_of_other_files_at_once_both_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text("{}\n")
    first, commit = [True], Target.commit

    def late(target: Target, *rest: Any) -> Any:
        if first.pop() if first else False:
            mica.ingest_json(tmp_path / "b.json", tmp_path / "t", idempotent=True)
        return commit(target, *rest)

    monkeypatch.setattr(Target, "commit", late)
    mica.ingest_json(tmp_path / "a.json", tmp_path / "t", idempotent=True)
    again = mica.ingest_json(tmp_path / "*.json", tmp_path / "t", idempotent=True)
    assert (again.skipped_files, mica.Table.open(tmp_path / "t").count()) == (2, 2)
    assert len(list((tmp_path / "t" / FOLDER).iterdir())) == 2


def test_tables_with_a_transaction_for_each_file_go_on(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text("{}\n")
    table = mica.Table.create(tmp_path / "t", "v VARIANT")
    table.append([{"v": {}}])
    old = {"appId": f"mica.ingest:{tmp_path}/a.json", "version": (tmp_path / "a.json").stat().st_mtime_ns // 1_000_000}
    log = tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
    log.write_text(f"{log.read_text()}{json.dumps({'txn': old})}\n")
    report = mica.ingest_json(tmp_path / "*.json", tmp_path / "t", idempotent=True)
    assert (report.rows, report.skipped_files) == (1, 1)
    mica.Table.open(tmp_path / "t").delete()
    done = mica.Table.open(tmp_path / "t").snapshot.app_transactions
    assert set(done.values()) == {NEVER}
    assert mica.ingest_json(tmp_path / "*.json", tmp_path / "t", idempotent=True).rows == 2


def test_a_record_that_is_gone_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}\n")
    mica.ingest_json(tmp_path / "a.json", tmp_path / "t", idempotent=True)
    mica.Table.open(tmp_path / "t").vacuum(0, enforce_retention=False)
    (record,) = (tmp_path / "t" / FOLDER).iterdir()
    record.unlink()
    with pytest.raises(mica.CorruptDataError) as caught:
        mica.ingest_json(tmp_path / "a.json", tmp_path / "t", idempotent=True)
    assert caught.value.code == "RECORD_MISSING"
    assert mica.ingest_json(tmp_path / "a.json", tmp_path / "t").rows == 1


def test_records_go_when_no_version_names_them(tmp_path: Path) -> None:
    table = mica.Table.create(tmp_path, "v VARIANT")
    snapshot, names = table.snapshot, [str(batch) for batch in range(17)]
    for name in names:
        snapshot = taken(snapshot, name)
    (tmp_path / FOLDER / f"{5 << 31 | 1:020d}.arrow").write_bytes(b"of a killed run")
    for record in (tmp_path / FOLDER).iterdir():
        os.utime(record, (0, 0))
    # All versions may be restored: only what none names goes.
    late = vacuum(snapshot, clock=lambda: 4_000_000_000, dry_run=True)
    assert late.deleted["path"].to_pylist() == [f"{FOLDER}/{5 << 31 | 1:020d}.arrow"]
    assert [f"{5 << 31 | 1:020d}" in path for path in vacuum(snapshot).deleted["path"].to_pylist()] == [True]
    assert ingested(load(snapshot.storage, 15), names) == names[:15]
    snapshot = load(snapshot.storage)
    write_checkpoint(snapshot)
    for version in range(snapshot.version):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    gone = vacuum(load(snapshot.storage), clock=lambda: 4_000_000_000)
    assert gone.files == 15  # the sixteenth has them all
    assert ingested(load(snapshot.storage), [*names, "other"]) == names


def test_a_record_that_cannot_be_read_now_is_no_reason_to_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = mica.Table.create(tmp_path, "v VARIANT").snapshot
    for name in "abc":
        snapshot = taken(snapshot, name)
    transaction = Transaction(snapshot, "DELETE")
    transaction.set_application_transactions({RECORD: NEVER})
    snapshot = transaction.commit().snapshot
    for record in (tmp_path / FOLDER).iterdir():
        os.utime(record, (0, 0))
    read = type(snapshot.storage).read

    def fails(self: Storage, rel: str) -> bytes:
        if rel.startswith(FOLDER):
            raise mica.StorageError("IO", "timed out")
        return read(self, rel)

    with monkeypatch.context() as patched:
        patched.setattr(type(snapshot.storage), "read", fails)
        assert vacuum(snapshot, clock=lambda: 4_000_000_000, dry_run=True).files == 0


def test_a_version_that_is_restored_goes_on_with_its_record(tmp_path: Path) -> None:
    """Its record is older than the retention, and a later one has its files."""
    for number in range(18):
        (tmp_path / f"{number:02}.json").write_text(f'{{"n": {number}}}')
        mica.ingest_json(tmp_path / "*.json", tmp_path / "t", idempotent=True)
    for file in [*(tmp_path / "t").glob("*.parquet"), *(tmp_path / "t" / FOLDER).iterdir()]:
        os.utime(file, (0, 0))
    table = mica.Table.open(tmp_path / "t")
    assert vacuum(table.snapshot, clock=lambda: 4_000_000_000).files == 0
    table.restore(version=10)
    assert table.count() < 18
    assert mica.ingest_json(tmp_path / "*.json", tmp_path / "t", idempotent=True).rows == 18 - table.count()
    numbers = table.refresh().scan(columns={"n": "v:n::int"}).to_arrow()["n"].to_pylist()
    assert sorted(numbers) == list(range(18))
    for record in (tmp_path / "t" / FOLDER).iterdir():
        record.unlink()
    with pytest.raises(mica.CorruptDataError) as caught:
        table.restore(version=5)
    assert caught.value.code == "RECORD_MISSING"


def record(previous: object, names: list[str | None]) -> bytes:
    schema, sink = pa.schema({"name": pa.string(), "modified": pa.int64()}), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema.with_metadata({"previous": str(previous)})) as file:
        file.write_table(pa.table([pa.array(names, pa.string()), pa.array([1] * len(names))], schema=schema))
    return bytes(sink.getvalue())


def outside(at: int) -> bytes:
    """A record whose texts are said to be in memory that is not the file's."""
    data = record(NEVER, ["x" * 1001, "yy"])
    return data.replace(struct.pack("<iii", 0, 1001, 1003), struct.pack("<iii", at, 2**31 - 10, 2**31 - 10))


@pytest.mark.parametrize(
    "made",
    [
        lambda own: record(own, ["a"]),  # the one before it is itself
        lambda own: record(own + 1, ["a"]),
        lambda own: record("9" * 5000, ["a"]),
        lambda own: record(NEVER, [None]),
        lambda _: outside(0),
        lambda _: outside(2**30),
        lambda own: record(own, ["a"])[:40],
    ],
)
def test_a_record_that_somebody_else_wrote_is_refused_not_believed(
    tmp_path: Path, made: Callable[[int], bytes]
) -> None:
    snapshot = taken(mica.Table.create(tmp_path, "v VARIANT").snapshot, "a")
    [path] = (tmp_path / FOLDER).iterdir()
    path.write_bytes(made(int(path.stem)))
    with pytest.raises(mica.CorruptDataError) as caught:
        Ingested(snapshot.storage).move(load(snapshot.storage))
    assert caught.value.code == "RECORD_MISSING"
    vacuum(snapshot, 0, enforce_retention=False)
    assert path.exists()
