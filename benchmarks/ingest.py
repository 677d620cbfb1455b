"""Ingest: NDJSON to a shredded table, each system by its documented way, in the codec that it takes by itself.

Sizes are compared at the same codec as well: every system that can writes once more in snappy and in zstd.
"""

from __future__ import annotations

from benchmarks.process import PeerError
from benchmarks.run import Run, Thing, disk, thing

#: Times as fast as each, at the number of events asked for and at ten times as many.
TARGETS = {"delta": (5, 6), "spark43": (4, 5), "sail": (2, 2), "duckdb": (10, 10)}


def run(run: Run) -> None:
    """The target's two sizes; DuckDB and ClickHouse are asked for the small one alone."""
    _at(run, run.count, run.systems("spark43", "delta", "sail", "duckdb", "clickhouse"), run.rounds)
    run.stop("duckdb", "clickhouse")
    if run.count >= 500_000:
        _at(run, run.count * 10, run.systems("spark43", "delta", "sail"), max(2, run.rounds // 3))
    run.stop()


def _at(run: Run, count: int, peers: list[str], rounds: int) -> None:
    source = str(run.events(count))
    title = f"ingest {count:,} events, {run.events(count).stat().st_size / 1e6:.0f} MB of JSON"
    targets = {name: run.target(f"ingest-{name}") for name in [*peers, "mica spark", "mica local"]}
    things = {name: thing(name, "ingest", source=source, target=targets[name]) for name in peers}
    for engine in ("spark", "local"):
        label = f"mica {engine}"
        things[label] = thing("mica", "ingest", source=source, target=targets[label], engine=engine)
    # In turns more than a minute passes between two rounds of the large input: Spark ends idle workers by then, and the
    # machine has taken back memory and files that nobody used. Warm is who has just done the same.
    measures = run.measure(title, things, rounds, in_turns=count == run.count)
    for name, times in TARGETS.items():
        run.faster(measures.get("mica spark"), measures.get(name), times[count > run.count], f"ingest {count:,}")
    answers = {label: run.peer(things[label].peer).ask("check", target=targets[label]).found for label in measures}
    run.same(f"ingest {count:,}", answers)
    _sizes(run, count, {label: things[label] for label in measures})


def _sizes(run: Run, count: int, things: dict[str, Thing]) -> None:
    """Of many events delta-spark alone writes once more in other codecs: the others would take most of the run."""
    found: dict[str, dict[str, float]] = {}
    for label, first in things.items():
        if label == "mica local" or (count > 500_000 and first.peer not in ("mica", "delta")):
            continue
        to = first.arguments["target"]
        sizes = found[label] = {}
        if first.peer == "clickhouse":
            sizes["default"] = run.peer(first.peer).ask("size", target=to).found
            continue
        sizes["default"] = disk(to)
        for codec in ("snappy", "zstd"):
            try:
                run.peer(first.peer).ask("ingest", codec=codec, **first.arguments)
                sizes[codec] = disk(to)
            except PeerError as error:
                run.console.print(f"{label}, {codec}: {error}")
    for label, sizes in found.items():
        text = ", ".join(f"{codec} {size / 1e6:.1f} MB" for codec, size in sizes.items())
        run.console.print(f"on disk, {label}: {text}")
    ours = found.get("mica spark", {})
    for codec in ("snappy", "zstd"):
        theirs = {label: sizes[codec] for label, sizes in found.items() if codec in sizes and label != "mica spark"}
        if codec in ours and theirs:
            what = f"size at {codec}, {count:,}: mica to the smallest of {', '.join(theirs)}"
            run.promise(what, ours[codec] / min(theirs.values()), 1, at_most=True)
    if "zstd" in ours and count == 500_000:
        run.promise(f"size at zstd, {count:,}", ours["zstd"] / 1e6, 50, " MB", at_most=True)
