"""Which files of a table a scan must read.

The rule: partition values are evaluated first, because they need no statistics. If they leave files, the statistics of
the leaves in the predicate are read, of all files at once, and kept for the next predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mica.arrays import from_numpy, to_numpy
from mica.collation.ordering import Ordering
from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.rewrite import leaves_of
from mica.expressions.tree import Expr
from mica.schema.types import StructType
from mica.skipping.collated import CollatedVerdicts, judged, places_of, searched_of, weighed
from mica.skipping.file_plan import FilePlan, Rows
from mica.skipping.intervals import Interval, from_constants, from_stats, unknown
from mica.skipping.judge import judge
from mica.stats.collated import Evidence, read_bounds
from mica.stats.columns import PHYSICAL_NAME, field_of, physical_names, was_float
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
) -> FilePlan:
    """Evaluates `bound` on every file; None keeps all files.

    The owner of the snapshot keeps `cache`: statistics read once for a leaf are reused. `ordering` compares strings by
    collations; without it such comparisons keep every file.
    """
    cache = {} if cache is None else cache
    total = snapshot.files.num_rows
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
        intervals = _intervals(bound, needed, snapshot, open_files, total, cache)
        stages.append((open_files, intervals))
        found = _compared(bound, [parts[i] for i in numbers], intervals, snapshot, open_files, cache, ordering)
        if found is not None:
            collated.append((open_files, found))
        proved = np.full(len(open_files), -1, np.int32)
        for i in reversed(numbers):  # so that the first part that proves it is named
            might = judge(parts[i], intervals, len(open_files), timezone=bound.timezone, collated=found)
            np.copyto(proved, i, where=~to_numpy(might))
        reasons[open_files] = proved
    kept, dropped = np.flatnonzero(reasons < 0), np.flatnonzero(reasons >= 0)
    return FilePlan(total, kept, dropped, reasons[dropped], parts, bound, tuple(stages), tuple(collated))


def _compared(
    bound: BoundExpr,
    parts: Sequence[Expr],
    intervals: Mapping[int, Interval],
    snapshot: Files,
    rows: Rows,
    cache: MutableMapping[Any, Any],
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
            names = physical_names(snapshot.schema, leaf.column)
            found = _collated(names, collation, ordering.version, snapshot, rows, cache)
        evidence[index, collation] = weighed(leaf, collation, intervals[index], found, ordering, len(rows))
    return judged(evidence, places, bound.leaves, ordering, searched, len(rows))


def _collated(
    names: tuple[str, ...],
    collation: str,
    version: str,
    snapshot: Files,
    rows: Rows,
    cache: MutableMapping[Any, Any],
) -> Evidence:
    key = (names, collation.lower(), version)
    if key not in cache:
        cache[key] = read_bounds(snapshot.stats(), snapshot.tags(), names, collation, version)
    found: Evidence = cache[key]
    return found if len(rows) == len(found.low) else found.of(rows)


def _only_partitions(part: Expr, leaves: Sequence[Leaf]) -> bool:
    return all(leaves[i].partition for i in leaves_of(part))


def _intervals(
    bound: BoundExpr,
    needed: Sequence[int],
    snapshot: Files,
    rows: Rows,
    total: int,
    cache: MutableMapping[Any, Any],
) -> dict[int, Interval]:
    found: dict[int, Interval] = {}
    wanted: dict[int, Wanted] = {}
    for i in needed:
        leaf = bound.leaves[i]
        if snapshot.schema.find(leaf.column[0]) is None:
            found[i] = unknown(len(rows), leaf.type)  # a hidden column has no statistics
        elif leaf.partition:
            f = snapshot.schema.field(leaf.column[0])
            name = str(f.metadata.get(PHYSICAL_NAME, f.name))
            texts = column_texts(snapshot.files["partition_values"], name)
            if len(rows) != total:
                texts = texts.take(from_numpy(rows))
            found[i] = from_constants(parse_values(texts, leaf.type, timezone=bound.timezone), leaf.type)
        elif not isinstance(leaf.type, StructType) and (leaf.path is None or not leaf.path.has_index):
            # Structs have no statistics, and a path through an array has no bounds.
            floats = leaf.path is None and was_float(field_of(snapshot.schema, leaf.column))
            wanted[i] = Wanted(physical_names(snapshot.schema, leaf.column), leaf.type, leaf.path, floats)
        else:
            found[i] = unknown(len(rows), leaf.type)
    for i, stats in zip(wanted, _read(list(wanted.values()), snapshot, rows, total, cache), strict=True):
        found[i] = from_stats(bound.leaves[i], stats)
    return found


def _read(
    wanted: Sequence[Wanted],
    snapshot: Files,
    rows: Rows,
    total: int,
    cache: MutableMapping[Any, Any],
) -> list[ColumnStats]:
    if not wanted:
        return []
    # The type of a path belongs to the predicate: the same statistics serve every type.
    keys = [(w.names, w.path, None if w.path is not None else w.type) for w in wanted]
    missing = [(k, w) for k, w in zip(keys, wanted, strict=True) if k not in cache]
    if missing:
        found = read_shares(snapshot.stats_shares(), [w for _, w in missing])
        cache.update(zip((key for key, _ in missing), found, strict=True))
    if len(rows) == total:
        return [cache[k] for k in keys]
    return [cache[k].take(rows) for k in keys]
