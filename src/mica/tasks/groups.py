"""Groups rows by the texts of several columns.

The rule: each distinct combination comes once, with its rows in their order; values are compared as dictionary codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from mica import compute as pc
from mica.arrays import to_numpy

#: So many files of different partitions may be open at once in one task.
MAX_OPEN = 64


def groups(columns: list[pa.Array]) -> Iterator[tuple[tuple[str | None, ...], pa.Array]]:
    """The distinct combinations of values, each with the indices of its rows in order."""
    combinations: list[tuple[str | None, ...]] = [()]
    codes: pa.Array = None
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        keys, own = encoded.dictionary.to_pylist(), encoded.indices.cast(pa.int64())
        both = own if codes is None else pc.add(pc.multiply(codes, len(keys)), own)
        # Codes are renumbered after each column, so they stay below the number of rows and never overflow.
        again = both.dictionary_encode()
        pairs = [divmod(code, len(keys)) for code in again.dictionary.to_pylist()]
        combinations = [(*combinations[before], keys[place]) for before, place in pairs]
        codes = again.indices.cast(pa.int64())
    order = pc.sort_indices(codes)  # stable
    runs = pc.run_end_encode(codes.take(order), run_end_type=pa.int64())
    start = 0
    for code, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield combinations[code], order.slice(start, end - start)
        start = end


def together(rows: pa.RecordBatch, found: Iterable[tuple[object, pa.Array]]) -> pa.RecordBatch:
    """The rows of a batch, group after group as `groups` found them. Rows in this order are not copied."""
    places = pa.concat_arrays([indices for _, indices in found])
    numbers = to_numpy(places)
    return rows if (numbers[1:] > numbers[:-1]).all() else rows.take(places)


def scattered(values: pa.Table) -> bool:
    """Whether rows with these partition values would be written to more files at once than may be open: unless they
    are brought together first, a partition gets many small files."""
    return bool(pc.grouped(values, values.column_names).num_rows > MAX_OPEN)
