"""`mica`: its commands, and how errors are printed.

The rule: exit status 0 is success, 1 bad input or a refused table, 2 wrong usage. An error is two or three lines on
stderr; only `--debug` shows the traceback.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from mica.cli.console import errors, progress_of, warned
from mica.cli.plain import plain
from mica.cli.stopped import STOPPED, stop
from mica.errors import MicaError, StorageError

#: The commands in the order of a table's life, with what `mica --help` says of them: at most 60 characters.
VERBS = {
    "ingest": "Read JSON files into the Variant column of a table.",
    "stream": "Read a folder of JSON files that grows, each file once.",
    "scan": "Show rows, or count them.",
    "sql": "Run Spark SQL over tables, skipping what cannot match.",
    "changes": "Show the rows that changed between two versions.",
    "explain": "Show what a scan or query reads and skips, and why.",
    "files": "List the files of a table.",
    "stats": "Show the bounds that the log holds for each file.",
    "drift": "Show how the shape of Variants changed over time.",
    "suggest": "Suggest what would make a table faster to read.",
    "restats": "Add bounds to existing files: of paths, of collations.",
    "inspect": "Show how a file's Variants are shredded.",
    "log": "Show the history of a table.",
    "check": "List what is wrong with files and tables.",
    "repair": "Rewrite files that are wrong.",
    "fsck": "Leave files out of a table that are gone.",
    "convert": "Rewrite in the standard or the early shredding layout.",
    "convert-to-delta": "Make a folder of Parquet files a table, in place.",
    "alter": "Change columns, properties, features and constraints.",
    "erase": "Erase a path of a Variant from every row and file.",
    "optimize": "Join small files, or order rows along a curve.",
    "reshred": "Give existing files another shredding schema.",
    "vacuum": "Delete data files that no kept version names.",
    "restore": "Bring back the content of an older version.",
    "demo": "Ingest generated events and query them, step by step.",
    "doctor": "Show what is installed and reachable, and what is wrong.",
}

#: What a write to stdout says of a disk or limit that is full.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def app_of(verbs: Iterable[str]) -> typer.Typer:
    """Returns the command line with these commands. A process imports only the command that it runs."""
    made = _empty()
    for verb in verbs:
        module = import_module(f"mica.cli.{verb.replace('-', '_')}")
        run = module.run
        if hasattr(module, "spark_session"):
            from mica.cli.sessions import with_session

            run = with_session(run)
        made.command(name=verb, short_help=VERBS[verb])(run)
    return made


def _overview() -> typer.Typer:
    """The commands by their names, none of which is imported: for `mica --help`, and what names no command."""
    made = _empty()
    for verb, short in VERBS.items():
        made.command(name=verb, short_help=short)(_nothing)
    return made


def _empty() -> typer.Typer:
    made = typer.Typer(
        name="mica",
        help="Delta tables with shredded VARIANT columns: JSON in, path bounds in the log, files skipped.",
        epilog="First: mica demo. Then: mica ingest demo/events/*.ndjson lake/events; mica scan lake/events --limit 5.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    made.callback()(_options)
    return made


def _nothing() -> None:
    """The command itself is in `app_of`."""


def _app_for(asked: str) -> typer.Typer:
    if "_MICA_COMPLETE" in os.environ:  # a shell asks for the options of any command
        return _whole()
    return app_of([asked]) if asked in VERBS else _overview()


@cache
def _whole() -> typer.Typer:
    return app_of(VERBS)


def __getattr__(name: str) -> Any:
    if name == "app":  # all commands: for the documentation
        return _whole()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version(asked: bool) -> None:
    if asked:
        from mica import __version__

        typer.echo(f"mica {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options of all commands; `main` reads `--debug` itself, since errors may occur before typer parses it."""


def main() -> None:
    """The entry point: runs a command, and turns errors into a few lines and an exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever called (`>&-`): there is nobody to print for
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):
        # PYTHONUNBUFFERED: if the disk takes a part of the bytes, Python would drop the rest.
        sys.stdout = open(sys.stdout.fileno(), "w", 1, encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    # A name that the terminal cannot show (LANG=C, latin1) ends no command.
    getattr(sys.stdout, "reconfigure", lambda **_: None)(errors="backslashreplace")
    debug = "--debug" in sys.argv[1:]
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    if not debug:
        warnings.showwarning = warned
    try:
        asked = next((one for one in arguments if not one.startswith("-")), "")
        _run(asked, arguments)
    except MicaError as e:
        if debug:
            raise
        sys.exit(errors(e))
    except KeyboardInterrupt:
        stop()
    except SystemExit as e:
        if e.code == STOPPED:  # typer has met the KeyboardInterrupt
            stop()
        if isinstance(e.__context__, BrokenPipeError):
            sys.exit(0)  # the reader of a pipe (`| head`) has stopped, which is no error as typer has it
        raise
    except BrokenPipeError:  # the same, with the last lines
        sys.exit(0)
    except Exception as e:
        if debug:
            raise
        if isinstance(e, OSError) and e.errno in _NO_ROOM and e.filename is None:
            # The errors of files are of mica's storage.
            sys.exit(errors(StorageError("DISK_FULL", f"the output could not be written: {e.strerror}")))
        sys.stderr.write(plain(f"error: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else 'no message'}\n"))
        sys.stderr.write("This is a bug in mica or in a library that it uses; --debug shows the traceback.\n")
        sys.exit(1)


def _run(asked: str, arguments: list[str]) -> None:
    """Runs a command and flushes stdout: what cannot be written then is an error of mica's, not one of Python's end."""
    try:
        with progress_of(asked):
            _app_for(asked)(args=arguments)
    except SystemExit as e:
        if e.code != STOPPED:  # Ctrl-C does not wait for the reader of a pipe
            _flush()
        raise
    except Exception:  # this error is the one to tell
        with suppress(OSError):
            _flush()
        raise
    _flush()


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # the rest goes nowhere, so that Python does not try again
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
