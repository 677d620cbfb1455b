"""`mica changes`: shows the rows that changed in some versions of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import storage_options
from mica.cli.scan import SHOWN, show
from mica.cli.source import named
from mica.table import Table


def run(
    table: options.TablePath,
    from_version: Annotated[int | None, typer.Option("--from-version", min=0, help="The first version.")] = None,
    to_version: Annotated[
        int | None, typer.Option("--to-version", min=0, help="The last version. Default: the newest.")
    ] = None,
    from_timestamp: Annotated[
        str | None, typer.Option("--from-timestamp", help="Start with the first version at or after this time.")
    ] = None,
    to_timestamp: Annotated[
        str | None, typer.Option("--to-timestamp", help="End with the last version at or before this time.")
    ] = None,
    where: options.Where = None,
    column: options.Column = None,
    limit: options.Limit = None,
    count: options.Count = False,
    storage_option: options.StorageOption = None,
    json: options.JsonRows = False,
) -> None:
    """Show the rows that changed, with the type, version and time of each change."""
    opened = Table.open(table, storage_options=storage_options(storage_option))
    if from_version is None and from_timestamp is None:
        from_version = 0
    scan = opened.changes(
        from_version,
        to_version,
        from_timestamp=from_timestamp,
        to_timestamp=to_timestamp,
        where=where,
        columns=named(column),
        limit=limit if limit is not None or json or count else SHOWN,
    )
    show(scan, count=count, json=json, cut=limit is None)
