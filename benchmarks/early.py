"""The early shredding layout beside the standard one: the same rows, the same shredding schema, both by mica.

No other engine reads the early layout, so the standard layout is what it is held against, and a conversion against the
way through whole Variants: `read_parquet` and `write_parquet`.
"""

from __future__ import annotations

from benchmarks.run import Measure, Run, thing

LAYOUTS = ("standard", "early")

#: Rounds of whole reads, at least.
READS = 15

#: Path scans: what is asked for, and where.
SCANS: dict[str, tuple[dict[str, str], str | None]] = {
    "three paths of all rows": (
        {"d": "v:did::string", "t": "v:time_us::bigint", "c": "v:commit.collection::string"},
        None,
    ),
    "two paths where two others hold": (
        {"d": "v:did::string", "t": "v:time_us::bigint"},
        "v:kind::string = 'commit' AND v:commit.collection::string = 'app.bsky.feed.post'",
    ),
    "a path with a value in each untyped_value": ({"s": "v:commit.record.subject.uri::string"}, None),
}


def run(run: Run) -> None:
    """One process does it all, so that both layouts meet the same caches."""
    folder = run.target("early")
    made = run.peer("mica").ask("early_prepare", source=str(run.events()), target=folder).found
    run.console.print(f"early: {made['rows']:,} events, {made['bytes']}")
    _writing(run, folder)
    _reading(run, folder)
    _lookup(run, folder)
    for layout in LAYOUTS:
        _conversion(run, folder, layout)
    run.stop()


def _writing(run: Run, folder: str) -> None:
    things = {x: thing("mica", "early_write", target=f"{folder}/again-{x}.parquet", layout=x) for x in LAYOUTS}
    _within(run, "writing", run.measure("whole Variants to one file", things))


def _reading(run: Run, folder: str) -> None:
    files = {x: f"{folder}/{x}.parquet" for x in LAYOUTS}
    things = {x: thing("mica", "early_read", source=path) for x, path in files.items()}
    # Two threads on few cores: what else runs there shows, so the median is one of more rounds.
    _within(run, "reconstruction", run.measure("all rows, whole", things, rounds=max(run.rounds, READS)))
    run.same("all rows as JSON", {x: run.peer("mica").ask("early_digest", source=p).found for x, p in files.items()})
    for title, (columns, where) in SCANS.items():
        things = {x: thing("mica", "early_scan", source=p, columns=columns, where=where) for x, p in files.items()}
        measures = run.measure(title, things)
        _within(run, title, measures)
        run.same(title, {x: m.replies[-1].found for x, m in measures.items()})


def _lookup(run: Run, folder: str) -> None:
    """One row whose predicate leaf is typed and whose answer is the whole Variant."""
    time = run.peer("mica").ask("early_middle").found
    source = f"{folder}/early.parquet"
    things = {
        "where": thing("mica", "early_read", source=source, where=f"v:time_us::bigint = {time}"),
        "all": thing("mica", "early_read", source=source),
    }
    measures = run.measure("one whole row, and all of them, early", things)
    run.same("one row is found", {"where": measures["where"].replies[-1].found, "expected": 1})
    run.faster(measures["where"], measures["all"], 20, "one whole row of an early file")


def _conversion(run: Run, folder: str, layout: str) -> None:
    """To this layout, of rows that the other holds in typed columns alone."""
    (other,) = set(LAYOUTS) - {layout}
    source = f"{folder}/full-{other}.parquet"
    done = {way: f"{folder}/{way}-{layout}" for way in ("columns", "variants")}
    things = {
        way: thing("mica", "early_convert", source=source, target=target, layout=layout, whole=way == "variants")
        for way, target in done.items()
    }
    title = f"fully shredded files to the {layout} layout"
    measures = run.measure(title, things)
    digests = {way: run.peer("mica").ask("early_digest", source=target).found for way, target in done.items()}
    run.same(title, digests | {"before": run.peer("mica").ask("early_digest", source=source).found})
    run.faster(measures["columns"], measures["variants"], 5, title)


def _within(run: Run, what: str, measures: dict[str, Measure]) -> None:
    ratio = measures["early"].warm / measures["standard"].warm
    run.promise(f"{what}: early to standard, seconds", ratio, 1.25, at_most=True)
