"""`mica ingest`: JSON files into a table."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import typer

from mica.cli import options
from mica.cli.console import out, pairs, print_json, storage_options
from mica.cli.sessions import spark_session
from mica.errors import MicaError, UserError
from mica.write.ingest import ingest_json


@contextmanager
def standard_input(paths: list[str]) -> Iterator[list[str]]:
    """The paths, with standard input copied to a file, since an ingest reads parts of its input twice."""
    if "-" not in paths:
        yield paths
        return
    if sys.stdin is None:
        raise UserError("NO_INPUT", "standard input is closed", hint="Name a file, or pipe one into it.")
    with TemporaryDirectory(prefix="mica-") as directory:
        spooled = Path(directory, "standard-input")
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        try:
            yield [str(spooled) if path == "-" else path for path in paths]
        except MicaError as error:  # the copy is gone when a person reads this
            error.message = error.message.replace(str(spooled), "standard input")
            error.hint = error.hint and error.hint.replace(str(spooled), "-")
            error.context = {key: "-" if value == str(spooled) else value for key, value in error.context.items()}
            raise


def run(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…", help="JSON files or patterns (NDJSON or arrays; gzip, zstd); - is standard input."
        ),
    ],
    table: options.NewTable,
    column: options.VariantColumn = "v",
    computed: options.Computed = None,
    partition_by: options.PartitionBy = None,
    sort_by: Annotated[
        list[str] | None, typer.Option("--sort-by", "-s", help="An expression to sort by. Repeatable.")
    ] = None,
    shredding: Annotated[
        str | None, typer.Option("--shredding", help="A shredding schema (Spark DDL), or rules: features.*: skip.")
    ] = None,
    mode: Annotated[
        Literal["append", "error", "ignore", "overwrite"],
        typer.Option("--mode", help="What to do if the table exists."),
    ] = "append",
    format: Annotated[  # noqa: A002 - the option's name
        Literal["auto", "ndjson", "json"],
        typer.Option("--format", help="ndjson: a document per line. json: an array, or documents over several lines."),
    ] = "auto",
    on_error: options.OnError = "fail",
    quarantine: Annotated[
        str | None, typer.Option("--quarantine", help="Where to write bad lines. Default: the table's _quarantine/.")
    ] = None,
    target_file_size: Annotated[str | None, typer.Option("--target-file-size", help="E.g. 128MB.")] = None,
    table_property: options.NewProperty = None,
    last_key_wins: Annotated[
        bool, typer.Option("--last-key-wins", help="Keep the last of duplicate keys instead of refusing.")
    ] = False,
    invalid_utf8: Annotated[
        Literal["error", "replace"],
        typer.Option(
            "--invalid-utf8", help="Bytes that are not UTF-8 make a bad line (error) or become U+FFFD (replace)."
        ),
    ] = "error",
    max_size: Annotated[str, typer.Option("--max-size", help="The largest document, at most 128MB.")] = "16MB",
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="Skip files that were ingested before, by name and time.")
    ] = False,
    schema_evolution: Annotated[
        bool, typer.Option("--schema-evolution", help="Add the columns that an existing table lacks.")
    ] = False,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Read JSON files into the Variant column of a Delta table, in one commit."""
    spark = spark_session() if on_spark else None
    if "-" in paths and idempotent:
        raise UserError.bad_value("idempotent", idempotent, "False for standard input, which has no name")
    with standard_input(paths) as files:
        report = ingest_json(
            files,
            table,
            spark=spark,
            column=column,
            columns=pairs(computed, "--add"),
            partition_by=partition_by or (),
            sort_by=sort_by or (),
            shredding=shredding,
            mode=mode,
            format=format,
            on_error=on_error,
            quarantine=quarantine,
            target_file_size=target_file_size,
            properties=pairs(table_property, "--property"),
            duplicate_keys="last" if last_key_wins else "error",
            invalid_utf8=invalid_utf8,
            max_size=max_size,
            idempotent=idempotent,
            schema_evolution=schema_evolution,
            storage_options=storage_options(storage_option),
        )
    if json:
        print_json(report.to_dict())
    else:
        out().print(str(report), markup=False, highlight=False)
