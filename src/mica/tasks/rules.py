"""The rules of a table on its rows: which values new rows get, and which rows are refused.

The rule: rows are completed and checked a batch at a time, before they are partitioned, whatever writes them. A check
passes a row only if its expression is true: NULL violates it, as in delta-spark. Columns that rows lack get their
default, the next numbers of an identity, or the value of their expression, in this order; a generated column that rows
have must equal its expression.

Source: PROTOCOL.md, "Column Invariants", "CHECK Constraints", "Generated Columns", "Default Columns", "Identity
Columns".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from typing import Literal

import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, scalar
from mica.errors import UnsupportedTableError, UserError
from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.evaluate import RowError, filter_rows
from mica.records import dataclass
from mica.schema.evolution import check_nulls
from mica.schema.types import VARIANT
from mica.tasks.lane import Lane
from mica.tasks.leaf_values import compute, distinct, extract
from mica.tasks.row_errors import located, told, whole
from mica.variant.path import VariantPath

#: Error code and way out of a violation, by what makes the condition.
_VIOLATED = {
    "table": ("CONSTRAINT_VIOLATED", "Correct or leave out such rows, or drop the constraint."),
    "type": (
        "CONSTRAINT_VIOLATED",
        "Correct or leave out such rows, or give the column a longer type: alter_column(…).",
    ),
    "generated": ("CONSTRAINT_VIOLATED", "Leave the column out of the rows: its values are computed."),
    "overwrite": ("ROWS_OUTSIDE_OVERWRITE", "Filter the rows first, or widen the predicate."),
}


@dataclass(frozen=True)
class RowCheck:
    """A condition that every row must fulfil. `what` names it in errors: `the CHECK constraint 'positive'`."""

    what: str
    text: str
    bound: BoundExpr
    asked_by: Literal["table", "type", "generated", "overwrite"] = "table"


@dataclass(frozen=True)
class Identity:
    """An identity column: the value of the first new row, and the distance to the next."""

    first: int
    step: int


@dataclass(frozen=True)
class Rules:
    """All rules of a table; false if there are none. Sent to workers."""

    checks: tuple[RowCheck, ...] = ()
    defaults: Mapping[str, BoundExpr] = field(default_factory=dict)
    #: The defaults that mica cannot evaluate, as errors: only rows without these columns ask for them.
    unknown: Mapping[str, UnsupportedTableError] = field(default_factory=dict)
    identities: Mapping[str, Identity] = field(default_factory=dict)
    generated: Mapping[str, BoundExpr] = field(default_factory=dict)
    #: The checks of generated columns that rows have already.
    given: Mapping[str, RowCheck] = field(default_factory=dict)
    timezone: str = "UTC"

    def __bool__(self) -> bool:
        return bool(self.checks or self.supplied)

    @property
    def supplied(self) -> frozenset[str]:
        """The columns that rows may lack even if they are NOT NULL."""
        return frozenset((*self.defaults, *self.unknown, *self.identities, *self.generated))

    def absent(self, names: Iterable[str]) -> frozenset[str]:
        """The columns to complete in rows with columns of these names. Errors: UNSUPPORTED_WRITER_FEATURE."""
        known = {name.lower() for name in names}
        found = frozenset(name for name in self.supplied if name.lower() not in known)
        for name in self.unknown:
            if name in found:
                raise self.unknown[name]
        return found

    def apply(self, batch: pa.RecordBatch, absent: Collection[str], lane: Lane) -> pa.RecordBatch:
        """The rows of the table, completed and checked. Errors: CONSTRAINT_VIOLATED, NULL_IN_NOT_NULL_COLUMN."""
        batch = self.fill(batch, absent, lane)
        self.check(batch, absent)
        return batch

    def fill(self, batch: pa.RecordBatch, absent: Collection[str], lane: Lane) -> pa.RecordBatch:
        """The rows with values in the columns `absent`, which hold anything."""
        if not absent or not batch.num_rows:
            return batch
        for name in self.defaults:
            if name in absent:
                batch = _with(batch, name, compute(self.defaults[name], batch, self.timezone))
        numbered = [name for name in self.identities if name in absent]
        if numbered:
            numbers = lane.take(batch.num_rows)
            for name in numbered:
                batch = _with(batch, name, _counted(self.identities[name], numbers, name))
        # All from the same rows: no generated column is made from another one.
        generated = {name: value for name, value in self.generated.items() if name in absent}
        # Before the kernel reads them: it takes no nulls where there must be none, and names no column.
        for column in {leaf.column[0]: None for value in generated.values() for leaf in value.leaves}:
            check_nulls(batch.column(column), batch.schema.field(column), column)
        made = {name: compute(value, batch, self.timezone) for name, value in generated.items()}
        for name, values in made.items():
            batch = _with(batch, name, values)
        for name in absent:
            check_nulls(batch.column(name), batch.schema.field(name), name)
        return batch

    def check(self, batch: pa.RecordBatch, absent: Collection[str] = ()) -> None:
        """Refuses the rows if one of them violates a check. Errors: CONSTRAINT_VIOLATED."""
        checks = [*self.checks, *(check for name, check in self.given.items() if name not in absent)]
        if not checks or not batch.num_rows:
            return
        leaves = distinct(leaf for check in checks for leaf in check.bound.leaves)
        found = extract(leaves, batch, self.timezone)
        for check in checks:
            try:
                passing = filter_rows(check.bound, found.of(check.bound), num_rows=batch.num_rows)
            except RowError as e:
                raise located(e, check.what, lambda leaf, row: self._value(leaf, batch, row)) from None
            if passing.false_count:
                error = self._violated(check, batch, pc.index(passing, False).as_py(), passing.false_count)
                raise error.at_rows(pc.invert(passing))

    def _violated(self, check: RowCheck, batch: pa.RecordBatch, row: int, count: int) -> UserError:
        values = {leaf.name: self._value(leaf, batch, row) for leaf in check.bound.leaves}
        shown = ", ".join(f"{name} = {value}" for name, value in values.items())
        many = "" if count == 1 else f" (one of {count} rows)"
        code, way_out = _VIOLATED[check.asked_by]
        return UserError(
            code,
            f"a row violates {check.what} ({check.text}): {shown or 'it uses no column'}{many}",
            hint=f"Nothing was written. {way_out}",
            constraint=check.what,
        )

    def _value(self, leaf: Leaf, batch: pa.RecordBatch, row: int) -> str:
        """The value of a leaf in one row, as errors show it."""
        is_variant = leaf.path is not None or leaf.type == VARIANT
        asked = replace(whole(leaf), path=leaf.path or VariantPath()) if is_variant else leaf
        (values, *_) = extract([asked], batch.slice(row, 1), self.timezone).columns[asked]
        return told(values, asked.type)


def _with(batch: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """The batch with other values in a column."""
    at = batch.schema.get_field_index(name)
    found = batch.schema.field(at)
    return batch.set_column(at, found, pc.as_type(values, found.type))


def _counted(identity: Identity, numbers: object, name: str) -> pa.Array:
    try:
        return pc.add_checked(
            pc.multiply_checked(arrow_array(numbers, pa.int64()), scalar(identity.step, pa.int64())),
            scalar(identity.first, pa.int64()),
        )
    except (pa.ArrowInvalid, OverflowError):  # of a number, or of the first
        raise UserError(
            "ARITHMETIC_OVERFLOW", f"the identity column {name!r} has no numbers left in a BIGINT", column=name
        ) from None
