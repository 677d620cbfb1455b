"""`mica stream`: a folder of JSON files that grows, into a table."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, pairs, print_json_line, storage_options
from mica.cli.sessions import spark_session
from mica.write.landing import stream_json


def run(
    source: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder that the files arrive in, or a pattern of them.")
    ],
    table: options.NewTable,
    interval: Annotated[
        float | None, typer.Option("--interval", "-i", help="Look again after so many seconds. Default: end.")
    ] = None,
    max_files: Annotated[int, typer.Option("--max-files", min=1, help="Files of one commit.")] = 1000,
    max_bytes: Annotated[str | None, typer.Option("--max-bytes", help="About so many bytes, e.g. 1GB.")] = None,
    column: options.VariantColumn = "v",
    computed: options.Computed = None,
    partition_by: options.PartitionBy = None,
    on_error: options.OnError = "fail",
    table_property: options.NewProperty = None,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object for each batch.")] = False,
) -> None:
    """Read the JSON files of a folder into a table, each once, and those that come later."""
    is_new = False
    for report in stream_json(
        source,
        table,
        spark=spark_session() if on_spark else None,
        interval=interval,
        max_files=max_files,
        max_bytes=max_bytes,
        storage_options=storage_options(storage_option),
        column=column,
        columns=pairs(computed, "--add"),
        partition_by=partition_by or (),
        on_error=on_error,
        properties=pairs(table_property, "--property"),
    ):
        is_new = True
        if json:
            print_json_line(report.to_dict())
        else:
            out().print(str(report), markup=False, highlight=False)
    if not (is_new or json) and out().is_terminal:  # a job of cron stays silent
        out().print(f"nothing new in {source}", markup=False, highlight=False)
