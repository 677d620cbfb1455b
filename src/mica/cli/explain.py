"""`mica explain`: shows which files, row groups, pages and rows a scan reads, and why it skips the rest."""

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
    analyze: Annotated[bool, typer.Option("--analyze", help="Run the scan and measure it.")] = False,
    footers: Annotated[
        bool | None,
        typer.Option("--footers/--no-footers", help="Open the footers of the kept files. Default: if they are few."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show which files, row groups, pages, rows and bytes would be read, and why the rest is skipped."""
    scan = scan_of(source, where, column, version=version, timestamp=timestamp, options=storage_option)
    report = scan.explain(analyze=analyze, footers=footers)
    if json:
        print_json(report.to_dict())
    else:
        out().print(report)
