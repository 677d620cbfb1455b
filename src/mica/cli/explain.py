"""`mica explain`: which files a scan reads, and why not the others."""

from __future__ import annotations

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
    json: options.Json = False,
) -> None:
    """Show which files would be read and why the others would not; no data file is opened."""
    report = scan_of(source, where, column, version=version, timestamp=timestamp, options=storage_option).explain()
    if json:
        print_json(report.to_dict())
    else:
        out().print(report)
