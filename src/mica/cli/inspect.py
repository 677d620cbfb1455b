"""`mica inspect`: shows how a Parquet file's Variants are shredded."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mica.checking.inspect import inspect_file
from mica.cli import options
from mica.cli.console import out, print_json, storage_options


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Parquet file.")],
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Show a file's shredding tree: type, share typed, bytes, and rows and bytes of the residual per path."""
    rows = inspect_file(file, storage_options(storage_option or ()))
    if json:
        print_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(file), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in ("path", "type", "typed", "bytes", "residual rows", "residual bytes"):
        table.add_column(name, justify="left" if name in ("path", "type") else "right")
    for row in rows:
        path = row["path"].removeprefix("$")
        depth = path.count("['") + path.count("[*")
        shown = "  " * depth + (path[path.rfind("[") :].strip("[]'") if path else row["column"])
        sizes = [f"{row[name]:,}" for name in ("typed_bytes", "residual_rows", "residual_bytes")]
        table.add_row(Text(shown), Text(row["type"]), _share(row), *sizes)
    out().print(table)


def _share(row: dict[str, Any]) -> str:
    typed, residual = row["typed_rows"], row["residual_rows"]
    # A typed object may also have a residual with its rare fields; their number is a separate column.
    share = typed / max(typed, typed + residual if row["type"] != "object" else typed, 1)
    # Rare rows matter: the text is never 0 % or 100 % if there are some.
    return ">99.9%" if 0.9995 <= share < 1 else "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"
