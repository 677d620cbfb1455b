"""Sets aside what lasts as long as a Python worker of Spark's does, so that no garbage collection looks at it again.

The rule: after each task PySpark's worker collects garbage, and the next task waits for it. To look at the modules of
PySpark, Arrow and mica takes 30 to 75 ms, on every core. So a task that finds modules which were loaded since the last
one sets them aside (`gc.freeze`), together with all else that lives: PySpark has just collected what does not.
"""

from __future__ import annotations

import gc
import sys

#: Modules that were set aside.
_aside = 0


def set_aside() -> None:
    """Called where a task begins, on workers only. It frees nothing: what is set aside still goes with its last
    reference, but not as part of a cycle. So it is done when there is much to win only: once or twice a worker."""
    global _aside  # noqa: PLW0603 - of the process, as the modules are
    if len(sys.modules) > _aside:
        _aside = len(sys.modules)
        gc.freeze()
