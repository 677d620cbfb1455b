"""The groups of all rows of a scan, in one process.

The rule: each group comes once, with the final values of its measures, so that an engine which aggregates it once more
has nothing to add; or nothing comes, if the groups take too much memory. Of groups that are sorted and cut afterwards
only those stay that can be among the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

import pyarrow as pa

from mica import compute as pc
from mica.records import dataclass
from mica.schema.types import LONG, StructField, StructType
from mica.tasks.fold import Fold, Measure

#: So many rows, and twice the groups that are known, wait to be joined with these.
WAITING_ROWS = 1 << 19

#: Bytes that the groups may take: while they are gathered, and in the end.
HELD_BYTES, GIVEN_BYTES = 256 << 20, 64 << 20


@dataclass(frozen=True)
class First:
    """The first `count` groups by the value of `column`, or by `column` less `less`; others may be left out."""

    count: int
    column: str
    less: str | None
    descending: bool
    nulls_first: bool

    def of(self, groups: pa.Table) -> pa.Table:
        """The groups that may be among the first: all that are not behind the last of these."""
        if groups.num_rows <= self.count:
            return groups
        values = groups.column(self.column)
        if self.less is not None:
            try:
                values = pc.subtract_checked(values, groups.column(self.less))
            except pa.ArrowInvalid:  # an overflow, which the engine reports
                return groups
        nulls = values.null_count
        wanted = self.count - nulls if self.nulls_first else self.count
        kept = pc.is_null(values) if self.nulls_first else None
        if wanted > 0:
            valid = values.drop_null()
            if wanted >= len(valid):
                return groups
            order = "descending" if self.descending else "ascending"
            places = pc.select_k_unstable(pa.table({"x": valid}), wanted, [("x", order)])
            last = valid[places[-1].as_py()]
            ahead = pc.greater_equal(values, last) if self.descending else pc.less_equal(values, last)
            kept = ahead if kept is None else pc.or_kleene(kept, ahead)
        return groups.filter(kept)


@dataclass(frozen=True)
class Gather:
    """How the rows of a fold become groups."""

    fold: Fold
    #: The keys of the groups: some or all of the fold's.
    keys: tuple[str, ...]
    #: Measure → the other keys of the fold, whose combinations without a null it counts.
    distinct: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    first: First | None = None

    def schema(self, scanned: StructType) -> StructType:
        """The columns of the groups, from those of the scan."""
        grouped = Fold(self.keys, self.fold.measures).schema(scanned)
        return StructType((*grouped.fields, *(StructField(name, LONG, False) for name in self.distinct)))

    def of(self, batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
        """The groups of the batches that `fold` made; None if they take too much memory."""
        held: list[pa.Table] = []
        waiting = known = 0
        for batch in batches:
            held.append(pa.Table.from_batches([batch]))
            waiting += batch.num_rows
            if waiting > WAITING_ROWS + 2 * known:
                held = [self.fold.joined(pa.concat_tables(held), threads=True)]
                waiting, known = 0, held[0].num_rows
                if held[0].nbytes > HELD_BYTES:
                    return None
        if not held:
            return None
        found = self._counted(self.fold.joined(pa.concat_tables(held), threads=True))
        found = found if self.first is None else self.first.of(found)
        return found if found.nbytes <= GIVEN_BYTES else None

    def _counted(self, found: pa.Table) -> pa.Table:
        """The groups by `keys` of those by all keys."""
        if self.keys == self.fold.keys and not self.distinct:
            return found
        for name, columns in self.distinct.items():
            valid = [pc.is_valid(found.column(column)).cast(pa.int64()) for column in columns]
            count = valid[0]
            for other in valid[1:]:
                count = pc.multiply(count, other)
            found = found.append_column(name, count)
        counted = (*self.fold.measures, *(Measure(name, "count", name) for name in self.distinct))
        return Fold(self.keys, counted).joined(found, threads=True)
