"""`mica log`: shows the commits of a table."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from mica.cli import options
from mica.cli.console import out, print_json, print_rows, storage_options
from mica.log.history import commits
from mica.table import Table
from mica.wording import shortened

#: No value is shown longer than this in a terminal.
LONGEST = 60


def run(
    table: options.TablePath,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Show only this many, the newest.")] = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Show the history of a table, newest first."""
    opened = Table.open(table, storage_options=storage_options(storage_option))
    rows = commits(opened.snapshot.storage, limit=limit, opened=opened.snapshot)
    if json:
        print_json([{name: dict(v) if isinstance(v, list) else v for name, v in row.items()} for row in rows])
        return
    shown = [[row["version"], _time(row["timestamp"]), row["operation"], _facts(row)] for row in rows]
    print_rows(table, ["version", "time (UTC)", "operation", "what"], shown, right=["version"])


def _time(value: object) -> str:
    """A time of a year that Python does not have is a number (`log/history.py`)."""
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)


def _facts(row: dict[str, Any]) -> str:
    """What happened: no metrics that are 0, and in a terminal long values, such as schemas, are cut."""
    metrics = [(key, value) for key, value in row["operation_metrics"] or () if value != "0"]
    pairs = [*(row["operation_parameters"] or ()), *metrics]
    cut = out().is_terminal
    return ", ".join(f"{key}={shortened(str(value), LONGEST) if cut else value}" for key, value in pairs)
