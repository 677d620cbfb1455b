"""Reads the bounds of one variant path from many files at once.

The rule: files of one writer share the dictionary of paths and the layout of the object, so the position of a path's
offset is found once per such group and the values are read as arrays. Files that fit no group are read one by one, by
the same functions and with the same result. Nothing outside a file's own bytes is ever read.

Source: Delta RFC "Variant Shredding", "Statistics for Variant Columns"; Parquet "VariantEncoding".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mica.stats import z85
from mica.stats.variant import Value, key_place, lookup, read_value, split

NONE, EXACT, DOUBLE, FLOAT, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ = range(8)
CODES = {
    "exact": EXACT, "double": DOUBLE, "float": FLOAT, "string": STRING, "date": DATE, "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}  # fmt: skip

#: Primitive type id → class, and the NumPy type of its bytes.
_FIXED = {
    3: (EXACT, "<i1"), 4: (EXACT, "<i2"), 5: (EXACT, "<i4"), 6: (EXACT, "<i8"), 7: (DOUBLE, "<f8"), 14: (FLOAT, "<f4"),
    11: (DATE, "<i4"), 12: (TIMESTAMP, "<i8"), 13: (TIMESTAMP_NTZ, "<i8"),
}  # fmt: skip

_MAX_GROUPS = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PathSide:
    """The minima or the maxima of a path: per file a class (`kinds`, NONE if unknown) and a value.

    `ints` holds integers, days and microseconds, `reals` floats and doubles, `others` strings and Decimals by row.
    """

    kinds: NDArray[np.uint8]
    ints: Ints
    reals: NDArray[np.float64]
    others: dict[int, str | Any]

    @classmethod
    def empty(cls, count: int) -> PathSide:
        """A side about which nothing is known."""
        return cls(np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.float64), {})

    def put(self, row: int, value: Value | None) -> None:
        """Sets the bound of one file."""
        if value is None:
            return
        kind, content = value
        self.kinds[row] = CODES[kind]
        if isinstance(content, float):
            self.reals[row] = content
        elif isinstance(content, int):
            self.ints[row] = content
        else:
            self.others[row] = content

    def take(self, rows: Ints) -> PathSide:
        """Returns the bounds of these files."""
        others = {i: self.others[row] for i, row in enumerate(rows.tolist()) if row in self.others}
        return PathSide(self.kinds[rows], self.ints[rows], self.reals[rows], others)


def read_side(texts: Sequence[Any], key: str) -> PathSide:
    """Reads the bounds of the path `key` from z85 texts of stats objects; unreadable texts are unknown."""
    side = PathSide.empty(len(texts))
    joined = z85.decode_joined([t if isinstance(t, str) else None for t in texts])
    for row, alone in joined.alone.items():
        parts = split(alone)
        side.put(row, None if parts is None else lookup(*parts, key))
    todo = joined.rows
    for _ in range(_MAX_GROUPS):
        if not len(todo):
            return side
        todo = _read_group(joined, todo, key, side)
    for row in todo.tolist():
        parts = split(joined.bytes_of(row))
        side.put(row, None if parts is None else lookup(*parts, key))
    return side


def _read_group(joined: z85.Joined, todo: Ints, key: str, side: PathSide) -> Ints:
    """Reads the first row and all that share its dictionary and layout; returns the remaining rows."""
    first = joined.bytes_of(int(todo[0]))
    parts = split(first)
    if parts is None or not first.startswith(parts[0]):
        # Damaged, or value before metadata: read alone.
        side.put(int(todo[0]), None if parts is None else lookup(*parts, key))
        return todo[1:]
    metadata, value = parts
    place = key_place(metadata, value, key)
    prefix, begins = first[: len(metadata) + place.ids_end], joined.raw.startswith
    same = joined.lengths[todo] >= len(prefix)
    same &= np.array([begins(prefix, start) for start in joined.starts[todo].tolist()], np.bool_)
    if place.at >= 0:
        base = len(metadata)
        _read_rows(joined, todo[same], base + place.at, base + place.last, base + place.values, place.width, side)
    return todo[~same]


def _read_rows(joined: z85.Joined, rows: Ints, at: int, last: int, values: int, width: int, side: PathSide) -> None:
    """`at` and `last` are the positions of the path's offset and of the last one, `values` that of the first value."""
    rows = rows[joined.lengths[rows] >= values]
    starts = joined.starts[rows]
    offset, total = (_little_endian(joined.data, starts + place, width) for place in (at, last))
    begin = starts + values + offset
    end = starts + values + total
    # As in `split`: the object fills the row except for up to three zeros.
    rest = starts + joined.lengths[rows] - end
    whole = (offset < total) & (rest >= 0) & (rest <= 3)
    for i in range(1, 4):
        whole &= (rest < i) | (joined.data[np.maximum(starts + joined.lengths[rows] - i, 0)] == 0)
    rows, begin, end = rows[whole], begin[whole], end[whole]
    headers = joined.data[begin]
    for header in np.unique(headers):
        here = headers == header
        fixed = _FIXED.get(int(header) >> 2) if header & 3 == 0 else None
        if fixed is None:
            for row, a, b in zip(rows[here].tolist(), begin[here].tolist(), end[here].tolist(), strict=True):
                side.put(row, read_value(joined.data[a:b].tobytes(), 0))
            continue
        kind, code = fixed
        size = np.dtype(code).itemsize
        here &= begin + 1 + size <= end
        content = joined.data[(begin[here] + 1)[:, None] + np.arange(size)].copy().view(code)[:, 0]
        side.kinds[rows[here]] = kind
        (side.reals if kind in (DOUBLE, FLOAT) else side.ints)[rows[here]] = content


def _little_endian(data: NDArray[np.uint8], at: Ints, width: int) -> Ints:
    found = np.zeros(len(at), np.int64)
    for i in range(width):
        found |= data[at + i].astype(np.int64) << (8 * i)
    return found
