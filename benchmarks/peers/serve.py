"""The other end of `benchmarks.process`: one JSON request a line in, one JSON answer a line out.

Runs in the environments of the peers, so it needs the standard library alone. An answer holds the seconds that the work
took inside the process and what it found; whatever the engine prints goes to standard error.
"""

from __future__ import annotations

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
