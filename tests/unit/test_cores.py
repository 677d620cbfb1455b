"""A process that may use one core is told so."""

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process to cores")
def test_what_the_process_may_use_counts() -> None:
    bound = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    program = f"{bound}; from mica.cores import cores; print(cores())"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["1"]
