"""What `df.mergeInto(name, condition)` does in an enabled session: PySpark's calls, collected for a MERGE.

The rule: the clauses are those of the MERGE that says the same, with the columns of Spark's as texts; it runs when
`merge` is called.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mica.errors import UserError
from mica.query import changes
from mica.query.by_name import moved
from mica.query.entry import sql
from mica.query.row_statements import MergeInto, MergeWhen
from mica.query.statement_parts import name_parts
from mica.records import dataclass
from mica.tasks.matching import When
from mica.write.merge_clauses import SEES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mica.engines.spark.doors import NamedCall


class Merging:
    """As PySpark's `MergeIntoWriter`."""

    def __init__(self, call: NamedCall, condition: Column) -> None:
        self._call, self._clauses, self._evolves = call, list[MergeWhen](), False
        self._sides: dict[str, DataFrame] = {"target": call.session.table(call.spelled), "source": call.on}
        columns = {column.lower() for rows in self._sides.values() for column in rows.columns}
        self._names = {side: _free(side, columns) for side in self._sides}
        (self._on,) = self._texts("matched", [condition])

    def whenMatched(self, condition: Column | None = None) -> _When:  # noqa: N802 - Spark's names
        """Begins a clause for rows of both sides."""
        return _When(self, "matched", condition)

    def whenNotMatched(self, condition: Column | None = None) -> _When:  # noqa: N802
        """Begins a clause for rows of the source alone."""
        return _When(self, "not matched", condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> _When:  # noqa: N802
        """Begins a clause for rows of the table alone."""
        return _When(self, "not matched by source", condition)

    def withSchemaEvolution(self) -> Merging:  # noqa: N802
        """Lets the table get the columns that it lacks."""
        self._evolves = True
        return self

    def merge(self) -> None:
        """Runs the MERGE. Errors: those of the statement."""
        session, name = self._call.session, f"mica_{uuid.uuid4().hex}"
        table = name_parts(self._call.spelled)
        assert table is not None
        self._call.on.createTempView(name)
        try:
            source = f"SELECT * FROM {name}"  # noqa: S608 - the view for the rows
            target, rows = self._names["target"], self._names["source"]
            text = f"MERGE INTO {self._call.spelled} AS {target} USING ({source}) AS {rows} ON {self._on}"
            statement = MergeInto(table, target, source, rows, self._on, tuple(self._clauses), self._evolves)
            changes.run(session, statement, partial(sql, spark=session), text)
        finally:
            session.catalog.dropTempView(name)
        moved(self._call.name)

    def _add(self, kind: When, condition: Column | None, action: str, values: Mapping[str, Column] | None) -> Merging:
        given = [*([] if condition is None else [condition]), *(values or {}).values()]
        texts = self._texts(kind, given)
        said = None if condition is None else texts.pop(0)
        named = None if values is None else dict(zip(map(self._key, values), texts, strict=True))
        self._clauses.append(MergeWhen(kind, said, action, named))
        return self

    def _key(self, name: str) -> str:
        """A key of an assignment, which may have the table's name before it."""
        (text,) = self._texts("not matched by source", [name])
        return text

    def _texts(self, kind: When, columns: Sequence[Column | str]) -> list[str]:
        if not columns:
            return []
        from mica.engines.spark.column_texts import texts_of

        try:
            return texts_of({self._names[side]: self._sides[side] for side in SEES[kind]}, columns)
        except ValueError as e:
            raise UserError(
                "INVALID_ARGUMENT",
                f"mergeInto takes expressions of one row, got {e}",
                hint="Compute the column in the source before.",
            ) from None


def _free(name: str, columns: Collection[str]) -> str:
    """A name of a side that no column has: a field of that would be called alike."""
    while name in columns:
        name += "_"
    return name


@dataclass(frozen=True)
class _When:
    """One clause, of which PySpark has a class for each kind."""

    merging: Merging
    kind: When
    condition: Column | None

    def updateAll(self) -> Merging:  # noqa: N802
        """UPDATE SET *."""
        return self._add("update", None, no="not matched", nor="not matched by source")

    def update(self, assignments: Mapping[str, Column]) -> Merging:
        """UPDATE SET."""
        return self._add("update", assignments, no="not matched")

    def insertAll(self) -> Merging:  # noqa: N802
        """INSERT *."""
        return self._add("insert", None, no="matched", nor="not matched by source")

    def insert(self, assignments: Mapping[str, Column]) -> Merging:
        """INSERT (…) VALUES (…)."""
        return self._add("insert", assignments, no="matched", nor="not matched by source")

    def delete(self) -> Merging:
        """DELETE."""
        return self._add("delete", None, no="not matched")

    def _add(self, action: str, values: Mapping[str, Column] | None, *, no: str, nor: str = "") -> Merging:
        if self.kind in (no, nor):
            raise UserError(
                "INVALID_ARGUMENT",
                f"a row that is {self.kind} has no {action}{' of all columns' * (values is None)}",
                hint="As in MERGE: rows that are not matched are inserted, others updated or deleted.",
            )
        return self.merging._add(self.kind, self.condition, action, values)  # noqa: SLF001 - its own clauses


def merge_into(call: NamedCall) -> Any:
    """`DataFrame.mergeInto` of a registered name or a path."""
    return Merging(call, call.given["condition"])
