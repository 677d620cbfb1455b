"""Progress is for a person who looks on, from the first second of a job on; what is printed elsewhere stays clean."""

from __future__ import annotations

import io
import os
import pty
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import mica
from mica.cli import console
from mica.cli.console import _text
from mica.engines import progress
from mica.engines.progress import Progress
from mica.engines.spark import jobs
from mica.write import appearing

HALF = Progress(rows=1_500, input_bytes=10_000_000, total_bytes=20_000_000, files=3, tasks=4, ended_tasks=2)


def _shown(monkeypatch: pytest.MonkeyPatch, seconds: float) -> str:
    """What a terminal got while a job of that length reported twice."""
    ours, theirs = pty.openpty()
    now = [100.0]
    with io.open(theirs, "w", encoding="utf-8", closefd=True) as terminal:  # noqa: UP020 - a file of a descriptor
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
        with console.progress_of("ingest"):
            work = progress.current()
            assert work is not None
            work.progress = HALF
            work.tell()
            now[0] += seconds
            work.tell()
            work.ended()
            print("the result", file=terminal)
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
    shown, _, result = _shown(monkeypatch, seconds=2.0).partition("the result")
    assert "ingest" in shown
    assert "1,500 rows, 3 files, 5 MB/s" in shown
    assert shown.endswith("\x1b[1A\x1b[2K"), "the bar is gone before a result is printed"
    assert result.strip() == ""


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(monkeypatch, seconds=0.5).split() == ["the", "result"]


def test_where_nobody_looks_on_there_is_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with console.progress_of("ingest"):
        assert progress.current() is None


def test_the_rate_is_that_of_what_is_known() -> None:
    known = Progress(rows=3000, files=2, tasks=8, ended_tasks=3)
    assert _text(known, 2) == "3,000 rows, 2 files, 3 of 8 tasks, 1,500 rows/s"
    assert _text(Progress(tasks=1), 2) == "0 of 1 task"


@pytest.mark.slow
def test_every_write_and_every_job_tells(tmp_path: Path, spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewrite on Spark, whose facts come at its end: tasks by the status tracker, rows by the files that appear."""
    monkeypatch.setattr(jobs, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(appearing, "PAUSE", 0.01)
    table = mica.Table.create(tmp_path / "t", "n BIGINT")
    for start in range(0, 60_000, 10_000):
        table.append(pa.table({"n": pa.array(range(start, start + 10_000))}))
    for engine in (spark, None):
        seen, ends = list[Progress](), list[int]()
        with progress.watched(seen.append, lambda seen=seen, ends=ends: ends.append(len(seen))):
            table.refresh().optimize(target_file_size=64 << 10, zorder_by=["n"], spark=engine)
        assert {"n"} == set(table.schema.names)
        assert max(one.rows for one in seen) == 60_000
        assert max(one.files for one in seen) == table.refresh().files().num_rows
        assert max(one.tasks for one in seen) >= 1
        assert all(one.ended_tasks <= one.tasks for one in seen)
        assert ends[-1] == len(seen), "nothing is told after the end"
    assert progress.current() is None
