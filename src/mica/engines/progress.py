"""The progress of a job, for a caller that gives `progress=`.

The rule: the function is not handed down through the calls. `watched` sets it for a block of code; an engine reports
in it how many of its tasks have ended, a write its rows and files. Without one nothing is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace

from mica.records import dataclass


@dataclass
class Progress:
    """How far a job is: `ended_tasks` of its `tasks`; a write has written `rows` and `files`; an ingest has read
    `input_bytes` of `total_bytes`. A number that is not known is 0.
    """

    rows: int = 0
    input_bytes: int = 0
    total_bytes: int = 0
    files: int = 0
    tasks: int = 0
    ended_tasks: int = 0


Report = Callable[[Progress], None]


def _nothing() -> None:
    """Nobody wants to know that a job has ended."""


@dataclass
class Work:
    """Work that somebody watches. Any thread may report; `ended` is called when a job has ended, before its results are
    used."""

    report: Report
    ended: Callable[[], None] = _nothing
    progress: Progress = field(default_factory=Progress)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, *, rows: int = 0, files: int = 0, **now: int) -> None:
        """Reports what is known now; of several counts of rows and files the largest is the newest."""
        with self._turn:
            known = self.progress
            self.progress = replace(known, rows=max(known.rows, rows), files=max(known.files, files), **now)
            self.report(self.progress)


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


def current() -> Work | None:
    """The work of this thread, if somebody watches it."""
    return _WORK.get()


@contextmanager
def watched(report: Report | None, ended: Callable[[], None] = _nothing) -> Iterator[None]:
    """Somebody watches the work of the block; with None nothing changes."""
    if report is None:
        yield
        return
    before = _WORK.set(Work(report, ended))
    try:
        yield
    finally:
        _WORK.reset(before)
