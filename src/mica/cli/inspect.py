"""`mica inspect`: how a Parquet file's Variants are shredded."""

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
    """Show a file's shredding tree: type, share typed, bytes and residual bytes per path."""
    rows = inspect_file(file, storage_options(storage_option or ()))
    if json:
        print_json(rows)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(file), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in ("path", "type", "typed", "bytes", "residual bytes"):
        table.add_column(name, justify="left" if name in ("path", "type") else "right")
    for row in rows:
        path = row["path"].removeprefix("$")
        depth = path.count("['") + path.count("[*")
        shown = "  " * depth + (path[path.rfind("[") :].strip("[]'") if path else row["column"])
        sizes = [f"{row[name]:,}" for name in ("typed_bytes", "residual_bytes")]
        table.add_row(Text(shown), Text(row["type"]), _share(row), *sizes)
    out().print(table)


def _share(row: dict[str, Any]) -> str:
    typed, residual = row["typed_rows"], row["residual_rows"]
    # An object that is typed and has a residual is counted on both sides: the residual holds its rare fields.
    return f"{typed / max(typed, typed + residual if row['type'] != 'object' else typed, 1):.1%}"
