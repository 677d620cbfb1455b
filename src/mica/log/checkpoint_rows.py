"""The actions of a checkpoint as Arrow columns: one row an action, in the column of its kind.

The rule: a checkpoint holds exactly what replaying the log gives, without expired tombstones, and with unknown
domains and metadata keys that a column can hold. The table's properties decide whether statistics are stored as JSON,
as columns, or both.

Source: PROTOCOL.md, "Action Reconciliation", "Checkpoint Schema".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import arrow_array, one_array, to_numpy
from mica.errors import CorruptDataError
from mica.log import features, row_tracking
from mica.log.actions import Metadata
from mica.log.applications import unexpired
from mica.log.arrays import typed, typed_or_none
from mica.log.collated_struct import collated_field
from mica.log.snapshot import Snapshot
from mica.log.stats_struct import parse_stats, stats_type
from mica.log.tombstones import tombstones
from mica.schema.arrow import to_arrow_type
from mica.schema.types import StructType
from mica.stats import documents
from mica.stats.columns import physical_name
from mica.stats.partition import column_texts, parse_values

_TEXTS = pa.map_(pa.string(), pa.string())
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", pa.list_(pa.field("element", pa.string()))),
        ("writerFeatures", pa.list_(pa.field("element", pa.string()))),
    ]
)
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", _TEXTS)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.field("element", pa.string()))),
        ("configuration", _TEXTS),
        ("createdTime", pa.int64()),
    ]
)


def checkpoint_table(snapshot: Snapshot, *, now: int) -> pa.Table:
    """Builds all rows of a classic checkpoint."""
    few = other_actions(snapshot, now)
    add = added_files(snapshot, None, stats_kind(snapshot, [None]))
    return rows_of({"txn": few.pop("txn"), "add": add, "remove": removed_files(snapshot, now), **few})


def rows_of(columns: Mapping[str, pa.Array]) -> pa.Table:
    """Builds the rows of some actions: a column is null in the rows of the others."""
    total = sum(len(column) for column in columns.values())
    before, spread = 0, {}
    for name, column in columns.items():
        after = total - before - len(column)
        spread[name] = pa.concat_arrays([pa.nulls(before, column.type), column, pa.nulls(after, column.type)])
        before += len(column)
    return pa.table(spread)


def other_actions(snapshot: Snapshot, now: int) -> dict[str, pa.Array]:
    """Returns the actions that are not of files, by kind."""
    kept = unexpired(snapshot.state.transactions, snapshot.properties, now)
    columns: dict[str, pa.Array] = {
        "txn": typed([{"appId": a, "version": v, "lastUpdated": t} for a, (v, t) in kept.items()], _TXN, "txn"),
        "metaData": _metadata(snapshot.metadata),
        "protocol": arrow_array([snapshot.protocol.action()], _PROTOCOL),
    }
    if snapshot.domains:
        domains = [{"domain": d, "configuration": c, "removed": False} for d, c in snapshot.domains.items()]
        columns["domainMetadata"] = arrow_array(domains, _DOMAIN)
    return columns


def _metadata(metadata: Metadata) -> pa.StructArray:
    """Builds the metaData action; unknown keys get the types of their values. Those that no column can hold are left
    out: a checkpoint is worth more."""
    columns = ((name, typed_or_none([value])) for name, value in metadata.rest.items())
    kinds = ((name, None if column is None else _stored(column.type)) for name, column in columns)
    extra = [(name, kind) for name, kind in kinds if kind is not None]
    return typed([_lists(metadata.action())], pa.struct([*_METADATA, *extra]), "metaData")


def _stored(kind: pa.DataType) -> pa.DataType | None:
    """The type of the column for a value of JSON; None if Parquet has none: an object without keys, however deep."""
    if pa.types.is_struct(kind):
        inside = [(child.name, _stored(child.type)) for child in kind]
        return pa.struct(inside) if inside and all(found is not None for _, found in inside) else None
    if pa.types.is_list(kind):
        element = _stored(kind.value_type)
        return None if element is None else pa.list_(element)
    return pa.string() if pa.types.is_null(kind) else kind  # of nulls alone


def _lists(action: dict[str, Any]) -> dict[str, Any]:
    form = action["format"]
    options = form.get("options") or {}
    return {
        **action,
        "format": {
            "provider": form.get("provider"),
            "options": list(options.items()) if isinstance(options, Mapping) else options,
        },
        "configuration": list(action["configuration"].items()),
    }


def stats_kind(snapshot: Snapshot, parts: Iterable[np.ndarray | None]) -> pa.StructType | None:
    """Returns the type of `stats_parsed`, the same for all parts of the files; None if the table does not want it."""
    wanted = properties.STATS_AS_STRUCT.of(snapshot.properties)
    # Not set, for delta-spark it is true: whoever turns off the texts alone still wants statistics.
    if not (not properties.STATS_AS_JSON.of(snapshot.properties) if wanted is None else wanted):
        return None
    collated = collated_field(snapshot.stats(part) for part in parts)
    return stats_type(snapshot.schema, snapshot.partition_columns, snapshot.properties, collated)


def added_files(snapshot: Snapshot, rows: np.ndarray | None, kind: pa.StructType | None) -> pa.StructArray:
    """Returns the files of the version at `rows` (None: all); `kind` as of `stats_kind`."""
    every = snapshot.state.files
    files = (every if rows is None else every.take(arrow_array(rows))).combine_chunks()
    # A spread table of one chunk per column.
    one = {name: one_array(files[name]) for name in files.column_names}
    columns: dict[str, pa.Array] = {
        "path": one["path"],
        "partitionValues": one["partition_values"],
        "size": one["size"],
        "modificationTime": one["modification_time"],
        "dataChange": arrow_array(np.zeros(files.num_rows, bool)),
        "tags": snapshot.tags(rows),
        "deletionVector": one["deletion_vector"],
    }
    if row_tracking.is_supported(snapshot.protocol):
        ids = snapshot.file_ids(rows)
        columns["baseRowId"] = pc.struct_field(ids, "base_row_id")
        columns["defaultRowCommitVersion"] = pc.struct_field(ids, "default_row_commit_version")
    if features.supports(snapshot.protocol, "clustering"):
        columns["clusteringProvider"] = snapshot.clustering_providers(rows)
    texts = snapshot.stats(rows)
    if properties.STATS_AS_JSON.of(snapshot.properties):
        columns["stats"] = texts
    elif kind is None:
        columns["stats"] = _counts(texts, one["deletion_vector"])
    if kind is not None:
        columns["stats_parsed"] = parse_stats(texts, kind)
        if snapshot.partition_columns:
            columns["partitionValues_parsed"] = partition_values_parsed(
                one["partition_values"], snapshot.schema, snapshot.partition_columns
            )
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _counts(texts: pa.Array, vectors: pa.Array) -> pa.Array:
    """What files with deletion vectors must say in any case: how many rows they have (PROTOCOL.md, "Deletion Vectors"),
    and that their bounds may be wider."""
    found: list[str | None] = [None] * len(texts)
    for at in np.flatnonzero(to_numpy(pc.and_(pc.is_valid(vectors), pc.is_valid(texts)))):
        document = documents.read(texts[int(at)].as_py())
        found[at] = documents.write({key: document[key] for key in ("numRecords", "tightBounds") if key in document})
    return arrow_array(found, pa.string())


def partition_values_parsed(values: pa.MapArray, schema: StructType, columns: Iterable[str]) -> pa.StructArray:
    """Parses partition values to the types of their columns; a value that does not fit becomes null."""
    fields, arrays = [], []
    for name in columns:
        column = schema.field(name)
        physical = physical_name(column)
        kind = to_arrow_type(column.type)
        try:
            typed = parse_values(column_texts(values, physical), column.type)
        except CorruptDataError:
            typed = pa.nulls(len(values), kind)
        arrays.append(typed)
        fields.append(pa.field(physical, kind))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def removed_files(snapshot: Snapshot, now: int) -> pa.StructArray:
    """Returns the tombstones that have not expired."""
    every = tombstones(snapshot)
    oldest = now - properties.DELETED_FILE_RETENTION.of(snapshot.properties)
    # A missing time counts as 0, so the tombstone has expired.
    return every.filter(pc.greater(pc.fill_null(pc.struct_field(every, "deletionTimestamp"), 0), oldest))
