"""What Spark's JVM writes to stderr while it starts.

The rule: it is kept back, and read only if Spark does not start. What the JVM writes later is an error of its own (its
log is silent then) and passes. A file descriptor is exchanged, since the JVM inherits it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def kept_back() -> Iterator[Callable[[], Sequence[str]]]:
    """Keeps stderr of this process and of those that it starts back; gives what returns the lines so far."""
    try:
        shown = os.dup(2)
    except OSError:  # there is no stderr
        yield list
        return
    read, write = os.pipe()
    os.dup2(write, 2)
    os.close(write)
    lines, passes = list[str](), threading.Event()

    def pump() -> None:
        with os.fdopen(read, "rb") as said:
            for line in said:
                if passes.is_set():
                    os.write(shown, line)
                else:
                    lines.append(line.decode(errors="replace").rstrip())

    threading.Thread(target=pump, daemon=True).start()
    try:
        yield lambda: tuple(lines)
    finally:
        os.dup2(shown, 2)
        passes.set()


#: Lines that Spark and Java write whenever they start.
_ALWAYS = re.compile(
    r"WARNING: |Using Spark's default|Setting |To adjust logging|.* WARN (Utils|NativeCodeLoader): |\s*$"
)
#: What stands before the sentence: a thread and a class, or a time and a level.
_PREFIX = re.compile(r'^(Exception in thread "[^"]*" [\w.$]+: |\S+ \S+ (WARN|ERROR) [\w.$]+: )')


def reason(lines: Sequence[str]) -> str | None:
    """Why Spark did not start, as far as its log says so."""
    first = next((line for line in lines if not _ALWAYS.match(line)), None)
    return None if first is None else _PREFIX.sub("", first)
