"""Five questions like JSONBench's on one table of events: peers by their SQL, mica's leaves aggregated by pyarrow."""

from __future__ import annotations

import statistics

from benchmarks.run import Measure, Run, thing

QUERIES = ["count by collection", "distinct users", "by hour", "earliest posters", "longest spans"]


def run(run: Run) -> None:
    """Every system on what it wrote itself; geometric means of the five."""
    source = str(run.events())
    peers = run.systems("spark43", "duckdb", "clickhouse")
    tables = {name: run.target(f"queries-{name}") for name in [*peers, "mica"]}
    able = run.prepare("ingest", tables, source=source)
    warm: dict[str, list[float]] = {}
    small: dict[str, Measure] = {}
    for query in QUERIES:
        things = {n: thing(n, "query", target=tables[n], name=query) for n in able}
        measures = run.measure(query, things)
        run.same(query, {label: measure.replies[-1].found for label, measure in measures.items()})
        small |= {query: measures["mica"]} if "mica" in measures else {}
        for label, measure in measures.items():
            warm.setdefault(label, []).append(measure.warm)
    ours = statistics.geometric_mean(warm["mica"]) if len(warm.get("mica", [])) == len(QUERIES) else None
    for name, target in (("spark43", 10.0), ("duckdb", 10.0), ("clickhouse", 1.2)):
        if ours is not None and len(warm.get(name, [])) == len(QUERIES):
            run.promise(f"five queries: mica against {name}", statistics.geometric_mean(warm[name]) / ours, target)
    run.stop()
    more, table = str(run.events(10 * run.count)), run.target("queries-mica-tenfold")
    if run.prepare("ingest", {"mica": table}, source=more):
        for query in QUERIES:
            things = {"mica": thing("mica", "query", target=table, name=query)}
            large = run.measure(f"{query}, of {10 * run.count:,}", things)
            if "mica" in large and query in small:
                run.grown(query, small[query], large["mica"])
    run.stop()
