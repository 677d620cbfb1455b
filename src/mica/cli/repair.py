"""`mica repair`: rewrites faulty files so that they obey the formats."""

from __future__ import annotations

from typing import Annotated

import typer

from mica.cli import options
from mica.cli.console import out, print_json, storage_options
from mica.log.paths import LOG
from mica.maintain.repair import repair
from mica.wording import counted


def run(
    source: Annotated[str, typer.Argument(metavar="TABLE|FILE", help="A table, or a Parquet file.")],
    target: Annotated[str | None, typer.Argument(metavar="[OUT]", help="The file to write; omit for a table.")] = None,
    storage_option: options.StorageOption = None,
    json: options.Json = False,
) -> None:
    """Rewrite a Parquet file to OUT, or a table's faulty files in one commit."""
    done = repair(source, target, storage_options=storage_options(storage_option))
    if json:
        print_json({"files": done.files, "rows": done.rows, "version": done.version, "violations": len(done.report)})
        return
    version = "" if done.version is None else f", committed as version {done.version}"
    wrote = f"wrote {counted(len(done.files), 'file')} with {counted(done.rows, 'row')}{version}"
    text = f"{counted(len(done.report), 'violation')}; {wrote}"
    of_log = sum(row["count"] for row in done.report.totals.to_pylist() if row["file"] == LOG)
    if of_log:
        text += f"; {of_log} of the log, which no new data file mends: `mica check` names what to do"
    out().print(text, markup=False, highlight=False)
