"""`mica stats`: shows the statistics of a table's files, with decoded bounds of Variants."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import orjson
import typer

from mica.cli import options
from mica.cli.console import print_json, print_rows, storage_options
from mica.log.paths import decode_path
from mica.stats.shown import decoded
from mica.table import Table
from mica.wording import counted


def run(
    table: options.TablePath,
    path: Annotated[str | None, typer.Option("--path", help="Only columns and paths that contain this text.")] = None,
    version: options.Version = None,
    timestamp: options.Timestamp = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Show the bounds that the log holds for each file."""
    opened = Table.open(table, version, timestamp, storage_options(storage_option))
    found = []
    for row in opened.files().select(["path", "size", "stats"]).to_pylist():
        stats = decoded(row["stats"], opened.schema)
        if path is not None:
            stats["columns"] = [c for c in stats["columns"] if path in c["column"]]
        found.append({"path": decode_path(row["path"]), "size": row["size"], **stats})
    if json:
        print_json(found)
        return
    names = ["column", "min", "max", "nulls"]
    if path is None:
        for file in found:
            head = f"{file['path']}: {counted(file['rows'], 'row')}, {file['size']:,} bytes"
            print_rows(head, names, _rows(file), right=["nulls"])
        return
    rows = [[file["path"], *row] for file in found for row in _rows(file)]
    if rows:  # few columns: a line for each, not a table for each file
        print_rows("", ["file", *names], rows, right=["nulls"], short="file")
    without = sum(not file["columns"] for file in found)
    if without:
        sys.stderr.write(f"{counted(without, 'file')} of {len(found):,} without bounds of a column like {path!r}\n")


def _rows(file: dict[str, Any]) -> list[list[Any]]:
    return [[_name(c), _text(c["min"]), _text(c["max"]), c["nulls"]] for c in file["columns"]]


def _name(column: dict[str, Any]) -> str:
    return f"{column['column']} by {column['collation']}" if "collation" in column else str(column["column"])


def _text(value: object) -> str:
    return "" if value is None else orjson.dumps(value, default=str).decode()
