"""Why files were kept.

The rule: a file stays because nothing is known about a value that the predicate asks for, because what is known is of
another type, or because its bounds do not exclude the predicate. The first that holds is the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import numpy as np

from mica import compute as pc
from mica import late
from mica.arrays import to_numpy
from mica.errors import CorruptDataError
from mica.expressions.bind import Leaf
from mica.expressions.rewrite import leaves_of
from mica.expressions.tree import Expr, IsNull
from mica.records import dataclass
from mica.skipping.file_plan import FilePlan, Rows
from mica.skipping.intervals import Interval
from mica.stats.paths import read_all
from mica.variant.path import VariantPath


@dataclass(frozen=True)
class KeptFiles:
    """Files that were kept for one reason. `leaf` is the value without usable bounds, if that is the reason."""

    reason: str
    files: Rows
    leaf: Leaf | None = None


def kept_files(plan: FilePlan) -> list[KeptFiles]:
    """Groups the kept files by the reason for which they stay, the largest group first; without a condition on whole
    files there is none."""
    if plan.bound is None:
        return []
    groups = []
    rest = plan.kept
    for files, intervals in plan.stages:
        for index in sorted(_compared(plan.parts) & intervals.keys()):
            leaf, interval = plan.bound.leaves[index], intervals[index]
            places = np.searchsorted(files, rest)
            for reason, holds in _unknown(leaf, interval):
                mine = holds[places]
                if mine.any():
                    groups.append(KeptFiles(reason, rest[mine], leaf))
                    rest, places = rest[~mine], places[~mine]
    if len(rest):
        groups.append(KeptFiles("their bounds do not exclude the condition", rest))
    return sorted(groups, key=lambda group: -len(group.files))


def _unknown(leaf: Leaf, interval: Interval) -> Iterator[tuple[str, np.ndarray]]:
    nothing = to_numpy(pc.and_not(pc.and_(pc.is_null(interval.low), pc.is_null(interval.high)), interval.all_null))
    unfit = np.zeros(len(nothing), np.bool_) if interval.unfit is None else interval.unfit
    yield f"{leaf.name} has values of another type in them", nothing & unfit
    yield f"they have no bounds of {leaf.name}", nothing & ~unfit


def _compared(parts: Iterable[Expr]) -> frozenset[int]:
    """The leaves that are compared: those that are only asked for NULL need no bounds."""
    return frozenset().union(*(leaves_of(part) for part in parts if not isinstance(part, IsNull)))


def nearest_path(leaf: Leaf, text: str | None) -> VariantPath | None:
    """Returns the path most like `leaf`'s among those with bounds in a file's bounds of its column (`text`, z85).

    The keys are compared, in any case: the brackets around them are alike in all paths.
    """
    if leaf.path is None or text is None:
        return None
    known = [*_normal(read_all(text))]
    if leaf.path in known:
        return None
    by_keys = {_keys(path): path for path in known}
    near = late.difflib.get_close_matches(_keys(leaf.path), by_keys, 1, 0.75)
    return by_keys[near[0]] if near else None


def _normal(paths: Iterable[str]) -> Iterator[VariantPath]:
    """The paths, but for those that another writer spelled otherwise."""
    for path in paths:
        with suppress(CorruptDataError):
            yield VariantPath.parse_normalized(path)


def _keys(path: VariantPath) -> str:
    return ".".join(map(str, path.steps)).lower()
