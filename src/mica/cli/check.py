"""`mica check`: lists violations in files and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated

import typer

from mica.checking.check import LIMIT, check
from mica.checking.erased import check_erased
from mica.checking.report import Report
from mica.cli import options
from mica.cli.console import out, print_json, print_rows, storage_options
from mica.cli.sessions import spark_session
from mica.errors import UserError
from mica.wording import counted


def run(
    source: options.Source,
    version: options.Version = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Violations to list per kind and file.")] = LIMIT,
    on_spark: Annotated[bool, typer.Option("--spark", help="Check collated bounds too, on a Spark session.")] = False,
    erased: Annotated[
        str | None, typer.Option("--erased", help="A path, v:user.email: list what of a table still holds it, instead.")
    ] = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """List violations of the formats in Parquet files, and wrong bounds in a table's log.

    With --erased: which files, of which versions, and which files of the log hold a path. Exit status 1 if there are
    any.
    """
    stored = storage_options(storage_option)
    if erased is not None:
        if version is not None or on_spark:
            raise UserError(
                "INVALID_ARGUMENT", "--erased looks at all versions and files", hint="Leave --version and --spark out."
            )
        _erased(source, erased, stored, json)
        return
    asked = source[0] if len(source) == 1 else source
    spark = spark_session() if on_spark else None
    report = check(asked, version=version, limit=limit, storage_options=stored, spark=spark)
    if json:
        print_json(
            {
                "files": report.files,
                "violations": len(report),
                "totals": report.totals.to_pylist(),
                "listed": report.violations.to_pylist(),
                "notes": list(report.notes),
            }
        )
    else:
        _show(report)
    if not report.ok:
        raise typer.Exit(1)


def _erased(source: list[str], path: str, stored: Mapping[str, str] | None, json: bool) -> None:
    if len(source) != 1:
        raise UserError("INVALID_ARGUMENT", "--erased takes one table", hint="Name its location.")
    found = check_erased(source[0], path, storage_options=stored)
    if json:
        print_json(found.to_dict())
    elif found.ok:
        out().print(str(found), markup=False, highlight=False)
    else:
        names = ["kind", "file", "count", "first", "last", "goes_with"]
        rows = [[row[name] for name in names] for row in found.traces.to_pylist()]
        right = ["count", "first", "last"]
        print_rows(f"what holds {found.path}", [*names[:-1], "goes with"], rows, right=right)
    if not found.ok:
        raise typer.Exit(1)


def _show(report: Report) -> None:
    listed = report.violations.to_pylist()
    for file in report.faulty:
        rows = [
            [row["kind"], row["rule"], row["path"], row["row_group"], row["row"], row["found"]]
            for row in listed
            if row["file"] == file
        ]
        names = ["kind", "rule", "path", "row group", "row", "found"]
        print_rows(file, names, rows, right=["rule", "row group", "row"])
    kinds = Counter[str]()
    for total in report.totals.to_pylist():
        kinds[total["kind"]] += total["count"]
    shown = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    wrong = f"{counted(len(report), 'violation')} in {len(report.faulty)} of {counted(report.files, 'file')}: {shown}"
    for note in report.notes:
        out().print(note, markup=False, highlight=False)
    right = f"{counted(report.files, 'file')}, nothing wrong"
    out().print(right if report.ok else wrong, markup=False, highlight=False)
