"""`mica reshred`: the Variants of existing files get another shredding schema."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_commit, storage_options, txn_of
from mica.cli.sessions import spark_session
from mica.errors import UserError
from mica.schema.spelling import spelled
from mica.schema.types import variant_columns
from mica.table import Table
from mica.wording import counted, sized


def run(
    table: options.TablePath,
    schema: Annotated[
        list[str] | None,
        typer.Option("--schema", help="COLUMN=DDL, DDL alone if there is one VARIANT column, or rules. Repeatable."),
    ] = None,
    unshred: Annotated[bool, typer.Option("--unshred", help="Write all Variants unshredded.")] = False,
    where: Annotated[str | None, typer.Option("--where", "-w", help="A predicate over partition columns.")] = None,
    txn: options.Txn = None,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Rewrite Variants with another shredding schema; by default what a sample and the table's rules say."""
    if schema and unshred:
        raise UserError("INVALID_ARGUMENT", "--schema and --unshred were given", hint="Give one of them.")
    spark = spark_session() if on_spark else None
    opened = Table.open(table, storage_options=storage_options(storage_option))
    wanted: dict[str, str | None] | str | None = None
    if unshred:
        wanted = {spelled(column): None for column in variant_columns(opened.schema)}
    elif schema:
        named = [text.partition("=") for text in schema]
        wanted = schema[0] if len(schema) == 1 and not named[0][1] else {name: ddl for name, _, ddl in named}
    done = opened.reshred(wanted, where, spark=spark, txn=txn_of(txn))
    if json:
        print_commit(done)
        return
    text = "done before" if done.repeated else "nothing to do"
    if done.metrics:
        size = f"{counted(done.rows, 'row')}, {sized(done.bytes)}"
        text = f"version {done.version}: {counted(done.files, 'file')}, {size}"
    out().print(text, markup=False, highlight=False)
