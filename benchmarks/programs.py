"""Programs that measure works of mica in a process of their own, with the package that they are told: `core` has this
tree's, `turns` those of two builds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

#: Each program begins so, and prints the milliseconds of its works and what tells whether the answers are the same.
_MEASURED = """
import hashlib, json, os, shutil, sys, time
import mica
assert mica.__file__.startswith(sys.argv[1]), mica.__file__
given, target, times = *sys.argv[2:4], int(sys.argv[4])
found, answers = {}, []

def measured(name, work, times, cold=1, before=lambda: None):
    for number in range(cold + times):
        before()
        began = time.perf_counter()
        work()
        if number >= cold:
            found.setdefault(name, []).append((time.perf_counter() - began) * 1000)
"""

#: What one core does, so that neither a second thread nor another system's work is counted: JSON text to a finished
#: file, and paths of all rows, reading included. These also with all cores, as most people read.
ONE_CORE = """
every = os.sched_getaffinity(0)
os.sched_setaffinity(0, {max(every)})
for codec in ("zstd", "snappy"):
    ingest = lambda: mica.ingest_json(
        given + "/events.ndjson", target, properties={"delta.parquet.compression.codec": codec}
    )
    measured(f"ingest in {codec}", ingest, times, before=lambda: shutil.rmtree(target, ignore_errors=True))
table = mica.Table.open(given + "/table")
for note in ("", ", all cores"):
    if note:
        os.sched_setaffinity(0, every)
    for path in ("time_us::bigint", "kind::string", "commit.collection::string", "did::string", "commit.cid::string"):
        read = lambda: table.scan(columns={"x": f"v:{path}"}).to_arrow()
        measured(f"v:{path} of all rows{note}", read, 15 * times, 10)
        answers.append(hashlib.sha256("".join(map(str, read()["x"].to_pylist())).encode()).hexdigest())
    rows = lambda: sum(batch.num_rows for batch in table.scan(columns=["v"]).batches())
    measured(f"whole rows of all{note}", rows, times)
"""

_TOLD = "\nprint(json.dumps([found, answers]))"


def run(package: Path, program: str, given: Path, target: Path, times: int) -> tuple[dict[str, list[float]], list[Any]]:
    """Milliseconds of each work by its name, and answers, of a program that has the mica of a folder, workers too."""
    command = [sys.executable, "-c", _MEASURED + program + _TOLD, package, given, target, times]
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run([*map(str, command)], env=environment, cwd="/", stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[float]]
    answers: list[Any]
    found, answers = json.loads(done.stdout.splitlines()[-1])
    return found, answers


def given(package: Path, events: Path, folder: Path) -> Path:
    """The folder, with the events as text and as a table that this package wrote."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "events.ndjson").symlink_to(events)
    run(package, 'mica.ingest_json(given + "/events.ndjson", given + "/table")', folder, folder, 0)
    return folder
