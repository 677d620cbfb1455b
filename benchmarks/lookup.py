"""Ten whole rows out of one file, by a range and by an identifier; and all rows, whole."""

from __future__ import annotations

import json

from benchmarks.run import Run, thing


def run(run: Run) -> None:
    """Every system on the one file that it wrote itself."""
    source = run.events()
    tables = {name: run.target(f"single-{name}") for name in [*run.systems("spark43"), "mica"]}
    able = run.prepare("single", tables, source=str(source))
    with source.open() as lines:
        wanted = [
            json.loads(line) for number, line in enumerate(lines) if run.count // 2 <= number < run.count // 2 + 10
        ]
    low, high = wanted[0]["time_us"], wanted[-1]["time_us"]
    rev = next(event["commit"]["rev"] for event in wanted if isinstance(event.get("commit", {}).get("rev"), str))
    questions = {
        "a range of ten": f"variant_get(v, '$.time_us', 'bigint') BETWEEN {low} AND {high}",
        "an identifier": f"try_variant_get(v, '$.commit.rev', 'string') = '{rev}'",
    }
    for title, where in questions.items():
        things = {name: thing(name, "lookup", target=tables[name], where=where) for name in able if name != "mica"}
        for engine in ("spark", "local") if "mica" in able else ():
            things[f"mica {engine}"] = thing("mica", "lookup", target=tables["mica"], where=where, engine=engine)
        measures = run.measure(f"whole rows by {title}", things)
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
    measures = run.measure("all rows, whole", things)
    run.faster(measures.get("mica"), measures.get("spark43"), 1, "all rows, whole")
    run.stop()
