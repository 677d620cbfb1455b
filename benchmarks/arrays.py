"""Arrays of objects: one path of the first element of all rows, and all rows whole."""

from __future__ import annotations

import random
from pathlib import Path

import orjson

from benchmarks.run import Run, thing


def run(run: Run) -> None:
    """Every system on the orders that it wrote itself."""
    source = orders(run.folder / "data" / f"orders-{run.count}.ndjson", run.count)
    tables = {name: run.target(f"orders-{name}") for name in [*run.systems("spark43", "duckdb"), "mica"]}
    able = run.prepare("ingest", tables, source=str(source))
    things = {name: thing(name, "elements", target=tables[name]) for name in able}
    measures = run.measure("one path of the first element, in process", things)
    run.same("elements", {label: measure.replies[-1].found for label, measure in measures.items()})
    for name in ("spark43", "duckdb"):
        run.faster(measures.get("mica"), measures.get(name), 3, "one path of the first element")
    things = {name: thing(name, "rebuild", target=tables[name]) for name in able if name != "duckdb"}
    run.same("orders, whole", {name: run.peer(name).ask("digest", target=tables[name]).found for name in things})
    measures = run.measure("all orders, whole, on Spark", things)
    run.faster(measures.get("mica"), measures.get("spark43"), 1, "all orders, whole")
    run.stop()


def orders(path: Path, count: int) -> Path:
    """Orders of one to five items each, the same at each call."""
    if path.exists():
        return path
    draw = random.Random(1)
    with path.open("wb") as out:
        for number in range(count):
            items = [
                {"sku": f"sku-{draw.randrange(5000)}", "qty": draw.randrange(1, 9), "price": draw.randrange(100, 99999)}
                for _ in range(draw.randrange(1, 6))
            ]
            out.write(orjson.dumps({"order": number, "customer": draw.randrange(20_000), "items": items}) + b"\n")
    return path
