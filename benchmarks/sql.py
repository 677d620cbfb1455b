"""The peers' own SQL through `mica.sql`, and by DataFrames: five questions, a range that hits one file of 200, a tiny
table."""

from __future__ import annotations

import statistics

from benchmarks.queries import QUERIES
from benchmarks.run import Run, thing
from mica.cli.events import START_US

FILES = 200


def run(run: Run) -> None:
    """Every system on what it wrote itself; geometric means of the five."""
    _questions(run)
    _range(run)
    _tiny(run)
    run.stop()


def _questions(run: Run) -> None:
    peers = run.systems("spark43", "delta")
    tables = {name: run.target(f"sql-{name}") for name in [*peers, "mica"]}
    able = run.prepare("ingest", tables, source=str(run.events()))
    warm: dict[str, list[float]] = {}
    for query in QUERIES:
        things = {n: thing(n, "through_sql" if n == "mica" else "query", target=tables[n], name=query) for n in able}
        if "mica" in able:
            things["mica DataFrame"] = thing("mica", "through_frame", target=tables["mica"], name=query)
            things["mica format"] = thing("mica", "through_format", target=tables["mica"], name=query)
        measures = run.measure(f"mica.sql: {query}", things)
        run.same(query, {label: measure.replies[-1].found for label, measure in measures.items()})
        for label, measure in measures.items():
            warm.setdefault(label, []).append(measure.warm)
        run.faster(measures.get("mica"), measures.get("spark43"), 1, f"mica.sql, {query}")
    many = run.count >= 5_000_000
    for name, target in (("spark43", 3.0 if many else 1.5), ("delta", 6.0 if many else 4.0)):
        if all(len(warm.get(n, [])) == len(QUERIES) for n in ("mica", name)):
            ratio = statistics.geometric_mean(warm[name]) / statistics.geometric_mean(warm["mica"])
            run.promise(f"five queries by SQL: mica against {name}", ratio, target)
        for label, way in (("mica DataFrame", "by DataFrames of spark.table"), ("mica format", "through the format")):
            if all(len(warm.get(n, [])) == len(QUERIES) for n in (label, name)):
                ratio = statistics.geometric_mean(warm[name]) / statistics.geometric_mean(warm[label])
                run.promise(f"five queries {way}: mica against {name}", ratio, target)


def _range(run: Run) -> None:
    peers = run.systems("spark43")
    tables = {name: run.target(f"sliced-{name}") for name in [*peers, "mica"]}
    able = run.prepare("sliced", tables, source=str(run.events()), files=FILES)
    span = run.count * 50_000 // FILES
    low = START_US + span * (FILES // 2) + span // 2
    request = {"low": low, "high": low + span // 20}
    things = {n: thing(n, "ranged_sql" if n == "mica" else "ranged", target=tables[n], **request) for n in able}
    if "mica" in able:
        things["mica DataFrame"] = thing("mica", "ranged_frame", target=tables["mica"], **request)
    measures = run.measure(f"mica.sql: a range that hits one of {FILES} files", things)
    run.same("range", {label: measure.replies[-1].found for label, measure in measures.items()})
    run.faster(measures.get("mica"), measures.get("spark43"), 5, "range by SQL")


def _tiny(run: Run) -> None:
    """Both on one session: what `mica.sql` adds to Spark's time for the same files."""
    table = run.target("sql-tiny")
    if not run.prepare("many", {"mica": table}, source=str(run.events()), files=1):
        return
    things = {f"tiny by {n}": thing("mica", "tiny", target=table, through=n) for n in ("mica", "spark")}
    measures = run.measure("mica.sql: a table of a hundred rows", things, rounds=4 * run.rounds)
    run.same("tiny", {label: measure.replies[-1].found for label, measure in measures.items()})
    if len(measures) == 2:
        added = measures["tiny by mica"].warm - measures["tiny by spark"].warm
        run.promise("mica.sql, added to a query of a hundred rows", added * 1000, 60, " ms", at_most=True)
