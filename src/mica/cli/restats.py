"""`mica restats`: adds bounds to existing files."""

from __future__ import annotations

from typing import Annotated

import typer

from mica import engines
from mica.cli import options
from mica.cli.console import out, print_json, storage_options, txn_of
from mica.cli.sessions import spark_session
from mica.schema.named import find
from mica.table import Table
from mica.wording import counted
from mica.write.collated import bounded_columns, comparable


def run(
    table: options.TablePath,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", "-c", help="A collated or Variant column. Repeatable."),
    ] = None,
    txn: options.Txn = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Add or refresh the bounds of collated columns and variant paths; no data is rewritten."""
    opened = Table.open(table, storage_options=storage_options(storage_option))
    leaves = bounded_columns(opened.schema, opened.protocol, opened.properties, opened.partition_by)
    if column:
        named = {find(name, [leaf.column for leaf in leaves]) for name in column}
        leaves = [leaf for leaf in leaves if leaf.column in named]
    # UTF8_LCASE is compared in process and needs no JVM.
    made, _ = comparable(leaves, engines.of())
    spark = spark_session() if len(made) < len(leaves) else None
    commit = opened.restats(column or None, spark=spark, txn=txn_of(txn))
    if json:
        print_json({"version": commit.version, "files": commit.files, "repeated": commit.repeated})
        return
    done = "done before" if commit.repeated else "nothing to do"
    if commit.files:
        done = f"version {commit.version}: new bounds in {counted(commit.files, 'file')}"
    out().print(done, markup=False, highlight=False)
