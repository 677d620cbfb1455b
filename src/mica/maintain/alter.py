"""Tables altered: properties, collations, and what every change of metadata commits.

The rule: no data file is read or written. Each call is one commit, which puts what the change needs into the protocol
and never takes anything out of it.

Source: PROTOCOL.md, "Change Metadata", "Protocol Evolution"; operations named as delta-spark names them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mica import compute as pc
from mica.arrays import to_numpy
from mica.collation import names as names_of_collations
from mica.collation.identifier import Identifier
from mica.collation.names import BINARY
from mica.errors import UserError
from mica.log import added, creation, features, row_tracking
from mica.log.actions import Metadata, Protocol
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.properties import DEFAULT_COLLATION, parse_names
from mica.schema import collations
from mica.schema.ddl import parse_ddl
from mica.schema.types import STRING, StructType
from mica.write.rules import uses


def set_properties(before: Snapshot, changes: Mapping[str, str | None]) -> Snapshot:
    """See `Table.set_properties`."""
    writable(before)
    protocol, metadata = creation.altered(before.protocol, before.metadata, changes=changes)
    unset = bool(changes) and all(value is None for value in changes.values())
    parameters = {"properties": list(changes) if unset else dict(changes)}
    return changed(before, f"{'UNSET' if unset else 'SET'} TBLPROPERTIES", parameters, protocol, metadata)


def set_collation(before: Snapshot, column: str, collation: str | None) -> Snapshot:
    """See `Table.set_collation`."""
    names = tuple(name for parts in parse_names(column) for name in parts)
    identifier = None if collation is None else names_of_collations.read(collation)
    schema = recollated(before, before.schema, names, identifier)
    parameters = {"column": column, "collation": collation or "UTF8_BINARY"}
    return altered(before, "CHANGE COLUMN", parameters, schema)


def recollated(
    before: Snapshot, schema: StructType, path: tuple[str, ...], identifier: Identifier | None
) -> StructType:
    """The schema with another collation of one string; None removes it. Errors: UNKNOWN_COLLATION,
    INVALID_PARTITION_COLUMN, COLUMN_IN_USE."""
    column = ".".join(path)
    if identifier is not None and names_of_collations.to_sql(identifier) is None:
        raise collations.unknown(column, identifier)
    if identifier is not None and is_partition(before, path[0]):
        raise UserError(
            "INVALID_PARTITION_COLUMN",
            f"{column!r} is a partition column and cannot have a collation, as in Spark",
            hint="Equal strings would be in different partitions.",
            column=column,
        )
    found = collations.set_collation(schema, path, identifier)
    refuse_use(before, path, "change the collation of")
    return found


def collation_in(type_: str) -> Identifier | None:
    """The collation that `STRING COLLATE x` names; None for any other type."""
    if "COLLATE" not in type_.upper():
        return None
    one, *others = parse_ddl(f"c {type_}").fields
    if others or one.type != STRING or not one.nullable or one.metadata.keys() - {collations.COLLATIONS}:
        return None
    return collations.of_field(one).get("c", BINARY)


def of_new_strings(before: Snapshot) -> Identifier:
    """The collation of strings in new columns that name none; a property that cannot be read counts as not set."""
    with contextlib.suppress(UserError):
        return names_of_collations.from_sql(before.metadata.configuration.get(DEFAULT_COLLATION, BINARY.name))
    return BINARY


def writable(snapshot: Snapshot) -> Snapshot:
    """The snapshot, if mica may change it. Errors: those of `features.check_write`."""
    features.check_write(snapshot.protocol, snapshot.metadata, str(snapshot.storage))
    return snapshot


def is_partition(snapshot: Snapshot, name: str) -> bool:
    """Whether the column of that name is a partition column."""
    return name.lower() in {partition.lower() for partition in snapshot.partition_columns}


def refuse_use(before: Snapshot, path: Sequence[str], does: str) -> None:
    """Refuses to change a column, or a field of one, that a rule uses. Errors: COLUMN_IN_USE."""
    used = uses(before.schema, before.properties, path)
    if used:
        column = ".".join(path)
        do = "uses" if len(used) == 1 else "use"
        raise UserError(
            "COLUMN_IN_USE",
            f"{before.storage} cannot {does} the column {column!r}: {', '.join(used)} {do} it",
            hint="Drop what uses it first.",
            column=column,
        )


def altered(
    before: Snapshot, operation: str, parameters: Mapping[str, Any], schema: StructType, *, rests_on_files: bool = False
) -> Snapshot:
    """Commits the schema; `rests_on_files` says that another file would forbid the change."""
    writable(before)
    protocol, metadata = creation.altered(before.protocol, before.metadata, schema=schema)
    return changed(before, operation, parameters, protocol, metadata, rests_on_files=rests_on_files)


def changed(
    before: Snapshot,
    operation: str,
    parameters: Mapping[str, Any],
    protocol: Protocol,
    metadata: Metadata,
    *,
    rests_on_files: bool = False,
    domains: Mapping[str, str | None] | None = None,
    watched: Sequence[str] = (),
) -> Snapshot:
    """Commits the protocol, the metadata and `domains`; `rests_on_files` as in `altered`. Another writer who changes a
    domain that is `watched` is a conflict. Where rows are tracked from now on, files without ids are added again with
    ids (PROTOCOL.md, "Row Tracking", backfill); where the protocol no longer knows ids, those with ids without them.
    """
    transaction = Transaction(before, operation, parameters)
    tracks = row_tracking.is_supported(protocol) and not row_tracking.is_supported(before.protocol)
    # Another writer may have added the feature alone.
    tracks |= row_tracking.is_enabled(metadata) and not row_tracking.is_enabled(before.metadata)
    forgets = row_tracking.is_supported(before.protocol) and not row_tracking.is_supported(protocol)
    if rests_on_files or tracks or forgets:
        transaction.read()
    if (tracks or forgets) and before.files.num_rows:
        lacks = to_numpy(pc.struct_field(before.file_ids(), "base_row_id").is_null())
        wrong = np.flatnonzero(~lacks if forgets else lacks)
        again = added.rows(added.again(before, wrong))
        transaction.update_files(wrong, [{**row, **row_tracking.NO_IDS, "data_change": False} for row in again])
    if forgets and row_tracking.ROW_IDS in before.domains:
        transaction.set_domain(row_tracking.ROW_IDS, None)
    for domain, configuration in (domains or {}).items():
        transaction.set_domain(domain, configuration)
    for domain in watched:
        transaction.watch(domain)
    transaction.update_protocol(protocol)
    transaction.update_metadata(metadata)
    return transaction.commit().snapshot
