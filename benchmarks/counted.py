"""Runs a command and prints what it took of the processor: instructions, which other work on the machine does not
change, or its own time where the machine has no counters.

python -m benchmarks.counted COMMAND…
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile

#: As the package loads its kernel (`mica.variant.kernel.door`).
ALLOCATOR = {"MIMALLOC_PURGE_DELAY": "1000"}

COUNTS = ("perf", "stat", "-x", ",", "-e", "instructions:u")


def counted(command: list[str]) -> tuple[int, str]:
    """Runs the command; its exit code and what it took."""
    with tempfile.NamedTemporaryFile("r") as told:
        perf = [*COUNTS, "-o", told.name, "--"] if _can_count() else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        code = subprocess.run([*perf, *command], check=False, env={**os.environ, **ALLOCATOR}).returncode
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        instructions = [line.split(",")[0] for line in told if "instructions" in line]
    seconds = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    took = f"{seconds[0]:.2f} s of user time, {seconds[1]:.2f} s of the system's"
    if instructions and instructions[0].isdigit():
        return code, f"{int(instructions[0]) / 1e9:.3f} billion instructions, {took}"
    return code, f"{took} (no counters of instructions here)"


def _can_count() -> bool:
    if shutil.which("perf") is None:
        return False
    tried = subprocess.run([*COUNTS, "true"], capture_output=True, text=True, check=False)
    return tried.returncode == 0 and "<not" not in tried.stderr


if __name__ == "__main__":
    ended, said = counted(sys.argv[1:])
    print(f"{sys.argv[1].rpartition('/')[2]}: {said}", flush=True)
    sys.exit(ended)
