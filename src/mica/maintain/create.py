"""Tables created, and replaced by others.

The rule: a table appears with its columns, properties and first rows in one commit, or not at all. One that is replaced
keeps its id, its features and its older versions, and the properties that do not speak of columns it loses.

Source: PROTOCOL.md, "Change Metadata", "Protocol Evolution"; operations named as delta-spark names them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from mica.errors import ConflictError, MicaError, UserError
from mica.log import clustering, creation, features
from mica.log.actions import Metadata, Protocol
from mica.log.snapshot import Snapshot
from mica.maintain import cluster
from mica.maintain.alter import writable
from mica.moment import one_moment
from mica.properties import CONSTRAINTS
from mica.schema import json as schema_json
from mica.schema.arrow import from_arrow
from mica.schema.char import restated
from mica.schema.ddl import parse_ddl, type_to_ddl
from mica.schema.edit import unknown_types
from mica.schema.interval_types import is_interval
from mica.schema.types import StructType
from mica.storage import Storage
from mica.write.facts import Facts, no_facts
from mica.write.rows import write_rows
from mica.write.rules import refuse_other_types, rules_of
from mica.write.target import Replaced, Target, load_if_any, write_metrics


@one_moment()
def create(
    base: Snapshot | Storage,
    schema: Any,
    partition_by: Sequence[str],
    properties: Mapping[str, str | None] | None,
    mode: str,
    data: Any = None,
    cluster_by: Sequence[str] = (),
    ansi: bool = True,
    timezone: str = "UTC",
    constraints: Mapping[str, str] | None = None,
    verb: str = "CREATE OR REPLACE",
) -> Snapshot:
    """Creates the table, with these rows if there are any, or returns the existing one; see `Table.create`. `base` is
    what `base_of` gave before the rows were read: who replaces a table by rows of its own keeps those that come later.
    Its rules are judged by the settings; `constraints` are CHECK constraints by their names. `verb` is what replaced
    it, for the history.
    """
    found, storage = (base, base.storage) if isinstance(base, Snapshot) else (None, base)
    if found is not None and mode == "ignore":
        return found
    if found is not None and mode == "error":
        hint = "Open it, or use mode='ignore' or 'overwrite' (IF NOT EXISTS or CREATE OR REPLACE in SQL)."
        raise UserError("TABLE_EXISTS", f"a table already exists at {storage}", hint=hint)
    parsed = _of_delta(_parsed(schema))
    if found is None:
        now = int(time.time() * 1000)
        protocol, metadata = creation.new_table(parsed, partition_by, properties, created_time=now)
    else:
        protocol, metadata = _other(found, parsed, partition_by, properties or {}, ansi, timezone)
    if constraints:
        protocol = features.upgraded(protocol, {"checkConstraints"})
        metadata = metadata.with_configuration({f"{CONSTRAINTS}{name}": rule for name, rule in constraints.items()})
    if cluster_by:
        protocol = cluster.clustered(protocol)
    made = schema_json.loads(metadata.schema_string)
    rules_of(made, metadata.configuration, str(storage), ansi=ansi, timezone=timezone)
    refuse_other_types(made, made.fields, ansi=ansi, timezone=timezone)
    operation = f"{'CREATE' if found is None else verb} TABLE{'' if data is None else ' AS SELECT'}"
    target = Target(storage, found, protocol, metadata, operation=operation, remakes=True, joins=False)
    target.parameters = {
        "partitionBy": list(metadata.partition_columns),
        "clusterBy": clustering.shown(cluster_by),
        "description": metadata.description,
        "isManaged": False,
        "properties": dict(metadata.configuration),
    }
    target.metrics = _none if data is None else write_metrics
    if cluster_by:
        target.clustering = cluster.domain_of(protocol, metadata, cluster_by, str(storage))
    if found is not None:
        target.replaced = Replaced(np.arange(found.files.num_rows))
    try:
        done = target.commit(no_facts()) if data is None else write_rows(target, data, None)
    except ConflictError as e:
        other = load_if_any(storage) if mode == "ignore" and e.code == "TABLE_EXISTS" else None
        if other is None:
            raise
        return other  # as if it had been there from the beginning
    assert done.snapshot is not None
    return done.snapshot


def remade(found: Snapshot, schema: StructType, partition_by: Sequence[str], timezone: str) -> Target:
    """The target of rows that replace all others, whose columns become the table's: properties that speak of columns
    which go away go, too. Errors: those of `Table.create`; COLUMN_IN_USE for a constraint that would go: who overwrites
    rows does not say that it may."""
    for name in _outlived(found, schema, partition_by, True, timezone):
        if name.startswith(CONSTRAINTS):
            raise UserError(
                "COLUMN_IN_USE",
                f"{found.storage} has the constraint {name.removeprefix(CONSTRAINTS)!r} ({found.properties[name]}), "
                "and the new rows do not have its columns",
                hint="Drop it first: ALTER TABLE … DROP CONSTRAINT.",
            )
    protocol, metadata = _other(found, _of_delta(schema), partition_by, {}, True, timezone)
    target = Target(found.storage, found, protocol, metadata, remakes=True, joins=False)
    target.replaced = Replaced(np.arange(found.files.num_rows))
    return target


def _other(
    found: Snapshot, schema: StructType, partition_by: Sequence[str], properties: Mapping[str, str | None], ansi: bool,
    timezone: str,
) -> tuple[Protocol, Metadata]:  # fmt: skip
    """Protocol and metadata of a table that gets other columns."""
    writable(found)
    changes = {**dict.fromkeys(_outlived(found, schema, partition_by, ansi, timezone)), **properties}
    return creation.altered(
        found.protocol, found.metadata, schema=schema, partition_columns=partition_by, changes=changes
    )


def base_of(storage: Storage) -> Snapshot | Storage:
    """The table that is there, or its place."""
    return load_if_any(storage) or storage


def _outlived(
    found: Snapshot, schema: StructType, partition_by: Sequence[str], ansi: bool, timezone: str
) -> Iterator[str]:
    """The properties that speak of columns which the new schema lacks: of paths, and constraints."""

    def is_rule(schema: StructType, name: str, text: str) -> bool:
        plain = StructType(tuple(replace(f, metadata={}) for f in schema.fields))
        try:
            rules_of(plain, {name: text}, "", ansi=ansi, timezone=timezone)
        except MicaError:
            return False
        return True

    yield from creation.outlived(found.metadata, schema, partition_by)
    for name, text in found.properties.items():
        if name.startswith(CONSTRAINTS) and is_rule(found.schema, name, text) and not is_rule(schema, name, text):
            yield name


def _none(_: Facts) -> dict[str, int]:
    """The metrics of a table without rows, as delta-spark has them."""
    return {}


def _parsed(given: Any) -> StructType:
    """A schema from Spark DDL, a StructType (PySpark's or ours) or a pyarrow schema."""
    if isinstance(given, StructType):
        return given
    if isinstance(given, str):
        return parse_ddl(given)
    if isinstance(given, pa.Schema):
        return from_arrow(given)
    if hasattr(given, "jsonValue"):
        from mica.engines.spark.types import from_spark

        return restated(from_spark(given))
    raise UserError.bad_value("schema", given, "Spark DDL, a StructType or a pyarrow schema")


def _of_delta(schema: StructType) -> StructType:
    """The schema, if Delta has its types: Spark has more."""
    for at, type_ in unknown_types(schema):
        if not is_interval(type_):
            what = f"the column {at!r} is {type_to_ddl(type_)}, which no Delta table has"
            raise UserError("UNSUPPORTED_TYPE", what, hint="Cast it to STRING.", column=at)
    return schema
