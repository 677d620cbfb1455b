"""`mica optimize`: small files become large ones."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_commit, storage_options, txn_of
from mica.cli.sessions import spark_session
from mica.table import Table
from mica.wording import counted, sized


def run(
    table: options.TablePath,
    where: Annotated[str | None, typer.Option("--where", "-w", help="A predicate over partition columns.")] = None,
    target_file_size: Annotated[
        str | None, typer.Option("--target-file-size", help="About how large files become, such as 128MB.")
    ] = None,
    zorder_by: Annotated[
        list[str] | None,
        typer.Option("--zorder-by", "-z", help="A column or path, such as v:user.id, to order rows by. Repeatable."),
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also rewrite files that hold dropped columns, without these.")
    ] = False,
    txn: options.Txn = None,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Join a table's small files, drop the rows that deletion vectors delete, or order all rows by some columns."""
    spark = spark_session() if on_spark else None
    opened = Table.open(table, storage_options=storage_options(storage_option))
    done = opened.optimize(
        where, zorder_by=zorder_by, purge=purge, target_file_size=target_file_size, spark=spark, txn=txn_of(txn)
    )
    if json:
        print_commit(done)
        return
    text = "done before" if done.repeated else "nothing to do"
    if done.metrics:
        removed = done.metrics["numRemovedFiles"]
        text = f"version {done.version}: {counted(removed, 'file')} became {done.files:,}, {sized(done.bytes)}"
    out().print(text, markup=False, highlight=False)
