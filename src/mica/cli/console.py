"""Prints tables, errors and progress. Data goes to stdout, everything else to stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import typer

from mica.cli.hints import spoken
from mica.cli.plain import console, plain
from mica.errors import MicaError
from mica.errors.codes import way_out
from mica.wording import counted, short_path

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar

    from mica.engines.progress import Progress
    from mica.write.commit import Commit


#: No name is cut shorter than this.
SHORTEST = 24


def out() -> Console:
    """The console of stdout; it is wide if stdout is not a terminal, so that tables in pipes are not folded."""
    return console() if sys.stdout.isatty() else console(width=200, soft_wrap=True)


def print_bytes(texts: Iterable[bytes]) -> None:
    """Prints the pieces of what a program reads, in UTF-8 whatever the terminal shows."""
    for text in texts:
        sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Prints one JSON document on stdout."""
    print_bytes([orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE, default=str)])


def print_commit(done: Commit) -> None:
    """Prints a commit and its metrics as one JSON document."""
    found = {"version": done.version, "files": done.files, "rows": done.rows, "repeated": done.repeated}
    print_json({**found, **done.metrics})


def print_json_line(value: Any) -> None:
    """Prints one JSON document on one line of stdout, at once."""
    print_bytes([orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE, default=str)])


def print_rows(
    title: str,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    short: str | None = None,
) -> None:
    """Prints a table of texts. In a terminal the paths in the column `short` are cut to what fits a line."""
    from rich.table import Table
    from rich.text import Text

    screen = out()
    if title:  # not as the table's title, which a narrow table would fold
        screen.print(Text(title, style="italic"))
    if short is not None and screen.is_terminal:
        rows = _cut(rows, names, names.index(short), screen.width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        # No markup: rich would make an emoji of `v:id:`.
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text("" if value is None else str(value)) for value in row])
    screen.print(table)


def _cut(rows: Sequence[Sequence[Any]], names: Sequence[str], place: int, width: int) -> list[list[Any]]:
    """The rows with the paths at `place` as short as the others want, but not shorter than `SHORTEST`."""
    widths = [max([len(name), *(len(str(row[at])) for row in rows)]) for at, name in enumerate(names)]
    room = max(SHORTEST, width - sum(widths) + widths[place] - 2 * (len(names) - 1))
    return [[short_path(str(value), room) if at == place else value for at, value in enumerate(row)] for row in rows]


def errors(error: MicaError) -> int:
    """Prints an error in two or three lines; returns its exit status."""
    where = ", ".join(f"{name} {value}" for name, value in error.where.items())
    # The line with a caret under the text is left out on the command line.
    lines = [line for line in spoken(error.message).splitlines() if line.strip() != "^"]
    sys.stderr.write(plain(f"error [{error.code}]: {chr(10).join(lines)}{f' ({where})' if where else ''}\n"))
    sys.stderr.write(plain(f"{spoken(way_out(error))}\n"))
    return error.exit_status


def warned(message: Warning | str, *_: Any, **__: Any) -> None:
    """Prints a warning in one line; it stands in the place of `warnings.showwarning`."""
    sys.stderr.write(plain(f"warning: {spoken(str(message))}\n"))


def pairs(texts: Sequence[str] | None, option: str, *, secret: bool = False) -> dict[str, str]:
    """Parses the `name=value` texts of a repeated option, if it is given; an error does not show secret values."""
    found = dict[str, str]()
    for number, text in enumerate(texts or (), 1):
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(
                f"{f'no. {number}' if secret else repr(text)} is not NAME=VALUE.", param_hint=option
            )
        if name.strip() in found:
            raise typer.BadParameter(f"{name.strip()!r} is given twice.", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def txn_of(text: str | None) -> tuple[str, int] | None:
    """Parses `--txn application:version`."""
    if text is None:
        return None
    application, _, version = text.rpartition(":")
    if not application or not version.isdecimal():
        raise typer.BadParameter(f"{text!r} is not APPLICATION:VERSION.", param_hint="--txn")
    return application, int(version)


def write_page(path: str, text: str, *, json: bool) -> None:
    """Writes a page; `-` is stdout, unless that is for JSON."""
    if path == "-":
        if json:
            raise typer.BadParameter("standard output is for --json: name a file.", param_hint="--html")
        print_bytes([text.encode()])
        return
    page = Path(path)
    was_there = page.exists()
    try:
        page.write_text(text, encoding="utf-8")
    except OSError as error:
        if not was_there:  # half of a page, or none
            with suppress(OSError):
                page.unlink(missing_ok=True)
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}.", param_hint="--html") from None
    sys.stderr.write(f"wrote {path}\n")


@contextmanager
def progress_of(what: str) -> Iterator[None]:
    """Shows the progress of each job of the block that takes more than a second, on stderr if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from mica.engines.progress import watched

    began: float | None = None
    bar: Bar | None = None

    def show(progress: Progress) -> None:
        nonlocal began, bar
        now = time.monotonic()
        began = now if began is None else began
        if now - began < 1:
            return
        bar = bar or _bar(what)
        done, total = progress.ended_tasks, progress.tasks
        if progress.total_bytes:
            done, total = progress.input_bytes, progress.total_bytes
        task = bar.tasks[0]
        task.start_time = began
        bar.update(task.id, completed=done, total=total or None, text=_text(progress, now - began))
        bar.start()

    def ended() -> None:
        nonlocal began
        began = None
        if bar is not None and bar.live.is_started:
            bar.stop()

    try:
        with watched(show, ended):
            yield
    finally:
        ended()


def _bar(what: str) -> Bar:
    """A bar on stderr that leaves nothing behind; rich is not loaded for commands that take no time."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(what), BarColumn(), TextColumn("{task.fields[text]}"), TimeElapsedColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.add_task(what, total=None, text="")
    return bar


def _text(progress: Progress, seconds: float) -> str:
    """The numbers that are known, and the rate of the best of them."""
    parts = [counted(progress.rows, "row")] if progress.rows else []
    parts += [counted(progress.files, "file")] if progress.files else []
    if progress.total_bytes:
        parts += [f"{progress.input_bytes / 1e6 / seconds:.0f} MB/s"]
    else:
        parts += [f"{progress.ended_tasks:,} of {counted(progress.tasks, 'task')}"] if progress.tasks else []
        parts += [f"{progress.rows / seconds:,.0f} rows/s"] if progress.rows else []
    return ", ".join(parts)


def storage_options(texts: Sequence[str] | None) -> Mapping[str, str] | None:
    """`--storage-option name=value`, repeated."""
    return pairs(texts, "--storage-option", secret=True) or None
