"""Values of the leaves of expressions, extracted from batches or files by the kernel.

The rule: the kernel extracts each leaf once, for all expressions. An expression is evaluated on the columns of its own
leaves, in order: one column for a value, two for a path (the second says which casts failed).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.evaluate import RowError, evaluate
from mica.records import dataclass
from mica.schema.char import padded
from mica.tasks.row_errors import located, text, whole
from mica.variant import kernel


@dataclass(frozen=True)
class Leaves:
    """The values of some leaves in some rows."""

    rows: int
    columns: dict[Leaf, list[pa.Array]]

    def filter(self, mask: pa.BooleanArray, rows: int) -> Leaves:
        """The `rows` rows for which the mask is true."""
        return Leaves(rows, {leaf: [c.filter(mask) for c in columns] for leaf, columns in self.columns.items()})

    def slice(self, first: int, end: int) -> Leaves:
        """The rows from `first` to before `end`."""
        if end - first == self.rows:
            return self
        found = {leaf: [c.slice(first, end - first) for c in columns] for leaf, columns in self.columns.items()}
        return Leaves(end - first, found)

    def of(self, bound: BoundExpr) -> list[pa.Array]:
        """The columns that an expression is evaluated on."""
        return [column for leaf in bound.leaves for column in self.columns[leaf]]


def distinct(leaves: Iterable[Leaf]) -> list[Leaf]:
    """Each leaf once, in the order of first use."""
    return list(dict.fromkeys(leaves))


def extract(leaves: Sequence[Leaf], batch: pa.RecordBatch, timezone: str) -> Leaves:
    """The leaves of the rows of a batch, whose Variants may be in their storage layout or not."""
    if not leaves:
        return Leaves(batch.num_rows, {})
    batch = batch.select(list(dict.fromkeys(leaf.column[0] for leaf in leaves)))
    found = iter(kernel.extract(batch, [leaf.request() for leaf in leaves], timezone=timezone).columns)
    # Conditions see a CHAR(n) as whoever reads it: a constant beside it has its blanks already.
    columns = {
        leaf: [padded(next(found), leaf.padded)] if leaf.path is None else [next(found), next(found)] for leaf in leaves
    }
    return Leaves(batch.num_rows, columns)


def compute(
    value: BoundExpr, batch: pa.RecordBatch, timezone: str, *, name: str = "the rows", leaves: Leaves | None = None
) -> pa.Array:
    """A bound expression over the rows of a batch; `name` is what errors call it. `leaves` are those of all expressions
    over this batch, if there are several: the kernel opens all columns of a Variant each time it is asked."""
    leaves = extract(distinct(value.leaves), batch, timezone) if leaves is None else leaves
    try:
        return evaluate(value, leaves.of(value), num_rows=leaves.rows)
    except RowError as e:

        def found(leaf: Leaf, row: int) -> str | None:
            again = whole(leaf)
            return text(extract([again], batch.slice(row, 1), timezone).columns[again][0], 0)

        raise located(e, name, found) from None
