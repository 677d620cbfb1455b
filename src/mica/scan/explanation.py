"""Explains what a scan will read and why it skips the rest: a table for people, a dict for programs.

The rule: an explanation shows what the plan knew when it decided, and what the footers of the kept files say. Footers
are opened on demand, on all cores, and by default only if at most `FOOTERS` files are kept, so a plan over 10,000 files
is explained from the log alone. Only `analyze` reads rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import compute as pc
from mica.cached import cached_property
from mica.engines import local
from mica.errors import MicaError
from mica.expressions.collations import judged_in_process
from mica.expressions.tree import to_sql
from mica.pictures.paged import Paged
from mica.records import dataclass
from mica.scan.table import TableSource
from mica.schema.ddl import type_to_ddl
from mica.skipping.kept import kept_files
from mica.skipping.reasons import dropped_by_part, dropped_files, undecided_files
from mica.tasks.costs import COSTS, footer_costs, measured_costs
from mica.tasks.parts import grouped
from mica.wording import counted, short_path

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from mica.pictures.page import Html
    from mica.scan.scan import Scan

#: Skipped files that are shown to a person; `to_dict` has them all.
SHOWN = 5

#: Footers are opened by default if at most this many files are kept.
FOOTERS = 64

#: Width of the bars, and of the names of skipped files where there is room.
BAR, PATH = 24, 44

_LEVELS = ("row_groups", "pages", "rows")


@dataclass(frozen=True)
class Explanation(Paged):
    """The plan of a scan and, with `analyze`, the measurements of a run in this process.

    `footers` says whether to open the footers of the kept files; None: if there are at most `FOOTERS` of them.
    """

    scan: Scan
    analyze: bool = False
    footers: bool | None = None

    @cached_property
    def _bytes(self) -> tuple[int, int]:
        total = pc.sum(self.scan.source.all_files().column("size")).as_py() or 0
        return total, pc.sum(self.scan.kept.column("size")).as_py() or 0

    @cached_property
    def _costs(self) -> tuple[pa.Table | None, str | None]:
        """The costs of the kept files, or the reason why their footers were not opened."""
        kept = self.scan.kept.num_rows
        unasked = self.footers is None and not self.analyze
        if self.footers is False and not self.analyze:
            return None, "not opened (footers=False, --no-footers)"
        if unasked and kept > FOOTERS:
            return None, f"not opened, {kept:,} are too many by default (footers=True, --footers opens them)"
        if unasked and not all(map(judged_in_process, self.scan.collations)):
            return None, "only Spark can compare by this collation"
        try:
            return self._look(), None
        except MicaError as e:
            if unasked:
                return None, f"{e.code}: {e.message}"
            raise

    def _look(self) -> pa.Table:
        parts = self.scan.whole_files()
        # With a limit, files are read one after the other until it is reached.
        groups = 1 if self.analyze and self.scan.limit is not None else max(1, min(len(parts), 8 * local.threads()))
        tasks = grouped(parts, lambda _: 1, -(-len(parts) // groups))
        task = partial(measured_costs if self.analyze else footer_costs, self.scan.spec())
        return pa.Table.from_batches(local.shown(task, tasks), COSTS)

    def to_dict(self) -> dict[str, Any]:
        """`files` has `total`, `kept`, `dropped` (path, bounds and reason of each skipped file), `undecided` (each kept
        file whose collated bounds could not be evaluated: path, column, collation, reason), `kept_because` (the reasons
        for which files stay, with their numbers of files); `bytes` has totals.

        If the footers of the kept files were opened (`footers`: `opened`, `of`, and `why` not), `row_groups`, `pages`
        and `rows` have `total` and `kept`, and `row_groups` has `dropped` (by what, reason, spans, rows).
        `bytes.columns` is the size of the requested columns, `bytes.read` an upper bound of the bytes read.

        `analyze` adds `rows` (returned), `rows_judged` (evaluated), `row_groups`, `pages`, `bytes`, `bytes_fetched`
        (footers and indexes included), `seconds` (summed over all threads), and `files` with the same per file; also
        `paths`: for each path of a Variant that was read, how many of its values came from its typed column (`typed`),
        how many from a residual (`residual`).
        """
        scan = self.scan
        found: dict[str, Any] = {
            "source": scan.source.name,
            "version": scan.source.version,
            "where": scan.where,
            "predicate": None if scan.predicate is None else [to_sql(part) for part in scan.plan.parts],
            "columns": {f.name: type_to_ddl(f.type) for f in scan.schema.fields},
            "limit": scan.limit,
            "files": {
                "total": scan.plan.total,
                "kept": len(scan.plan.kept),
                "dropped": dropped_files(scan.plan, scan.source.path_of),
                "undecided": undecided_files(scan.plan, scan.source.path_of),
                "kept_because": [
                    {"reason": group.reason, "files": len(group.files)} for group in kept_files(scan.plan)
                ],
            },
            "bytes": {"total": self._bytes[0], "kept": self._bytes[1]},
        }
        costs, why = self._costs
        found["footers"] = {"opened": 0, "of": len(scan.plan.kept), "why": why}
        if costs is None:
            return found
        files = costs.filter(costs.column("path").is_valid())
        found["footers"]["opened"] = files.num_rows
        for level in _LEVELS:
            found[level] = {"total": _sum(files, f"{level}_total"), "kept": _sum(files, level)}
        found["row_groups"]["dropped"] = list(self._reasons(costs))
        found["bytes"] |= {"columns": _sum(files, "bytes_total"), "read": _sum(files, "bytes")}
        if self.analyze:
            found["analyze"] = {
                "rows": _sum(files, "rows_passed"),
                "rows_judged": _sum(files, "rows"),
                **{name: _sum(files, name) for name in ("row_groups", "pages", "bytes", "bytes_fetched")},
                "seconds": round(pc.sum(files.column("seconds")).as_py() or 0.0, 6),
                "files": [
                    {name: row[name] for name in ("path", "rows_passed", "rows", "pages", "bytes", "bytes_fetched")}
                    for row in files.to_pylist()
                ],
                "paths": list(self._origins(costs)),
            }
        return found

    def _origins(self, costs: pa.Table) -> Iterator[dict[str, Any]]:
        read = costs.filter(costs.column("leaf").is_valid())
        sums = pc.grouped(read, ["leaf"], [("typed", "sum"), ("residual", "sum")], use_threads=False)
        for row in sums.sort_by("leaf").to_pylist():
            yield {"path": row["leaf"], "typed": row["typed_sum"], "residual": row["residual_sum"]}

    def _reasons(self, costs: pa.Table) -> Iterator[dict[str, Any]]:
        gone = costs.filter(costs.column("what").is_valid())
        sums = pc.grouped(gone, ["what", "part"], [("spans", "sum"), ("rows", "sum")], use_threads=False)
        asked = self.scan.skips or self.scan.predicate
        parts = () if asked is None else asked.parts
        for row in sums.to_pylist():
            part = to_sql(parts[row["part"]])
            by = "bloom filter" if row["what"] == "bloom filters" else "bounds"
            what = "row groups" if row["what"] == "bloom filters" else row["what"]
            reason = f"no row can satisfy {part}, by the {by} of the {what}"
            yield {"by": row["what"], "reason": reason, "spans": row["spans_sum"], "rows": row["rows_sum"]}

    # --- for people --------------------------------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table
        from rich.text import Text

        yield Text(self.title(), style="bold")
        if self.scan.where is not None:
            yield Text(f"  where {self.scan.where}")
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 2))
        table.add_column("")
        levels = list(self.levels())
        digits = max((len(f"{total:,}") for _, _, total in levels), default=0)
        for name in ("read", "of"):
            table.add_column(name, justify="right", min_width=digits)
        table.add_column("share", no_wrap=True)
        # Without colours the marks tell what is read. The bar gives way: a number that is cut is another number.
        mark, rest = "━─" if options.encoding.startswith("utf") else "#-"
        others = max((len(level) for level, _, _ in levels), default=0) + 2 * digits + len(" 100.0%") + 4 * len("   ")
        most = max(0, min(BAR, options.max_width - others))
        for level, read, total in levels:
            full = round(most * read / total) if total else 0
            bar = Text(mark * full, style="cyan") + Text(rest * (most - full), style="bright_black")
            table.add_row(level, f"{read:,}", f"{total:,}", bar + Text(f" {_share(read, total)}"))
        yield table
        for line in self.notes():
            yield Text("  " + line)
        plan, room = self.scan.plan, max(PATH // 2, min(PATH, options.max_width // 3))
        for part, dropped in dropped_by_part(plan, self.scan.source.path_of, SHOWN).items():
            yield Text(f"  skipped, since no row can satisfy {part}:")
            files = Table(box=None, show_header=False, padding=(0, 0, 0, 4))
            files.add_column(no_wrap=True)
            files.add_column(overflow="fold")
            for path, facts in dropped:
                files.add_row(Text(short_path(path, room)), Text(facts))
            yield files
        if len(plan.dropped) > SHOWN:
            yield Text(f"  … and {len(plan.dropped) - SHOWN:,} more")

    def __str__(self) -> str:
        scan = self.scan
        dropped = dropped_files(scan.plan, scan.source.path_of, SHOWN)
        lines = [self.title()]
        lines += [f"  where {scan.where}"] if scan.where is not None else []
        lines += [f"  {level}: {read:,} of {total:,} ({_share(read, total)})" for level, read, total in self.levels()]
        lines += ["  " + line for line in self.notes()]
        lines += [f"  skipped {file['path']}: {file['reason']}" for file in dropped]
        if len(scan.plan.dropped) > len(dropped):
            lines.append(f"  … and {len(scan.plan.dropped) - len(dropped):,} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _page(self) -> Html:
        from mica.scan.pictured import page_of

        return page_of(self)

    def title(self) -> str:
        """The source and its version."""
        at = "" if self.scan.source.version is None else f", version {self.scan.source.version}"
        return f"{self.scan.source.name}{at}"

    def levels(self) -> Iterator[tuple[str, int, int]]:
        """(level, number read, total number)."""
        plan = self.scan.plan
        yield "files", len(plan.kept), plan.total
        costs, _ = self._costs
        if costs is None:
            yield "bytes in them", self._bytes[1], self._bytes[0]
            return
        for level, name in zip(_LEVELS, ("row groups in them", "pages of these columns", "rows in them"), strict=True):
            yield name, _sum(costs, level), _sum(costs, f"{level}_total")
        yield "bytes", _sum(costs, "bytes"), self._bytes[0]

    def notes(self) -> Iterator[str]:
        """What is to be said beside the numbers, a line each."""
        costs, why = self._costs
        undecided = undecided_files(self.scan.plan, self.scan.source.path_of)
        yield from self._kept()
        reasons = Counter(file["reason"] for file in undecided)
        for reason, count in reasons.most_common(SHOWN):
            yield f"kept {counted(count, 'file')} whose bounds could not be evaluated: {reason}"
        if costs is None:
            yield f"footers: {why}"
            return
        for reason in self._reasons(costs):
            what = counted(reason["spans"], "page" if reason["by"] == "pages" else "row group")
            yield f"skipped {what} ({counted(reason['rows'], 'row')}): {reason['reason']}"
        if self.analyze:
            rows, fetched = counted(_sum(costs, "rows_passed"), "row"), _sum(costs, "bytes_fetched")
            seconds = pc.sum(costs.column("seconds")).as_py() or 0.0
            yield f"returned {rows} in {seconds:.3f} s, fetched {fetched:,} bytes (footers and indexes included)"
            for one in self._origins(costs):
                typed = counted(one["typed"], "value")
                yield f"{one['path']}: {typed} from the typed column, {one['residual']:,} from the residual"
        elif self.scan.predicate is not None:
            yield "pages and bytes are upper bounds: columns outside the predicate are read for passing rows only"

    def _kept(self) -> Iterator[str]:
        """Why files are kept; a path that no file has is named with the nearest one. Of one file that meets the
        condition there is nothing to say."""
        plan, source = self.scan.plan, self.scan.source
        for group in kept_files(plan):
            if group.leaf is None and len(group.files) < 2:
                continue
            line = f"kept {counted(len(group.files), 'file')}: {group.reason}"
            near = None
            whole = len(group.files) == len(plan.kept) + len(plan.dropped)
            if whole and group.leaf is not None and group.leaf.path is not None and isinstance(source, TableSource):
                near = source.nearest_path(group.leaf, int(group.files[0]))
            yield line if near is None else f"{line}; the nearest path that has is {near}"


def _sum(costs: pa.Table, name: str) -> int:
    """The sum of a column over the files."""
    files = costs.filter(costs.column("path").is_valid())
    return int(pc.sum(files.column(name)).as_py() or 0)


def _share(read: int, total: int) -> str:
    return f"{read / total:.1%}" if total else "0%"
