"""Statistics of many files, read column by column.

The rule: untrusted statistics are unknown, never an error: a file with damaged statistics is not skipped, and other
files are unaffected. Returned bounds are valid: a max timestamp gets 1 ms added, because the protocol truncates it;
a lower bound above the upper one is discarded.

The kernel walks the texts once for all wanted leaves, on several cores where there are many texts.

Source: Delta protocol, "Per-file Statistics"; Variant Shredding RFC, "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import late
from mica.arrays import FALSE, NDArray, arrow_array, scalar, to_numpy
from mica.cores import cores
from mica.records import dataclass
from mica.schema.arrow import to_arrow_type
from mica.schema.types import TIMESTAMP, TIMESTAMP_NTZ, DataType, Primitive
from mica.stats import rounded
from mica.stats.columns import is_ordered
from mica.stats.paths import PathSide, side_of
from mica.variant import kernel
from mica.variant.path import VariantPath

_ZERO = scalar(0, pa.int64())
_MS = timedelta(milliseconds=1)
_CORES = cores()
_ALONE = 4096
"""More texts than these are worth a thread of their own."""

#: Texts that are read at a time.
SHARE = 1 << 16

Rows = NDArray[np.int64]
#: Reads statistics of some files as JSON, some at a time.
Texts = Callable[[], Iterable[pa.Array]]
#: Numbers of files, and the statistics of each.
Share = tuple[Rows, Texts]


@dataclass(frozen=True)
class Wanted:
    """A leaf whose statistics are requested: its names in the file, its column's type, and a path inside a variant.

    `was_float`: the column is DOUBLE now, and a bound may be the text of a float. `as_written`: a check wants bounds of
    decimals as they are, those that their writer rounded too.
    """

    names: tuple[str, ...]
    type: DataType
    path: VariantPath | None = None
    was_float: bool = False
    as_written: bool = False


@dataclass(frozen=True)
class ColumnStats:
    """Per file: bounds, nulls of the column and rows of the file; null where unknown.

    For a plain leaf `min` and `max` are Arrow arrays of its type, for a path a `PathSide` each.
    """

    min: Any
    max: Any
    null_count: pa.Array
    num_rows: pa.Array

    def take(self, rows: Rows) -> ColumnStats:
        """Returns the statistics of these files."""
        places = arrow_array(rows)
        low, high = (side.take(rows if isinstance(side, PathSide) else places) for side in (self.min, self.max))
        return ColumnStats(low, high, self.null_count.take(places), self.num_rows.take(places))

    @classmethod
    def concat(cls, parts: Sequence[ColumnStats]) -> ColumnStats:
        """Returns the statistics of all files of several parts, one after the other."""
        join = PathSide.concat if isinstance(parts[0].min, PathSide) else pa.concat_arrays
        low, high = join([part.min for part in parts]), join([part.max for part in parts])
        nulls, rows = (pa.concat_arrays([getattr(part, name) for part in parts]) for name in ("null_count", "num_rows"))
        return cls(low, high, nulls, rows)


def is_ascending(rows: NDArray[Any]) -> bool:
    """Whether no row is before the one that it follows."""
    return bool((rows[1:] >= rows[:-1]).all())


def shares_of(texts: pa.Array) -> Iterator[Share]:
    """Cuts statistics that are in memory into shares."""
    for at in range(0, len(texts), SHARE):
        share = texts.slice(at, SHARE)
        yield np.arange(at, at + len(share)), partial(list, [share])


def read_shares(shares: Iterable[Share], wanted: Sequence[Wanted]) -> list[ColumnStats]:
    """Returns the statistics of the wanted leaves per file, by the files' numbers.

    Each share is read on a core of its own, and its texts are dropped after that.
    """
    places: list[Rows] = []
    parts: list[list[list[ColumnStats]] | late.futures.Future[list[list[ColumnStats]]]] = []
    with ExitStack() as stack:
        pool: late.futures.ThreadPoolExecutor | None = None
        for rows, texts in shares:
            places.append(rows)
            if len(rows) > _ALONE:
                pool = pool or stack.enter_context(late.futures.ThreadPoolExecutor(_CORES, thread_name_prefix="mica"))
                parts.append(pool.submit(_read, texts, wanted))
            else:
                parts.append(_read(texts, wanted))
            ahead = parts[-1 - 2 * _CORES] if len(parts) > 2 * _CORES else []
            if not isinstance(ahead, list):
                ahead.result()  # no more texts are held than the cores are busy with
        read = [some for part in parts for some in (part if isinstance(part, list) else part.result())]
    if not read:
        return read_stats(arrow_array([], pa.string()), wanted)
    every = np.concatenate(places)
    joined = [ColumnStats.concat(leaf) if len(leaf) > 1 else leaf[0] for leaf in zip(*read, strict=True)]
    if is_ascending(every):
        return joined
    order = np.argsort(every, kind="stable")
    return [leaf.take(order) for leaf in joined]


def read_stats(texts: pa.Array, wanted: Sequence[Wanted]) -> list[ColumnStats]:
    """Returns the statistics of the wanted leaves per file, aligned with `texts` (JSON, null for a file without)."""
    return _read(partial(list, [texts]), wanted)[0]


def _read(texts: Texts, wanted: Sequence[Wanted]) -> list[list[ColumnStats]]:
    leaves: list[tuple[tuple[str, ...], pa.DataType | str]] = [(("numRecords",), pa.int64())]
    for leaf in wanted:
        kind = _kind(leaf)
        leaves += [(("nullCount", *leaf.names), pa.int64())]
        leaves += [((side, *leaf.names), kind) for side in ("minValues", "maxValues") if kind is not None]
    return [_stats(kernel.stats_leaves(some, leaves), wanted) for some in texts()]


def _stats(walked: pa.RecordBatch, wanted: Sequence[Wanted]) -> list[ColumnStats]:
    found = iter(walked.columns)
    num_rows = _count(next(found))
    out = []
    for leaf in wanted:
        nulls = _count(next(found))
        nulls = _unless(pc.greater(nulls, num_rows), nulls)
        if _kind(leaf) is None:
            known = isinstance(leaf.type, Primitive) and leaf.type.known
            nothing = pa.nulls(len(num_rows), to_arrow_type(leaf.type) if known else pa.null())
            out.append(ColumnStats(nothing, nothing, nulls, num_rows))
            continue
        low, high = next(found), next(found)
        if leaf.path is not None:
            out.append(ColumnStats(side_of(low), side_of(high), nulls, num_rows))
            continue
        if leaf.type in (TIMESTAMP, TIMESTAMP_NTZ):
            high = pc.add(high, _MS)
        if leaf.was_float:
            low, high = _of_float(low, np.minimum), _of_float(high, np.maximum)
        if pa.types.is_decimal(low.type) and not leaf.as_written:
            low, high = rounded.as_they_hold(low, high)
        out.append(ColumnStats(*in_order(low, high), nulls, num_rows))
    return out


def _kind(leaf: Wanted) -> pa.DataType | str | None:
    """As what the kernel reads a leaf's bounds, a type or a Variant's path; None for types without bounds."""
    if leaf.path is not None:
        return leaf.path.normalized
    return to_arrow_type(leaf.type) if is_ordered(leaf.type) else None


def _count(values: pa.Array) -> pa.Array:
    return _unless(pc.less(values, _ZERO), values)


def _unless(wrong: pa.Array, values: pa.Array) -> pa.Array:
    """The values, null where they are wrong."""
    if not wrong.true_count:
        return values
    return pc.if_else(pc.fill_null(wrong, FALSE), scalar(None, values.type), values)


def _of_float(bounds: pa.Array, wider: Any) -> pa.Array:
    """Widens bounds so that they hold for texts of floats and of doubles: 0.7 also means 0.699999988079071."""
    values = to_numpy(bounds)
    with np.errstate(over="ignore"):
        floats = values.astype(np.float32).astype(np.float64)
    return arrow_array(wider(values, floats), mask=to_numpy(bounds.is_null()))


def in_order(low: pa.Array, high: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Returns both, null where the lower bound is above the upper one, which is a mistake of the writer."""
    if low.null_count == len(low) or high.null_count == len(high):
        return low, high
    wrong = pc.greater(low, high)
    return _unless(wrong, low), _unless(wrong, high)
