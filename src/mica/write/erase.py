"""Erases a path of a Variant column from every row, or from the rows of a predicate.

The rule: an erase is an update with `variant_delete` that never leaves the old rows in a file of the new version: no
deletion vectors are written, and files whose deletion vectors hide rows with the path are rewritten. Change files have
the changed rows without the path, also as they were before. Older versions keep their files until a vacuum, and the log
the bounds of those files until its cleanup.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mica import engines
from mica.arrays import to_numpy
from mica.engines.base import Task
from mica.errors import UserError
from mica.expressions.parse import parse
from mica.expressions.tree import Column, Path
from mica.log.feed import refuse_reserved
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.schema.ddl import type_to_ddl
from mica.schema.literals import show
from mica.schema.spelling import quote_if_needed
from mica.schema.types import STRING, VARIANT, StructType
from mica.tasks.erase import EraseSpec, erase_files
from mica.tasks.write import WriteSpec
from mica.variant.path import VariantPath
from mica.write.change import Change, fresh_versions
from mica.write.commit import Commit
from mica.write.once import Txn, once
from mica.write.target import target_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: In the bounds of so many files the path that is nearest to an absent one is looked for.
LOOKED_AT = 8


def erased_path(schema: StructType, text: str) -> tuple[str, VariantPath]:
    """Reads `v:user.email`: the column, as the schema spells it, and the path.

    Errors: INVALID_PATH for anything else, for the root, and for positions in arrays; UNKNOWN_COLUMN.
    """
    found = parse(text)
    hint = "Write the column and its keys: v:user.email."
    if not isinstance(found, Path) or not isinstance(found.child, Column) or len(found.child.names) != 1:
        raise UserError("INVALID_PATH", f"{text!r} is not a path into a VARIANT column", hint=hint)
    column = schema.field(found.child.names[0])
    if column.type != VARIANT:
        what = f"the column {column.name!r} is {type_to_ddl(column.type)}, and only a VARIANT has paths"
        raise UserError("INVALID_PATH", what, hint=hint)
    if not found.path.steps or found.path.has_index:
        what = f"{text!r} has a position, and the next element would take its place" if found.path.steps else text
        raise UserError("INVALID_PATH", what, hint=f"{hint} To remove an element, update with variant_delete.")
    return column.name, found.path


def erase(
    snapshot: Snapshot, path: str, where: str | None, spark: SparkSession | None, txn: Txn | None = None
) -> Commit:
    """Erases the path; see `Table.erase`."""
    column, found = erased_path(snapshot.schema, path)
    return once(snapshot.storage, snapshot, txn, lambda: _Erase(snapshot, column, found, where, spark, txn).commit())


class _Erase(Change):
    is_all = False

    def __init__(
        self,
        snapshot: Snapshot,
        column: str,
        path: VariantPath,
        where: str | None,
        spark: SparkSession | None,
        txn: Txn | None,
    ) -> None:
        quoted, text = quote_if_needed(column), show(path.spark(), STRING)
        self.column, self.path, self.rows = column, path, where
        deleted = {column: f"variant_delete({quoted}, {text})"}
        super().__init__(target_of(snapshot, txn), engines.of(spark), where, deleted)
        ansi, timezone = self.scan.ansi, self.scan.timezone
        holds = f"variant_get({quoted}, {text}) IS NOT NULL"
        held = Scan(self.table, holds, None, None, ansi, timezone)
        assert held.predicate is not None
        self.holds = held.predicate
        # The line break ends a comment in the given text.
        self.scan = held if where is None else Scan(self.table, f"({where}\n) AND {holds}", None, None, ansi, timezone)
        options = {"ansi": ansi, "timezone": timezone, "partition_columns": self.table.partition_by}
        self.outputs = {**self.outputs, **fresh_versions(self.table, self.scan.where, **options)}
        if self.target.feeds:
            refuse_reserved(snapshot.schema)

    def commit(self) -> Commit:
        """Rewrites the files that hold the path, in one commit; commits nothing if none does."""
        self._describe()
        self.target.operation = "ERASE"
        self.target.parameters = {**self.target.parameters, "path": f"{self.column}:{self.path}"}
        whole, plain = self.rows is None, None
        if whole:
            # The metadata of any row may name the path: rows share metadata, and rows that had it may be gone.
            parts = self.table.rewritten()
            plain = Scan(self.table, None, {"v": quote_if_needed(self.column)}, None, True, "UTC").spec()
        else:
            hiding = np.flatnonzero(to_numpy(self.snapshot.files.column("deletion_vector").is_valid()))
            parts = self.table.rewritten(np.union1d(self.scan.plan.kept, hiding))
        if not parts:
            return self.target.commit_nothing()
        read = replace(self.scan.spec(), outputs=self.outputs)

        def task(spec: WriteSpec) -> Task:
            column, steps = (self.column,), self.path.steps
            return partial(
                erase_files, EraseSpec(read, spec, self.holds, column, steps, whole, self.target.feeds, plain)
            )

        done = self._run(task, parts)
        if whole and done.version == self.snapshot.version:
            self._tell_of_absent()
        return done

    def _tell_of_absent(self) -> None:
        """Warns that no row has the path: what was to be erased may be spelled otherwise."""
        leaf, some = self.holds.leaves[0], range(min(self.snapshot.files.num_rows, LOOKED_AT))
        near = next((found for file in some if (found := self.table.nearest_path(leaf, file))), None)
        hint = "" if near is None else f"; the nearest path with bounds is {near}"
        named = f"erase names {self.column}:{self.path}, a path that no row of {self.table.name} has{hint}"
        warnings.warn(named, stacklevel=10)
