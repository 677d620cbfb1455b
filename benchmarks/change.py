"""Rows changed, files joined, a directory listed: each beside delta-spark, on hard links of one table per system.

Events lie in the order of time in 100 files. A delete and an update take 0.1 % of the rows, all in one file, another
delete 2 % of them, out of every file; half of the rows are inserted again; a merge takes 10,000 rows by an identifier
inside the Variant (`time_us`), half of them new, the others of one file. 1,000 small files are joined, and a vacuum
lists a directory of 100,000 files, of which it would delete ten.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.process import PeerError
from benchmarks.run import SETTLE, Measure, Run, Thing, thing
from mica.cli.events import START_US

FILES = 100
MERGED = 10_000
SMALL = 1_000
LISTED = 100_000
OLD = 10
GAP_US = 50_000
TIMES = 3


def run(run: Run) -> None:
    """Every system on the files that it wrote itself; small files and the directory are mica's."""
    source = run.events()
    tables = {name: run.target(f"changing-{name}") for name in [*run.systems("delta"), "mica"]}
    able = run.prepare("changing", tables, source=str(source), files=FILES)
    span = run.count * GAP_US // FILES
    low = START_US + span * (FILES // 2) + span // 4
    high = low + span // 10
    given = _given(source, run.folder / "data" / f"merged-{run.count}.ndjson", run.count)
    for do, arguments in (
        ("deleting", {"low": low, "high": high}),
        ("updating", {"low": low, "high": high}),
        ("clearing", {"collection": "app.bsky.graph.block"}),
        ("copying", {"high": START_US + span * (FILES // 2)}),
        ("merging", {"given": str(given)}),
    ):
        measures = _measure(run, do, {name: tables[name] for name in able}, arguments)
        _compare(run, do, measures)
    small = run.target("small-mica")
    run.prepare("many", {"mica": small}, source=str(source), files=SMALL)
    _compare(run, "joining", _measure(run, "joining", dict.fromkeys(able, small), {}))
    listed = Path(run.target("listed-mica"))
    run.prepare("many", {"mica": str(listed)}, source=str(source), files=1)
    _litter(listed)
    things = _things("listing", dict.fromkeys(able, str(listed)), {})
    measures = run.measure("listing", things, rounds=1)
    _compare(run, "listing", measures)
    run.stop()


def _given(source: Path, path: Path, count: int) -> Path:
    """Documents of the source's middle that are changed, and as many new ones."""
    with source.open() as lines:
        found = []
        for number, line in enumerate(lines):
            if number >= count // 2 + MERGED // 2:
                break
            if number >= count // 2:
                found.append(json.loads(line))
    found.sort(key=lambda event: event["time_us"])
    known = [{**event, "merged": True} for event in found]
    later = count * GAP_US * 2
    new = [{**event, "time_us": event["time_us"] + later} for event in found]
    path.write_text("".join(json.dumps(event) + "\n" for event in [*known, *new]))
    return path


def _things(do: str, tables: Mapping[str, str], arguments: dict[str, Any]) -> dict[str, Thing]:
    things = {}
    for name, target in tables.items():
        for engine in ("spark", "local") if name == "mica" else ("",):
            own = {"engine": engine} if engine else {}
            things[f"{name} {engine}".strip()] = thing(name, do, target=target, **own, **arguments)
    return things


def _measure(run: Run, do: str, tables: Mapping[str, str], arguments: dict[str, Any]) -> dict[str, Measure]:
    """As `Run.measure`, each time on a new copy."""
    things = _things(do, tables, arguments)
    measures = {label: Measure(label) for label in things}
    for number in range(run.rounds + 1):
        for label, asked in things.items():
            if measures[label].error is not None:
                continue
            copy = run.target(f"copy-{do}-{label.replace(' ', '-')}-{number}")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(asked.arguments["target"], copy, copy_function=os.link)
            time.sleep(SETTLE)
            try:
                reply = run.peer(asked.peer).ask(asked.do, **{**asked.arguments, "target": copy})
                found = {**reply.found, **run.peer(asked.peer).ask("checked", target=copy).found}
                measures[label].replies.append(type(reply)(reply.seconds, found, reply.bytes_read, reply.worker_memory))
            except PeerError as error:
                measures[label].error = str(error)
            shutil.rmtree(copy, ignore_errors=True)
    run._show(do, list(measures.values()))  # noqa: SLF001 - the same table
    return {label: measure for label, measure in measures.items() if measure.error is None}


def _compare(run: Run, do: str, measures: Mapping[str, Measure]) -> None:
    run.same(do, {label: measure.replies[-1].found for label, measure in measures.items()})
    for label in ("mica spark", "mica local"):
        run.faster(measures.get(label), measures.get("delta"), TIMES, do)


def _litter(table: Path) -> None:
    """Files that no log names, ten of them old enough to go."""
    before = time.time() - 30 * 86_400
    for number in range(LISTED):
        folder = table / f"p={number % 100}"
        folder.mkdir(exist_ok=True)
        path = folder / f"part-{number:06}-00000000-0000-0000-0000-000000000000-c000.zstd.parquet"
        path.touch()
        if number < OLD:
            os.utime(path, (before, before))
