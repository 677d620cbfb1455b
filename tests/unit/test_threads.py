"""Threads are used again, and nothing waits for one."""

import threading
from concurrent import futures
from functools import partial

import pytest

from mica import threads


def test_work_waits_for_no_other_work_and_threads_are_used_again() -> None:
    last = threading.Event()
    waiting = [threads.submit(last.wait, 30) for _ in range(40)]
    threads.submit(last.set).result(timeout=30)
    assert all(work.result(timeout=30) for work in waiting)
    before = threading.active_count()
    for _ in range(200):
        threads.submit(int).result(timeout=30)
    assert threading.active_count() <= before + 1


def test_what_is_asked_at_once_comes_in_its_order_and_the_first_error_counts() -> None:
    met = threading.Barrier(threads.REQUESTS, timeout=30)

    def work(number: int) -> int:
        if number < threads.REQUESTS:
            met.wait()  # nobody has an answer before all have asked
        return 100 // (50 - number)

    assert threads.each(work, range(40)) == [100 // (50 - number) for number in range(40)]
    with pytest.raises(ZeroDivisionError):
        threads.each(work, range(60))


def test_requests_have_threads_of_their_own() -> None:
    """A task that found theirs idle would leave its memory in another thread each time."""
    last = threading.Event()
    asked = [threads.soon(lambda: last.wait(30)) for _ in range(threads.REQUESTS)]
    assert threads.submit(lambda: threading.current_thread().name).result(timeout=30).startswith("mica_")
    last.set()
    assert all(one.result(timeout=30) for one in asked)
    assert threads.soon(lambda: threading.current_thread().name).result(timeout=30).startswith("mica-ask")
    with pytest.raises(ZeroDivisionError):
        threads.soon(lambda: 1 // 0).result(timeout=30)


def test_work_for_which_no_thread_can_be_begun_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool keeps such work, and a thread that it has would do it later, beside whoever did it instead."""
    done: list[object] = []
    busy, free = threading.Event(), threading.Event()

    def hold() -> None:
        busy.set()
        free.wait(30)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with futures.ThreadPoolExecutor(8) as pool:
        held = threads.begun(pool, hold)
        assert busy.wait(30)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't start"):
                threads.begun(pool, partial(done.append, "later"))
            found = threads.each(lambda number: done.append(number) or number, range(4))
        free.set()
        held.result(timeout=30)
    assert (found, done) == ([0, 1, 2, 3], [0, 1, 2, 3])
