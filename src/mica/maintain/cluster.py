"""Tables clustered by columns from their start, by other columns, or no longer.

The rule: only the log changes. New files are ordered by the columns when OPTIMIZE runs; files that are there stay as
they are, and what makes them keeps its name (`log/clustering.py`).

Source: PROTOCOL.md, "Clustered Table"; delta-spark's `AlterTableClusterByDeltaCommand` and `ClusteredTableUtils`.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from mica.errors import CorruptDataError, UserError
from mica.log import clustering, features
from mica.log.actions import Metadata, Protocol
from mica.log.column_mapping import mode_of, read_schema
from mica.log.domains import CLUSTERING_DOMAIN
from mica.log.snapshot import Snapshot
from mica.log.transaction import Transaction
from mica.maintain.alter import writable
from mica.properties import parse_names
from mica.schema.spelling import as_spark
from mica.schema.types import BINARY, BOOLEAN, VARIANT, Primitive, StructType
from mica.stats.columns import field_of, indexed_leaves, physical_names

#: As in delta-spark.
MOST_COLUMNS = 4


def cluster_by(before: Snapshot, columns: Sequence[str]) -> Snapshot:
    """See `Table.cluster_by`."""
    writable(before)
    found, domain = _domain(before.protocol, before.metadata, columns, str(before.storage))
    try:
        old = ",".join(clustering.shown(clustering.cluster_by(before)))
    except CorruptDataError:
        old = ""  # the new ones replace what cannot be read
    new = ",".join(map(as_spark, found))
    transaction = Transaction(before, "CLUSTER BY", {"oldClusteringColumns": old, "newClusteringColumns": new})
    transaction.update_protocol(clustered(before.protocol))
    transaction.set_domain(CLUSTERING_DOMAIN, domain)
    return transaction.commit().snapshot


def clustered(protocol: Protocol) -> Protocol:
    """The protocol with the features of a clustered table."""
    return features.upgraded(protocol, ["clustering", "domainMetadata"])


def domain_of(protocol: Protocol, metadata: Metadata, columns: Sequence[str], table: str) -> str:
    """The content of the domain for a table that is clustered by these columns. Errors: those of `cluster_by`."""
    return _domain(protocol, metadata, columns, table)[1]


def _domain(
    protocol: Protocol, metadata: Metadata, columns: Sequence[str], table: str
) -> tuple[list[tuple[str, ...]], str]:
    """The names of the columns as the schema spells them, and the content of the domain."""
    if metadata.partition_columns:
        raise UserError(
            "INVALID_ARGUMENT",
            f"{table} is partitioned, and a partitioned table cannot be clustered, here and in delta-spark",
            hint="Write its rows to a table without partitions, or use optimize(zorder_by=…).",
        )
    schema = read_schema(metadata.schema_string, mode_of(protocol, metadata))
    found = [_checked(schema, column) for column in columns]
    if len(found) > MOST_COLUMNS or len(set(found)) < len(found):
        raise UserError.bad_value("columns", list(columns), f"up to {MOST_COLUMNS} columns, each once")
    known = {leaf.names for leaf in indexed_leaves(schema, metadata.configuration, metadata.partition_columns)}
    names = [physical_names(schema, path) for path in found]
    for path, name in zip(found, names, strict=True):
        if name not in known:
            raise UserError(
                "INVALID_ARGUMENT",
                f"{table} keeps no statistics of {'.'.join(path)!r}, which clustering needs",
                hint="Add it to delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols.",
                column=".".join(path),
            )
    domain = {"clusteringColumns": [list(name) for name in names], "domainName": CLUSTERING_DOMAIN}
    return found, orjson.dumps(domain).decode()


def _checked(schema: StructType, column: str) -> tuple[str, ...]:
    """The names of a column as the schema spells them. Errors: UNKNOWN_COLUMN; INVALID_ARGUMENT for one without bounds
    in the log."""
    names = parse_names(column)
    here, path = schema, []
    if len(names) != 1:
        raise UserError.bad_value("columns", column, "a column in each text")
    for name in names[0]:
        if not isinstance(here, StructType):
            raise UserError.unknown_column(column, schema.names)
        f = here.field(name)
        path.append(f.name)
        here = f.type  # type: ignore[assignment]
    kind = field_of(schema, tuple(path)).type
    if not isinstance(kind, Primitive) or not kind.known or kind in (BOOLEAN, BINARY, VARIANT):
        raise UserError.bad_value("columns", column, "a column with bounds in the log: a number, a string or a time")
    return tuple(path)
