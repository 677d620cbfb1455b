"""Overwrites the rows that match a new row (delta-spark's `replaceUsing` and `replaceOn`).

The rule: it is a merge whose matching rows are deleted, and all of whose source is inserted, what matches too. By
columns, values match as `=` says it of values as the table stores them: a NULL replaces nothing, and a text for a
CHAR(n) has its blanks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mica import engines
from mica.errors import UserError
from mica.expressions.coerce import is_ordered
from mica.expressions.collations import ROWS
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.schema.arrow import to_arrow
from mica.schema.ddl import type_to_ddl
from mica.schema.evolution import plan_write
from mica.schema.spelling import quoted
from mica.schema.types import StructField, StructType
from mica.variant.plain import to_variants
from mica.write import merge_source
from mica.write.commit import Commit
from mica.write.facts import Facts, bytes_of
from mica.write.merge import Merge
from mica.write.merge_clauses import MergeClause
from mica.write.merge_source import MergeSource
from mica.write.once import Txn
from mica.write.rows import with_sparks_defaults
from mica.write.running_merge import RunningMerge
from mica.write.target import target_of, write_metrics

#: The aliases of both sides, which no column is likely to have.
_TABLE, _ROWS = "the__table", "the__rows"


@dataclass(frozen=True)
class Matching:
    """Which rows of the table match one of the new ones: those with equal values of `using`, or for which `on` is true,
    a text as that of a merge."""

    using: Sequence[str] = ()
    on: str | None = None
    source_alias: str = "source"
    target_alias: str = "target"

    @property
    def parameters(self) -> dict[str, str]:
        """What delta-spark's history has of it."""
        return {"replaceUsingCols": f"({', '.join(self.using)})"} if self.on is None else {"replaceOnCond": self.on}

    def of_columns(self, columns: Sequence[tuple[StructField, StructField]]) -> Matching:
        """With these columns, as the table and the rows have them, and the text for them."""
        on = " AND ".join(f"{_TABLE}.{quoted(own.name)} = {_ROWS}.{quoted(given.name)}" for own, given in columns)
        return Matching([own.name for own, _ in columns], on, _ROWS, _TABLE)


def replace_matching(
    snapshot: Snapshot, data: Any, matching: Matching, *, txn: Txn | None = None, schema_evolution: bool = False
) -> Commit:
    """Writes and commits; see `Table.overwrite`."""
    rules = target_of(snapshot, None).rules(*engines.of(data).settings())
    data = with_sparks_defaults(data, rules, snapshot.schema)
    source = merge_source.of(data, None, snapshot.schema)
    if not schema_evolution:  # refuses what an append refuses of columns
        plan_write(snapshot.schema, to_arrow(source.schema), variants=to_variants, supplied=rules.supplied)
    by = matching
    if matching.on is None:
        columns = [_column(snapshot.schema, source.schema, name) for name in matching.using]
        by, source = matching.of_columns(columns), _stored(source, columns)
    assert by.on is not None
    values = {quoted(f.name): f"{quoted(by.source_alias)}.{quoted(f.name)}" for f in source.schema.fields}
    clauses = (MergeClause("matched", "delete", None), MergeClause("not matched", "insert", None, values))
    given = Merge(snapshot, data, by.on, by.source_alias, by.target_alias, clauses=clauses, evolves=schema_evolution)
    said = replace(by, on=None) if matching.on is None else by
    return _Replacing(given, txn, source, said.parameters).commit()


def _column(table: StructType, rows: StructType, name: str) -> tuple[StructField, StructField]:
    """The column of a name, in the table and in the rows."""
    own, given = table.find(name), rows.find(name)
    if own is None:
        hint = f"The columns are {', '.join(table.names)}."
        raise UserError("UNKNOWN_COLUMN", f"the table has no column {name!r}, by which rows are replaced", hint=hint)
    if given is None:
        hint = "Give the rows the column, or name others."
        raise UserError("MISSING_COLUMN", f"the rows lack the column {name!r}, by which they replace others", hint=hint)
    if not is_ordered(own.type):
        message = f"rows cannot be replaced by {own.name!r}: values of {type_to_ddl(own.type)} are not compared"
        hint = "Name other columns, or give a condition on what is in it: target.v:id::bigint = source.v:id::bigint."
        raise UserError("TYPE_MISMATCH", message, hint=hint)
    return own, given


def _stored(source: MergeSource, columns: Sequence[tuple[StructField, StructField]]) -> MergeSource:
    """With the values of these columns as the table stores them."""
    try:
        return source.stored({given.name: own for own, given in columns})
    except UserError as e:
        if e.code != "UNKNOWN_COLUMN":
            raise
        hint = "Leave it out, or add it to the table before."
        raise UserError(e.code, f"{e.message}, and rows are replaced by what it is in", hint=hint) from None


class _Replacing(RunningMerge):
    """One execution."""

    session = ROWS

    def __init__(self, given: Merge, txn: Txn | None, source: MergeSource, by: Mapping[str, str]) -> None:
        super().__init__(given, txn, source)
        self.match = replace(self.match, inserts_all=True)
        self._by = by

    def _describe(self, predicate: Any, source_rows: int) -> None:
        super()._describe(predicate, source_rows)
        self.target.operation, self.target.replaces_by = "WRITE", self._by

    def _metrics(self, facts: Facts) -> dict[str, int]:
        return {
            **write_metrics(facts),
            "numRemovedFiles": len(facts.removed),
            "numRemovedBytes": bytes_of(self.snapshot.files, facts.removed),
            "numCopiedRows": facts.counted("copied"),
            "numDeletedRows": facts.counted("matched delete"),
            "numAddedChangeFiles": facts.changes.num_rows,
        }
