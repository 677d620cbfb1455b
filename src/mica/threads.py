"""The threads of this process, which outlive what they do, and those of requests that one step makes at once.

The rule: work gets a thread that has nothing to do, else a new one, so that no work waits for another. Allocators keep
memory for each thread, and a new one has none: reading a path of half a million rows takes half as long again with new
threads. Python waits for these before it ends: work on them never waits for whoever asked for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any, TypeVar

from mica import late

Item = TypeVar("Item")
Found = TypeVar("Found")

#: More than a process ever has.
_MOST = 1 << 16


def submit(work: Callable[..., Any], *given: Any) -> late.futures.Future[Any]:
    """Begins the work. Errors: RuntimeError while Python ends, or where a process may have no more threads."""
    return begun(_pool(), partial(work, *given))


def soon(ask: Callable[[], Found]) -> late.futures.Future[Found]:
    """Begins a request to a store, or makes it now if Python ends and has no threads any more. Its threads are others
    than those of `submit`: a task that found many idle ones would leave memory in each of them in turn."""
    return _soon(_asking(), ask)


def begun(pool: late.futures.ThreadPoolExecutor, work: Callable[[], Found]) -> late.futures.Future[Found]:
    """What a thread of the pool does. Errors: those of `submit`: the pool keeps work for which it could begin no
    thread, and another of its threads would do it later, beside whoever does it instead."""
    coming = late.futures.Future[Found]()
    try:
        pool.submit(_run, coming, work)
    except RuntimeError:
        if coming.cancel():
            raise
    return coming  # also if a thread has taken it meanwhile


def _soon(pool: late.futures.ThreadPoolExecutor, work: Callable[[], Found]) -> late.futures.Future[Found]:
    try:
        return begun(pool, work)
    except RuntimeError:
        done = late.futures.Future[Found]()
        try:
            done.set_result(work())
        except Exception as error:  # noqa: BLE001 - it belongs to whoever wants the result
            done.set_exception(error)
        return done


def _run(coming: late.futures.Future[Found], work: Callable[[], Found]) -> None:
    if not coming.set_running_or_notify_cancel():
        return
    try:
        coming.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever wants the result
        coming.set_exception(error)
    finally:
        del coming  # an error holds this frame


#: Requests to a store that one step makes at once.
REQUESTS = 16


def each(work: Callable[[Item], Found], items: Iterable[Item]) -> list[Found]:
    """What the work returns for each item, in their order: for work that mostly waits for a store or a disk."""
    given = list(items)
    if len(given) < 2:
        return [work(item) for item in given]
    with late.futures.ThreadPoolExecutor(REQUESTS, thread_name_prefix="mica") as pool:
        asked = [_soon(pool, partial(work, item)) for item in given]
        try:
            return [one.result() for one in asked]
        finally:
            for one in asked:
                one.cancel()


@cache
def _pool() -> late.futures.ThreadPoolExecutor:
    return late.futures.ThreadPoolExecutor(_MOST, thread_name_prefix="mica")


@cache
def _asking() -> late.futures.ThreadPoolExecutor:
    return late.futures.ThreadPoolExecutor(16 * REQUESTS, thread_name_prefix="mica-ask")


if hasattr(os, "register_at_fork"):
    # Threads stay with the parent.
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=_asking.cache_clear)
