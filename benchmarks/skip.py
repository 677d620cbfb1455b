"""200 files in the order of time; a range that hits one: count and least value of a path; an identifier, which no bound
excludes. Opening the table counts."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.run import Run, thing
from mica.cli.events import START_US

FILES = 200

#: Who is asked for it, besides mica.
KNOWING = ("spark43", "duckdb")

#: An identifier in process: seconds, and times as fast as DuckDB.
IDENTIFIED = (
    ("mica local", "identifier", 0.08, 2),
    ("mica local, filters", "identifier, bloom filters", 0.04, 4),
)


def run(run: Run) -> None:
    """Every system on the files that it wrote itself."""
    source = str(run.events())
    peers = run.systems("spark43", "delta", "duckdb", "sail")
    tables = {name: run.target(f"sliced-{name}") for name in [*peers, "mica"]}
    able = run.prepare("sliced", tables, source=source, files=FILES)
    # In the middle of a slice: five parts in a hundred of its span of time.
    span = run.count * 50_000 // FILES
    low = START_US + span * (FILES // 2) + span // 2
    request = {"low": low, "high": low + span // 20}
    things = {name: thing(name, "ranged", target=tables[name], **request) for name in able if name != "mica"}
    for engine in ("spark", "local") if "mica" in able else ():
        things[f"mica {engine}"] = thing("mica", "ranged", target=tables["mica"], engine=engine, **request)
    measures = run.measure(f"a range that hits one of {FILES} files", things)
    run.same("range", {label: measure.replies[-1].found for label, measure in measures.items()})
    spark, local = measures.get("mica spark"), measures.get("mica local")
    run.faster(spark, measures.get("delta"), 6, "range, to_df")
    run.faster(spark, measures.get("spark43"), 3, "range, to_df")
    run.faster(local, measures.get("delta"), 60, "range, to_arrow")
    run.faster(local, measures.get("duckdb"), 20, "range, to_arrow")
    for ours in (spark, local):
        for name in ("delta", "spark43", "duckdb"):
            if ours and name in measures:
                share = ours.bytes_read / measures[name].bytes_read
                run.promise(f"range, bytes read: {ours.system} to {name}", share, 0.01, "", at_most=True)
    filtered = run.target("sliced-mica-filtered")
    if not run.prepare("sliced", {"mica": filtered}, source=source, files=FILES, filters="v:commit.cid"):
        return run.stop()
    asked = {"value": identifier(run.events(), run.count)}
    things = {name: thing(name, "identified", target=tables[name], **asked) for name in able if name in KNOWING}
    for engine in ("spark", "local"):
        things[f"mica {engine}"] = thing("mica", "identified", target=tables["mica"], engine=engine, **asked)
        things[f"mica {engine}, filters"] = thing("mica", "identified", target=filtered, engine=engine, **asked)
    measures = run.measure(f"an identifier in {FILES} files", things)
    run.same("identifier", {label: measure.replies[-1].found for label, measure in measures.items()})
    for label, what, most, times in IDENTIFIED:
        if label in measures:
            run.promise(what, measures[label].warm, most, " s", at_most=True)
        run.faster(measures.get(label), measures.get("duckdb"), times, what)
    return run.stop()


def identifier(source: Path, count: int) -> str:
    """The `commit.cid` of an event in the middle; they are in no order."""
    with source.open() as lines:
        wanted = (json.loads(line) for number, line in enumerate(lines) if number >= count // 2)
        found = (event.get("commit", {}).get("cid") for event in wanted)
        return next(cid for cid in found if isinstance(cid, str))
