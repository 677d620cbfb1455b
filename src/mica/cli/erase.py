"""`mica erase`: a path goes from the Variants of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_commit, storage_options, txn_of
from mica.cli.sessions import spark_session
from mica.table import Table
from mica.wording import counted


def run(
    table: options.TablePath,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The column and its keys: v:user.email.")],
    where: options.Where = None,
    txn: options.Txn = None,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Erase a path of a Variant column from every row, or from those of --where.

    Files of older versions keep it until mica vacuum; mica check --erased lists what holds it still.
    """
    spark = spark_session() if on_spark else None
    opened = Table.open(table, storage_options=storage_options(storage_option))
    done = opened.erase(path, where, spark=spark, txn=txn_of(txn))
    if json:
        print_commit(done)
        return
    text = "done before" if done.repeated else "no row has the path"
    if done.metrics:
        removed, changed = done.metrics["numRemovedFiles"], done.metrics["numUpdatedRows"]
        text = f"version {done.version}: erased from {counted(changed, 'row')} of {counted(removed, 'file')}; "
        text += "mica check --erased lists what holds the path still"
    out().print(text, markup=False, highlight=False)
