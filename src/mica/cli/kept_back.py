"""What Spark's JVM writes to stderr while it starts.

The rule: it is kept back, and read only if Spark does not start. What the JVM writes later is an error of its own (its
log is silent then) and passes, but for the stack of a Python worker whose rows nobody reads further, as under a limit.
A file descriptor is exchanged, since the JVM inherits it.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

#: What is written behind the lines so far, to know that all of them were read.
_MARK = b"\0\n"
#: How the stack of an error of Python begins.
_STACK = b"Traceback (most recent call last):"


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
    lines, passes, met = list[str](), threading.Event(), threading.Event()

    def pump() -> None:
        stack = list[bytes]()
        with os.fdopen(read, "rb") as said:
            for line in said:
                if line.endswith(_MARK):
                    met.set()
                elif not passes.is_set():
                    lines.append(line.decode(errors="replace").rstrip())
                elif line.startswith(_STACK) or (stack and line.startswith(b" ")):
                    stack.append(line)
                else:
                    stack.append(line)
                    if not _is_unread(stack):
                        os.write(shown, b"".join(stack))
                    stack.clear()
            if stack:
                os.write(shown, b"".join(stack))

    def so_far() -> Sequence[str]:
        if not passes.is_set():
            met.clear()
            os.write(2, _MARK)
            met.wait(1)
        return tuple(lines)

    threading.Thread(target=pump, daemon=True).start()
    try:
        yield so_far
    finally:
        os.dup2(shown, 2)
        passes.set()


def _is_unread(stack: Sequence[bytes]) -> bool:
    """Whether these lines are the stack of a worker that could not write the rest of its rows."""
    gone = stack[-1].startswith((b"BrokenPipeError", b"ConnectionResetError"))
    return gone and stack[0].startswith(_STACK) and any(b"daemon.py" in line for line in stack)


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
