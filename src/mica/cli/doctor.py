"""`mica doctor`: shows what mica finds on this machine and in a place for tables, and what is wrong."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from mica.checking.doctor import doctor
from mica.cli import options
from mica.cli.console import out, print_json, storage_options
from mica.cli.hints import spoken
from mica.cli.sessions import spark_session


def run(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A table, or where one will be: a small file is put there.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Ask a worker of an embedded Spark session too.")] = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Show what is installed and reachable, and what is wrong; the exit status is 1 if something is."""
    looked = doctor(table, spark_session if spark else None, storage_options(storage_option))
    found = [replace(one, way_out=one.way_out and spoken(one.way_out)) for one in looked]
    wrong = [finding for finding in found if finding.way_out is not None]
    if json:
        print_json([asdict(finding) for finding in found])
    else:
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=None, pad_edge=False, show_header=False)
        for finding in found:
            mark = Text("ok", style="green") if finding.way_out is None else Text("wrong", style="bold red")
            text = finding.found if finding.way_out is None else f"{finding.found}\n{finding.way_out}"
            shown.add_row(mark, Text(finding.what, style="bold"), Text(text))
        out().print(shown)
    if wrong:
        raise typer.Exit(1)
