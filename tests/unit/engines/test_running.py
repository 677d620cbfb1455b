"""Tasks on threads: order, errors, memory, early ends."""

from __future__ import annotations

import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Iterator

import pyarrow as pa
import pytest

from mica.engines import running
from mica.engines.running import run
from mica.tasks import lane


def _batch(value: int, rows: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array([value] * rows, pa.int64())})


def test_batches_come_in_the_order_of_the_tasks_whatever_ends_first() -> None:
    first_may_go = threading.Event()

    def work(task: int) -> Iterator[pa.RecordBatch]:
        if task == 0:
            first_may_go.wait(10)
        yield _batch(task)
        yield _batch(task)
        if task == 1:
            first_may_go.set()

    found = [b.column(0)[0].as_py() for b in run(work, range(6), 3)]
    assert found == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


@pytest.mark.parametrize("parallelism", [1, 4])
def test_the_error_of_a_task_stands_where_its_batches_would_have_come(parallelism: int) -> None:
    def work(task: int) -> Iterator[pa.RecordBatch]:
        yield _batch(task)
        if task == 2:
            raise ValueError("task 2")

    found = []
    with pytest.raises(ValueError, match="task 2"):
        found.extend(b.column(0)[0].as_py() for b in run(work, range(5), parallelism))
    assert found == [0, 1, 2]


def test_a_caller_who_stops_stops_the_tasks_and_lets_them_clean_up() -> None:
    cleaned = []

    def work(task: int) -> Iterator[pa.RecordBatch]:
        try:
            while True:
                yield _batch(task, 1000)
        finally:
            cleaned.append(task)

    batches = run(work, range(2), 2)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert 0 in cleaned


def test_what_waits_for_the_caller_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WAITING_BYTES", 80_000)
    ahead: dict[int, int] = {}

    def work(task: int) -> Iterator[pa.RecordBatch]:
        for _ in range(50):
            yield _batch(task, 1000)
            ahead[task] = ahead.get(task, 0) + 1

    batches = run(work, range(2), 2)
    next(batches)
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        threading.Event().wait(0.02)
    assert ahead.get(1, 0) <= 10
    assert sum(1 for _ in batches) == 99


def test_a_task_goes_on_where_it_stopped_though_the_caller_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may wait but what the caller needs next, so each task stops after each batch; it keeps its context."""
    monkeypatch.setattr(running, "WAITING_BYTES", 1)
    own = contextvars.ContextVar("own", default=-1)

    def work(task: int) -> Iterator[pa.RecordBatch]:
        assert lane.current().index == task
        own.set(task)
        for number in range(20):
            assert own.get() == task
            yield _batch(100 * task + number)

    found = []
    for batch in run(work, range(5), 3):
        found.append(batch.column(0)[0].as_py())
        if len(found) % 7 == 0:
            time.sleep(0.005)
    assert found == [100 * task + number for task in range(5) for number in range(20)]


def test_what_a_task_gives_is_bounded_also_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WAITING_BYTES", 80_000)
    given = 0

    def work(task: int) -> Iterator[pa.RecordBatch]:
        nonlocal given
        while True:
            given += task == 0
            yield _batch(task, 1000)

    batches = run(work, range(2), 2)
    next(batches)
    time.sleep(0.2)
    assert given <= 12
    batches.close()


def test_a_task_gets_another_thread_when_it_has_left_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its context can be entered once."""
    monkeypatch.setattr(running, "WAITING_BYTES", 10)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            assert sum(1 for _ in run(lambda task: (_batch(task) for _ in range(20)), range(3), 2)) == 60
    finally:
        sys.setswitchinterval(before)


_COLLECTED = """
import gc, threading
import pyarrow as pa
from mica.engines import running

batch, go, cleaned = pa.RecordBatch.from_pydict({"x": [1]}), threading.Event(), []

def work(task):
    try:
        yield batch
        go.wait()
        gc.collect()
        yield batch
    finally:
        cleaned.append(task)

def user():
    rows = running.run(work, [0, 1, 2], 2)
    next(rows)
    cycle = [rows]
    cycle.append(cycle)

gc.disable()
user()
go.set()
import time
import weakref
deadline = time.monotonic() + 30
while len(cleaned) < 2 and time.monotonic() < deadline:
    time.sleep(0.01)
print(len(cleaned) >= 2)
"""


