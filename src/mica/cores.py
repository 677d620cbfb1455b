"""How many cores there are for this process: a container or `taskset` may leave it fewer than the machine has."""

from __future__ import annotations

import os


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
