"""`mica restore`: restores the content of an older version."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json, storage_options, txn_of
from mica.table import Table


def run(
    table: options.TablePath,
    version: Annotated[
        int | None, typer.Option("--version", "-v", help="The version to restore, or --timestamp.")
    ] = None,
    timestamp: options.Timestamp = None,
    txn: options.Txn = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Restore the content of an older version as the newest one, in one commit; nothing is rewritten."""
    if version is None and timestamp is None:
        raise typer.BadParameter("Give --version or --timestamp.")
    opened = Table.open(table, storage_options=storage_options(storage_option))
    done = opened.restore(version, timestamp, txn=txn_of(txn))
    if json:
        print_json(done.to_dict())
    else:
        out().print(str(done), markup=False, highlight=False)
