"""An explanation as a page: the levels of skipping, the files along each value of the predicate, and the reasons.

The rule: what a picture shows is what the plan knew; nothing is read for it but footers of some files, and for a table
its last commits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.expressions.bind import Leaf
from mica.expressions.plain_values import to_values
from mica.expressions.tree import And, Compare, Expr, In, LeafRef, Literal, Op, to_sql
from mica.log.history import commits
from mica.pictures import tree
from mica.pictures.page import Html, bar, code, folded, fragment, heading, paragraph, table
from mica.pictures.spans import DRAWN, Axis, Span, picture
from mica.scan.shredded import shredding_of
from mica.schema.ddl import type_to_ddl
from mica.schema.types import DataType
from mica.skipping.file_plan import FilePlan, Rows
from mica.skipping.intervals import Interval
from mica.skipping.kept import kept_files
from mica.skipping.reasons import dropped_files, plain
from mica.tasks.parts import FilePart, parts_of
from mica.wording import counted

if TYPE_CHECKING:
    from mica.scan.explanation import Explanation
    from mica.scan.source import Source
    from mica.scan.table import TableSource

#: A lower and an upper end; None: none.
_Range = tuple[Any, Any]

#: Skipped files and commits that are listed.
LISTED, LISTED_COMMITS = 100, 10


def page_of(report: Explanation) -> Html:
    """The inside of the page."""
    plan, paths = report.scan.plan, report.scan.source.all_files().column("path")
    parts = [paragraph(code(f"where {report.scan.where}"))] if report.scan.where is not None else []
    levels = ((level, f"{read:,}", f"{total:,}", bar(read, total)) for level, read, total in report.levels())
    parts += [heading("What is read"), table(("", "read", "of", ""), levels, right=("read", "of"))]
    parts += [paragraph(line, soft=True) for line in report.notes()]
    for title, drawn in _pictures(plan, paths):
        parts += [heading(title), drawn]
    reasons = [(f"{len(group.files):,}", "read", group.reason) for group in kept_files(plan)]
    numbers, counts = np.unique(plan.reasons, return_counts=True)
    for number, count in sorted(zip(numbers.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1]):
        reasons.append((f"{count:,}", "skipped", f"no row can satisfy {to_sql(plan.parts[number])}"))
    if reasons:
        parts += [heading("Why"), table(("files", "", "because"), reasons, right=("files",))]
    gone = dropped_files(plan, paths, LISTED)
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
    rows = pc.sum(source.rows(pa.array(range(files.num_rows), pa.int64()))).as_py()
    size = pc.sum(files.column("size")).as_py() or 0
    facts = [
        ("files", f"{files.num_rows:,}"),
        ("bytes", f"{size:,}"),
        ("rows", "unknown" if rows is None else f"{rows:,}"),
    ]
    facts += [("partitioned by", ", ".join(source.partition_by))] if source.partition_by else []
    parts = [table(("", ""), facts), heading("Columns"), table(("name", "type", ""), columns)]
    shown = commits(snapshot.storage, limit=LISTED_COMMITS)  # newest first, also those after this version
    rows_of = [(one["version"], _when(one["timestamp"]), one["operation"], _metrics(one)) for one in shown]
    parts += [heading("History"), table(("version", "time", "operation", "metrics"), rows_of, right=("version",))]
    if snapshot.properties:
        named = [(code(name), code(value)) for name, value in sorted(snapshot.properties.items())]
        parts += [heading("Properties"), table(("name", "value"), named)]
    every = source.files(pa.array(range(files.num_rows), pa.int64()))
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


def _pictures(plan: FilePlan, paths: pa.ChunkedArray) -> Iterator[tuple[str, Html]]:
    """A picture for each value of the predicate that has bounds in some file."""
    if plan.bound is None:
        return
    for files, intervals in plan.stages:
        for index, interval in intervals.items():
            leaf = plan.bound.leaves[index]
            asked = _met([_asked(part, index) for part in plan.parts]) or []
            drawn = _drawn(leaf, asked, interval, files, plan.kept, paths)
            if drawn is not None:
                yield f"The files by {leaf.name}", drawn


def _drawn(
    leaf: Leaf, ranges: Sequence[_Range], interval: Interval, files: Rows, kept: Rows, paths: pa.ChunkedArray
) -> Html | None:
    """The bounds of `files` along a value, beside the ranges that are asked for; None if no file has bounds, or
    a value has no place on an axis."""
    known = np.flatnonzero(np.asarray(pc.and_(pc.is_valid(interval.low), pc.is_valid(interval.high))))
    if not len(known):
        return None
    some = _some(known, np.setdiff1d(np.arange(len(files)), known))
    is_kept, places = np.isin(files[some], kept), pa.array(some)
    lows, highs = (to_values(side.take(places), leaf.type) for side in (interval.low, interval.high))
    if not all(_is_placed(value) for value in (*lows, *highs, *(end for pair in ranges for end in pair))):
        return None
    ends = sorted({value for value in (*lows, *highs) if value is not None})
    scale = _Scale(ends, [v for pair in ranges for v in pair if v is not None])
    spans = [
        Span(
            None if low is None or high is None else scale(low),
            None if low is None or high is None else scale(high),
            bool(read),
            f"{paths[int(file)].as_py()}: {_text(low, leaf.type)} to {_text(high, leaf.type)}",
        )
        for file, read, low, high in zip(files[some], is_kept, lows, highs, strict=True)
    ]
    asked = [
        (scale.low if low is None else scale(low), scale.high if high is None else scale(high)) for low, high in ranges
    ]
    first, last = (_text(end, leaf.type) for end in (scale.first, scale.last))
    axis = Axis(leaf.name, scale.low, scale.high, first, last, asked)
    return picture(axis, spans, len(files))


def _some(known: np.ndarray, others: np.ndarray) -> np.ndarray:
    """At most a few times as many files as are drawn, evenly taken."""
    step = -(-(len(known) + len(others)) // (4 * DRAWN)) or 1
    return np.concatenate((known[::step], others[::step]))


class _Scale:
    """Values as places on an axis: numbers as they are, texts by their rank among those that are there."""

    def __init__(self, ends: Sequence[Any], asked: Sequence[Any]) -> None:
        self.first, self.last = ends[0], ends[-1]
        self._ranks = (
            {value: float(rank) for rank, value in enumerate(sorted({*ends, *asked}))}
            if isinstance(self.first, str)
            else None
        )
        self.low, self.high = self(self.first), self(self.last)
        if self.low == self.high:
            self.low, self.high = self.low - 0.5, self.high + 0.5

    def __call__(self, value: Any) -> float:
        return float(value) if self._ranks is None else self._ranks[value]


def _is_placed(value: Any) -> bool:
    return (
        value is None or isinstance(value, str | int | Decimal) or (isinstance(value, float) and math.isfinite(value))
    )


def _asked(part: Expr, index: int) -> list[_Range] | None:
    """The ranges of a leaf that a part of the predicate asks for; None if it is no simple comparison of this leaf."""
    match part:
        case And(parts):
            return _met([_asked(inner, index) for inner in parts])
        case Compare(op, LeafRef(at), Literal(value), collation=None) if at == index and value is not None:
            return _range(op, value)
        case Compare(op, Literal(value), LeafRef(at), collation=None) if at == index and value is not None:
            return _range(op.flipped, value)
        case In(LeafRef(at), values, False, collation=None) if at == index:
            found = [value.value for value in values if isinstance(value, Literal)]
            return [(value, value) for value in found if value is not None] if len(found) == len(values) else None
    return None


def _range(op: Op, value: Any) -> list[_Range] | None:
    if op in (Op.EQ, Op.SAFE_EQ):
        return [(value, value)]
    if op in (Op.LT, Op.LE):
        return [(None, value)]
    return [(value, None)] if op in (Op.GT, Op.GE) else None


def _met(sides: Sequence[list[_Range] | None]) -> list[_Range] | None:
    """What is in all of them."""
    known = [side for side in sides if side is not None]
    if not known:
        return None
    met = known[0]
    for side in known[1:]:
        both = [_both(one, other) for one in met for other in side]
        met = [(low, high) for low, high in both if low is None or high is None or low <= high]
    return met


def _both(one: _Range, other: _Range) -> _Range:
    """What is in both ranges: the higher of the lower ends, the lower of the upper ends."""
    lows, highs = ([end for end in ends if end is not None] for ends in zip(one, other, strict=True))
    return max(lows, default=None), min(highs, default=None)


def _text(value: Any, type_: DataType) -> str:
    if value is None:
        return "unknown"
    shown = str(plain(value, type_))
    return shown if len(shown) <= 40 else f"{shown[:39]}…"