def test_a_loop_that_is_collected_on_a_thread_of_its_own_tasks_ends() -> None:
    done = subprocess.run([sys.executable, "-c", _COLLECTED], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_no_more_tasks_run_at_once_than_asked_for() -> None:
    most, now, lock = 0, 0, threading.Lock()

    def work(task: int) -> Iterator[pa.RecordBatch]:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.002)
        with lock:
            now -= 1
        yield _batch(task)

    assert sum(1 for _ in run(work, range(30), 3)) == 30
    assert most <= 3


def test_tasks_run_tasks_of_their_own() -> None:
    def inner(task: int) -> Iterator[pa.RecordBatch]:
        time.sleep(0.001)
        yield _batch(task)

    def outer(task: int) -> Iterator[pa.RecordBatch]:
        yield from run(inner, range(10 * task, 10 * task + 10), 4)

    assert [b.column(0)[0].as_py() for b in run(outer, range(8), 8)] == list(range(80))


_ENDS = """
import pyarrow as pa
from mica.engines import running

running.WAITING_BYTES = 1000

def work(task):
    while True:
        yield pa.record_batch({"x": pa.array([task] * 1000)})

batches = running.run(work, range(4), 2)
for batch in batches:
    REST
"""


@pytest.mark.parametrize(("rest", "code"), [("break", 0), ("raise ValueError('mine')", 1)])
def test_a_program_ends_though_it_left_a_loop_in_the_middle(rest: str, code: int) -> None:
    """The generator is still there: a variable has it, or a traceback."""
    program = [sys.executable, "-c", _ENDS.replace("REST", rest)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert ("mine" in done.stderr) == (code == 1)
    assert "Traceback" not in done.stderr.partition("mine")[2]


_READS_ON = """
import threading, time
import pyarrow as pa
from mica.engines import running

running.WAITING_BYTES = 1000
BATCH = pa.record_batch({"x": pa.array([1] * 100)})

def work(task):
    for number in range(5):
        time.sleep(0.01)
        yield BATCH

def read():
    print(sum(batch.num_rows for batch in running.run(work, range(20), 3)))

BEGIN
"""


@pytest.mark.parametrize("begin", ["threading.Thread(target=read).start()", "import atexit; atexit.register(read)"])
def test_who_still_reads_while_python_ends_runs_the_tasks(begin: str) -> None:
    program = [sys.executable, "-c", _READS_ON.replace("BEGIN", begin)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("10000\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    program = (
        "import os, pyarrow as pa\n"
        "from mica.engines.running import run\n"
        "work = lambda task: iter([pa.record_batch({'x': [task]})])\n"
        "assert len(list(run(work, range(8), 2))) == 8\n"
        "child = os.fork()\n"
        "found = len(list(run(work, range(8), 2)))\n"
        "if not child:\n"
        "    os._exit(found)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == found == 8\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], timeout=60, check=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_fork_neither_waits_for_tasks_of_its_parent_nor_reads_on() -> None:
    code = textwrap.dedent(
        """
        import os
        import time
        import pyarrow as pa
        from mica.engines.running import run
        from mica.errors import StorageError

        def work(task):
            for _ in range(3):
                time.sleep(0.05)  # the threads of the parent are still at work
                yield pa.record_batch({"x": pa.array([task] * 1000)})

        def in_fork(do):
            child = os.fork()
            if not child:
                try:
                    os._exit(do() or 0)
                except StorageError as error:
                    os._exit(3 if error.code == "FORKED" else 4)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        batches = run(work, range(8), 2)
        next(batches)
        print(in_fork(batches.close), in_fork(lambda: len(list(batches))), len(list(batches)))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0 3 23\n", done.stderr


def test_errors_of_tasks_keep_nothing_that_is_left_to_the_garbage_collection() -> None:
    held = []

    class Held:
        pass

    def work(task: int) -> Iterator[pa.RecordBatch]:
        mine = Held()  # an open file
        held.append(weakref.ref(mine))
        yield _batch(task)
        raise ValueError(f"task {task} with {mine}")

    gc.disable()
    try:
        with pytest.raises(ValueError, match="task 0"):
            list(run(work, range(4), 4))
        assert [one for one in held if one() is not None] == []
    finally:
        gc.enable()
