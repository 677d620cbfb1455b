"""Files end in the background, a bounded number of them; who waits gets the first error, who gives up none."""

from __future__ import annotations

import threading

import pytest

from mica import threads
from mica.errors import StorageError
from mica.storage import uploads
from mica.storage.base import Writer
from mica.storage.uploads import Uploads


class Ending(Writer):
    """A file that ends when it may."""

    def __init__(self, may: threading.Event | None = None, error: str | None = None) -> None:
        self.may, self.error, self.ended = may, error, False

    def write(self, data: bytes, /) -> int:
        return len(data)

    def close(self) -> None:
        if self.may is not None:
            assert self.may.wait(20)
        if self.error is not None:
            raise StorageError("IO", self.error)
        self.ended = True

    def abort(self) -> None:
        pass


def test_all_are_complete_when_it_returns() -> None:
    ending, files = Uploads(), [Ending() for _ in range(100)]
    for file in files:
        ending.end(file, 1000)
    ending.wait()
    assert all(file.ended for file in files)


@pytest.mark.parametrize(("size", "most"), [(1, threads.REQUESTS), (10 << 20, 3), (1 << 40, 3)])
def test_no_more_than_some_end_at_once(size: int, most: int) -> None:
    ending, may = Uploads(), threading.Event()
    for _ in range(most):
        ending.end(Ending(may), size)  # none of them waits
    one_more = threading.Thread(target=ending.end, args=(Ending(may), size))
    one_more.start()
    one_more.join(0.1)
    assert one_more.is_alive()
    may.set()
    one_more.join(20)
    assert not one_more.is_alive()
    ending.wait()


def test_the_first_error_is_raised_and_giving_up_waits_for_the_rest() -> None:
    ending, may = Uploads(), threading.Event()
    last = Ending(may)
    ending.end(Ending(error="refused"), 1)
    ending.end(Ending(error="refused too"), 1)
    ending.end(last, 1)
    with pytest.raises(StorageError, match=r"refused$"):
        ending.wait()
    threading.Timer(0.05, may.set).start()
    ending.give_up()
    assert last.ended


def test_an_error_comes_with_the_file_that_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_MOST", 1)
    ending = Uploads()
    ending.end(Ending(error="refused"), 1)
    with pytest.raises(StorageError, match="refused"):
        ending.end(Ending(), 1)


def test_who_is_interrupted_waits_again_when_he_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ending, may = Uploads(), threading.Event()
    file = Ending(may)
    ending.end(file, 1)
    [(_, coming)] = ending._ending
    with monkeypatch.context() as patch:
        patch.setattr(coming, "exception", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ending.wait()
    threading.Timer(0.05, may.set).start()
    ending.give_up()
    assert file.ended
