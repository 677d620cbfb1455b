"""`mica check`: lists violations in files and tables."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from mica.checking.check import LIMIT, check
from mica.checking.report import Report
from mica.cli import options
from mica.cli.console import out, print_json, print_rows, spark_session, storage_options


def run(
    source: options.Source,
    version: options.Version = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Violations to list per kind and file.")] = LIMIT,
    on_spark: Annotated[bool, typer.Option("--spark", help="Check collated bounds too, on a Spark session.")] = False,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """List violations of the formats in Parquet files, and wrong bounds in a table's log.

    Exit status 1 if there are any.
    """
    stored = storage_options(storage_option or ())
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
    wrong = f"{len(report):,} violations in {len(report.faulty)} of {report.files} files: {shown}"
    for note in report.notes:
        out().print(note, markup=False, highlight=False)
    out().print(f"{report.files} files, nothing wrong" if report.ok else wrong, markup=False, highlight=False)
