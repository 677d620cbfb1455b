"""Which files of a table a scan must read.

The rule: partition values are evaluated first, because they need no statistics. If they leave files, the statistics of
the leaves in the predicate are read, of all files at once, and kept for the next predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mica.arrays import from_numpy, to_numpy
from mica.collation.ordering import Ordering
from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.rewrite import leaves_of
from mica.expressions.tree import Expr
from mica.schema.char import padded
from mica.schema.types import StructType
from mica.skipping.collated import CollatedVerdicts, judged, places_of, searched_of, weighed
from mica.skipping.file_plan import FilePlan, Rows
from mica.skipping.intervals import Interval, from_constants, from_stats, unknown
from mica.skipping.judge import judge
from mica.stats.collated import Evidence, read_bounds
from mica.stats.columns import field_of, physical_name, physical_names, was_float
from mica.stats.partition import column_texts, parse_values
from mica.stats.read import ColumnStats, Share, Wanted, read_shares


class Files(Protocol):
    """The part of a snapshot that planning needs."""

    @property
    def schema(self) -> StructType:
        """The table's schema."""

    @property
    def files(self) -> pa.Table:
        """One row per file with `partition_values`, a map of strings."""

    def stats(self) -> pa.Array:
        """The statistics of the files as JSON."""

    def stats_shares(self) -> Iterable[Share]:
        """The same, some files at a time."""

    def tags(self) -> pa.Array:
        """The tags of the files, maps of strings."""


def plan_files(
    bound: BoundExpr | None,
    snapshot: Files,
    *,
    cache: MutableMapping[Any, Any] | None = None,
    ordering: Ordering | None = None,
    facts: Callable[[str], pa.Array | None] | None = None,
) -> FilePlan:
    """Evaluates `bound` on every file; None keeps all files.

    The owner of the snapshot keeps `cache`: statistics read once for a leaf are reused. `ordering` compares strings by
    collations; without it such comparisons keep every file. `facts` gives what a field of `_metadata` is for each file.
    """
    statistics = _Statistics(snapshot, {} if cache is None else cache, facts)
    total = statistics.total
    if bound is None:
        return FilePlan.of_all(total)
    every = np.arange(total, dtype=np.int64)
    parts = bound.parts
    reasons = np.full(total, -1, np.int32)
    stages: list[tuple[Rows, dict[int, Interval]]] = []
    collated = []
    for partition_only in (True, False):
        numbers = [i for i, part in enumerate(parts) if _only_partitions(part, bound.leaves) is partition_only]
        open_files = np.flatnonzero(reasons < 0) if stages else every
        if not numbers or not len(open_files):
            continue
        needed = sorted(frozenset().union(*(leaves_of(parts[i]) for i in numbers)))
        intervals = statistics.intervals(bound, needed, open_files)
        stages.append((open_files, intervals))
        found = _compared(bound, [parts[i] for i in numbers], intervals, statistics, open_files, ordering)
        if found is not None:
            collated.append((open_files, found))
        proved = np.full(len(open_files), -1, np.int32)
        for i in reversed(numbers):  # so that the first part that proves it is named
            might = judge(
                parts[i],
                intervals,
                len(open_files),
                timezone=bound.timezone,
                other_zones=bound.other_zones,
                collated=found,
            )
            np.copyto(proved, i, where=~to_numpy(might))
        reasons[open_files] = proved
    kept, dropped = np.flatnonzero(reasons < 0), np.flatnonzero(reasons >= 0)
    return FilePlan(total, kept, dropped, reasons[dropped], parts, bound, tuple(stages), tuple(collated))


def _only_partitions(part: Expr, leaves: Sequence[Leaf]) -> bool:
    return all(leaves[i].partition for i in leaves_of(part))


