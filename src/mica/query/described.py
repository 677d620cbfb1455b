"""The answers of DESCRIBE DETAIL, DESCRIBE TABLE, DESCRIBE HISTORY, SHOW COLUMNS and SHOW TBLPROPERTIES, and counts.

The rule: columns have the names and types of delta-spark's answers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica import compute as pc
from mica.engines.spark.types import to_spark
from mica.log import clustering, features
from mica.log.actions import Protocol
from mica.properties import FEATURE
from mica.query.table_statements import Subject

if TYPE_CHECKING:
    from mica.table import Table

_TIME = pa.timestamp("us", "UTC")
_DETAIL = pa.schema(
    [
        ("format", pa.string()), ("id", pa.string()), ("name", pa.string()), ("description", pa.string()),
        ("location", pa.string()), ("createdAt", _TIME), ("lastModified", _TIME),
        ("partitionColumns", pa.list_(pa.string())), ("clusteringColumns", pa.list_(pa.string())),
        ("numFiles", pa.int64()), ("sizeInBytes", pa.int64()), ("properties", pa.map_(pa.string(), pa.string())),
        ("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()), ("tableFeatures", pa.list_(pa.string())),
    ]
)  # fmt: skip

_JOB = ("jobId", "jobName", "jobRunId", "runId", "jobOwnerId", "triggerType")
#: Columns of a history as delta-spark names them, and those of `Table.history`.
_HISTORY: Mapping[str, str | pa.DataType] = {
    "version": "version",
    "timestamp": "timestamp",
    "userId": pa.string(),
    "userName": "user",
    "operation": "operation",
    "operationParameters": "operation_parameters",
    "job": pa.struct([(name, pa.string()) for name in _JOB]),
    "notebook": pa.struct([("notebookId", pa.string())]),
    "clusterId": pa.string(),
    "readVersion": "read_version",
    "isolationLevel": "isolation_level",
    "isBlindAppend": "is_blind_append",
    "operationMetrics": "operation_metrics",
    "userMetadata": "user_metadata",
    "engineInfo": "engine_info",
    "txnId": "txn_id",
}


def answer(table: Table, what: Subject, key: str | None = None) -> pa.Table:
    """The rows of the answer; `key`: one property, or None for all."""
    if what == "detail":
        return _detail(table)
    if what == "properties":
        return _properties(table, key)
    fields = to_spark(table.schema).fields
    if what == "names":
        return pa.table({"col_name": [f.name for f in fields]})
    rows = [(f.name, f.dataType.simpleString(), f.metadata.get("comment")) for f in fields]
    if table.partition_by:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [row for name in table.partition_by for row in rows[: len(fields)] if row[0] == name]
    names = ("col_name", "data_type", "comment")
    return pa.table({name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)})


def history(table: Table, limit: int | None) -> pa.Table:
    """DESCRIBE HISTORY; what only Databricks writes is null."""
    found = table.history(limit)
    own = {n: found.column(of) if isinstance(of, str) else pa.nulls(len(found), of) for n, of in _HISTORY.items()}
    return pa.table(own)


def counts(found: Mapping[str, int]) -> pa.Table:
    """One row with these numbers, as statements that change a table return them."""
    return pa.table({name: pa.array([number], pa.int64()) for name, number in found.items()})


def _detail(table: Table) -> pa.Table:
    snapshot, metadata, protocol = table.snapshot, table.metadata, table.protocol
    own = protocol.reader_features | protocol.writer_features
    row: dict[str, Any] = {
        "format": "delta", "id": metadata.id, "name": metadata.name, "description": metadata.description,
        "location": table.path,
        "createdAt": _moment(metadata.created_time), "lastModified": _moment(snapshot.timestamp),
        "partitionColumns": list(table.partition_by),
        "clusteringColumns": clustering.cluster_by(snapshot),
        "numFiles": snapshot.files.num_rows, "sizeInBytes": pc.sum(snapshot.files.column("size")).as_py() or 0,
        "properties": sorted(table.properties.items()),
        **_versions(protocol),
        "tableFeatures": sorted(own or features.names(protocol)),
    }  # fmt: skip
    return pa.Table.from_pylist([row], _DETAIL)


def _properties(table: Table, key: str | None) -> pa.Table:
    protocol = table.protocol
    every = {
        **table.properties,
        **{f"{FEATURE}{name}": "supported" for name in protocol.reader_features | protocol.writer_features},
        **{f"delta.{name}": str(version) for name, version in _versions(protocol).items()},
    }
    missing = f"Table {table.path} does not have property: {key}"  # Spark's words
    rows = sorted(every.items()) if key is None else [(key, every.get(key, missing))]
    return pa.table({"key": [name for name, _ in rows], "value": [value for _, value in rows]})


def _versions(protocol: Protocol) -> dict[str, int]:
    return {"minReaderVersion": protocol.reader, "minWriterVersion": protocol.writer}


def _moment(ms: int | None) -> dt.datetime | None:
    return None if ms is None else dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
