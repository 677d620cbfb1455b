"""Ingest into many partitions, whose rows come among those of all others: by 100 values and by 1,000."""

from __future__ import annotations

from pathlib import Path

from benchmarks.run import Run, disk, thing

PARTITIONS = (100, 1_000)


def run(run: Run) -> None:
    """The same events for each; the key is the microsecond of an event, which has no order."""
    source = str(run.events(run.count))
    for count in PARTITIONS:
        peers = run.systems("spark43", "delta")
        targets = {name: run.target(f"partitions-{name}") for name in [*peers, "mica spark", "mica local"]}
        shared = {"source": source, "partitions": count}
        things = {name: thing(name, "ingest", target=targets[name], **shared) for name in peers}
        for engine in ("spark", "local"):
            label = f"mica {engine}"
            things[label] = thing("mica", "ingest", target=targets[label], engine=engine, **shared)
        measures = run.measure(f"ingest {run.count:,} events into {count:,} partitions", things)
        for name in ("spark43", "delta"):
            run.faster(measures.get("mica spark"), measures.get(name), 1, f"{count:,} partitions")
        answers = {label: run.peer(things[label].peer).ask("check", target=targets[label]).found for label in measures}
        run.same(f"{count:,} partitions", answers)
        for label in measures:
            files = sum(1 for _ in Path(targets[label]).rglob("*.parquet"))
            run.console.print(f"{label}: {files:,} files, {disk(targets[label]) / 1e6:.1f} MB")
    run.stop()