def _compared(
    bound: BoundExpr,
    parts: Sequence[Expr],
    intervals: Mapping[int, Interval],
    statistics: _Statistics,
    rows: Rows,
    ordering: Ordering | None,
) -> CollatedVerdicts | None:
    """Evaluates the collated comparisons in these parts; None if there are none."""
    places, searched = places_of(parts), searched_of(parts)
    if not places and not searched:
        return None
    knows = ordering is not None and any(ordering.judges(collation) for _, collation in places)
    evidence = {}
    for index, collation in places:
        leaf = bound.leaves[index]
        found = None
        if ordering is not None and knows and not leaf.partition:
            found = statistics.collated(leaf, collation, ordering.version, rows)
        evidence[index, collation] = weighed(leaf, collation, intervals[index], found, ordering, len(rows))
    return judged(evidence, places, bound.leaves, ordering, searched, len(rows))


class _Statistics:
    """What the log says of the values in its files. `cache` keeps what was read, always of all files; the methods give
    it for `rows`, the numbers of some files."""

    def __init__(
        self, snapshot: Files, cache: MutableMapping[Any, Any], facts: Callable[[str], pa.Array | None] | None
    ) -> None:
        self.snapshot = snapshot
        self._facts = facts
        self.total = snapshot.files.num_rows
        self._cache = cache

    def intervals(self, bound: BoundExpr, needed: Sequence[int], rows: Rows) -> dict[int, Interval]:
        """The bounds of the leaves of these numbers."""
        schema = self.snapshot.schema
        found: dict[int, Interval] = {}
        wanted: dict[int, Wanted] = {}
        for i in needed:
            leaf = bound.leaves[i]
            if schema.find(leaf.column[0]) is None:
                found[i] = self._hidden(leaf, rows)
            elif leaf.partition:
                found[i] = from_constants(self._partition_values(leaf, bound.timezone, rows), leaf.type)
            elif not isinstance(leaf.type, StructType) and (leaf.path is None or not leaf.path.has_index):
                # Structs have no statistics, and a path through an array has no bounds.
                floats = leaf.path is None and was_float(field_of(schema, leaf.column))
                wanted[i] = Wanted(physical_names(schema, leaf.column), leaf.type, leaf.path, floats)
            else:
                found[i] = unknown(len(rows), leaf.type)
        for i, stats in zip(wanted, self._read(list(wanted.values()), rows), strict=True):
            found[i] = from_stats(bound.leaves[i], stats)
        return found

    def _hidden(self, leaf: Leaf, rows: Rows) -> Interval:
        """A hidden column has no statistics, but its fields of files are known."""
        key = ("file", leaf.column)
        if key not in self._cache:
            self._cache[key] = None if self._facts is None else self._facts(leaf.column[-1])
        facts = self._cache[key]
        if facts is None:
            return unknown(len(rows), leaf.type)
        return from_constants(facts if len(rows) == self.total else facts.take(from_numpy(rows)), leaf.type)

    def _partition_values(self, leaf: Leaf, timezone: str, rows: Rows) -> pa.Array:
        column = self.snapshot.schema.field(leaf.column[0])
        texts = column_texts(self.snapshot.files["partition_values"], physical_name(column))
        if len(rows) != self.total:
            texts = texts.take(from_numpy(rows))
        return padded(parse_values(texts, leaf.type, timezone=timezone), leaf.padded)

    def _read(self, wanted: Sequence[Wanted], rows: Rows) -> list[ColumnStats]:
        # The type of a path belongs to the predicate: the same statistics serve every type.
        keys = [(w.names, w.path, None if w.path is not None else w.type) for w in wanted]
        missing = [(k, w) for k, w in zip(keys, wanted, strict=True) if k not in self._cache]
        if missing:
            found = read_shares(self.snapshot.stats_shares(), [w for _, w in missing])
            self._cache.update(zip((key for key, _ in missing), found, strict=True))
        if len(rows) == self.total:
            return [self._cache[k] for k in keys]
        return [self._cache[k].take(rows) for k in keys]

    def collated(self, leaf: Leaf, collation: str, version: str, rows: Rows) -> Evidence:
        """The bounds of a column by a collation of this version."""
        names = physical_names(self.snapshot.schema, leaf.column)
        key = (names, collation.lower(), version)
        if key not in self._cache:
            stats, tags = self.snapshot.stats(), self.snapshot.tags()
            self._cache[key] = read_bounds(stats, tags, names, collation, version)
        found: Evidence = self._cache[key]
        return found if len(rows) == self.total else found.of(rows)
