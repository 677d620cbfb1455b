"""Requests to a store for which the main thread waits.

The rule: Ctrl-C ends the wait. obstore waits where no signal of Python is heard, for as long as a store is silent and
its repeats last: minutes. So the main thread, which alone gets signals, has another thread make its requests and waits
for that one; who is interrupted leaves the request behind. That thread does not keep Python from ending.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from mica import late

Answer = TypeVar("Answer")

#: Seconds of one wait: Python overhears a signal that comes just before it begins, until it ends.
_MOST = 0.5


class _Asker:
    """A thread that makes one request after another."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Callable[[], Any], late.futures.Future[Any]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="mica-wait", daemon=True).start()

    def begin(self, ask: Callable[[], Answer]) -> late.futures.Future[Answer]:
        coming = late.futures.Future[Answer]()
        self._asked.put((ask, coming))
        return coming

    def end(self) -> None:
        self._asked.put(None)

    def _run(self) -> None:
        while (one := self._asked.get()) is not None:
            ask, coming = one
            try:
                coming.set_result(ask())
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                coming.set_exception(error)
            del one, ask, coming  # what it gave is not kept until the next one


#: The thread that waits for work: there is one main thread, which asks for one thing at a time.
_idle: _Asker | None = None


def answered(ask: Callable[[], Answer]) -> Answer:
    """What a request gives."""
    global _idle  # noqa: PLW0603 - one in a process
    if threading.current_thread() is not threading.main_thread():
        return ask()
    asker, _idle = _idle, None
    try:
        asker = asker or _Asker()
    except RuntimeError:  # Python ends
        return ask()
    coming = asker.begin(ask)
    try:
        while not coming.done():
            late.futures.wait((coming,), _MOST)
        return coming.result()
    finally:
        if coming.done():
            _idle = asker
        else:
            asker.end()


def _forget() -> None:
    global _idle  # noqa: PLW0603 - as above
    _idle = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # the thread stays with the parent
