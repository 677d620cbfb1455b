"""An explanation as a page: the levels of skipping, the files along each value of the predicate, and the reasons.

The rule: what a picture shows is what the plan knew; nothing is read for it but footers of some files, and for a table
its last commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array
from mica.expressions.tree import to_sql
from mica.log.history import commits
from mica.pictures import tree
from mica.pictures.page import Html, bar, code, folded, fragment, heading, paragraph, table
from mica.scan.along import pictures_of
from mica.scan.shredded import shredding_of
from mica.schema.ddl import type_to_ddl
from mica.skipping.kept import kept_files
from mica.skipping.reasons import dropped_files
from mica.tasks.parts import FilePart, parts_of
from mica.wording import counted

if TYPE_CHECKING:
    from mica.scan.explanation import Explanation
    from mica.scan.source import Source
    from mica.scan.table import TableSource

#: Skipped files and commits that are listed.
LISTED, LISTED_COMMITS = 100, 10


def page_of(report: Explanation) -> Html:
    """The inside of the page."""
    plan, path_of = report.scan.plan, report.scan.source.path_of
    parts = [paragraph(code(f"where {report.scan.where}"))] if report.scan.where is not None else []
    levels = ((level, f"{read:,}", f"{total:,}", bar(read, total)) for level, read, total in report.levels())
    parts += [heading("What is read"), table(("", "read", "of", ""), levels, right=("read", "of"))]
    parts += [paragraph(line, soft=True) for line in report.notes()]
    for title, drawn in pictures_of(plan, path_of):
        parts += [heading(title), drawn]
    reasons = [(f"{len(group.files):,}", "read", group.reason) for group in kept_files(plan)]
    numbers, counts = np.unique(plan.reasons, return_counts=True)
    for number, count in sorted(zip(numbers.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1]):
        reasons.append((f"{count:,}", "skipped", f"no row can satisfy {to_sql(plan.parts[number])}"))
    if reasons:
        parts += [heading("Why"), table(("files", "", "because"), reasons, right=("files",))]
    gone = dropped_files(plan, path_of, LISTED)
    if gone:
        more = len(plan.dropped) - len(gone)
        rows: list[Sequence[object]] = [(code(file["path"]), file["reason"]) for file in gone]
        rows += [(f"… and {more:,} more", "")] if more else []
        parts.append(folded(f"skipped files ({len(plan.dropped):,})", table(("file", "why"), rows)))
    parts += _shredding(report.scan.source, report.scan.whole_files(), "How the files that are read are shredded")
    return fragment(report.title(), parts)


def table_page(source: TableSource) -> Html:
    """What a table is: its columns, its files, how they are shredded, its last commits, its properties."""
    snapshot, files = source.snapshot, source.all_files()
    columns = [
        (code(f.name), code(type_to_ddl(f.type)), "" if f.nullable else "NOT NULL") for f in source.schema.fields
    ]
    rows = source.rows(arrow_array(range(files.num_rows), pa.int64()))
    size = pc.sum(files.column("size")).as_py() or 0
    facts = [
        ("files", f"{files.num_rows:,}"),
        ("bytes", f"{size:,}"),
        ("rows", "unknown" if rows.null_count else f"{pc.sum(rows).as_py() or 0:,}"),
    ]
    facts += [("partitioned by", ", ".join(source.partition_by))] if source.partition_by else []
    parts = [table(("", ""), facts), heading("Columns"), table(("name", "type", ""), columns)]
    shown = commits(snapshot.storage, limit=LISTED_COMMITS)  # newest first, also those after this version
    rows_of = [(one["version"], _when(one["timestamp"]), one["operation"], _metrics(one)) for one in shown]
    parts += [heading("History"), table(("version", "time", "operation", "metrics"), rows_of, right=("version",))]
    if snapshot.properties:
        named = [(code(name), code(value)) for name, value in sorted(snapshot.properties.items())]
        parts += [heading("Properties"), table(("name", "value"), named)]
    every = source.files(arrow_array(range(files.num_rows), pa.int64()))
    parts += _shredding(source, parts_of(every), "How its files are shredded")
    return fragment(f"{source.name}, version {source.version}", parts)


def _shredding(source: Source, files: Sequence[FilePart], title: str) -> list[Html]:
    """The shredding tree of some files."""
    rows, looked = shredding_of(source, files)
    if not rows:
        return []
    of = "" if looked == len(files) else f" of {len(files):,}"
    note = paragraph(f"by the footers of {counted(looked, 'file')}{of}", soft=True)
    return [heading(title), note, tree.picture(rows)]


def _when(time: Any) -> str:
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def _metrics(commit: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in commit["operation_metrics"] or ())
