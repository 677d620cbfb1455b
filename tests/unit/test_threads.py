"""Threads are used again, and nothing waits for one."""

import threading

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
