"""`mica drift`: how the shape of a table's Variants has changed."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.checking.drift import KINDS, drift
from mica.cli import options
from mica.cli.console import out, print_json, storage_options, write_page
from mica.table import Table


def run(
    table: options.TablePath,
    since: Annotated[
        int | None, typer.Option("--since", help="Compare files after this version with those before. Default: halves.")
    ] = None,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", metavar="CHANGES", help=f"Exit with 1 on any of: {','.join(KINDS)}.")
    ] = None,
    storage_option: options.StorageOption = None,
    html: options.Html = None,
    json: options.Json = False,
) -> None:
    """Show new, vanished and unshredded paths, changed types and growing residuals, from footers and the log alone."""
    asked = [] if fail_on is None else [text.strip() for text in fail_on.split(",")]
    for text in asked:
        if text not in KINDS:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(KINDS)}.", param_hint="--fail-on")
    found = drift(Table.open(table, storage_options=storage_options(storage_option)), since)
    if html is not None:
        write_page(html, found.to_html(), json=json)
    if json:
        print_json(found.to_dict())
    elif html is None:
        out().print(found)
    if any(path.kind in asked for path in found.paths):
        raise typer.Exit(1)
