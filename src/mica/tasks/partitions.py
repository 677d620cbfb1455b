"""Brings the rows of each partition together, before they are written.

The rule: rows of a partition keep their order, and partitions come as their first rows do. Rows of more partitions than
may be open at once would otherwise become many small files of each. What fits in memory is arranged there, more on
local disk; then memory holds what `tasks/spill.py` gathers, however large a partition is.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, to_numpy
from mica.schema.arrow import with_leaves
from mica.tasks import spill
from mica.tasks.batches import Arranged
from mica.tasks.groups import groups, scattered

#: So many rows say whether all are of too many partitions.
FIRST_ROWS = 16_384


class Partitions:
    """Numbers the combinations of values of some columns, in the order of first use."""

    def __init__(self) -> None:
        self._numbers = dict[tuple[object, ...], int]()

    def of(self, columns: Sequence[pa.Array]) -> pa.Array:
        """The number of each row."""
        found = np.empty(len(columns[0]), np.int64)
        for values, rows in groups([_keys(column) for column in columns]):
            found[to_numpy(rows)] = self._numbers.setdefault(values, len(self._numbers))
        return arrow_array(found)


def scatter(rows: pa.Table, names: Sequence[str]) -> bool:
    """Whether rows with these partition columns are of too many; columns that they lack are filled in later."""
    if not names or not set(names) <= set(rows.column_names):
        return False
    values = rows.select(list(names)).slice(0, FIRST_ROWS)
    return scattered(_as_plain(values))


def arranged(rows: pa.Table, names: Sequence[str]) -> Arranged:
    """The rows of a table, those of a partition together; `names` are the partition columns."""
    rows = _as_plain(rows)
    numbers = Partitions().of([rows.column(name).combine_chunks() for name in names])
    return Arranged(rows, arrow_array(np.argsort(to_numpy(numbers), kind="stable")))


def arranged_on_disk(rows: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of plain batches, those of a partition together. Errors: DISK_FULL, IO."""
    with tempfile.TemporaryDirectory(prefix="mica-sort-") as place:
        yield from spill.as_spilled(spill.spill(rows, Partitions(), names, os.path.join(place, "rows.arrow")))  # noqa: PTH118


def taken(batches: Iterator[pa.RecordBatch], rows: int, size: int) -> list[pa.RecordBatch]:
    """The next batches, until they have so many rows or bytes."""
    found = list[pa.RecordBatch]()
    while rows > 0 and size > 0 and (batch := next(batches, None)) is not None:
        found.append(batch)
        rows, size = rows - batch.num_rows, size - batch.nbytes
    return found


def alike(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The batches, those of a schema after each other, as far as others of `size` bytes wait for them."""
    current: pa.Schema | None = None
    waiting = dict[pa.Schema, list[pa.RecordBatch]]()
    held = 0
    for batch in batches:
        if current is None or batch.schema == current:
            current = batch.schema
            yield batch
            continue
        waiting.setdefault(batch.schema, []).append(batch)
        held += batch.nbytes
        if held > size:
            current, held = [*waiting][-1], 0
            yield from _released(waiting)
    yield from _released(waiting)


def _released(waiting: dict[pa.Schema, list[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches that wait, schema by schema; they are kept no longer."""
    while waiting:
        yield from drained(waiting.pop(next(iter(waiting))), ())


def plain(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches without views, of which Arrow selects no rows, and dictionaries, of which its files hold one."""
    return iter(batches) if _with_types(schema, _plain) == schema else map(_as_plain, batches)


def _as_plain(rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
    # In two steps: Arrow takes the values of no dictionary of views, such as polars' categories are. And only columns
    # that need it: of a Variant that is null in every row so are the parts, which a cast refuses.
    steps = _with_types(rows.schema, _without_views)
    schema = _with_types(steps, _plain)
    columns = [
        pc.as_type(pc.as_type(column, step.type), wanted.type)
        for column, step, wanted in zip(rows.columns, steps, schema, strict=True)
    ]
    return type(rows).from_arrays(columns, schema=schema)


def _plain(type_: pa.DataType) -> pa.DataType:
    return _plain(type_.value_type) if pa.types.is_dictionary(type_) else _without_views(type_)


def _without_views(type_: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_dictionary(type_):
        return pa.dictionary(type_.index_type, _without_views(type_.value_type), type_.ordered)
    if t.is_string_view(type_):
        return pa.large_string()
    return pa.large_binary() if t.is_binary_view(type_) else type_


def _with_types(schema: pa.Schema, of: Callable[[pa.DataType], pa.DataType]) -> pa.Schema:
    """The schema with other types for the values at every depth."""
    return pa.schema([with_leaves(f, lambda leaf: leaf.with_type(of(leaf.type))) for f in schema], schema.metadata)


def _keys(column: pa.Array) -> pa.Array:
    """Values as Python has them: it has neither nanoseconds nor years beyond 9999."""
    if pa.types.is_date(column.type):
        return pc.cast(column, pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return pc.cast(column, pa.int64()) if pa.types.is_timestamp(column.type) else column


def drained(batches: list[pa.RecordBatch], following: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches of a list, which it loses, and those that follow."""
    batches.reverse()
    return itertools.chain(iter(lambda: batches.pop() if batches else None, None), following)
