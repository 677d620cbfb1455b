"""Rows of a file that are written again as they are.

The rule: their Variants stay shredded on the way where the new file shreds them as the old one does. The kernel hands
on the columns of rows that obey the layout, and puts others together and shreds them again. The rules of the table that
an UPDATE or a MERGE checks are checked of copied rows too, as by delta-spark: whether a row that another writer added
against them is refused must not depend on how many rows change.

Source: Parquet "VariantShredding", "Value Shredding".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

from mica import compute as pc
from mica.expressions.bind import BoundExpr
from mica.expressions.tree import LeafRef
from mica.records import dataclass
from mica.schema.arrow import to_arrow
from mica.schema.evolution import check_nulls
from mica.schema.types import VARIANT, contains
from mica.skipping.row_ranges import RowRanges, intersect, rows_of, without
from mica.stats.columns import physical_names
from mica.tasks.batches import cut
from mica.tasks.file import DataFileReader
from mica.tasks.leaf_columns import StoredColumn, leaves_in
from mica.tasks.read import read_ranges
from mica.variant import kernel

if TYPE_CHECKING:
    from mica.tasks.write import WriteSpec

#: Rows are copied if at most one in so many changes: where more do, reading all of them once takes less.
_FEW = 4

#: Changed rows are written among those that are copied, after so many rows of the old file: those of a row group.
_TURN = 65_536


@dataclass(frozen=True)
class StoredRows:
    """Rows of the table whose Variants are in their storage layout, shredded by these trees."""

    batch: kernel.Batch
    trees: Mapping[tuple[str, ...], pa.DataType]


def rows_after(
    file: DataFileReader,
    ranges: RowRanges,
    changed: RowRanges,
    update: Callable[[RowRanges], Iterator[pa.RecordBatch]],
    outputs: Mapping[str, BoundExpr],
    write: WriteSpec,
) -> Iterator[pa.RecordBatch | StoredRows]:
    """The rows of the file that takes the place of this one: those of `ranges`, of which some are `changed`. `update`
    makes them, of any ranges that have all changed rows between their ends; `outputs` are the table's columns as they
    are.
    """
    trees = _trees(file, outputs, write)
    if trees is None or (changed and (file.is_remote or rows_of(changed) * _FEW > rows_of(ranges))):
        yield from update(ranges)
        return
    schema, copied = to_arrow(write.stored(outputs)), without(ranges, changed)
    _check(file, copied, outputs, write)
    for kept, some in _turns(copied, changed):
        yield from _stored(file, kept, outputs, schema, trees)
        if some:
            yield from update(some)


def _check(file: DataFileReader, ranges: RowRanges, outputs: Mapping[str, BoundExpr], write: WriteSpec) -> None:
    """Raises if one of the rows violates a check of the table; reads the columns of the checks. Errors: as
    `Rules.check`."""
    checks = (*write.rules.checks, *write.rules.given.values())
    used = {leaf.column[0] for check in checks for leaf in check.bound.leaves}
    asked = {name: value for name, value in outputs.items() if name in used}
    for batch in read_ranges(file, ranges, outputs=asked) if asked else ():
        write.rules.check(batch)


def _stored(
    file: DataFileReader,
    ranges: RowRanges,
    outputs: Mapping[str, BoundExpr],
    schema: pa.Schema,
    trees: Mapping[tuple[str, ...], pa.DataType],
) -> Iterator[StoredRows]:
    columns = [file.column(value.leaves[0]) for value in outputs.values()]
    columns = [c.as_stored(name) if (name,) in trees else c for name, c in zip(outputs, columns, strict=True)]
    # By their places: a column may be called as another's mask (`v!`), or as the kernel calls one without a name (`0`).
    widths = (0 if c.request is None else 2 if isinstance(c, StoredColumn) else 1 for c in columns)
    places = [*accumulate(widths, initial=0)]
    for batch, numbers in file.batches(columns, None, ranges):
        found, arrays, fields = leaves_in(columns, batch, numbers), [], []
        for column, place, wanted in zip(columns, places, schema, strict=False):
            [array] = found.columns[column.leaf]
            if (wanted.name,) in trees:
                field = batch.schema.field(place).with_nullable(wanted.nullable)
            else:
                field, array = wanted, pc.as_type(array, wanted.type)
            check_nulls(array, field, wanted.name)
            fields.append(field)
            arrays.append(array)
        rows = kernel.taken(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))
        for piece in cut(rows):
            yield StoredRows(piece, trees)


def _trees(
    file: DataFileReader, outputs: Mapping[str, BoundExpr], write: WriteSpec
) -> Mapping[tuple[str, ...], pa.DataType] | None:
    """The trees of all Variants, if each is a column of its own that the new file shreds as this file does."""
    variants = [value for value in outputs.values() if contains(value.type, VARIANT)]
    if write.shredding.trees is None or not variants or not all(isinstance(v.expr, LeafRef) for v in outputs.values()):
        return None
    found = {}
    for value in variants:
        names = value.leaves[0].column
        tree = file.reader.tree(physical_names(file.spec.columns, names)) if value.type == VARIANT else None
        if tree is None or tree[1] or pa.types.is_null(tree[0]) or tree[0] != write.shredding.trees.get(names):
            return None
        found[names] = tree[0]
    return found


def _turns(kept: RowRanges, changed: RowRanges) -> Iterator[tuple[RowRanges, RowRanges]]:
    """The rows that are copied and those that change, of a row group of the old file at a time: what was sorted stays
    nearly so.
    """
    if not changed:
        yield kept, changed
        return
    for first in range(0, max(span[-1][1] for span in (kept, changed) if span), _TURN):
        turn = [(first, first + _TURN)]
        yield intersect(kept, turn), intersect(changed, turn)
