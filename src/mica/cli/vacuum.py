"""`mica vacuum`: deletes files that no retained version uses."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json, storage_options
from mica.table import Table

#: Number of files to list.
SHOWN = 20

_HOURS = re.compile(r"\d+(\.\d+)?")


def run(
    table: options.TablePath,
    retention: Annotated[
        str | None,
        typer.Option("--retention", help="How long to keep removed files: '7 days', or hours. Default: the table's."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run/--delete", help="List what would be deleted, or delete it.")
    ] = True,
    enforce_retention: Annotated[
        bool,
        typer.Option(
            "--enforce-retention/--no-enforce-retention",
            help="Refuse a retention below the table's delta.deletedFileRetentionDuration.",
        ),
    ] = True,
    lite: Annotated[
        bool, typer.Option("--lite/--full", help="Only files that the log says were removed, or all unused files.")
    ] = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Delete data files that no version within the retention uses; without --delete, list them."""
    opened = Table.open(table, storage_options=storage_options(storage_option))
    kept = float(retention) if retention is not None and _HOURS.fullmatch(retention) else retention
    done = opened.vacuum(kept, dry_run=dry_run, enforce_retention=enforce_retention, lite=lite)
    if json:
        print_json(done.to_dict())
        return
    paths = done.deleted.column("path").to_pylist()
    lines = [*paths[:SHOWN], *([f"… and {len(paths) - SHOWN:,} more"] if len(paths) > SHOWN else [])]
    lines = [f"  {line}" for line in lines] if dry_run else []
    hint = ["Add --delete to delete them."] if dry_run and paths else []
    out().print("\n".join([str(done), *lines, *hint]), markup=False, highlight=False)
