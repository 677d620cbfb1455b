"""What earlier runs measured, kept in the repository: a line of JSON for each promise and run.

The rule: a figure is compared with the median of the last runs of the same work on as many cores and events; it is a
regression if it is worse by more than noise is here.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("history.jsonl")

#: The runs that a figure is compared with, and the share by which it may be worse than they are.
RUNS, NOISE = 5, 0.2


class History:
    """The lines that fit a run."""

    def __init__(self, events: int, threads: int, file: Path = FILE) -> None:
        self._file, self._run = file, {"events": events, "threads": threads}
        lines = file.read_text().splitlines() if file.exists() else []
        self._known = [line for line in map(json.loads, lines) if self._run.items() <= line.items()]

    def before(self, what: str) -> float | None:
        """The median of the last runs; None: it was never measured."""
        values = [line["value"] for line in self._known if line["what"] == what]
        return statistics.median(values[-RUNS:]) if values else None

    def worse(self, what: str, value: float, *, at_most: bool) -> bool:
        """Whether a figure is a regression."""
        before = self.before(what)
        if before is None:
            return False
        slack = NOISE * abs(before)  # a cost below nothing is a gain
        return value > before + slack if at_most else value < before - slack

    def add(self, figures: Sequence[dict[str, Any]]) -> None:
        """Appends the figures of this run: `what`, `value` and what else is known of each."""
        day, commit = time.strftime("%Y-%m-%d"), _commit()
        with self._file.open("a") as file:
            for figure in figures:
                file.write(json.dumps({"day": day, "commit": commit} | self._run | figure) + "\n")


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=FILE.parent).stdout.strip()
