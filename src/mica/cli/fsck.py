"""`mica fsck`: leaves files out of a table that are gone."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json, storage_options
from mica.table import Table

#: Number of files to list.
SHOWN = 20


def run(
    table: options.TablePath,
    dry_run: Annotated[
        bool, typer.Option("--dry-run/--remove", help="List what would leave the table, or commit it.")
    ] = True,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """List files of a table that are gone, or whose deletion vector is; with --remove, leave them out of the table.

    Their rows are lost; all others can be read again. Put files back that there is a copy of before.
    """
    done = Table.open(table, storage_options=storage_options(storage_option)).fsck(dry_run=dry_run)
    if json:
        print_json(done.to_dict())
        return
    files = done.missing.to_pylist()[:SHOWN]
    lines = [
        f"  {file['data_file_path']}" + ("" if file["data_file_missing"] else f" (its {file['deletion_vector_path']})")
        for file in files
    ]
    lines += [f"  … and {done.files - SHOWN:,} more"] if done.files > SHOWN else []
    hint = ["Put back what there is a copy of; add --remove to leave the others out."] if dry_run and files else []
    out().print("\n".join([str(done), *(lines if dry_run else []), *hint]), markup=False, highlight=False)
