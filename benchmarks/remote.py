"""Scans of tables in an object store whose answers take 30 ms: how deep requests wait for each other, and the link."""

from __future__ import annotations

from pathlib import Path

from benchmarks.process import Reply
from benchmarks.run import Run, thing
from benchmarks.store import running

DELAY = 0.03
#: Bytes a second: slower than two cores decode, so that the link decides.
RATE = 16e6
FILES, TINY = 200, 2000

Requests = list[tuple[float, float, str, int]]


def run(run: Run) -> None:
    """One large file, 200 small ones and 2,000 that are smaller, in process."""
    source = str(run.events())
    large, small, tiny = run.target("remote-large"), run.target("remote-small"), run.target("remote-tiny")
    run.prepare("single", {"mica": large}, source=source)
    run.prepare("sliced", {"mica": small}, source=source, files=FILES)
    run.prepare("sliced", {"mica": tiny}, source=source, files=TINY)
    typed = {"t": "v:time_us::bigint", "d": "v:did::string"}
    half = f"v:time_us::bigint >= {_middle(run)}"
    works = {
        "whole rows of one file": (large, ["v"], None),
        "two paths of one file, a filter": (large, typed, half),
        "one path of 200 files": (small, {"t": "v:time_us::bigint"}, None),
        "one path of 2,000 files": (tiny, {"t": "v:time_us::bigint"}, None),
        "whole rows of 2,000 files": (tiny, ["v"], None),
        "an id in 200 files": (small, typed, "v:commit.rev::string = '3lbhuvze3gi2u'"),
    }
    with running(Path(large).parent, DELAY, RATE) as store:
        for what, (table, columns, where) in works.items():
            place = f"s3://bucket/{Path(table).name}"
            asked = thing("mica", "remote", target=place, options=store.options, columns=columns, where=where)
            store.requests()
            found = run.measure(f"{what}, {DELAY * 1000:.0f} ms, {RATE / 1e6:.0f} MB/s", {"mica": asked})["mica"]
            _told(run, what, found.replies[-1], _last(store.requests(), len(found.replies)), rows=where is None)
    run.stop()


def _middle(run: Run) -> int:
    """A time in the middle of the events."""
    reply = run.peer("mica").ask("middle", target=run.target("remote-large"))
    return int(reply.found)


def _last(requests: Requests, rounds: int) -> Requests:
    """The data files' requests of the last round: each round makes the same ones."""
    data = sorted(request for request in requests if request[2].endswith(".parquet"))
    return data[-(len(data) // rounds) :]


def _told(run: Run, what: str, reply: Reply, requests: Requests, *, rows: bool) -> None:
    first_row, seconds = reply.found["first"], reply.found["seconds"]
    begin = requests[0][0]
    file = requests[0][2]
    depth = _depth([r for r in requests if r[2] == file and r[1] - begin <= first_row])
    sent = sum(size for *_, size in requests)
    share = sent / ((seconds - depth * DELAY) * RATE)  # nothing can come before the first answers
    run.console.print(
        f"{what}: {len(requests)} requests, {sent / 1e6:.1f} MB, the first rows after {first_row:.3f} s, "
        f"{depth} requests deep, all after {seconds:.3f} s: {share:.0%} of the link"
    )
    run.promise(f"{what}: requests that wait for each other before the first row", depth, 3, "", at_most=True)
    if rows and sent > RATE / 2:
        run.promise(f"{what}: share of the link's rate", share, 0.9, "")


def _depth(requests: Requests) -> int:
    """The longest chain of requests of which each began after the one before had ended."""
    deep: list[tuple[float, int]] = []
    for start, end, *_ in sorted(requests):
        deep.append((end, 1 + max((depth for ended, depth in deep if ended <= start), default=0)))
    return max((depth for _, depth in deep), default=0)
