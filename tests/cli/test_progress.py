"""Progress is for a person who looks on, and from the first second on; what is printed elsewhere stays clean."""

from __future__ import annotations

import io
import os
import pty
import sys

import pytest

from mica.cli import console
from mica.write.ingest import Progress

HALF = Progress(rows=1_500, input_bytes=10_000_000, total_bytes=20_000_000, files=3)


def _shown(monkeypatch: pytest.MonkeyPatch, seconds: float) -> str:
    """What a terminal got while work of that length reported once."""
    ours, theirs = pty.openpty()
    now = iter([100.0])
    with io.open(theirs, "w", encoding="utf-8", closefd=True) as terminal:  # noqa: UP020 - a file of a descriptor
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(console.time, "monotonic", lambda: next(now, 100.0 + seconds))
        with console.watched("ingesting") as show:
            show(HALF)
            monkeypatch.undo()
        terminal.flush()
        os.set_blocking(ours, False)
        found = b""
        while True:
            try:
                found += os.read(ours, 1 << 16)
            except BlockingIOError:
                break
    os.close(ours)
    return found.decode()


def test_rows_files_and_speed_are_shown_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = _shown(monkeypatch, seconds=2.0)
    assert "ingesting" in shown
    assert "1,500 rows, 3 files, 5 MB/s" in shown


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, seconds=0.5) == ""


def test_where_nobody_looks_on_there_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with console.watched("ingesting") as show:
        assert show is None
