"""Tables created and altered: schema, collations, properties.

The rule: no data file is read or written. Each call is one commit, which puts what the change needs into the protocol
and never takes anything out of it.

Source: PROTOCOL.md, "Change Metadata", "Protocol Evolution"; operations named as delta-spark names them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from mica.collation import names as names_of_collations
from mica.errors import UserError
from mica.expressions.bind import bind
from mica.expressions.collations import refuse_in_process
from mica.log import creation, features
from mica.log.actions import Metadata, Protocol
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.properties import CONSTRAINTS, parse_names
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema import collations
from mica.schema import json as schema_json
from mica.schema.arrow import from_arrow
from mica.schema.ddl import parse_ddl
from mica.schema.types import StructType, refuse_twice
from mica.storage import Storage
from mica.tasks.leaf_values import distinct
from mica.variant import kernel
from mica.write.inputs import forgotten
from mica.write.rules import constraints, rules_of, uses
from mica.write.target import load_if_any


def create(
    storage: Storage, schema: Any, partition_by: Sequence[str], properties: Mapping[str, str] | None, mode: str
) -> Snapshot:
    """Creates the table or returns the existing one; see `Table.create`."""
    found = load_if_any(storage)
    if found is not None and mode == "ignore":
        return found
    if found is not None and mode == "error":
        raise UserError("TABLE_EXISTS", f"a table already exists at {storage}", hint="Open it, or use mode='ignore'.")
    parsed = as_schema(schema)
    if found is None:
        transaction = Transaction(storage, "CREATE TABLE", engine_info=_engine())
        now = int(time.time() * 1000)
        protocol, metadata = creation.new_table(parsed, partition_by, properties, created_time=now)
    else:
        writable(found)
        transaction = Transaction(found, "CREATE OR REPLACE TABLE", engine_info=_engine())
        protocol, metadata = creation.altered(
            found.protocol, found.metadata, schema=parsed, partition_columns=partition_by, changes=properties
        )
        transaction.read()
        transaction.remove_files()
        transaction.set_application_transactions(forgotten(found.app_transactions))
    rules_of(schema_json.loads(metadata.schema_string), metadata.configuration, str(storage), ansi=True, timezone="UTC")
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    return transaction.commit().snapshot


def set_properties(before: Snapshot, changes: Mapping[str, str | None]) -> Snapshot:
    """See `Table.set_properties`."""
    writable(before)
    protocol, metadata = creation.altered(before.protocol, before.metadata, changes=changes)
    return _changed(before, "SET TBLPROPERTIES", {"properties": dict(changes)}, protocol, metadata)


def add_columns(before: Snapshot, columns: str) -> Snapshot:
    """See `Table.add_columns`."""
    new = parse_ddl(columns)
    refuse_twice([*before.schema.names, *new.names])
    for f in new.fields:
        if not f.nullable:
            raise UserError(
                "MISSING_COLUMN",
                f"the column {f.name!r} is NOT NULL, and existing rows have no value for it",
                hint="Leave NOT NULL out.",
                column=f.name,
            )
    schema = StructType((*before.schema.fields, *new.fields))
    return _altered(before, "ADD COLUMNS", {"columns": columns}, schema)


def rename_column(before: Snapshot, column: str, name: str) -> Snapshot:
    """See `Table.rename_column`."""
    writable(before)
    (names,) = parse_names(column)
    schema = collations.renamed(before.schema, tuple(names), name)
    refuse_use(before, ".".join(names), "rename")
    if _is_partition(before, names[0]):
        raise UserError(
            "INVALID_PARTITION_COLUMN", f"{column!r} is a partition column and cannot be renamed", column=column
        )
    if before.files.num_rows:
        raise UserError(
            "NEEDS_COLUMN_MAPPING",
            f"{before.storage} has files that name the column {column!r}: a new name needs column mapping, which mica "
            "reads but does not write",
            hint=f"Create a table with the name {name!r} and append scan(columns={{{name!r}: {column!r}, …}}).",
            column=column,
        )
    parameters = {"oldColumnPath": column, "newColumnPath": name}
    return _altered(before, "RENAME COLUMN", parameters, schema, rests_on_files=True)


def add_constraint(before: Snapshot, name: str, expr: str) -> Snapshot:
    """See `Table.add_constraint`."""
    writable(before)
    refuse_name(name)
    key = f"{CONSTRAINTS}{name.lower()}"
    if key in {known.lower() for known in before.properties}:
        raise UserError(
            "CONSTRAINT_EXISTS",
            f"{before.storage} has the constraint {name!r} already: {constraints(before.properties).get(name.lower())}",
            hint="Give another name, or drop that one first.",
        )
    bound = bind(expr, before.schema, partition_columns=before.partition_columns)
    refuse_in_process(bound.expr)
    _refuse_violations(before, f"the CHECK constraint {name!r}", f"({expr})", expr)
    protocol = features.upgraded(before.protocol, {"checkConstraints"})
    metadata = before.metadata.with_configuration({key: expr})
    return _changed(before, "ADD CONSTRAINT", {"name": name, "expr": expr}, protocol, metadata, rests_on_files=True)


def drop_constraint(before: Snapshot, name: str, *, if_exists: bool) -> Snapshot:
    """See `Table.drop_constraint`."""
    writable(before)
    key = next((k for k in before.properties if k.lower() == f"{CONSTRAINTS}{name.lower()}"), None)
    if key is None and if_exists:
        return before
    if key is None:
        known = ", ".join(constraints(before.properties)) or "none"
        raise UserError(
            "UNKNOWN_CONSTRAINT", f"{before.storage} has no constraint {name!r}", hint=f"Its constraints: {known}."
        )
    parameters = {"name": name, "expr": before.properties[key], "existed": True}
    metadata = before.metadata.with_configuration({key: None})
    return _changed(before, "DROP CONSTRAINT", parameters, before.protocol, metadata)


def refuse_name(name: str) -> None:
    """Refuses a name that no constraint can have. Errors: INVALID_NAME."""
    if not name or any(c in name for c in " ,;{}()\n\t=`"):
        raise UserError("INVALID_NAME", f"a constraint cannot be called {name!r}", hint="Use letters, digits and _.")


def _refuse_violations(before: Snapshot, what: str, shown: str, expr: str) -> None:
    """Refuses a rule that existing rows violate: files are skipped by their bounds. Errors: CONSTRAINT_VIOLATED."""
    wrong = Scan(TableSource(before), f"NOT ({expr}) OR ({expr}) IS NULL", None, 1)
    leaves = [] if wrong.predicate is None else distinct(wrong.predicate.leaves)
    columns = {leaf.name: leaf.name for leaf in leaves} or None
    found = replace(wrong, columns=columns).to_arrow()
    if found.num_rows:
        values = {name: values.to_pylist()[0] for name, values in zip(found.column_names, found.columns, strict=True)}
        told = ", ".join(f"{name} = {'NULL' if value is None else repr(value)}" for name, value in values.items())
        raise UserError(
            "CONSTRAINT_VIOLATED",
            f"a row of {before.storage} violates {what} {shown}: {told}",
            hint="Correct or delete such rows first; scan with NOT (…) OR (…) IS NULL finds them.",
            constraint=what,
        )


def set_collation(before: Snapshot, column: str, collation: str | None) -> Snapshot:
    """See `Table.set_collation`."""
    names = tuple(name for parts in parse_names(column) for name in parts)
    identifier = None if collation is None else names_of_collations.read(collation)
    if identifier is not None and names_of_collations.to_sql(identifier) is None:
        raise collations.unknown(column, identifier)
    if identifier is not None and _is_partition(before, names[0]):
        raise UserError(
            "INVALID_PARTITION_COLUMN",
            f"{column!r} is a partition column and cannot have a collation, as in Spark",
            hint="Equal strings would be in different partitions.",
            column=column,
        )
    schema = collations.set_collation(before.schema, names, identifier)
    refuse_use(before, ".".join(names), "change the collation of")
    parameters = {"column": column, "collation": collation or "UTF8_BINARY"}
    return _altered(before, "CHANGE COLUMN", parameters, schema)


def writable(snapshot: Snapshot) -> Snapshot:
    """The snapshot, if mica may change it. Errors: those of `features.check_write`."""
    features.check_write(snapshot.protocol, snapshot.metadata, str(snapshot.storage))
    return snapshot


def as_schema(given: Any) -> StructType:
    """A schema from Spark DDL, a StructType (PySpark's or ours) or a pyarrow schema."""
    if isinstance(given, StructType):
        return given
    if isinstance(given, str):
        return parse_ddl(given)
    if isinstance(given, pa.Schema):
        return from_arrow(given)
    if hasattr(given, "jsonValue"):
        from mica.engines.spark.types import from_spark

        return from_spark(given)
    raise UserError.bad_value("schema", given, "Spark DDL, a StructType or a pyarrow schema")


def _is_partition(snapshot: Snapshot, name: str) -> bool:
    return name.lower() in {partition.lower() for partition in snapshot.partition_columns}


def refuse_use(before: Snapshot, column: str, does: str) -> None:
    """Refuses to change a column that a rule uses. Errors: COLUMN_IN_USE."""
    used = uses(before.schema, before.properties, [column])
    if used:
        raise UserError(
            "COLUMN_IN_USE",
            f"{before.storage} cannot {does} the column {column!r}: {' and '.join(used)} uses it",
            hint="Drop what uses it first.",
            column=column,
        )


def _altered(
    before: Snapshot, operation: str, parameters: Mapping[str, Any], schema: StructType, *, rests_on_files: bool = False
) -> Snapshot:
    """The version with this schema; `rests_on_files` says that another file would forbid the change."""
    writable(before)
    protocol, metadata = creation.altered(before.protocol, before.metadata, schema=schema)
    return _changed(before, operation, parameters, protocol, metadata, rests_on_files=rests_on_files)


def _changed(
    before: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    protocol: Protocol,
    metadata: Metadata,
    *,
    rests_on_files: bool = False,
) -> Snapshot:
    """The version with this protocol and metadata, in one commit."""
    transaction = Transaction(before, operation, parameters, engine_info=_engine())
    if rests_on_files:
        transaction.read()
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    return transaction.commit().snapshot


def _engine() -> str:
    return f"mica/{kernel.version()}"
