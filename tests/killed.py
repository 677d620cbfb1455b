"""Programs that are killed at random: a driver with all that it started, by SIGKILL."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time

from tests.support import CAMPAIGN

#: How often a test kills what it started.
TIMES = 20 if CAMPAIGN else 3


class Run:
    """A Python program in a process group of its own. Its lines say how far it is; a line lets it go on."""

    def __init__(self, program: str, *arguments: object) -> None:
        command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def wait(self) -> None:
        """Waits for its next line."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the program ended"

    def go(self) -> None:
        """Gives it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def kill(self, rng: random.Random, seconds: float) -> None:
        """Kills it after at most so many seconds."""
        time.sleep(rng.random() * seconds)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
