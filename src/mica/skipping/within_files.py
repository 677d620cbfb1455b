"""Which rows of a file might match, by the bounds in its footer or page index.

The rule: the bounds of row groups and pages are evaluated like those of files (`judge`). A bound is used only if the
kernel marks it usable, and only for comparisons of its own class; rows that no bound excludes are read.

Source: Parquet "VariantShredding", "Data Skipping": the matching `value` must be all null (rule 41).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import TRUE, NDArray, scalar, to_numpy
from mica.errors import UserError
from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.casts import cast_array
from mica.expressions.coerce import is_exact, is_real
from mica.records import dataclass
from mica.schema.arrow import from_arrow_type, to_arrow_type
from mica.schema.types import BOOLEAN, VARIANT, DataType
from mica.skipping import written
from mica.skipping.filled import filled
from mica.skipping.intervals import Interval, from_constants, longest, unknown
from mica.skipping.judge import judge
from mica.skipping.row_ranges import RowRanges, intersect, rows_of

_ZERO = scalar(0, pa.int64())


@dataclass(frozen=True)
class Verdicts:
    """What is proved for spans of rows, in order: `reasons[i]` is the number of the part in `BoundExpr.parts` that no
    row of span i can make true; -1 if nothing is proved."""

    first_rows: NDArray[np.int64]
    rows: NDArray[np.int64]
    reasons: NDArray[np.int64]

    @classmethod
    def joined(cls, some: Sequence[Verdicts]) -> Verdicts:
        """Those of some spans and of the spans after them."""
        columns = ([one.first_rows for one in some], [one.rows for one in some], [one.reasons for one in some])
        return cls(*map(np.concatenate, columns))

    @property
    def kept(self) -> RowRanges:
        """The ranges of rows that may match, in order and disjoint."""
        might = self.reasons < 0
        starts = self.first_rows[might]
        ends = starts + self.rows[might]
        ranges: RowRanges = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if ranges and ranges[-1][1] == start:
                ranges[-1] = (ranges[-1][0], end)
            elif end > start:
                ranges.append((start, end))
        return ranges


@dataclass(frozen=True)
class Proof:
    """The result of one check of rows against the footer."""

    what: str
    asked: RowRanges
    verdicts: Verdicts

    @property
    def left(self) -> RowRanges:
        """The rows that may match."""
        return intersect(self.asked, self.verdicts.kept)

    @property
    def gone(self) -> Iterator[tuple[int, int, int]]:
        """(index of the part of the predicate, spans, rows) that were skipped."""
        starts, ends = (np.array([r[i] for r in self.asked], np.int64) for i in (0, 1))
        first, last = self.verdicts.first_rows, self.verdicts.first_rows + self.verdicts.rows
        at = np.minimum(np.searchsorted(ends, first, "right"), len(ends) - 1)
        touched = (starts[at] < last) & (ends[at] > first)
        for part in sorted(set(self.verdicts.reasons.tolist()) - {-1}):
            mine = self.verdicts.reasons == part
            spans = Verdicts(first, self.verdicts.rows, np.where(mine, -1, 0))
            rows = rows_of(intersect(self.asked, spans.kept))
            if rows:
                yield part, int(np.count_nonzero(mine & touched)), rows


def can_prove(bound: BoundExpr, found: pa.RecordBatch, columns: Mapping[int, str]) -> bool:
    """Whether `verdicts` could skip anything. Paths without a usable bound prove nothing, which is quickly said."""
    return any(
        leaf.path is None or i not in columns or found.column(columns[i]).field("usable").true_count
        for i, leaf in enumerate(bound.leaves)
    )


def verdicts(
    bound: BoundExpr, found: pa.RecordBatch, columns: Mapping[int, str], constants: Mapping[int, pa.Scalar]
) -> Verdicts:
    """Evaluates the predicate on the bounds of row groups or pages.

    `found` is what the kernel's `FileReader.bounds` returns; `columns` maps leaf numbers of `bound` to its columns,
    `constants` maps leaves with one value in the whole file: partition columns, and null for missing columns.
    """
    count = found.num_rows
    intervals: dict[int, Interval] = {}
    for i, leaf in enumerate(bound.leaves):
        if i in constants:
            intervals[i] = from_constants(pa.repeat(constants[i], count), leaf.type)
        elif i in columns:
            intervals[i] = interval(leaf, found.column(columns[i]), found.column("rows"), bound.timezone)
        else:
            intervals[i] = unknown(count, leaf.type)
    reasons = np.full(count, -1, np.int64)
    for number, part in enumerate(bound.parts):
        might = to_numpy(judge(part, intervals, count, timezone=bound.timezone, other_zones=bound.other_zones))
        reasons[~might & (reasons < 0)] = number
    return Verdicts(to_numpy(found.column("first_row")), to_numpy(found.column("rows")), reasons)


def interval(leaf: Leaf, column: pa.StructArray, rows: pa.Array, zone: str) -> Interval:
    """Builds a leaf's interval from the kernel's struct of min, max, null_count and usable."""
    count = len(column)
    low, high, null_count, usable = (column.field(name) for name in ("min", "max", "null_count", "usable"))
    usable = filled(usable, False)
    all_null = pc.and_(filled(pc.equal(null_count, rows), False), usable)
    if leaf.path is not None:
        some: pa.Array = pa.repeat(TRUE, count)  # the value may be null or of a type that casts to null
    else:
        some = filled(pc.not_equal(null_count, _ZERO), True)
    if usable.true_count < count:
        low, high = (pc.if_else(usable, side, scalar(None, side.type)) for side in (low, high))
    if leaf.path is not None and leaf.type in written.READ and pa.types.is_string(low.type):
        bounds = list(written.times(low, high, leaf.type))
    else:
        bounds = [_cast(side, leaf, zone) for side in (low, high)]
    return Interval(bounds[0], longest(bounds[1], leaf), some, all_null, is_real(leaf.type))


def _cast(side: pa.Array, leaf: Leaf, zone: str) -> pa.Array:
    """Casts the bounds to the type that the predicate uses; null if their class cannot serve that type."""
    nothing = pa.nulls(len(side), to_arrow_type(leaf.type))
    if pa.types.is_null(side.type) or leaf.type == VARIANT:
        return nothing
    try:
        stored = from_arrow_type(side.type)
    except UserError:  # a type that no Delta column has, such as times
        return nothing
    if not _same_class(stored, leaf.type):
        return nothing
    if pa.types.is_timestamp(side.type) and side.type.unit != "us":
        try:
            side = side.cast(pa.timestamp("us", side.type.tz))
        except pa.ArrowInvalid:  # beyond the range of microseconds, or finer than they are
            return nothing
    cast, _ = cast_array(side, stored, leaf.type, zone, ansi=True)
    if is_real(leaf.type):
        cast = pc.if_else(pc.is_finite(cast), cast, scalar(None, cast.type))
    return cast


def _same_class(stored: DataType, asked: DataType) -> bool:
    if is_exact(stored):
        return is_exact(asked) or is_real(asked)
    if is_real(stored):
        return is_real(asked)
    return stored == asked and stored != BOOLEAN
