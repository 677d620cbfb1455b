"""Plans an ingest: turns its options and the table, if it exists, into a target and a spec for the tasks.

The rule: names match case-insensitively; from here on each column has the table's spelling.
"""

from __future__ import annotations

import time
import uuid
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mica.errors import UserError
from mica.expressions.bind import BoundExpr, bind_value
from mica.log.snapshot import Snapshot
from mica.records import dataclass
from mica.schema.arrow import to_arrow
from mica.schema.collations import of_field
from mica.schema.ddl import type_to_ddl
from mica.schema.evolution import plan_write
from mica.schema.spelling import unquoted
from mica.schema.types import VARIANT, VOID, Primitive, StructField, StructType
from mica.storage import Storage
from mica.tasks.bad_lines import QUARANTINE
from mica.tasks.ingest import IngestSpec
from mica.variant.steering import Steering
from mica.write import computed
from mica.write.ingest_options import IngestOptions, sort_key
from mica.write.rules import refuse_given
from mica.write.target import Target, open_target


@dataclass(frozen=True)
class IngestPlan:
    """The target of an ingest, and the spec of its tasks."""

    target: Target
    spec: IngestSpec


def plan(storage: Storage, found: Snapshot | None, options: IngestOptions) -> IngestPlan:
    """The plan of an ingest into an existing table (`found`) or a new one. Errors: those of `ingest_json` that do not
    depend on the documents."""
    target = _target(storage, found, options)
    column = target.schema.field(options.column).name
    bound = {target.schema.field(name).name: value for name, value in _bound(column, found, options).items()}
    write = target.write_spec(_by_column(options.shredding, column), target_file_size=options.target_file_size)
    rules = target.rules(options.ansi, options.timezone)
    refuse_given(target.schema, bound, str(storage))
    spec = IngestSpec(
        write=replace(write, rules=rules, shredding=replace(write.shredding, from_json=True, reports_left=True)),
        column=column,
        tree=None if write.shredding.trees is None else write.shredding.trees.get((column,)),
        columns=bound,
        keys=_sort_keys(options.sort_by, target.schema, column, bound, options.ansi, options.timezone),
        quarantine=_quarantine(storage, options) if options.on_error == "quarantine" else None,
        reader=options.reader,
        timezone=options.timezone,
    )
    return IngestPlan(target, spec)


def _target(storage: Storage, found: Snapshot | None, options: IngestOptions) -> Target:
    """The target table, with columns for the documents and their computed columns."""
    bound = _bound(options.column, found, options)
    fields = [StructField(name, value.type) for name, value in bound.items()]
    schema = StructType((*_document(options.column).fields, *fields))
    target = open_target(
        storage, found, schema, tuple(options.partition_by), mode=options.on_table,
        properties=options.properties, kept=computed.as_property(options.columns),
    )  # fmt: skip
    if options.schema_evolution:
        new = {name: text for name, text in options.columns.items() if target.schema.find(name) is None}
        target = target.evolved(schema, computed.as_property({**computed.kept_in(found), **new}))
    supplied = target.rules(options.ansi, options.timezone).supplied
    computed.refuse_without(str(storage), target.metadata.partition_columns, (*bound, *supplied), options.column)
    target.notes += computed.others(options.columns, computed.kept_in(found))
    plan_write(target.schema, to_arrow(schema), supplied=supplied)
    return target


def _document(column: str) -> StructType:
    return StructType((StructField(column, VARIANT),))


def _bound(column: str, found: Snapshot | None, options: IngestOptions) -> dict[str, BoundExpr]:
    """The columns that are computed from each document in `column`."""
    kept = computed.kept_in(found)
    return computed.bound(options.columns, kept, _document(column), ansi=options.ansi, timezone=options.timezone)


def _sort_keys(
    sort_by: Sequence[str],
    schema: StructType,
    column: str,
    bound: Mapping[str, BoundExpr],
    ansi: bool,
    timezone: str,
) -> dict[str, BoundExpr]:
    """Hidden columns to sort by. A key is a computed column's name or an expression, optionally with ASC or DESC. A
    column has the collation of the table, whose bounds then exclude files."""
    document, keys = _document(column), {}
    for place, text in enumerate(sort_by):
        words, _ = sort_key(text)
        names = (words.lower(), unquoted(words).lower())
        known = next((name for name in bound if name.lower() in names), None)
        if known is None:
            key = bind_value(words, document, ansi=ansi, timezone=timezone)
        else:
            collation = of_field(schema.field(known)).get(known)
            key = replace(bound[known], collations=() if collation is None else (("", str(collation)),))
        if not isinstance(key.type, Primitive) or key.type in (VARIANT, VOID):
            raise UserError("TYPE_MISMATCH", f"rows cannot be sorted by {words!r}, which is {type_to_ddl(key.type)}",
                            hint="Cast the path to a type, as in v:a::bigint.")  # fmt: skip
        keys[f"__mica_sort_{place}"] = key
    return keys


def _by_column(shredding: Any, column: str) -> Any:
    """What the option asks for the document's column; rules name their columns themselves."""
    if shredding is None or (isinstance(shredding, str) and Steering.is_in(shredding)):
        return shredding
    if isinstance(shredding, Mapping):
        if {str(name).lower() for name in shredding} <= {column.lower()}:
            return shredding
        warnings.warn(
            f"a shredding= mapping is by column: give {{{column!r}: {{…}}}}", DeprecationWarning, stacklevel=8
        )
    return {column: shredding}


def _quarantine(table: Storage, options: IngestOptions) -> Storage:
    run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + uuid.uuid4().hex[:8]
    if options.quarantine is not None:
        return Storage.open(options.quarantine, options.storage_options).child(run)
    return table.child(f"{QUARANTINE}/{run}")
