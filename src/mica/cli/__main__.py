"""`mica`, and `python -m mica.cli`.

The rule: Ctrl-C gets the same answer from the first import on. A command imports for a part of a second, and a
traceback of Python's importer says nothing to someone who mistyped a command.
"""

from __future__ import annotations

from mica.cli.stopped import stop


def main() -> None:
    """The entry point: imports the command line, and runs it."""
    try:
        from mica.cli.app import main as run
    except KeyboardInterrupt:
        stop()
    run()


if __name__ == "__main__":
    main()
