"""Merges and optimizes that are killed at any moment: the table is whole and readable, and nothing is lost or doubled.

Each merge adds 1 to every counter and inserts one row, so the history tells what the rows must be.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import mica
from tests.support import CAMPAIGN

KILLED = 20 if CAMPAIGN else 2
COUNTERS = 200
#: Seconds after the first commit within which a writer is killed.
SPAN = 0.6

WRITER = """
    import sys
    import mica

    table = mica.Table.open(sys.argv[1])
    number = table.count()
    while True:
        source = [{{"id": i}} for i in [*range({counters}), number + 100_000]]
        merge = table.merge(source, "target.id = source.id").when_matched_update({{"n": "target.n + 1"}})
        merge.when_not_matched_insert({{"id": "id", "n": "0"}}).execute()
        number += 1
        if number % 3 == 0:
            table.optimize()
        print(number, flush=True)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_killed_writers_leave_the_table_whole(tmp_path: Path, rng: random.Random, vectors: str) -> None:
    table = mica.Table.create(
        tmp_path, "id INT, p INT, n INT", ["p"], properties={"delta.enableDeletionVectors": vectors}
    )
    for part in range(4):
        table.append([{"id": i, "p": i % 2, "n": 0} for i in range(part, COUNTERS, 4)])
    program = textwrap.dedent(WRITER).format(counters=COUNTERS)
    for _ in range(KILLED):
        writer = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        writer.stdout.readline()  # it is at work
        time.sleep(rng.random() * SPAN)
        os.kill(writer.pid, signal.SIGKILL)
        writer.communicate()
        found = mica.Table.open(tmp_path)
        merges = found.history().column("operation").to_pylist().count("MERGE")
        rows = {row["id"]: row["n"] for row in found.to_arrow().to_pylist()}
        assert len(rows) == found.count() == COUNTERS + merges
        assert {rows[i] for i in range(COUNTERS)} == {merges}
        assert mica.check(found).ok
    found.vacuum(0, enforce_retention=False)
    assert mica.Table.open(tmp_path).count() == len(rows)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("part-*.parquet")}
    assert left == set(found.files().column("path").to_pylist())
