"""Ten whole rows out of one file, by a range and by an identifier; all rows, whole and by a path; ten times as many."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.run import Measure, Run, thing

FILES = 5_000


def run(run: Run) -> None:
    """Every system on the one file that it wrote itself."""
    tables = {name: run.target(f"single-{name}") for name in [*run.systems("spark43"), "mica"]}
    able = run.prepare("single", tables, source=str(run.events()))
    found: dict[str, dict[str, Measure]] = {}
    for title, where in questions(run.events(), run.count).items():
        things = {name: thing(name, "lookup", target=tables[name], where=where) for name in able if name != "mica"}
        for engine in ("spark", "local") if "mica" in able else ():
            things[f"mica {engine}"] = thing("mica", "lookup", target=tables["mica"], where=where, engine=engine)
        found[title] = measures = run.measure(f"whole rows by {title}", things)
        answers = {label: [json.loads(row) for row in m.replies[-1].found] for label, m in measures.items()}
        run.same(f"rows by {title}", {label: sorted(map(str, rows)) for label, rows in answers.items()})
        run.faster(measures.get("mica spark"), measures.get("spark43"), 4, f"rows by {title}")
        run.faster(measures.get("mica local"), measures.get("spark43"), 50, f"rows by {title}")
        if "spark43" in measures:
            for ours in ("mica spark", "mica local"):
                if ours in measures:
                    share = measures[ours].bytes_read / measures["spark43"].bytes_read
                    run.promise(f"rows by {title}, bytes read: {ours} to spark43", share, 0.05, "", at_most=True)
    things = {name: thing(name, "rebuild", target=table) for name, table in tables.items() if name in able}
    run.same("all rows, whole", {name: run.peer(name).ask("digest", target=tables[name]).found for name in things})
    measures = run.measure("all rows, whole", things)
    run.faster(measures.get("mica"), measures.get("spark43"), 1, "all rows, whole")
    if "mica" in able:
        many = run.target("many-mica")
        run.prepare("many", {"mica": many}, source=str(run.events()), files=FILES)
        one_path(run, tables["mica"], "one file")
        one_path(run, many, f"{FILES:,} files")
    run.stop()
    tenfold(run, found)


def one_path(run: Run, target: str, where: str) -> None:
    """A path that a query takes out of the DataFrame: mica's, and Spark's own of the same files in the same session."""
    things = {reader: thing("mica", "path", target=target, reader=reader) for reader in ("mica", "spark")}
    measures = run.measure(f"one path out of {where}", things)
    run.same("one path", {label: measure.replies[-1].found for label, measure in measures.items()})
    if len(measures) == len(things):
        times = measures["mica"].warm / measures["spark"].warm
        run.promise(f"one path out of to_df(), {where}: time to that of Spark's reader", times, 1.2, at_most=True)


def questions(source: Path, count: int) -> dict[str, str]:
    """Ten neighbours in the middle of the events, by the column that grows, and one of them by its `commit.rev`."""
    with source.open() as lines:
        wanted = [json.loads(line) for number, line in enumerate(lines) if count // 2 <= number < count // 2 + 10]
    low, high = wanted[0]["time_us"], wanted[-1]["time_us"]
    rev = next(event["commit"]["rev"] for event in wanted if isinstance(event.get("commit", {}).get("rev"), str))
    return {
        "a range of ten": f"variant_get(v, '$.time_us', 'bigint') BETWEEN {low} AND {high}",
        "an identifier": f"try_variant_get(v, '$.commit.rev', 'string') = '{rev}'",
    }


def tenfold(run: Run, before: dict[str, dict[str, Measure]]) -> None:
    """What the same questions cost mica in a file of ten times as many rows."""
    count = 10 * run.count
    source, target = run.events(count), run.target("single-mica-tenfold")
    if not run.prepare("single", {"mica": target}, source=str(source)):
        return
    for title, where in questions(source, count).items():
        things = {
            f"mica {engine}": thing("mica", "lookup", target=target, where=where, engine=engine)
            for engine in ("spark", "local")
        }
        for label, measure in run.measure(f"whole rows by {title}, of {count:,}", things).items():
            if (small := before[title].get(label)) is not None:
                run.grown(f"rows by {title}: {label}", small, measure)
    run.stop()
