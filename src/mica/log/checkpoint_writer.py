"""Writes checkpoints: a snapshot's whole state as one classic Parquet file, and `_last_checkpoint`.

The rule: a checkpoint holds exactly what replaying the log gives, without expired tombstones, and with unknown
domains and metadata keys. It is written after its commit, and may fail without harm (PROTOCOL.md
"Checkpoints", "Checkpoint Schema", "Last Checkpoint File"). The table's properties decide whether statistics are
stored as JSON, as columns, or both.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mica import properties
from mica.errors import CorruptDataError
from mica.log import features, row_tracking
from mica.log.actions import Metadata
from mica.log.applications import unexpired
from mica.log.arrays import one_array
from mica.log.collated_struct import collated_field
from mica.log.paths import LAST_CHECKPOINT, checkpoint_name
from mica.log.snapshot import Snapshot
from mica.log.stats_struct import parse_stats, stats_type
from mica.log.tombstones import tombstones
from mica.schema.arrow import is_variant, to_arrow_type
from mica.schema.types import StructType
from mica.stats.columns import physical_name
from mica.stats.partition import column_texts, parse_values
from mica.variant import kernel

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


def write_checkpoint(snapshot: Snapshot, *, now: int | None = None) -> int:
    """Writes the checkpoint of a snapshot and `_last_checkpoint`; returns the number of its actions. `now` in ms."""
    table = checkpoint_table(snapshot, now=int(time.time() * 1000) if now is None else now)
    rel = checkpoint_name(snapshot.version)
    data = parquet_bytes(table)
    snapshot.storage.put(rel, data)
    pointer = {
        "version": snapshot.version,
        "size": table.num_rows,
        "sizeInBytes": len(data),
        "numOfAddFiles": snapshot.state.files.num_rows,
    }
    snapshot.storage.put(LAST_CHECKPOINT, orjson.dumps(pointer))
    return int(table.num_rows)


def parquet_bytes(table: pa.Table) -> bytes:
    """Encodes the checkpoint as Parquet, with the standard names of list and map children."""
    if _holds_variants(table.schema):
        # Only the kernel can mark a group as VARIANT in a Parquet schema.
        writer = kernel.FileWriter(table.schema, compression="snappy")
        for batch in table.to_batches():
            writer.write(batch)
        writer.close()
        return bytes(writer.take_bytes())
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression="snappy", use_compliant_nested_type=True, store_schema=False, write_page_checksum=True
    )
    return bytes(sink.getvalue().to_pybytes())


def _holds_variants(schema: pa.Schema) -> bool:
    kind = schema.field("add").type if "add" in schema.names else pa.struct([])
    return kind.get_field_index("stats_parsed") >= 0 and _is_or_holds_variant(kind.field("stats_parsed"))


def _is_or_holds_variant(field: pa.Field) -> bool:
    if not pa.types.is_struct(field.type):
        return False
    return is_variant(field) or any(_is_or_holds_variant(child) for child in field.type)


def checkpoint_table(snapshot: Snapshot, *, now: int) -> pa.Table:
    """Builds the rows of a checkpoint: one action each, in the column of its kind."""
    kept = unexpired(snapshot.state.transactions, snapshot.properties, now)
    columns: dict[str, pa.Array] = {
        "txn": pa.array([{"appId": a, "version": v, "lastUpdated": t} for a, (v, t) in kept.items()], _TXN),
        "add": _adds(snapshot),
        "remove": _removes(snapshot, now),
        "metaData": _metadata(snapshot.metadata),
        "protocol": pa.array([snapshot.protocol.action()], _PROTOCOL),
    }
    if snapshot.domains:
        domains = [{"domain": d, "configuration": c, "removed": False} for d, c in snapshot.domains.items()]
        columns["domainMetadata"] = pa.array(domains, _DOMAIN)
    policy = properties.CHECKPOINT_POLICY.of(snapshot.properties)
    if policy == "v2" and features.supports(snapshot.protocol, "v2Checkpoint"):
        # A V2 checkpoint under the classic name, without sidecars.
        columns["checkpointMetadata"] = pa.array([{"version": snapshot.version}], pa.struct([("version", pa.int64())]))
    total = sum(len(column) for column in columns.values())
    before, spread = 0, {}
    for name, column in columns.items():
        after = total - before - len(column)
        spread[name] = pa.concat_arrays([pa.nulls(before, column.type), column, pa.nulls(after, column.type)])
        before += len(column)
    return pa.table(spread)


def _metadata(metadata: Metadata) -> pa.StructArray:
    """Builds the metaData action; unknown keys get the types of their values."""
    extra = []
    for name, value in metadata.rest.items():
        kind = pa.infer_type([value])
        if not pa.types.is_null(kind) and not (pa.types.is_struct(kind) and kind.num_fields == 0):
            extra.append(pa.field(name, kind))
    return pa.array([_lists(metadata.action())], pa.struct([*_METADATA, *extra]))


def _lists(action: dict[str, Any]) -> dict[str, Any]:
    form = action["format"]
    options = form.get("options") or {}
    return {
        **action,
        "format": {"provider": form.get("provider"), "options": list(options.items())},
        "configuration": list(action["configuration"].items()),
    }


def _adds(snapshot: Snapshot) -> pa.StructArray:
    files = snapshot.state.files.combine_chunks()
    count = files.num_rows
    # A spread table of one chunk per column.
    one = {name: one_array(files[name]) for name in files.column_names}
    columns: dict[str, pa.Array] = {
        "path": one["path"],
        "partitionValues": one["partition_values"],
        "size": one["size"],
        "modificationTime": one["modification_time"],
        "dataChange": pa.array(np.zeros(count, bool)),
        "tags": snapshot.tags(),
        "deletionVector": one["deletion_vector"],
    }
    if row_tracking.is_supported(snapshot.protocol):
        ids = snapshot.file_ids()
        columns["baseRowId"] = pc.struct_field(ids, "base_row_id")
        columns["defaultRowCommitVersion"] = pc.struct_field(ids, "default_row_commit_version")
    if features.supports(snapshot.protocol, "clustering"):
        columns["clusteringProvider"] = snapshot.clustering_providers()
    configuration = snapshot.properties
    texts = snapshot.stats()
    if properties.STATS_AS_JSON.of(configuration):
        columns["stats"] = texts
    if properties.STATS_AS_STRUCT.of(configuration):
        kind = stats_type(snapshot.schema, snapshot.partition_columns, configuration, collated_field(texts))
        columns["stats_parsed"] = parse_stats(texts, kind)
        if snapshot.partition_columns:
            columns["partitionValues_parsed"] = partition_values_parsed(
                one["partition_values"], snapshot.schema, snapshot.partition_columns
            )
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


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


def _removes(snapshot: Snapshot, now: int) -> pa.StructArray:
    """Returns the tombstones that have not expired."""
    every = tombstones(snapshot)
    oldest = now - properties.DELETED_FILE_RETENTION.of(snapshot.properties)
    # A missing time counts as 0, so the tombstone has expired.
    return every.filter(pc.greater(pc.fill_null(pc.struct_field(every, "deletionTimestamp"), 0), oldest))
