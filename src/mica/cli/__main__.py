"""`mica`, `python -m mica` and `python -m mica.cli`.

The rule: Ctrl-C gets the same answer from the first import on. A command imports for a part of a second, and a
traceback of Python's importer says nothing to someone who mistyped a command. A library's import is not broken off:
orjson's crashes the process.
"""

from __future__ import annotations

import signal

from mica.cli.stopped import stop


def main() -> None:
    """The entry point: imports the command line, and runs it."""
    noted: list[int] = []
    held_back = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where a shell has it ignored
    if held_back:
        signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    from mica.cli.app import main as run

    if held_back:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if noted:
        stop()
    run()


if __name__ == "__main__":
    main()
