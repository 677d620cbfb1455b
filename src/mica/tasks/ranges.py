"""Ranges of a sorted job: each row gets its file number before the sort, so that no input is read twice.

The rule: rows with equal keys are in one range, and ranges are in the order of the keys. The sample affects only how
even the ranges are.

Spark's own range partitioning would run the whole job once more for its sample and so parse all text twice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import threads
from mica.arrays import NDArray, arrow_array, scalar, to_numpy
from mica.records import dataclass
from mica.tasks.bad_lines import sifted
from mica.tasks.groups import scattered
from mica.tasks.ingest import BATCH_BYTES, BATCH_ROWS, Head, IngestSpec, Split, complete, head_of, open_reader, told_by
from mica.tasks.packed import packing

#: Plain text is looked at in spots of this many bytes, so many of them over the whole job, or one in each so many
#: bytes. Of compressed text, which can't be entered, one row in so many counts.
SPOT = 16 << 10
SPOTS = 256
STRIDE = 4 << 20
EVERY = 64

#: About so many bytes in memory are one range, which a task sorts at once. Of a job of very many it has more: only so
#: many ranges have parts that are worth their handling.
RANGE_BYTES = 64 << 20
MOST_RANGES = 1 << 14

#: The last column of samples: how many bytes a row stands for.
_WEIGHT = "weight"


def finer(size: int, files: int) -> int:
    """How many ranges each file of a job gets, of so many bytes in memory."""
    return max(1, min(round(size / files / RANGE_BYTES), MOST_RANGES // files))


@dataclass(frozen=True)
class Ranges:
    """The boundaries of ranges: sorted rows of keys, the start of each range but the first."""

    starts: pa.Table
    descending: tuple[bool, ...]

    def __len__(self) -> int:
        return int(self.starts.num_rows) + 1

    def of(self, keys: Sequence[pa.Array]) -> pa.Array:
        """The range of each row, int32."""
        count = self.starts.num_rows
        if not count:
            return pa.repeat(scalar(0, pa.int32()), len(keys[0]))
        columns = [pa.chunked_array([*start.chunks, key]) for start, key in zip(self.starts.columns, keys, strict=True)]
        # The sort is stable: a start comes before the rows that equal it.
        order = _order(columns, self.descending)
        ranges = np.empty(len(order), np.int32)
        ranges[order] = np.cumsum(order < count)
        return arrow_array(ranges[count:])


#: The only range of rows without a sample.
EVERYTHING = Ranges(pa.table({}), ())


def sample(spec: IngestSpec, total: int, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """The keys of a sample of the splits' rows, `weighted` and packed; `total` is the size of all splits in bytes."""
    # Bad lines are reported by the real read, not by the sample.
    spec = replace(spec, reader={**spec.reader, "on_error": "collect"})
    stride = min(STRIDE, max(SPOT, total // SPOTS))

    def some(split: Split) -> list[pa.RecordBatch]:
        head = head_of(split)
        if told_by(head, split) != (None, "ndjson"):
            return list(packing(_keys(spec, split, EVERY, float(EVERY), head)))
        end = split.start + split.bytes
        spots = [replace(split, start=start, end=min(start + SPOT, end)) for start in range(split.start, end, stride)]
        weights = [(min(spot.start + stride, end) - spot.start) / spot.bytes for spot in spots]
        keys = (_keys(spec, spot, 1, weight) for spot, weight in zip(spots, weights, strict=True))
        return list(packing(itertools.chain.from_iterable(keys)))

    for first in range(0, len(splits), threads.REQUESTS):
        share = splits[first : first + threads.REQUESTS]
        for found in share[0].storage.each(some, share):
            yield from found


def _keys(spec: IngestSpec, split: Split, every: int, weight: float, head: Head | None = None) -> Iterator[pa.Table]:
    """The keys of one row in `every`; each stands for `weight` rows of its size."""
    reader = open_reader(spec, split, head)
    while (batch := reader.next_batch(pa.null(), BATCH_ROWS, BATCH_BYTES)) is not None:
        reader.take_errors()
        rows = batch.to_arrow().take(arrow_array(np.arange(0, batch.num_rows, every)))
        weigh = partial(_weighed, spec, split.name, weight)
        # Bad rows fail the real read, or are kept aside by it.
        yield from [weigh(rows)] if spec.quarantine is None else sifted(rows, weigh, lambda *_: None)


def _weighed(spec: IngestSpec, name: str, weight: float, rows: pa.RecordBatch) -> pa.Table:
    table = complete(spec, rows, name)
    keys = [table.column(name) for name in spec.write.partition_by]
    keys += spec.sorted_by(rows, name)
    # Documents of some keys may be larger than those of others: files and ranges are of equal size, not of equal count.
    sizes = to_numpy(pc.binary_length(rows.column(spec.column).field("value")))
    return weighted(keys, weight * (sizes + 1.0))


def scatters(spec: IngestSpec, splits: Sequence[Split]) -> bool:
    """Whether rows that follow each other are of more partitions than a task writes at once: by the first of the
    largest split."""
    if not splits:
        return False
    spec = replace(spec, keys={}, reader={**spec.reader, "on_error": "collect"})
    found = next(_keys(spec, max(splits, key=lambda split: split.bytes), 1, 1.0), None)
    return found is not None and scattered(found.drop_columns([_WEIGHT]))


def weighted(keys: Sequence[pa.Array | pa.ChunkedArray], weights: NDArray[np.float64]) -> pa.Table:
    """A sample: keys of rows, and how many bytes each stands for."""
    return pa.table([*keys, arrow_array(weights)], [*map(str, range(len(keys))), _WEIGHT])


def plan(sample: pa.Table | None, count: int, descending: Sequence[bool]) -> Ranges | None:
    """At most `count` ranges of about equal weight; None without rows. Partition columns ascend."""
    if sample is None:
        return None
    keys = sample.drop_columns([_WEIGHT])
    downs = (*[False] * (keys.num_columns - len(descending)), *descending)
    order = _order(keys.columns, downs)
    weights = np.cumsum(to_numpy(sample.column(_WEIGHT))[order])
    places = np.unique(np.searchsorted(weights, weights[-1] * np.arange(1, count) / count, side="right"))
    return Ranges(keys.take(arrow_array(order[places[places < len(order)]])).combine_chunks(), downs)


def sort_indices(rows: pa.Table, keys: Sequence[tuple[str, bool]]) -> pa.Array:
    """The order of the rows by `keys` (name, descending), as Spark orders: NaN is above all numbers, and null below all
    values, so first among the ascending and last among the descending. Arrow alone puts both at one end.
    """
    parts: dict[str, pa.ChunkedArray] = {}
    order = []
    for place, (name, down) in enumerate(keys):
        column = rows.column(name)
        key = {"valid": column.is_valid(), "value": column}
        if pa.types.is_floating(column.type):
            key = {"valid": column.is_valid(), "nan": pc.fill_null(pc.is_nan(column), False), "value": column}
        parts |= {f"{place} {part}": values for part, values in key.items()}
        order += [(f"{place} {part}", "descending" if down else "ascending") for part in key]
    return pc.sort_indices(pa.table(parts), sort_keys=order)


def _order(columns: Sequence[pa.ChunkedArray], descending: Sequence[bool]) -> np.ndarray:
    names = [str(i) for i in range(len(columns))]
    rows = pa.table(list(columns), names)
    order: np.ndarray = to_numpy(sort_indices(rows, list(zip(names, descending, strict=True))))
    return order
