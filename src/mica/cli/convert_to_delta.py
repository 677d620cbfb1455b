"""`mica convert-to-delta`: a folder of Parquet files becomes a Delta table in place."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json, storage_options
from mica.cli.sessions import spark_session
from mica.table import Table
from mica.wording import counted


def run(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder of Parquet files.")],
    partition_by: Annotated[
        str | None,
        typer.Option("--partition-by", "-p", help="Types of the partition columns, such as 'day DATE, n INT'."),
    ] = None,
    on_spark: options.OnSpark = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Make a folder of Parquet files a Delta table; the files stay where they are."""
    spark = spark_session() if on_spark else None
    table = Table.convert_to_delta(folder, partition_by, storage_options=storage_options(storage_option), spark=spark)
    files, rows = table.files().num_rows, table.count()
    if json:
        print_json({"table": table.path, "version": table.version, "files": files, "rows": rows})
    else:
        out().print(f"{table.path}: {counted(files, 'file')}, {counted(rows, 'row')}", markup=False, highlight=False)
