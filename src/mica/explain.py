"""What a scan will read and why the rest is left: for people as a table, for programs as a dictionary.

The rule: nothing is opened to explain; what is shown is what the plan knew when it decided.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from mica.schema.ddl import type_to_ddl
from mica.skipping.explain import dropped_files, undecided_files
from mica.skipping.predicate import to_sql

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from mica.scan import Scan

#: Dropped files that are shown to a person; `to_dict` has them all.
SHOWN = 5


@dataclass(frozen=True)
class Explanation:
    """The plan of a scan."""

    scan: Scan

    @cached_property
    def _bytes(self) -> tuple[int, int]:
        total = pc.sum(self.scan.source.all_files().column("size")).as_py() or 0
        return total, pc.sum(self.scan.kept.column("size")).as_py() or 0

    def to_dict(self) -> dict[str, Any]:
        """`files` has `total`, `kept`, `dropped` (each dropped file's path, bounds and reason) and `undecided` (each
        kept file whose collated bounds could not be judged: path, column, collation, reason), `bytes` the totals.
        """
        scan = self.scan
        paths = scan.source.all_files().column("path")
        return {
            "source": scan.source.name,
            "version": scan.source.version,
            "where": scan.where,
            "predicate": None if scan.predicate is None else [to_sql(part) for part in scan.plan.parts],
            "columns": {f.name: type_to_ddl(f.type) for f in scan.schema.fields},
            "limit": scan.limit,
            "files": {
                "total": scan.plan.total,
                "kept": len(scan.plan.kept),
                "dropped": dropped_files(scan.plan, paths),
                "undecided": undecided_files(scan.plan, paths),
            },
            "bytes": {"total": self._bytes[0], "kept": self._bytes[1]},
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        yield Text(str(self).partition("\n")[0], style="bold")
        for line in self._head():
            yield Text("  " + line)
        dropped = dropped_files(self.scan.plan, self.scan.source.all_files().column("path"), SHOWN)
        if dropped:
            table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 2))
            table.add_column("dropped file", overflow="ellipsis", no_wrap=True, max_width=44)
            table.add_column("why", overflow="fold")
            for file in dropped:
                table.add_row(Text(file["path"]), Text(file["reason"]))
            more = len(self.scan.plan.dropped) - len(dropped)
            if more > 0:
                table.add_row(Text(f"… and {more:,} more"), Text(""))
            yield table

    def __str__(self) -> str:
        scan = self.scan
        at = "" if scan.source.version is None else f", version {scan.source.version}"
        dropped = dropped_files(scan.plan, scan.source.all_files().column("path"), SHOWN)
        lines = [f"{scan.source.name}{at}", *("  " + line for line in self._head())]
        lines += [f"  dropped {file['path']}: {file['reason']}" for file in dropped]
        if len(scan.plan.dropped) > len(dropped):
            lines.append(f"  … and {len(scan.plan.dropped) - len(dropped):,} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _head(self) -> list[str]:
        scan = self.scan
        total, kept = self._bytes
        share = f"{kept / total:.1%}" if total else "0%"
        lines = [
            f"files: {len(scan.plan.kept):,} of {scan.plan.total:,} are read",
            f"bytes: {kept:,} of {total:,} ({share}) are in these files",
        ]
        reasons = Counter(f["reason"] for f in undecided_files(scan.plan, scan.source.all_files().column("path")))
        lines += [f"not judged: {count:,} of these files: {reason}" for reason, count in reasons.most_common(SHOWN)]
        return [f"where {scan.where}", *lines] if scan.where is not None else lines
