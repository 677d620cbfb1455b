"""The threads of this process, which outlive what they do.

The rule: work gets a thread that has nothing to do, else a new one, so that no work waits for another. Allocators keep
memory for each thread, and a new one has none: reading a path of half a million rows takes half as long again with new
threads. Python waits for these before it ends: work on them never waits for whoever asked for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from mica import late

#: More than a process ever has.
_MOST = 1 << 16


def submit(work: Callable[..., Any], *given: Any) -> late.futures.Future[Any]:
    """Begins the work. Errors: RuntimeError while Python ends."""
    return _pool().submit(work, *given)


@cache
def _pool() -> late.futures.ThreadPoolExecutor:
    return late.futures.ThreadPoolExecutor(_MOST, thread_name_prefix="mica")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads stay with the parent
