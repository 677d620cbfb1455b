"""Documents of other kinds than the events: each system ingests them, and gives all rows whole."""

from __future__ import annotations

from benchmarks.kinds import KINDS, documents
from benchmarks.run import Run, thing

#: Times as fast at an ingest, and with whole rows.
INGEST, WHOLE = 3, 1

#: Bytes of each kind for each of the run's events.
SIZE = 120


def run(run: Run) -> None:
    """DuckDB is asked for the ingest alone: it has no `to_json` to compare whole rows by."""
    for kind in KINDS:
        source = str(documents(run.folder / "data", kind, SIZE * run.count))
        peers = run.systems("spark43", "delta", "duckdb")
        tables = {name: run.target(f"{kind}-{name}") for name in [*peers, "mica spark", "mica local"]}
        things = {name: thing(name, "ingest", source=source, target=tables[name]) for name in peers}
        for engine in ("spark", "local"):
            label = f"mica {engine}"
            things[label] = thing("mica", "ingest", source=source, target=tables[label], engine=engine)
        measures = run.measure(f"ingest of {kind}, {SIZE * run.count / 1e6:.0f} MB of JSON", things)
        for name in peers:
            run.faster(measures.get("mica spark"), measures.get(name), INGEST, f"ingest of {kind}")
        whole = {name: things[name] for name in measures if name not in ("duckdb", "mica local")}
        found = {name: run.peer(of.peer).ask("digest", target=tables[name]).found for name, of in whole.items()}
        run.same(f"{kind}, whole", found)
        things = {name: thing(of.peer, "rebuild", target=tables[name]) for name, of in whole.items()}
        measures = run.measure(f"{kind}, all rows whole, on Spark", things)
        for name in whole:
            if name != "mica spark":
                run.faster(measures.get("mica spark"), measures.get(name), WHOLE, f"{kind}, whole")
    run.stop()
