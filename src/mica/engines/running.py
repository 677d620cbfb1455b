"""Tasks on the threads of this process.

The rule: batches are returned in the order of the tasks, and the bytes of those that wait for the caller are limited. A
task that may not go on leaves its thread and goes on later, on any: no thread waits for the caller, who may never ask
again (a program ends in the middle of a loop, or a traceback holds the loop). If the caller stops early (a limit, an
error), the tasks stop.
"""

from __future__ import annotations

import contextvars
import heapq
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from mica import threads
from mica.errors import StorageError
from mica.tasks import lane

Task = TypeVar("Task")

#: Bytes of finished batches that may wait for the caller; each running task may add one batch.
WAITING_BYTES = 256 << 20


def run(
    function: Callable[[Task], Iterable[pa.RecordBatch]], tasks: Sequence[Task], parallelism: int
) -> Generator[pa.RecordBatch]:
    """Runs `function` over `tasks`; yields the batches of the first task, then those of the second, and so on.

    The error of a task is raised at the position of its batches.
    """
    workers = min(parallelism, len(tasks))
    if workers <= 1:
        for index, task in enumerate(tasks):
            lane.begin(index)
            yield from function(task)
        return
    running = _Running(function, tasks, workers)
    try:
        for index in range(len(tasks)):
            yield from running.take(index)
    finally:
        running.stop()


class _Task:
    """One task: its batches so far, with their bytes, and how it ended."""

    def __init__(self, index: int, begin: Callable[[], Iterable[pa.RecordBatch]]) -> None:
        self.index, self._begin = index, begin
        self.context = contextvars.copy_context()
        self._batches: Iterator[pa.RecordBatch] | None = None
        self.ready: deque[tuple[pa.RecordBatch, int]] = deque()
        self.ended: BaseException | bool = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Those to come."""
        if self._batches is None:
            lane.begin(self.index)
            self._batches = iter(self._begin())
        return self._batches

    def close(self) -> None:
        """Runs the task's own clean-up (it deletes an unfinished file)."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class _Running:
    """The tasks of a run. Whoever runs one or takes from one gives threads to those that may go on."""

    def __init__(self, function: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], workers: int) -> None:
        self._tasks = [_Task(index, partial(function, task)) for index, task in enumerate(tasks)]
        #: Tasks that are not over and have no thread, a heap.
        self._idle = list(range(len(tasks)))
        self._workers = self._free = workers
        self._changed = threading.Condition()
        self._waiting = 0
        self._turn = 0
        self._stopped = self._left = False
        #: The threads that run a task.
        self._running = set[int]()
        #: There are none while Python ends, when a thread of the user's may still read.
        self._threads = True
        self._process = os.getpid()

    def take(self, index: int) -> Iterator[pa.RecordBatch]:
        """The batches of a task, whose turn it is from now on."""
        task = self._tasks[index]
        while True:
            if self._process != os.getpid():
                raise StorageError(
                    "FORKED",
                    "this process is a fork of the one that reads these rows, and has none of its threads",
                    hint="Begin to read in the process that wants the rows.",
                )
            with self._changed:
                self._turn = index
                self._give()
                # A Condition without a timeout can't be interrupted by Ctrl-C on every platform; Linux can.
                self._changed.wait_for(lambda: bool(task.ready) or task.ended is not False or self._is_left(task))
                if task.ready:
                    batch, size = task.ready.popleft()
                    self._waiting -= size
                elif isinstance(error := task.ended, BaseException):
                    task.ended = True  # as in `_run`
                    try:
                        raise error
                    finally:
                        del error
                elif task.ended:
                    return
                else:
                    batch = None
                    self._begin()
            if batch is None:
                self._run(task)
            else:
                yield batch

    def stop(self) -> None:
        """Returns when no task runs any more and all have cleaned up; on a thread of these tasks, where a garbage
        collection may end a loop that was left, the last of them cleans up."""
        if self._process != os.getpid():
            return
        with self._changed:
            self._stopped = True
            self._left = threading.get_ident() in self._running
            if self._left:
                return
            self._changed.wait_for(lambda: self._free == self._workers)
        self._clean_up()

    def _clean_up(self) -> None:
        for task in self._tasks:
            if task.ended is False:
                with suppress(Exception):
                    task.context.run(task.close)
            task.ended = True  # no error stays, as in `_run`

    def _may_go_on(self, task: _Task) -> bool:
        """Whether it has room. The task whose turn it is never waits for that of the others."""
        mine = task.index == self._turn and not task.ready
        return not self._stopped and (mine or self._waiting < WAITING_BYTES)

    def _give(self) -> None:
        """Gives free threads to the first tasks that may go on."""
        while self._free and self._idle and self._may_go_on(self._tasks[self._idle[0]]):
            task = self._tasks[self._idle[0]]
            try:
                threads.submit(self._run, task)
            except RuntimeError:
                self._threads = False
                return
            self._begin()

    def _is_left(self, task: _Task) -> bool:
        """Whether the task gets no thread, and the caller runs it."""
        return not self._threads and self._idle[:1] == [task.index]

    def _begin(self) -> None:
        """The first of the idle tasks has a thread."""
        heapq.heappop(self._idle)
        self._free -= 1

    def _run(self, task: _Task) -> None:
        with self._changed:
            self._running.add(threading.get_ident())
        # Whoever gives the task another thread finds its context left.
        ended = task.context.run(self._step, task)
        with self._changed:
            task.ended = ended
            self._running.discard(threading.get_ident())
            self._free += 1
            goes_on = ended is False
            del ended  # an error's frames hold this one, and files that would be open until garbage is collected
            if goes_on:
                heapq.heappush(self._idle, task.index)
            self._give()
            self._changed.notify_all()
            last = self._left and self._free == self._workers
        if last:
            self._clean_up()

    def _step(self, task: _Task) -> BaseException | bool:
        """Runs the task until it may not go on; how it ended, False if it did not."""
        try:
            for batch in task.batches():
                if not self._put(task, batch):
                    return False
        except BaseException as e:  # noqa: BLE001 - it belongs to the caller, who raises it
            return e
        return True

    def _put(self, task: _Task, batch: pa.RecordBatch) -> bool:
        """Whether the task may go on."""
        size = batch.nbytes
        with self._changed:
            task.ready.append((batch, size))
            self._waiting += size
            self._changed.notify_all()
            return self._may_go_on(task)
