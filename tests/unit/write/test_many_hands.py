"""Ten writers beside an optimize and a vacuum: what each wrote is there once, and no file that is read is deleted."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mica
from mica.errors import ConflictError, StorageError
from tests.support import CAMPAIGN

SECONDS = 120 if CAMPAIGN else 4
WRITERS = 10
#: Seconds that removed files are kept: in a campaign long enough for any write, and shorter than the test. Otherwise
#: only files that were left behind days ago are old enough.
KEPT = 30 if CAMPAIGN else 3600

Done = tuple[Counter[str], dict[int, int]]


def goes_on(end: float, done: Counter[str], *names: str) -> bool:
    """Whether it is not yet `end`, or something is not done yet: a busy machine takes longer."""
    return time.time() < end or not all(done[name] for name in names)


def repeated(work: object, path: str) -> bool:
    """Runs the work on the newest version; False if another writer was first."""
    try:
        work(mica.Table.open(path))  # type: ignore[operator]
    except ConflictError:
        return False
    return True


def write(path: str, writer: int, end: float) -> Done:
    """Appends, updates and deletes rows of its own until `end`, each at least once; returns how often, and its rows."""
    mine: dict[int, int] = {}
    done: Counter[str] = Counter()
    number = writer * 1_000_000
    while goes_on(end, done, "append", "update", "delete"):
        number += 1
        step = number % 4
        if step < 2:
            mica.Table.open(path).append([{"id": number, "writer": writer, "n": 0}])
            mine[number] = 0
            done["append"] += 1
        elif step == 2 and repeated(lambda t: t.update({"n": "n + 1"}, f"writer = {writer}"), path):
            mine = {key: value + 1 for key, value in mine.items()}
            done["update"] += 1
        elif step == 3 and mine:
            oldest = min(mine)
            if repeated(lambda t, oldest=oldest: t.delete(f"writer = {writer} AND id = {oldest}"), path):
                mine.pop(oldest)
                done["delete"] += 1
    return done, mine


def keep_in_shape(path: str, end: float) -> Done:
    """Optimizes, vacuums and reads until `end`, each at least once."""
    done: Counter[str] = Counter()
    while goes_on(end, done, "optimize", "vacuumed", "read"):
        done["optimize"] += repeated(lambda t: t.optimize(), path)
        stray = Path(path) / "writer=3" / f"part-left-{done['read']}.parquet"
        stray.parent.mkdir(exist_ok=True)
        stray.write_bytes(b"left by a killed writer")
        os.utime(stray, (end - 864_000, end - 864_000))
        found = mica.Table.open(path).vacuum(KEPT / 3600, enforce_retention=False)
        done["vacuumed"] += found.files
        table = mica.Table.open(path)
        try:
            assert table.to_arrow().num_rows == table.count()
        except StorageError as e:
            raise AssertionError(f"a file of a version that was just opened is gone: {e}") from None
        done["read"] += 1
    return done, {}


def process(path: str, writers: list[int]) -> list[Done]:
    """Some of the writers, as threads of one process; without any, the one who keeps the table in shape."""
    end = time.time() + SECONDS
    if not writers:
        return [keep_in_shape(path, end)]
    with ThreadPoolExecutor(len(writers)) as pool:
        return list(pool.map(lambda writer: write(path, writer, end), writers))


@pytest.mark.slow
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_nothing_is_lost_and_nothing_twice(tmp_path: Path, vectors: str) -> None:
    mica.Table.create(
        tmp_path, "id BIGINT, writer INT, n INT", ["writer"],
        properties={"delta.enableDeletionVectors": vectors, "delta.checkpointInterval": "5"},
    )  # fmt: skip
    hands = [list(range(0, WRITERS, 2)), list(range(1, WRITERS, 2)), []]
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(hands)) as pool:
        found = pool.starmap(process, [(str(tmp_path), hand) for hand in hands])
    expected = {key: value for hand in found for _, mine in hand for key, value in mine.items()}
    table = mica.Table.open(tmp_path)
    rows = table.to_arrow().to_pylist()
    assert len(rows) == len(expected)
    assert {row["id"]: row["n"] for row in rows} == expected
    assert mica.check(table).ok
