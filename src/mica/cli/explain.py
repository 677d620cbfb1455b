"""`mica explain`: what a scan reads of files, row groups, pages and rows, and why not the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json
from mica.cli.source import scan_of


def run(
    source: options.Source,
    where: options.Where = None,
    column: options.Column = None,
    version: options.Version = None,
    timestamp: options.Timestamp = None,
    storage_option: options.StorageOption = None,
    analyze: Annotated[bool, typer.Option("--analyze", help="Run the scan and say what it took.")] = False,
    footers: Annotated[
        bool | None,
        typer.Option("--footers/--no-footers", help="Open the footers of the kept files; unasked, where they are few."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show what would be read of files, row groups, pages, rows and bytes, and why the rest would not."""
    scan = scan_of(source, where, column, version=version, timestamp=timestamp, options=storage_option)
    report = scan.explain(analyze=analyze, footers=footers)
    if json:
        print_json(report.to_dict())
    else:
        out().print(report)
