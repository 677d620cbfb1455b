"""The main thread waits for a store so that Ctrl-C ends the wait; another one asks itself."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from mica.storage.waiting import answered


def test_one_thread_asks_for_the_main_one_again_and_again() -> None:
    asked = [answered(threading.current_thread) for _ in range(3)]
    assert asked[0] is asked[1] is asked[2] is not threading.main_thread()
    assert asked[0].daemon
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: answered(threading.current_thread) is threading.current_thread()).result()


def test_an_error_is_that_of_the_request() -> None:
    for _ in range(2):
        with pytest.raises(PermissionError, match="denied"):
            answered(lambda: (_ for _ in ()).throw(PermissionError("denied")))


def test_ctrl_c_ends_the_wait_and_the_next_request_is_made() -> None:
    may, began, main = threading.Event(), threading.Event(), threading.main_thread().ident
    assert main is not None

    def silent() -> bool:
        began.set()
        return may.wait(8)

    def interrupt() -> None:
        assert began.wait(20)
        signal.pthread_kill(main, signal.SIGINT)

    before = answered(threading.current_thread)
    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        answered(silent)
    other.join()
    assert answered(threading.current_thread) is not before
    may.set()
    before.join(20)
    assert not before.is_alive(), "it ends with the request that was left behind"


def test_python_ends_while_a_request_is_under_way() -> None:
    code = """if True:
        import os, signal, threading
        from mica.storage.waiting import answered
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        answered(threading.Event().wait)
    """
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=30)
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
