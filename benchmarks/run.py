"""What a work gets: peers that are started when first asked for, rounds that take turns, a table of ratios.

A work measures in rounds: in each, every system does the thing once, one after the other, so that a slow minute of
the machine hits them all. The first round is told apart: it meets cold code. Of the others the median counts.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import environments
from benchmarks.history import History
from benchmarks.process import Peer, PeerError, Reply
from mica.cli import events as demo
from tests.support import delta_jars

#: Seconds before each measure, in which the one before may end what it does behind its answer: a JVM compiles and
#: collects garbage for a while, on cores that the next one would be charged for.
SETTLE = 0.3

PROGRAMS = {
    "mica": ["benchmarks.peers.mica"],
    "spark43": ["benchmarks.peers.spark", "spark43"],
    "delta": ["benchmarks.peers.spark", "delta"],
    "sail": ["benchmarks.peers.spark", "sail"],
    "duckdb": ["benchmarks.peers.duckdb"],
    "clickhouse": ["benchmarks.peers.clickhouse"],
}


@dataclass(frozen=True)
class Thing:
    """What to ask of whom."""

    peer: str
    do: str
    arguments: dict[str, Any]


def thing(peer: str, do: str, **arguments: Any) -> Thing:
    """Shorthand."""
    return Thing(peer, do, arguments)


@dataclass
class Measure:
    """A system's costs for one thing, round by round."""

    system: str
    replies: list[Reply] = field(default_factory=list)
    error: str | None = None

    @property
    def first(self) -> float:
        return self.replies[0].seconds

    @property
    def warm(self) -> float:
        return statistics.median(reply.seconds for reply in self.replies[1:] or self.replies)

    @property
    def bytes_read(self) -> float:
        return statistics.median(reply.bytes_read for reply in self.replies[1:] or self.replies)

    @property
    def memory(self) -> int:
        return max(reply.worker_memory for reply in self.replies)


