"""A file that never changes is fetched by pieces, each once, by however many threads; what fails is not kept."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from mica.errors import StorageError
from mica.storage import pieces
from mica.storage.local import LocalStorage
from mica.storage.pieces import Pieces
from mica.storage.remote import RemoteStorage

SIZE = 1000
BYTES = bytes(i % 251 for i in range(SIZE))


class Counted(RemoteStorage):
    """A store that says what was asked of it."""

    def __init__(self, memory: MemoryStore) -> None:
        super().__init__("s3://bucket", "t", None, memory)
        self.asked: list[tuple[int, int]] = []
        self.fails = False
        self.slow: threading.Event | None = None

    def read_up_to(self, rel: str, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        if self.slow is not None:
            self.slow.wait(10)
        if self.fails:
            raise StorageError("IO", "the store is away")
        return super().read_up_to(rel, start, end)

    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.asked += ranges
        return super().read_ranges(rel, ranges)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setattr(pieces, "PIECE", 100)
    monkeypatch.setattr(pieces, "_MOST", 4)
    memory = MemoryStore()
    obstore.put(memory, "t/f", BYTES)
    obstore.put(memory, "t/g", BYTES[::-1])
    return Counted(memory)


def test_what_is_read_is_what_the_file_holds(store: Counted, rng: random.Random) -> None:
    kept = Pieces()
    for _ in range(500):
        ranges = [tuple(sorted((rng.randrange(SIZE + 1), rng.randrange(SIZE + 1)))) for _ in range(3)]
        name, data = rng.choice([("f", BYTES), ("g", BYTES[::-1])])
        assert kept.read_ranges(store, name, ranges) == [data[start:end] for start, end in ranges]


def test_a_piece_is_fetched_once_while_it_is_used(store: Counted) -> None:
    kept = Pieces()
    kept.read_ranges(store, "f", [(0, 1), (10, 90), (95, 105)])
    assert store.asked == [(0, 100), (100, 200)]
    kept.read_ranges(store, "f", [(300, 450)])
    assert store.asked[2:] == [(300, 450)], "larger than a piece"
    kept.read_ranges(store, "f", [(0, 1), (300, 301), (400, 401), (0, 1), (500, 501), (0, 1), (100, 101)])
    assert store.asked[3:] == [(300, 400), (400, 500), (500, 600), (100, 200)], "four are kept, those used last"
    kept.keep(store, "h", BYTES[:250])
    assert kept.read_ranges(store, "h", [(90, 110), (210, 250)]) == [BYTES[90:110], BYTES[210:250]]
    assert len(store.asked) == 7


def test_threads_share_a_request(store: Counted) -> None:
    kept, store.slow = Pieces(), threading.Event()
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(kept.read_ranges, store, "f", [(n, n + 10)]) for n in range(8)]
        store.slow.set()
        assert [one.result() for one in found] == [[BYTES[n : n + 10]] for n in range(8)]
    assert store.asked == [(0, 100)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_does_not_wait_for_its_parents_threads(store: Counted) -> None:
    pieces.PIECES.forget()
    store.slow = threading.Event()
    asking = threading.Thread(target=pieces.PIECES.read_ranges, args=(store, "f", [(0, 1)]))
    asking.start()
    while not store.asked:
        time.sleep(0.001)
    child = os.fork()
    if not child:
        store.slow.set()
        os._exit(int(store.asked != [(0, 100)] or pieces.PIECES._of(store, "f", 0)[1] is not True))
    assert os.waitpid(child, 0)[1] == 0
    store.slow.set()
    asking.join()
    pieces.PIECES.forget()


def test_what_fails_is_asked_again_and_said_where_it_is(store: Counted) -> None:
    kept, store.fails = Pieces(), True
    assert kept.read_ranges(store, "f", [(5, 9)]) == [BYTES[5:9]]
    assert store.asked == [(0, 100), (5, 9)]
    store.fails = False
    assert kept.read_ranges(store, "f", [(5, 9)]) == [BYTES[5:9]]
    for ranges in ([(990, 1001)], [(1200, 1210)]):
        with pytest.raises(StorageError) as e:
            kept.read_ranges(store, "f", ranges)
        assert e.value.code == "FILE_TOO_SHORT"
    with pytest.raises(StorageError) as e:
        kept.read_ranges(store, "nothing", [(0, 1)])
    assert e.value.code == "NOT_FOUND"


def test_a_disk_is_asked_each_time(tmp_path: Path) -> None:
    kept, disk = Pieces(), LocalStorage(str(tmp_path), False)
    disk.put("f", BYTES)
    assert kept.read_ranges(disk, "f", [(1, 3)]) == [BYTES[1:3]]
    disk.put("f", BYTES[::-1])
    assert kept.read_ranges(disk, "f", [(1, 3)]) == [BYTES[::-1][1:3]]
    assert disk.read_up_to("f", 990, 2000) == BYTES[::-1][990:]
