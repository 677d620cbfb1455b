"""What one core does: JSON text to a finished file, and paths of all rows, reading included; these with all cores too.

Peers do the same on two cores in `ingest` and `queries`; `make bench-kernel` has whole rows put together, and arrow-rs
on one core.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

from rich.table import Table

from benchmarks import programs
from benchmarks.process import ROOT
from benchmarks.run import Run

#: GB/s of JSON text, and ns a row.
TARGETS = {"ingest in zstd": 0.4, "ingest in snappy": 0.6, "v:time_us::bigint": 3, "v:kind::string": 8}


def run(run: Run) -> None:
    """Medians of warm rounds in one process."""
    events, target = run.events(), Path(run.target("core"))
    given = programs.given(ROOT / "src", events, target / "given")
    found, _ = programs.run(ROOT / "src", programs.ONE_CORE, given, target / "written", run.rounds)
    shown = Table(title=f"one core, {run.count:,} events", title_justify="left")
    for column in ("work", "median", "best", "target"):
        shown.add_column(column, justify="left" if column == "work" else "right")
    for work, times in found.items():
        name = work.replace(" of all rows", "")
        if name.startswith("ingest"):
            every, unit, best = [events.stat().st_size / 1e6 / ms for ms in times], " GB/s", max
        else:
            every, unit, best = [ms / run.count * 1e6 for ms in times], " ns a row", min
        wanted = TARGETS.get(name)
        told = [median(every), best(every), *([] if wanted is None else [wanted])]
        shown.add_row(name, *(f"{value:.3g}{unit}" for value in told))
        if wanted is not None:
            run.promise(f"one core, {name}", median(every), wanted, unit, at_most=best is min)
    run.console.print(shown)