@dataclass(frozen=True)
class Ratio:
    """One promise and what was measured: `value` is to be at least `target`, or at most, by `at_most`."""

    what: str
    value: float
    target: float
    unit: str = "x"
    at_most: bool = False

    @property
    def held(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target


class Run:
    """One run of the benchmarks."""

    def __init__(self, rounds: int, count: int, threads: int, only: frozenset[str]) -> None:
        self.rounds, self.count, self.threads, self.only = rounds, count, threads, only
        self.folder = environments.BENCH
        self.console = Console(highlight=False, width=150)
        self.ratios: list[Ratio] = []
        self.records: list[dict[str, Any]] = []
        self._peers: dict[str, Peer] = {}
        (self.folder / "data").mkdir(parents=True, exist_ok=True)

    def events(self, count: int | None = None) -> Path:
        """The events as one NDJSON file."""
        count = count or self.count
        path = self.folder / "data" / f"events-{count}.ndjson"
        if not path.exists():
            demo.write(path, count)
        return path

    def target(self, name: str) -> str:
        """Where a system writes."""
        return str(self.folder / "tables" / name)

    def systems(self, *names: str) -> list[str]:
        """Those of `names` that this run wants."""
        return [name for name in names if not self.only or name in self.only or name == "mica"]

    def peer(self, name: str) -> Peer:
        """A running system."""
        if name not in self._peers:
            jars = ",".join(map(str, delta_jars()))
            start = {"jars": jars, "threads": self.threads}
            self._peers[name] = Peer(name, PROGRAMS[name], environments.python(name), self.folder, start)
        return self._peers[name]

    def prepare(self, do: str, targets: Mapping[str, str], **arguments: Any) -> list[str]:
        """Have each system make its own table; gives those that could."""
        able = []
        for name, target in targets.items():
            try:
                self.peer(name).ask(do, target=target, **arguments)
            except PeerError as error:
                self.console.print(f"[red]{error}")
            else:
                self.console.print(f"{name}: {do}, {disk(target) / 1e6:.1f} MB")
                able.append(name)
        return able

    def stop(self, *names: str) -> None:
        """Stop these peers, or all."""
        for name in names or list(self._peers):
            peer = self._peers.pop(name, None)
            if peer is not None:
                peer.stop()

    def measure(
        self, title: str, things: Mapping[str, Thing], rounds: int | None = None, *, in_turns: bool = True
    ) -> dict[str, Measure]:
        """Run `things` in rounds, or all rounds of one after another; gives the measures of those that answered."""
        measures = {label: Measure(label) for label in things}
        times = (rounds or self.rounds) + 1
        order = [*things] * times if in_turns else [label for label in things for _ in range(times)]
        for label in order:
            thing, measure = things[label], measures[label]
            if measure.error is None:
                os.sync()  # nobody waits for what the one before has not written: mica's commits wait for the disk
                time.sleep(SETTLE)
                try:
                    measure.replies.append(self.peer(thing.peer).ask(thing.do, **thing.arguments))
                except PeerError as error:
                    measure.error = str(error)
        self._show(title, list(measures.values()))
        return {label: measure for label, measure in measures.items() if measure.error is None}

    def _show(self, title: str, measures: list[Measure]) -> None:
        table = Table(title=title, title_justify="left")
        for column in ("system", "first s", "warm s", "min", "max", "read MB", "memory MB"):
            table.add_column(column, justify="left" if column == "system" else "right")
        for m in measures:
            if m.error is not None:
                table.add_row(m.system, m.error[:90])
                continue
            seconds = [reply.seconds for reply in m.replies[1:]] or [m.first]
            numbers = [m.first, m.warm, min(seconds), max(seconds)]
            row = [f"{n:.3f}" for n in numbers] + [f"{m.bytes_read / 1e6:.2f}", f"{m.memory / 1e6:.0f}"]
            table.add_row(m.system, *row)
        self.console.print(table)
        self.records += [{"work": title} | asdict(m) for m in measures]

    def same(self, what: str, answers: Mapping[str, Any]) -> None:
        """All systems must have found the same."""
        distinct = {str(answer) for answer in answers.values()}
        if len(distinct) == 1:
            self.console.print(f"{what}: the same answer from {', '.join(answers)}: {distinct.pop()[:100]}")
        else:
            self.console.print(f"[red]{what}: the answers differ: {str(answers)[:2000]}")
            self.ratios.append(Ratio(f"{what}: answers agree", 0, 1, ""))

    def faster(self, ours: Measure | None, theirs: Measure | None, times: float, what: str) -> None:
        """Promise that ours is that many times as fast, warm."""
        if ours is not None and theirs is not None:
            self.ratios.append(Ratio(f"{what}: {ours.system} against {theirs.system}", theirs.warm / ours.warm, times))

    def promise(self, what: str, value: float, target: float, unit: str = "x", *, at_most: bool = False) -> None:
        """Any other promise."""
        self.ratios.append(Ratio(what, value, target, unit, at_most))

    def grown(self, what: str, small: Measure, large: Measure) -> None:
        """Print the cost of ten times as many rows."""
        times, read = large.warm / small.warm, large.bytes_read / max(1.0, small.bytes_read)
        self.console.print(f"{what}: ten times as many rows take {times:.1f} times as long, {read:.1f} times the bytes")

    def summary(self) -> bool:
        """Print all ratios beside their targets and beside earlier runs, and keep them; whether all held."""
        history = History(self.count, self.threads)
        table = Table(title=f"ratios, {self.threads} cores, warm, median of {self.rounds} rounds", title_justify="left")
        table.add_column("what")
        for column in ("measured", "target", "", "before", ""):
            table.add_column(column, justify="right")
        for ratio in self.ratios:
            bound = f"{'at most' if ratio.at_most else 'at least'} {ratio.target:g}{ratio.unit}"
            sign = "[green]held" if ratio.held else "[red]missed"
            before = history.before(ratio.what)
            earlier = "" if before is None else f"{before:.3g}{ratio.unit}"
            worse = "[red]worse" if history.worse(ratio.what, ratio.value, at_most=ratio.at_most) else ""
            table.add_row(ratio.what, f"{ratio.value:.3g}{ratio.unit}", bound, sign, earlier, worse)
        self.console.print(table)
        history.add([asdict(ratio) | {"rounds": self.rounds} for ratio in self.ratios])
        return all(ratio.held for ratio in self.ratios)


def disk(path: str) -> int:
    """Bytes of the data files under a path."""
    return sum(f.stat().st_size for f in Path(path).rglob("*.parquet") if "_delta_log" not in f.parts)
