"""Tasks on threads of this process.

The rule: batches come out in the order of the tasks, whatever finishes first, and what waits for the caller is
bounded by bytes. The kernel releases the GIL, so threads are real. A caller who stops early (a limit, an error) stops
the tasks.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

Task = TypeVar("Task")

#: Bytes of finished batches that may wait for the caller.
WAITING_BYTES = 256 << 20


def threads() -> int:
    """How many tasks run at once: the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    function: Callable[[Task], Iterable[pa.RecordBatch]], tasks: Sequence[Task], *, parallelism: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Runs `function` over `tasks`; yields the batches of the first task, then those of the second, and so on.

    The error of a task is raised where its batches would have come.
    """
    workers = min(parallelism or threads(), len(tasks))
    if workers <= 1:
        for task in tasks:
            yield from function(task)
        return
    outputs = _Outputs(len(tasks))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="mica")
    try:
        for index, task in enumerate(tasks):
            pool.submit(contextvars.copy_context().run, _produce, function, task, index, outputs)
        for index in range(len(tasks)):
            yield from outputs.take(index)
    finally:
        outputs.stop()
        pool.shutdown(wait=True, cancel_futures=True)


class _StoppedError(Exception):
    """The caller has gone: a task need not go on."""


class _Outputs:
    """Finished batches per task. The task whose turn it is never waits for room: the others can't block it."""

    def __init__(self, tasks: int) -> None:
        self._changed = threading.Condition()
        self._batches: list[deque[pa.RecordBatch]] = [deque() for _ in range(tasks)]
        self._ended: list[BaseException | bool] = [False] * tasks
        self._waiting = 0
        self._turn = 0
        self._stopped = False

    def put(self, index: int, batch: pa.RecordBatch) -> None:
        size = batch.nbytes
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or index <= self._turn or self._waiting + size <= WAITING_BYTES
            )
            if self._stopped:
                raise _StoppedError
            self._batches[index].append(batch)
            self._waiting += size
            self._changed.notify_all()

    def end(self, index: int, error: BaseException | None) -> None:
        with self._changed:
            self._ended[index] = error or True
            self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    @property
    def stopped(self) -> bool:
        return self._stopped

    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        with self._changed:
            self._turn = index
            self._changed.notify_all()
        waiting = self._batches[index]
        while True:
            with self._changed:
                # A Condition without a timeout can't be interrupted by Ctrl-C on every platform; Linux can.
                self._changed.wait_for(lambda: bool(waiting) or self._ended[index] is not False)
                if not waiting:
                    error = self._ended[index]
                    if isinstance(error, BaseException):
                        raise error
                    return
                batch = waiting.popleft()
                self._waiting -= batch.nbytes
                self._changed.notify_all()
            yield batch


def _produce(function: Callable[[Task], Iterable[pa.RecordBatch]], task: Task, index: int, outputs: _Outputs) -> None:
    error: BaseException | None = None
    try:
        if outputs.stopped:
            return
        batches = iter(function(task))
        try:
            for batch in batches:
                outputs.put(index, batch)
        finally:
            # Closing runs the task's own clean-up (it deletes a file that it had begun) before we report its end.
            close = getattr(batches, "close", None)
            if close is not None:
                close()
    except _StoppedError:
        pass
    except BaseException as e:  # noqa: BLE001 - it belongs to the caller, who raises it
        error = e
    finally:
        outputs.end(index, error)
