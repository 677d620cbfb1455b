"""What a person waits for where little is done: the first row of a new process, and an append of 100 rows.

A process tells the time from its first import to its first row, so the start of the interpreter is in none of these but
the command line's. deltalake does the same on a table of plain columns.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import deltalake
import pyarrow as pa

import mica
from benchmarks.run import Run

APPENDS = 100
APPENDS_ON_SPARK = 20
#: Appends of one system before those of the next.
IN_A_ROW = 10

_FIRST_ROW = """
import sys, time
began = time.perf_counter()
{import_}
rows = {rows}.slice(0, 1).to_pylist()
assert len(rows) == 1
print(time.perf_counter() - began)
"""
_READS = {
    "mica": ("import mica", "mica.Table.open(sys.argv[1]).scan().to_arrow()"),
    "mica, by a predicate": ("import mica", "mica.Table.open(sys.argv[1]).scan(where='id = 50').to_arrow()"),
    "deltalake": ("import deltalake", "deltalake.DeltaTable(sys.argv[1]).to_pyarrow_table()"),
}


def run(run: Run) -> None:
    """In process, and appends on Spark too."""
    place = Path(run.target("small"))
    shutil.rmtree(place, ignore_errors=True)
    rows = pa.table({"id": range(100), "s": [f"x{number}" for number in range(100)]})
    table = mica.Table.create(place / "mica", "id BIGINT, s STRING")
    table.append(rows)
    _starts(run, str(place / "mica"))
    _appends(run, table, rows, str(place / "deltalake"))
    _appends_on_spark(run, table, rows)


def _starts(run: Run, table: str) -> None:
    seconds: dict[str, list[float]] = {name: [] for name in (*_READS, "mica scan")}
    # Whoever uses mica has its modules compiled once.
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(run.rounds + 1):
        for name, (import_, read) in _READS.items():
            script = _FIRST_ROW.format(import_=import_, rows=read)
            command = [sys.executable, "-c", script, table]
            # A process that told its time has done the work: deltalake 1.6.6 aborts now and then when Python ends.
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=given)
            seconds[name].append(float(done.stdout))
        began = time.perf_counter()
        command = [sys.executable, "-m", "mica.cli", "scan", table, "--limit", "1"]
        subprocess.run(command, capture_output=True, check=True, env=given)
        seconds["mica scan"].append(time.perf_counter() - began)
    _told(run, "a new process, to its first row", seconds)
    run.promise("import mica to the first row of a small table", median(seconds["mica"][1:]), 0.15, " s", at_most=True)


def _appends(run: Run, table: mica.Table, rows: pa.Table, beside: str) -> None:
    deltalake.write_deltalake(beside, rows)
    kept = deltalake.DeltaTable(beside)
    ways: dict[str, Callable[[], object]] = {
        "mica": lambda: table.append(rows),
        "deltalake": lambda: deltalake.write_deltalake(kept, rows, mode="append"),
    }
    seconds = _in_turns(ways, APPENDS)
    _told(run, f"{APPENDS} appends of 100 rows, table object kept", seconds)
    run.promise("an append of 100 rows, table object kept", median(seconds["mica"][1:]) * 1e3, 4, " ms", at_most=True)


def _appends_on_spark(run: Run, table: mica.Table, rows: pa.Table) -> None:
    with mica.session(master="local[2]") as spark:
        given, listed = spark.createDataFrame(rows), spark.createDataFrame(rows.to_pylist(), "id BIGINT, s STRING")
        # Spark does not know how many these are.
        of_workers = spark.range(0, 100_000, 1, 2).filter("id < 100").selectExpr("id", "concat('x', id) AS s")
        ways: dict[str, Callable[[], object]] = {
            "rows of the driver": lambda: table.append(given),
            "rows of a list": lambda: table.append(listed),
            "rows of a job": lambda: table.append(of_workers),
            # Planned anew each time, as a write is.
            "mapInArrow of these, which does nothing": lambda: of_workers.mapInArrow(
                _same, of_workers.schema
            ).toArrow(),
        }
        seconds = _in_turns(ways, APPENDS_ON_SPARK)
    what = "an append of 100 rows on Spark"
    _told(run, f"{what}, table object kept", seconds)
    for name in list(ways)[:3]:
        run.promise(f"{what}: {name}", median(seconds[name][1:]) * 1e3, 80, " ms", at_most=True)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _in_turns(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """The first is not warm; then some of each in a row, as of one who appends and does nothing else between."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for in_a_row in (1, *[IN_A_ROW] * (rounds // IN_A_ROW)):
        for name, work in ways.items():
            for _ in range(in_a_row):
                began = time.perf_counter()
                work()
                seconds[name].append(time.perf_counter() - began)
    return seconds


def _told(run: Run, what: str, seconds: dict[str, list[float]]) -> None:
    for name, every in seconds.items():
        warm = sorted(every[1:])
        shown = [f"{one * 1e3:.1f}" for one in (median(warm), warm[0], every[0])]
        run.console.print(f"{what}: {name} {shown[0]} ms (least {shown[1]}, first {shown[2]})")
