"""The other end of `benchmarks.process`: one JSON request a line in, one JSON answer a line out.

Runs in the environments of the peers, so it needs the standard library alone. An answer holds the seconds that the work
took inside the process and what it found; whatever the engine prints goes to standard error.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Work = Callable[..., Any]


def fresh(path: str) -> str:
    """An output path with nothing at it."""
    shutil.rmtree(path, ignore_errors=True)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return path


def works_of(*systems: object) -> dict[str, Work]:
    """The public methods of some systems; no two have the same name."""
    works: dict[str, Work] = {}
    for system in systems:
        names = [name for name, found in vars(type(system)).items() if inspect.isfunction(found) and name[0] != "_"]
        if twice := works.keys() & set(names):
            raise ValueError(f"two systems have the works {sorted(twice)}")
        works |= {name: getattr(system, name) for name in names}
    return works


def serve(works: dict[str, Work]) -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        start = time.perf_counter()
        try:
            found = works[request["do"]](**request["with"])
            answer = {"seconds": time.perf_counter() - start, "found": found}
        except Exception as error:  # noqa: BLE001  a peer's failure is a line of the table, not the end of the run
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
