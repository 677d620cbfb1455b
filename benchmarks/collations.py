"""Collated strings: what bounds cost when they are written, and what they are worth when strings are looked for.

Written by mica on Spark, the same 1,000,000 strings in a plain and in a collated column, of three kinds: 1,000 distinct
ones; ASCII, nearly all distinct; many scripts, nearly all distinct. Found again among 10,000,000 in 200 files in their
order, beside Spark's own scan of the same files. Judged: 100,000 files by their log alone, beside reading one row of
each; of these files 2,000 exist, and their time counts fifty times.
"""

from __future__ import annotations

from benchmarks.run import Run, thing

COUNT = 1_000_000
COLLATION = "UNICODE_CI"
FILES, TIMES = 200, 10
BOUNDS, REAL = 100_000, 2_000
KINDS = {"names": "1,000 distinct", "titles": "ASCII, all distinct", "scripts": "many scripts, all distinct"}


def run(run: Run) -> None:
    """Only mica writes such tables; Spark reads their files."""
    for kind, told in KINDS.items():
        source = run.target(f"texts-{kind}")
        run.peer("mica").ask("texts", target=source, kind=kind, count=COUNT)
        things = {
            name: thing("mica", "write_texts", source=source, target=run.target(f"written-{name}"), collation=collation)
            for name, collation in (("plain", None), ("collated", COLLATION))
        }
        measures = run.measure(f"write {COUNT:,} strings, {told}", things)
        if len(measures) == len(things):
            more = 100 * (measures["collated"].warm / measures["plain"].warm - 1)
            run.promise(f"bounds, {told}: added to the write", more, 35, " %", at_most=True)
    _find(run, run.target("texts-scripts"))
    _judge(run)
    run.stop()


def _find(run: Run, source: str) -> None:
    target = run.target("sorted-texts")
    run.prepare("sorted_texts", {"mica": target}, source=source, collation=COLLATION, files=FILES, times=TIMES)
    for number, text in enumerate(run.peer("mica").ask("some_texts", source=source, count=3).found):
        asked = {"target": target, "where": f"s = '{text.swapcase()}'"}
        things = {"mica": thing("mica", "find_text", **asked)}
        for name in run.systems("spark43"):
            things[name] = thing(name, "find_text", collation=COLLATION, **asked)
        title = f"equality {number + 1} in {FILES} files"
        measures = run.measure(title, things)
        run.same(title, {label: measure.replies[-1].found["ids"] for label, measure in measures.items()})
        if "mica" in measures:
            read = measures["mica"].replies[-1].found["files"]
            run.promise(f"{title}: files read", read, 2, "", at_most=True)
        run.faster(measures.get("mica"), measures.get("spark43"), 4, title)


def _judge(run: Run) -> None:
    target = run.target("bounds")
    run.peer("mica").ask("bounds", target=target, collation=COLLATION, files=BOUNDS, real=REAL)
    things = {
        f"{BOUNDS:,} files by their bounds": thing("mica", "judge", target=target, where="s = 'K00031415 B'"),
        f"one row of {REAL:,} files": thing("mica", "firsts", target=target, real=REAL, threads=run.threads),
    }
    measures = run.measure("bounds or rows", things)
    if len(measures) == len(things):
        judged, read = measures.values()
        run.same("files that may hold a string", {"mica": judged.replies[-1].found, "there is": 1})
        run.promise("bounds judged against rows read", read.warm * BOUNDS / REAL / judged.warm, 20)
