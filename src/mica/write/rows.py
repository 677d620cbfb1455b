"""Writes the rows of a call to a table: append and overwrite.

The rule: the rows are checked against the table's schema before anything is written, and one commit has all of them or
none.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from mica import engines
from mica.engines.base import Engine, Order, Rows
from mica.engines.spark import types
from mica.schema.arrow import from_arrow
from mica.schema.evolution import plan_write
from mica.schema.types import StructType
from mica.tasks.rules import Rules
from mica.tasks.unshred import unshredded_schema
from mica.tasks.write import WriteSpec
from mica.variant.plain import to_variants
from mica.write import flow
from mica.write.commit import Commit
from mica.write.given import arrow, without_columns
from mica.write.own_rows import own_reads
from mica.write.replacement import Replacement
from mica.write.rules import refuse_given
from mica.write.target import Target


def write_rows(
    target: Target, data: Any, shredding: Any, *, where: str | None = None, schema_evolution: bool = False
) -> Commit:
    """Writes and commits; `data` is a Spark DataFrame or what `given.arrow` accepts. The rows replace those for which
    `where` is true. With `schema_evolution` the table gets the columns and fields that it lacks.
    """
    engine = engines.of(data)
    settings = engine.settings()
    if types.is_frame(data) and not data.columns:
        # In Arrow's batches Spark does not say how many rows without a column there are.
        data = without_columns(data.count())
        engine = engines.of(data)
    rows = data if engine.owns(data) else arrow(data, target.schema)
    if schema_evolution:
        target = target.evolved(_columns(engine, rows, target.schema))
    rules = target.rules(*settings)
    rows = with_sparks_defaults(rows, rules, target.schema)
    replaced = None if where is None else Replacement(target, engine, where)
    rules = rules if replaced is None else replaced.rules(rules)
    spec = replace(target.write_spec(shredding), rules=rules)
    if target.snapshot is not None:
        target.reads += own_reads(data, target.snapshot, engine)
    for note in target.notes:
        warnings.warn(f"{target.storage}: {note}", stacklevel=9)
    refuse_given(spec.schema, engine.schema(rows).names, str(target.storage))
    found = source(engine, spec, rows, feeds=replaced is not None and replaced.feeds)
    return flow.commit_changes(engine, target, spec, found if replaced is None else replaced.source(found))


def refuse_unfit(target: Target, data: Any, *, schema_evolution: bool = False) -> None:
    """Refuses what `write_rows` refuses of the columns of a Spark DataFrame. Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE,
    IDENTITY_GIVEN and others of columns."""
    engine = engines.of(data)
    if not data.columns:
        return
    if schema_evolution:
        target = target.evolved(_columns(engine, data, target.schema))
    spec = replace(target.write_spec(None), rules=target.rules(*engine.settings()))
    data = with_sparks_defaults(data, spec.rules, target.schema)
    refuse_given(spec.schema, engine.schema(data).names, str(target.storage))
    source(engine, spec, data)


def _columns(engine: Engine, rows: Rows, table: StructType) -> StructType:
    """The columns of rows for a table that gets those which it lacks; a DataFrame says more of them than Arrow does."""
    found = engine.schema(rows)  # or an error for what cannot be stored
    if types.is_frame(rows):
        return types.from_spark(rows.schema)
    return from_arrow(unshredded_schema(found, table), strict=False)


def with_sparks_defaults(rows: Rows, rules: Rules, schema: StructType) -> Rows:
    """The rows with the defaults that mica cannot evaluate, if Spark can: those of a DataFrame."""
    if not rules.unknown or not types.is_frame(rows):
        return rows
    from mica.engines.spark.assigned import with_defaults

    given = {name.lower() for name in rows.columns}
    lacking = [schema.field(name) for name in rules.unknown if name.lower() not in given]
    return with_defaults(rows, lacking) if lacking else rows


def source(engine: Engine, spec: WriteSpec, rows: Rows, *, feeds: bool = False) -> flow.RowSource:
    """Rows of the engine as the source of a write; with `feeds` they are written to change files too. Errors: those of
    columns that do not fit."""
    given = unshredded_schema(engine.schema(rows), spec.schema)
    plan_write(spec.schema, given, variants=to_variants, supplied=spec.rules.supplied)
    spec.rules.absent(given.names)
    return flow.FromRows(rows, Order(spec.partition_by), feeds)
