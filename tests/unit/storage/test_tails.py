"""The end of a file is read once, in one step or two, up to a bound; what is read of it is what the file holds."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from mica import threads
from mica.errors import StorageError
from mica.storage import tails
from mica.storage.local import LocalStorage
from mica.storage.tails import Fetch, Tails

SIZE = 1000
BYTES = bytes(i % 251 for i in range(SIZE))


class Counted(LocalStorage):
    """A disk that says which ranges were asked of it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(str(directory), False)
        self.asked: list[tuple[int, int]] = []
        (directory / "f").write_bytes(BYTES)

    def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        self.asked += ranges
        return super().read_ranges(rel, ranges)


def _read(kept: Tails, disk: Counted, *ranges: tuple[int, int]) -> list[tuple[int, int]]:
    """Which ranges are asked of the disk for these."""
    disk.asked = []
    fetch = Fetch(kept, disk, "f", SIZE)
    assert fetch(ranges) == [BYTES[start:end] for start, end in ranges]
    assert fetch.fetched == sum(end - start for start, end in disk.asked)
    return disk.asked


def test_what_lies_in_the_end_is_read_once(tmp_path: Path) -> None:
    disk, kept = Counted(tmp_path), Tails()
    assert _read(kept, disk, (900, SIZE)) == [(900, SIZE)]
    assert _read(kept, disk, (900, SIZE)) == []
    assert _read(kept, disk, (950, 960), (910, 999)) == []
    assert _read(kept, disk, (800, 900)) == [(800, 900)], "the rest of a long footer"
    assert _read(kept, disk, (850, SIZE)) == []
    assert _read(kept, disk, (799, 850)) == [(799, 850)]
    assert _read(kept, disk, (900, 910), (0, 10)) == [(900, 910), (0, 10)]


def test_whole_files_are_read_once_and_at_once(tmp_path: Path) -> None:
    disk, kept = Counted(tmp_path), Tails()
    _read(kept, disk, (900, SIZE))
    disk.asked = []
    assert kept.whole([(disk, "f", SIZE)]) == [BYTES]
    assert disk.asked == [(0, 900)]
    assert kept.whole([(disk, "f", SIZE)]) == [BYTES]
    assert _read(kept, disk, (0, 10)) == []
    kept, disk.asked = Tails(), []
    assert kept.whole([(disk, "f", SIZE)] * 2) == [BYTES] * 2
    assert kept.whole([(disk, "f", SIZE)]) == [BYTES]
    assert 1 <= len(disk.asked) <= 2
    assert _read(kept, disk, (0, 10), (900, SIZE)) == []
    both = threading.Barrier(threads.REQUESTS, timeout=20)

    class Waits(Counted):
        def read_ranges(self, rel: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            both.wait()
            return super().read_ranges(rel, ranges)

    sizes = range(SIZE, SIZE - threads.REQUESTS, -1)
    found = Tails().whole([(Waits(tmp_path), "f", size) for size in sizes])
    assert found == [BYTES[:size] for size in sizes]
    with pytest.raises(StorageError, match="g"):
        Tails().whole([(disk, "f", SIZE), (disk, "g", SIZE)])


def test_what_is_kept_keeps_no_threads(tmp_path: Path) -> None:
    disk, before = Counted(tmp_path), threading.active_count()
    kept = [Tails() for _ in range(50)]
    for one in kept:
        assert one.whole([(disk, "f", SIZE)] * 40) == [BYTES] * 40
    assert threading.active_count() <= before + 16 * threads.REQUESTS


def test_other_files_and_other_sizes_are_others(tmp_path: Path) -> None:
    disk, kept = Counted(tmp_path), Tails()
    _read(kept, disk, (900, SIZE))
    Fetch(kept, disk, "f", SIZE - 1)([(900, SIZE - 1)])
    assert disk.asked[-1] == (900, SIZE - 1)
    assert _read(Tails(), disk, (900, SIZE)) == [(900, SIZE)]
    assert _read(pickle.loads(pickle.dumps(kept)), disk, (900, SIZE)) == [(900, SIZE)], "workers get none"


def test_the_end_of_a_file_that_may_be_replaced_counts_briefly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(tails.time, "monotonic", lambda: now)
    disk, kept = Counted(tmp_path), Tails(tails.BRIEFLY)
    _read(kept, disk, (900, SIZE))
    now += tails.BRIEFLY - 1
    assert _read(kept, disk, (800, 900), (900, SIZE)) == [(800, 900), (900, SIZE)]
    assert _read(kept, disk, (800, 900)) == [(800, 900)]
    assert _read(kept, disk, (800, SIZE)) == []
    now += 2
    assert _read(kept, disk, (800, SIZE)) == [(800, SIZE)], "what was added later is as old as the rest"
    assert _read(kept, disk, (800, SIZE)) == []


@pytest.mark.parametrize("limit", ["LIMIT", "LIMIT_OF_ONE"])
def test_no_more_is_kept_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(tails, limit, 100)
    disk, kept = Counted(tmp_path), Tails()
    _read(kept, disk, (900, SIZE))
    _read(kept, disk, (899, 900))
    assert _read(kept, disk, (899, SIZE)) == [(899, SIZE)]
    assert _read(kept, disk, (900, SIZE)) == []


def test_what_is_announced_is_read_once_and_fails_in_its_turn(tmp_path: Path) -> None:
    disk, kept = Counted(tmp_path), Tails()
    fetch = Fetch(kept, disk, "f", SIZE)
    fetch.announce([(10, 20), (40, 50)])
    assert fetch([(0, 5)]) == [BYTES[0:5]], "others may come first"
    assert fetch([(10, 20), (40, 50)]) == [BYTES[10:20], BYTES[40:50]]
    assert sorted(disk.asked) == [(0, 5), (10, 20), (40, 50)]
    assert fetch.fetched == 25
    assert fetch([(10, 20), (40, 50)]) == [BYTES[10:20], BYTES[40:50]], "it is not kept"
    disk.asked = []
    _read(kept, disk, (900, SIZE))
    fetch.announce([(950, 960)])
    assert disk.asked == [(900, SIZE)], "the end is there already"
    fetch.announce([(800, SIZE + 1)])
    with pytest.raises(StorageError):
        fetch([(800, SIZE + 1)])
