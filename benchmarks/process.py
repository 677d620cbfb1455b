"""A peer is a process of its own environment; what it costs is read from /proc, for it and all its children.

Bytes read are `rchar` of /proc/PID/io, summed over the tree: what the processes asked for, whether the page cache or
the disk answered (`read_bytes` would be 0 in a warm run, for everybody). It includes what came through pipes, so
Spark's traffic with its workers counts against whoever causes it. Memory is the peak resident set (VmHWM), reset before
each request: of the Python workers where there are any, else of the process itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent


class PeerError(RuntimeError):
    """A peer could not do what it was asked."""


@dataclass(frozen=True)
class Reply:
    """One request's cost and answer."""

    seconds: float
    found: Any
    bytes_read: int
    worker_memory: int
    """Bytes: the largest Python worker, or the process itself where it has no workers."""


def _tree(root: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name in parentheses may hold anything, the fields after it do not.
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found, open_ends = [], [root]
    while open_ends:
        pid = open_ends.pop()
        found.append(pid)
        open_ends += children.get(pid, [])
    return found


def _field(pid: int, file: str, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
    return 0


def _is_worker(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(word in (b"pyspark.daemon", b"pyspark.worker") for word in words)


class Peer:
    """One running system; `ask` is synchronous."""

    def __init__(self, name: str, program: list[str], python: Path, folder: Path, start: dict[str, Any]) -> None:
        self.name = name
        log = folder / f"{name}.log"
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        }
        self._log: IO[bytes] = log.open("wb")
        self._process = subprocess.Popen(
            [str(python), "-m", *program],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.started = self.ask("start", **start)

    def ask(self, do: str, **arguments: Any) -> Reply:
        """Have it do one thing; raises PeerError where it cannot."""
        before = {pid: _field(pid, "io", "rchar") for pid in _tree(self._process.pid)}
        for pid in before:
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/clear_refs").write_text("5")
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"do": do, "with": arguments}) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise PeerError(f"{self.name} ended during {do}: see {self._log.name}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(f"{self.name}, {do}: {answer['error']}")
        tree = _tree(self._process.pid)
        read = sum(max(0, _field(pid, "io", "rchar") - before.get(pid, 0)) for pid in tree)
        workers = [pid for pid in tree if _is_worker(pid)] or [self._process.pid]
        memory = max(_field(pid, "status", "VmHWM") for pid in workers) * 1024
        return Reply(answer["seconds"], answer["found"], read, memory)

    def stop(self) -> None:
        """End it and what it started."""
        tree = _tree(self._process.pid)
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pid in tree[1:]:  # a JVM that outlives its driver
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 15)
        self._log.close()
        time.sleep(0.2)
