"""The bounds of Variant paths: of one path in many files, or of all paths in one.

The rule: the kernel reads them, column by column. Bounds are hints, so a damaged one is unknown, never an error.

Source: Delta RFC "Variant Shredding", "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mica.arrays import NDArray, arrow_array, to_numpy
from mica.records import dataclass
from mica.variant import kernel

#: The classes of bounds, as the kernel numbers them; bounds of different classes are not compared.
NONE, EXACT, DOUBLE, FLOAT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ = range(8)
KINDS = ("none", "exact", "double", "float", "string", "date", "timestamp", "timestamp_ntz")

_EXACT = Context(prec=40)  # the default one rounds at 28 digits

Ints = NDArray[np.int64]


class Value(NamedTuple):
    """A bound. `kind` is one of `KINDS`. Dates are days, timestamps microseconds, exact numbers int or Decimal."""

    kind: str
    value: Any


@dataclass(frozen=True)
class PathSide:
    """The minima or the maxima of a path: per file a class (`kinds`, NONE if unknown) and a value.

    `ints` holds integers, days and microseconds, `reals` floats and doubles, `texts` strings, `decimals` Decimals by
    row.
    """

    kinds: NDArray[np.uint8]
    ints: Ints
    reals: NDArray[np.float64]
    texts: pa.Array
    decimals: Mapping[int, Decimal]

    def take(self, rows: Ints) -> PathSide:
        """Returns the bounds of these files."""
        decimals = {i: self.decimals[row] for i, row in enumerate(rows.tolist()) if row in self.decimals}
        return PathSide(
            self.kinds[rows], self.ints[rows], self.reals[rows], self.texts.take(arrow_array(rows)), decimals
        )

    @classmethod
    def concat(cls, sides: Sequence[PathSide]) -> PathSide:
        """Returns the bounds of all files of several sides, one after the other."""
        starts = np.cumsum([0, *(len(side.kinds) for side in sides)]).tolist()
        decimals = {
            start + row: value
            for start, side in zip(starts, sides, strict=False)
            for row, value in side.decimals.items()
        }
        kinds, ints = (np.concatenate([getattr(side, name) for side in sides]) for name in ("kinds", "ints"))
        if any(side.reals.any() for side in sides):
            reals = np.concatenate([side.reals for side in sides])
        else:
            reals = np.broadcast_to(np.float64(0), len(kinds))  # most paths hold none: one zero serves all files
        return cls(kinds, ints, reals, pa.concat_arrays([side.texts for side in sides]), decimals)


def side_of(found: pa.StructArray) -> PathSide:
    """Returns the bounds of a path as `kernel.stats_leaves` has them."""
    kinds, ints, reals = (to_numpy(found.field(name)) for name in ("kind", "int", "real"))
    return PathSide(kinds, ints, reals, found.field("text"), _decimals(found.field("unscaled"), found.field("scale")))


def read_all(text: str) -> dict[str, Value | None]:
    """Returns all bounds in one z85 text by path; None for a value without an order. Empty for an unreadable text."""
    found = kernel.all_bounds(arrow_array([text], pa.string()))
    decimals = _decimals(found.column("unscaled"), found.column("scale"))
    bounds: dict[str, Value | None] = {}
    for i, row in enumerate(found.select(["path", "kind", "int", "real", "text"]).to_pylist()):
        content = {DOUBLE: row["real"], FLOAT: row["real"], STRING: row["text"]}.get(row["kind"], row["int"])
        value = Value(KINDS[row["kind"]], decimals.get(i, content))
        bounds[row["path"]] = value if row["kind"] else None
    return bounds


def _decimals(unscaled: pa.Array, scales: pa.Array) -> dict[int, Decimal]:
    if scales.null_count == len(scales):
        return {}
    rows = np.flatnonzero(to_numpy(scales.is_valid()))
    pairs = zip(*(values.take(arrow_array(rows)).to_pylist() for values in (unscaled, scales)), strict=True)
    return {int(row): value.scaleb(-scale, _EXACT) for row, (value, scale) in zip(rows, pairs, strict=True)}
