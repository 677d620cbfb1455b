"""`mica convert`: converts tables and Parquet files from one shredding layout to the other."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mica.cli import options
from mica.cli.console import out, print_json, storage_options
from mica.cli.sessions import spark_session
from mica.maintain.convert import convert_files


def run(
    source: Annotated[
        list[str], typer.Argument(metavar="SRC…", help="A Delta table, or Parquet files, patterns or folders.")
    ],
    target: Annotated[str, typer.Argument(metavar="DST", help="A table or folder.")],
    layout: Annotated[Literal["standard", "early"], typer.Option("--layout", help="The layout to write.")] = "standard",
    to: Annotated[
        Literal["delta", "parquet"] | None,
        typer.Option("--to", help="The kind of DST. Default: a Delta table, or Parquet files in the early layout."),
    ] = None,
    mode: Annotated[
        Literal["append", "error", "ignore", "overwrite"],
        typer.Option("--mode", help="What to do if DST exists; for a table only error and ignore."),
    ] = "error",
    partition_by: options.PartitionBy = None,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Rewrite a table or Parquet files in the standard or the early shredding layout."""
    spark = spark_session() if on_spark else None
    stored = storage_options(storage_option)
    report = convert_files(
        source,
        target,
        layout=layout,
        to=to,
        mode=mode,
        partition_by=partition_by or (),
        spark=spark,
        storage_options=stored,
    )
    if json:
        print_json(report.to_dict())
    else:
        out().print(str(report), markup=False, highlight=False)
