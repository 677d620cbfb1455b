"""`mica explain`: shows which files, row groups, pages and rows a scan reads, and why it skips the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json, write_page
from mica.cli.plain import plain
from mica.cli.sessions import spark_session
from mica.cli.source import scan_of
from mica.cli.sql import Tables, named, sparks_errors


def run(
    source: Annotated[
        list[str] | None, typer.Argument(metavar="TABLE|FILE…", help="A table, or Parquet files.")
    ] = None,
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
    sql: Annotated[str | None, typer.Option("--sql", help="Explain the tables of this query instead.")] = None,
    table: Tables = None,
    html: options.Html = None,
    json: options.Json = False,
) -> None:
    """Show which files, row groups, pages, rows and bytes would be read, and why the rest is skipped."""
    if sql is not None and (html is not None or footers is not None):
        raise typer.BadParameter("a query has no page, and no footers are opened for it.", param_hint="--sql")
    if sql is not None:
        _of_query(
            sql,
            table,
            storage_option,
            analyze=analyze,
            json=json,
            others=bool(source or where or column or version is not None or timestamp),
        )
        return
    if not source:
        raise typer.BadParameter("name a table or files, or give --sql.")
    scan = scan_of(source, where, column, version=version, timestamp=timestamp, options=storage_option)
    report = scan.explain(analyze=analyze, footers=footers)
    if html is not None:
        write_page(html, report.to_html(), json=json)
    if json:
        print_json(report.to_dict())
    elif html is None:
        out().print(report)


def _of_query(
    text: str, tables: list[str] | None, stored: list[str] | None, *, analyze: bool, json: bool, others: bool
) -> None:
    from mica.query.explained import explain

    if others:
        raise typer.BadParameter("a query names its own tables, versions, columns and conditions.", param_hint="--sql")
    with named(tables, stored), sparks_errors():
        report = explain(text, spark_session(), analyze=analyze)
        if json:
            print_json(report.to_dict())
        else:
            typer.echo(plain(str(report)))
