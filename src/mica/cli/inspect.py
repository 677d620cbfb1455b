"""`mica inspect`: shows how a Parquet file's Variants are shredded."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.checking.inspect import inspect_file
from mica.cli import options
from mica.cli.console import out, print_json, storage_options, write_page
from mica.pictures import tree
from mica.pictures.page import document, fragment


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A Parquet file.")],
    storage_option: options.StorageOption = None,
    html: options.Html = None,
    json: options.Json = False,
) -> None:
    """Show a file's shredding tree: type, share typed, bytes, and rows and bytes of the residual per path."""
    rows = inspect_file(file, storage_options(storage_option))
    if html is not None:
        write_page(html, document(file, fragment(file, [tree.picture(rows)])), json=json)
    if json:
        print_json(rows)
    if json or html is not None:
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(file), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in ("path", "type", "typed", "bytes", "residual rows", "residual bytes"):
        table.add_column(name, justify="left" if name in ("path", "type") else "right")
    for row in rows:
        sizes = [f"{row[name]:,}" for name in ("typed_bytes", "residual_rows", "residual_bytes")]
        shown = Text("  " * tree.depth(row) + tree.label(row))
        typed = tree.share(row["typed_rows"], row["typed_rows"] + row["other_rows"])
        table.add_row(shown, Text(row["type"]), typed, *sizes)
    out().print(table)
