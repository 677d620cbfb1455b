"""`mica scan`: shows rows of a table or of Parquet files."""

from __future__ import annotations

import sys

import typer

from mica.cli import options
from mica.cli.console import print_bytes, print_json, print_rows
from mica.cli.source import scan_of
from mica.scan.scan import Scan
from mica.variant.frames import json_lines, texts

#: Default number of rows to show.
SHOWN = 20


def run(
    source: options.Source,
    where: options.Where = None,
    column: options.Column = None,
    limit: options.Limit = None,
    count: options.Count = False,
    version: options.Version = None,
    timestamp: options.Timestamp = None,
    storage_option: options.StorageOption = None,
    json: options.JsonRows = False,
) -> None:
    """Show rows, or count them."""
    most = limit if limit is not None or json or count else SHOWN
    scan = scan_of(source, where, column, version=version, timestamp=timestamp, options=storage_option, limit=most)
    show(scan, count=count, json=json, cut=limit is None)


def show(scan: Scan, *, count: bool, json: bool, cut: bool) -> None:
    """Prints the rows of a scan, or their number; `cut` says that it ends after `SHOWN` rows by default."""
    if count:
        rows = scan.count()
        if json:
            print_json({"count": rows})
        else:
            typer.echo(rows)
        return
    if json:
        print_bytes(json_lines(scan.batches(), scan.schema))
        return
    shown, names = [], scan.schema.names
    for batch in scan.batches():
        columns = [texts(c, f.type) for c, f in zip(batch.columns, scan.schema.fields, strict=True)]
        shown += [[_short(value) for value in row] for row in zip(*columns, strict=True)]
    print_rows("", names, shown)
    if cut and len(shown) == SHOWN:
        sys.stderr.write(f"the first {SHOWN} rows; --limit shows more\n")


def _short(text: str | None, most: int = 120) -> str:
    text = "null" if text is None else text
    return text if len(text) <= most else text[: most - 1] + "…"
