"""The files along each value of a predicate: their bounds, beside the ranges that are asked for.

The rule: a value is drawn if some file has bounds of it and all that is to be drawn has a place on one axis: numbers as
they are, texts by their rank. A range is drawn only for parts of the predicate that compare the value with constants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.expressions.bind import Leaf
from mica.expressions.plain_values import to_values
from mica.expressions.tree import And, Compare, Expr, In, LeafRef, Literal, Op
from mica.pictures.page import Html
from mica.pictures.spans import DRAWN, Axis, Span, picture
from mica.schema.types import DataType
from mica.skipping.file_plan import FilePlan, Rows
from mica.skipping.intervals import Interval
from mica.skipping.reasons import PathOf, plain

#: A lower and an upper end; None: none.
_Range = tuple[Any, Any]


def pictures_of(plan: FilePlan, path_of: PathOf) -> Iterator[tuple[str, Html]]:
    """A picture for each value of the predicate that has bounds in some file."""
    if plan.bound is None:
        return
    for files, intervals in plan.stages:
        for index, interval in intervals.items():
            leaf = plan.bound.leaves[index]
            asked = _met([_asked(part, index) for part in plan.parts]) or []
            drawn = _drawn(leaf, asked, interval, files, plan.kept, path_of)
            if drawn is not None:
                yield f"The files by {leaf.name}", drawn


def _drawn(
    leaf: Leaf, ranges: Sequence[_Range], interval: Interval, files: Rows, kept: Rows, path_of: PathOf
) -> Html | None:
    """The bounds of `files` along a value, beside the ranges that are asked for; None if no file has bounds, or
    a value has no place on an axis."""
    known = np.flatnonzero(to_numpy(pc.and_(pc.is_valid(interval.low), pc.is_valid(interval.high))))
    if not len(known):
        return None
    some = _some(known, np.setdiff1d(np.arange(len(files)), known))
    is_kept, places = np.isin(files[some], kept), arrow_array(some)
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
            f"{path_of(int(file))}: {_text(low, leaf.type)} to {_text(high, leaf.type)}",
        )
        for file, read, low, high in zip(files[some], is_kept, lows, highs, strict=True)
    ]
    asked = [
        (scale.low if low is None else scale(low), scale.high if high is None else scale(high)) for low, high in ranges
    ]
    first, last = (_text(end, leaf.type) for end in (scale.first, scale.last))
    axis = Axis(leaf.name, scale.low, scale.high, first, last, asked, scale.ranked)
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
        self.ranked = self._ranks is not None
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
