"""Memory of a task while a file of any size becomes a table: the peak of Spark's Python workers."""

from __future__ import annotations

from benchmarks.run import Run, thing


def run(run: Run) -> None:
    """The same job ten times as large must not need more."""
    for count in (run.count, run.count * 10):
        source = str(run.events(count))
        to = run.target("memory")
        things = {
            "mica ingest": thing("mica", "ingest", source=source, target=to, engine="spark"),
            "mica rebuild": thing("mica", "rebuild", target=to),
        }
        measures = run.measure(f"memory of a task, {count:,} events", things, rounds=1)
        for label, measure in measures.items():
            run.promise(f"{label}, {count:,}: peak of a worker", measure.memory / 1e6, 700, " MB", at_most=True)
        run.stop()
