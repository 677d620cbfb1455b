"""Many writers at once, writers that die, and answers that are lost: every commit is there once or not at all."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from obstore.store import MemoryStore

import mica
from mica.errors import ConflictError, StorageError
from mica.log.history import history
from mica.log.snapshot import load
from mica.log.transaction import Transaction
from mica.storage import AlreadyExistsError, Entry, Storage
from mica.storage.local import LocalStorage
from mica.storage.remote import RemoteStorage
from tests.faulty_s3 import FaultyS3
from tests.unit.log.tables import added, append, create, paths


def write_some(root: str, writer: int, count: int) -> None:
    table = load(Storage.open(root))
    for number in range(count):
        table = append(table, f"w{writer}-{number}").snapshot


def test_threads_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    create(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda writer: write_some(str(tmp_path), writer, 10), range(8)))
    table = load(Storage.open(tmp_path))
    assert table.version == 80
    assert paths(table) == sorted(f"w{w}-{n}" for w in range(8) for n in range(10))


def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    create(tmp_path)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_some, args=(str(tmp_path), writer, 15)) for writer in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    table = load(Storage.open(tmp_path))
    assert table.version == 60
    assert paths(table) == sorted(f"w{w}-{n}" for w in range(4) for n in range(15))
    # One commit a transaction: no id stands twice in the history.
    ids = history(table.storage)["txn_id"].to_pylist()
    assert len(set(ids)) == len(ids) == 61


def test_of_overwrites_at_once_each_sees_the_one_before_or_fails(tmp_path: Path) -> None:
    table = create(tmp_path)
    base = append(table, "old").snapshot

    def overwrite(writer: int) -> str:
        transaction = Transaction(base, "WRITE", {"mode": "Overwrite"})
        transaction.read()
        transaction.remove_files()
        transaction.add_files([added(f"new{writer}")])
        try:
            transaction.commit()
        except ConflictError as error:
            return error.code
        return "won"

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(overwrite, range(6)))
    assert results.count("won") == 1
    assert {result for result in results if result != "won"} <= {"CONCURRENT_APPEND", "CONCURRENT_DELETE"}
    assert paths(load(table.storage)) == [f"new{results.index('won')}"]


def test_of_creators_at_once_one_wins(tmp_path: Path) -> None:
    def make(_: int) -> str:
        try:
            create(tmp_path / "t")
        except ConflictError as error:
            return error.code
        return "won"

    with ThreadPoolExecutor(4) as pool:
        results = sorted(pool.map(make, range(4)))
    assert results == ["TABLE_EXISTS"] * 3 + ["won"]


LOOP = textwrap.dedent(
    """
    import sys
    from mica.log.snapshot import load
    from mica.storage import Storage
    from tests.unit.log.tables import append
    table = load(Storage.open(sys.argv[1]))
    number = 0
    while True:
        table = append(table, f"{sys.argv[2]}-{number}").snapshot
        print(number, flush=True)
        number += 1
    """
)


@pytest.mark.parametrize("attempt", range(4))
def test_a_writer_killed_in_the_middle_leaves_the_table_whole(tmp_path: Path, attempt: int) -> None:
    create(tmp_path, delta__checkpointInterval="3")
    process = subprocess.Popen(
        [sys.executable, "-c", LOOP, str(tmp_path), f"k{attempt}"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = [process.stdout.readline().strip()]
    deadline = time.monotonic() + 0.05 * (attempt + 1)
    while time.monotonic() < deadline:
        said.append(process.stdout.readline().strip())
    os.kill(process.pid, signal.SIGKILL)
    said += [text.strip() for text in process.stdout.readlines()]
    process.wait()
    done = [int(text) for text in said if text]
    table = load(Storage.open(tmp_path))
    names = paths(table)
    # All that was acknowledged is there, and at most the one in flight beyond it.
    assert len(names) in (len(done), len(done) + 1)
    assert names == sorted(f"k{attempt}-{n}" for n in range(len(names)))
    assert all(
        orjson.loads(text) for f in (tmp_path / "_delta_log").glob("*.json") for text in f.read_bytes().splitlines()
    )
    after = append(table, "after").snapshot
    assert len(paths(after)) == len(names) + 1


class LosesAnswers(LocalStorage):
    """A store whose creates succeed `lost` times and then say that they failed."""

    def __init__(self, directory: str, lost: int, error: StorageError) -> None:
        super().__init__(directory)
        self.lost, self.error = lost, error

    def put_if_absent(self, rel: str, data: bytes) -> None:
        super().put_if_absent(rel, data)
        if self.lost:
            self.lost -= 1
            raise self.error


class FailsFirst(LosesAnswers):
    """A store whose creates fail `lost` times before they do anything."""

    def put_if_absent(self, rel: str, data: bytes) -> None:
        if self.lost:
            self.lost -= 1
            raise self.error
        super().put_if_absent(rel, data)


@pytest.mark.parametrize(
    "error",
    [
        StorageError("IO", "connection reset"),
        StorageError("PERMISSION_DENIED", "token expired meanwhile"),
        AlreadyExistsError("FILE_EXISTS", "the retry of the first request found the first request's file"),
    ],
    ids=lambda error: error.code,
)
def test_a_commit_whose_answer_was_lost_is_recognised(tmp_path: Path, error: StorageError) -> None:
    create(tmp_path)
    table = load(LosesAnswers(str(tmp_path), 1, error))
    done = append(table, "a")
    assert done.version == 1
    assert paths(load(Storage.open(tmp_path))) == ["a"]


class IsUnreachable(LosesAnswers):
    """A store that, after a lost answer, cannot be asked `dark` times."""

    dark = 0

    def put_if_absent(self, rel: str, data: bytes) -> None:
        try:
            super().put_if_absent(rel, data)
        except StorageError:
            self.silent = self.dark
            raise

    def size(self, rel: str) -> int:
        if getattr(self, "silent", 0):
            self.silent -= 1
            raise StorageError("IO", "no route to host")
        return super().size(rel)


@pytest.mark.parametrize("error", [StorageError("IO", "reset"), AlreadyExistsError("FILE_EXISTS", "there")])
def test_a_commit_is_recognised_when_the_store_is_back(tmp_path: Path, error: StorageError) -> None:
    create(tmp_path)
    store = IsUnreachable(str(tmp_path), 1, error)
    store.dark = 3
    assert append(load(store), "a").version == 1
    assert paths(load(Storage.open(tmp_path))) == ["a"]


@pytest.mark.parametrize("error", [StorageError("IO", "reset"), AlreadyExistsError("FILE_EXISTS", "there")])
def test_a_commit_that_cannot_be_asked_about_is_not_repeated(
    tmp_path: Path, error: StorageError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.log.transaction._PAUSE", 0.001)
    create(tmp_path)
    store = IsUnreachable(str(tmp_path), 1, error)
    store.dark = 1000
    with pytest.raises(StorageError, match="txnId") as caught:
        append(load(store), "a")
    assert caught.value.code == "COMMIT_UNKNOWN"
    assert load(Storage.open(tmp_path)).version == 1


@pytest.mark.parametrize("then", ["IO", "PERMISSION_DENIED"])
def test_a_commit_that_a_store_may_still_write_is_unknown(monkeypatch: pytest.MonkeyPatch, then: str) -> None:
    """The first request ended without an answer, the others too or were rejected, and nothing is there yet; on a disk
    nothing comes later."""
    monkeypatch.setattr("mica.log.transaction._PAUSE", 0.001)
    store = RemoteStorage("s3://bucket", "t", None, MemoryStore())
    create(store)
    table, put, held = load(store), store.put_if_absent, []

    def hangs(rel: str, data: bytes) -> None:
        held.append((rel, data))
        raise StorageError("IO" if len(held) == 1 else then, "timed out")

    monkeypatch.setattr(store, "put_if_absent", hangs)
    transaction = Transaction(table, "WRITE", {"mode": "Append"})
    transaction.add_files([added("a")])
    with pytest.raises(StorageError, match="txnId") as caught:
        transaction.commit()
    assert not transaction.certainly_not_written
    assert caught.value.code == "COMMIT_UNKNOWN"
    put(*held[0])
    assert paths(load(store)) == ["a"]


def test_a_commit_that_failed_in_transit_is_tried_again(tmp_path: Path) -> None:
    create(tmp_path)
    table = load(FailsFirst(str(tmp_path), 2, StorageError("IO", "connection reset")))
    assert append(table, "a").version == 1


def test_a_commit_that_was_refused_is_not_there(tmp_path: Path) -> None:
    create(tmp_path)
    table = load(FailsFirst(str(tmp_path), 1, StorageError("DISK_FULL", "no space left")))
    with pytest.raises(StorageError, match="no space left"):
        append(table, "a")
    assert paths(load(Storage.open(tmp_path))) == []


@pytest.mark.parametrize("status", [400, 403, 405])
def test_a_commit_that_a_store_refused_is_certainly_not_there(status: int) -> None:
    with FaultyS3() as faulty:
        store = Storage.open("s3://b/t", faulty.options)
        create(store)
        transaction = Transaction(load(store), "WRITE", {"mode": "Append"})
        transaction.add_files([added("a")])
        faulty.spoil(status, "PUT", ".json", times=9)
        with pytest.raises(StorageError) as caught:
            transaction.commit()
        assert caught.value.code == ("PERMISSION_DENIED" if status == 403 else "IO")
        assert transaction.certainly_not_written
        assert faulty.asked[-1] == ("PUT", "t/_delta_log/00000000000000000001.json")


@pytest.mark.parametrize("fault", ["lost", "late error", "half"])
def test_a_commit_whose_answer_a_store_lost_is_made_once(fault: str) -> None:
    with FaultyS3() as faulty:
        store = Storage.open("s3://b/t", faulty.options)
        create(store)
        faulty.spoil(fault, "PUT", ".json")
        assert append(load(store), "a").version == 1
        assert paths(load(store)) == ["a"]
        assert load(store).version == 1


def test_a_disk_that_fills_up_leaves_the_last_commit(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("only root can mount a small tmpfs here")
    try:
        table = create(place, delta__checkpointInterval="4")
        done: list[str] = []
        with pytest.raises(StorageError) as caught:  # noqa: PT012 - it fills up at one of many commits
            for number in range(1000):
                table = append(table, f"{number:04d}" + "x" * 5000).snapshot
                done.append(f"{number:04d}" + "x" * 5000)
        assert caught.value.code == "DISK_FULL"
        assert len(done) > 3
        assert paths(load(table.storage)) == done
    finally:
        subprocess.run(["umount", "-l", place], check=True)


class GoesDark(LocalStorage):
    """A store that fails `dark` times after a commit, whether a file is read or looked at."""

    dark = 0

    def put_if_absent(self, rel: str, data: bytes) -> None:
        super().put_if_absent(rel, data)
        self.left = self.dark

    def read(self, rel: str) -> bytes:
        self._see()
        return super().read(rel)

    def stat(self, rel: str) -> Entry:
        self._see()
        return super().stat(rel)

    def _see(self) -> None:
        if getattr(self, "left", 0):
            self.left -= 1
            raise StorageError("IO", "the store is dark")


@pytest.mark.parametrize("write", ["append", "overwrite"])
@pytest.mark.parametrize("dark", [1, 1000])
def test_a_commit_that_cannot_be_read_is_not_repeated(
    tmp_path: Path, dark: int, write: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mica.log.transaction._PAUSE", 0.0)
    mica.Table.create(tmp_path, "id INT")
    storage = GoesDark(str(tmp_path))
    storage.dark = dark
    table = mica.Table(load(storage))
    if dark == 1:
        assert getattr(table, write)([{"id": 1}]).version == 1
    else:
        with pytest.raises(StorageError) as raised:
            getattr(table, write)([{"id": 1}])
        assert (raised.value.code, raised.value.context["version"]) == ("COMMIT_NOT_READ", 1)
        assert "Do not repeat" in str(raised.value)
    assert mica.Table.open(tmp_path).to_arrow().column("id").to_pylist() == [1]
