"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
Html = Annotated[str | None, typer.Option("--html", metavar="FILE", help="Write a page of pictures; - is stdout.")]
Version = Annotated[int | None, typer.Option("--version", "-v", help="The table's version. Default: the newest.")]
Timestamp = Annotated[str | None, typer.Option("--timestamp", help="The version that was current at this time.")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="A predicate, e.g. \"v:kind::string = 'commit'\".")]
Column = Annotated[list[str] | None, typer.Option("--column", "-c", help="A column, or NAME=EXPRESSION. Repeatable.")]
PartitionBy = Annotated[list[str] | None, typer.Option("--partition-by", "-p", help="A partition column. Repeatable.")]
StorageOption = Annotated[
    list[str] | None, typer.Option("--storage-option", help="NAME=VALUE for the object store. Repeatable.")
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of rows. Default: 20.")]
Count = Annotated[bool, typer.Option("--count", help="Only count the rows.")]
JsonRows = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per row; all rows, unless --limit is given.")
]
OnSpark = Annotated[bool, typer.Option("--spark", help="Run as a job of an embedded Spark session.")]
TablePath = Annotated[str, typer.Argument(metavar="TABLE", help="The table's path or URI.")]
NewTable = Annotated[str, typer.Argument(metavar="TABLE", help="The table's path or URI; created if missing.")]
Source = Annotated[list[str], typer.Argument(metavar="TABLE|FILE…", help="A table, or Parquet files.")]
Txn = Annotated[
    str | None,
    typer.Option("--txn", help="APPLICATION:VERSION. Nothing is done if the table has this version or a later one."),
]

# What an ingest and a stream of JSON have in common.
VariantColumn = Annotated[str, typer.Option("--column", "-c", help="The Variant column.")]
Computed = Annotated[
    list[str] | None,
    typer.Option("--add", "-a", help="NAME=EXPRESSION, a column computed from each document. Repeatable."),
]
OnError = Annotated[
    Literal["fail", "quarantine"], typer.Option("--on-error", help="What to do with lines that cannot be read.")
]
NewProperty = Annotated[list[str] | None, typer.Option("--property", help="NAME=VALUE for a new table. Repeatable.")]
