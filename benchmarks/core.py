"""What one core does: JSON text to a finished file, and one path of all rows, reading included.

A process of its own, pinned to one core, so that neither a second thread nor another system's work is counted. Peers do
the same on two cores in `ingest` and `queries`; `make bench-kernel` has whole rows, and arrow-rs on one core.
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from rich.table import Table

from benchmarks.run import Run

INGEST = {"zstd": 0.4, "snappy": 0.6}
#: ns a row.
READS = {"v:time_us::bigint": 3, "v:kind::string": 8}
#: Reads in a round: each takes milliseconds, and the first of a process a while to settle.
IN_A_ROW = 50

_ONE_CORE = """
import json, os, shutil, sys, time
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
import mica

source, target, rounds, in_a_row, paths = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
found = {}

def measured(name, work, times):
    every = found.setdefault(name, [])
    for _ in range(times):
        began = time.perf_counter()
        work()
        every.append(time.perf_counter() - began)

for _ in range(rounds + 1):
    for codec in ("snappy", "zstd"):
        shutil.rmtree(target, ignore_errors=True)
        properties = {"delta.parquet.compression.codec": codec}
        measured(codec, lambda: mica.ingest_json(source, target, properties=properties), 1)
table = mica.Table.open(target)
for _ in range(rounds + 1):
    for path in paths:
        measured(path, lambda: table.scan(columns={"x": path}).to_arrow(), in_a_row)
print(json.dumps(found))
"""


def run(run: Run) -> None:
    """Medians of the rounds after the first."""
    events = run.events()
    command = [sys.executable, "-c", _ONE_CORE, events, run.target("core"), run.rounds, IN_A_ROW, *READS]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True)
    seconds: dict[str, list[float]] = json.loads(done.stdout)
    gigabytes = events.stat().st_size / 1e9
    shown = Table(title=f"one core, {run.count:,} events", title_justify="left")
    for column in ("work", "median", "best", "target"):
        shown.add_column(column, justify="left" if column == "work" else "right")

    def told(what: str, found: list[float], target: float, unit: str, *, at_most: bool) -> None:
        middle, best = median(found), min(found) if at_most else max(found)
        shown.add_row(what, f"{middle:.3g}{unit}", f"{best:.3g}{unit}", f"{target:g}{unit}")
        run.promise(f"one core, {what}", middle, target, unit, at_most=at_most)

    for codec, target in INGEST.items():
        told(f"ingest in {codec}", [gigabytes / s for s in seconds[codec][1:]], target, " GB/s", at_most=False)
    for path, most in READS.items():
        told(path, [s / run.count * 1e9 for s in seconds[path][IN_A_ROW:]], most, " ns a row", at_most=True)
    run.console.print(shown)
