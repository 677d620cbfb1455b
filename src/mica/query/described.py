"""The answers of DESCRIBE and SHOW about one table, and counts.

The rule: columns have the names and types of delta-spark's answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, batch_of, one_array
from mica.engines.spark.types import to_spark
from mica.errors import UserError
from mica.log import clustering, features
from mica.log.actions import Protocol, whole
from mica.properties import FEATURE, parse_names
from mica.query.create_text import create_text
from mica.query.fixed import fixed_values
from mica.query.table_statements import Subject
from mica.schema import char
from mica.schema.edit import field_at
from mica.schema.special import DEFAULT
from mica.schema.spelling import quote_if_needed, spelled
from mica.schema.types import StructType
from mica.stats.partition import parse_values

if TYPE_CHECKING:
    from mica.maintain.fsck import Fsck
    from mica.maintain.vacuum import Vacuum
    from mica.storage.base import Storage
    from mica.table import Table

#: A row of texts; its length is that of the answer.
_Row = tuple[str | None, ...]

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


def answer(
    table: Table,
    what: Subject,
    key: str | None = None,
    name: tuple[str, ...] = (),
    timezone: str = "UTC",
    partition: Mapping[str, str | None] | None = None,
    *,
    managed: bool = False,
) -> pa.Table:
    """The rows of the answer. `key`: the property or column that is asked for, `name`: the table's in the question, or
    where the answer shows it the whole name, `partition`: the values of the partitions that are asked for, `managed`:
    whether the files go with the name.

    Errors: UNKNOWN_COLUMN; INVALID_ARGUMENT for the partitions of a table that has none; those of `fixed_values`.
    """
    match what:
        case "detail":
            return _detail(table, ".".join(name) or table.metadata.name)
        case "properties":
            return _properties(table, key)
        case "names":
            return pa.table({"col_name": [f.name for f in table.schema.fields]})
        case "column":
            return _column(table, key or "", name)
        case "partitions":
            return _partitions(table, timezone, partition or {})
        case "statement":
            return pa.table({"createtab_stmt": [create_text(table, name)]})
    rows = _columns(table)
    if what == "extended":
        rows += _information(table, name, managed=managed)
    return _texts(rows, "col_name", "data_type", "comment")


def _columns(table: Table) -> list[_Row]:
    """DESCRIBE TABLE: columns, and which of them are of partitions."""
    fields = to_spark(table.schema).fields
    rows: list[_Row] = [(f.name, f.dataType.simpleString(), f.metadata.get("comment")) for f in fields]
    if table.partition_by:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [row for name in table.partition_by for row in rows[: len(fields)] if row[0] == name]
    return rows


def identity(name: Sequence[str], *, managed: bool) -> list[tuple[str, str]]:
    """What Spark says of a table by its whole name; nothing of one that has none, or is in no database."""
    if len(name) < 3:
        return []
    catalog, *database, own = name
    told = {"Namespace": ".".join(map(quote_if_needed, database)), "Database": ".".join(database), "Table": own}
    return [("Catalog", catalog), *told.items(), ("Type", "MANAGED" if managed else "EXTERNAL")]


def _information(table: Table, name: tuple[str, ...], *, managed: bool) -> list[_Row]:
    """What DESCRIBE EXTENDED adds, with what a catalog knows of the table if a database has it."""
    comment = table.metadata.description
    properties = ",".join(f"{key}={value}" for key, value in _every_property(table).items())
    rows: list[_Row] = [("", "", ""), ("# Detailed Table Information", "", "")]
    rows += [(*pair, "") for pair in identity(name, managed=managed)]
    rows += [] if comment is None else [("Comment", comment, "")]
    rows += [("Location", table.path, ""), ("Provider", "delta", "")]
    rows += [("Is_managed_location", "true", "")] if managed else []
    rows += [("Table Properties", f"[{properties}]", "")]
    spark = to_spark(table.schema)
    defaults: list[_Row] = [
        (f.name, spark[f.name].dataType.simpleString(), str(f.metadata[DEFAULT]))
        for f in table.schema.fields
        if DEFAULT in f.metadata
    ]
    return rows + ([("", "", ""), ("# Column Default Values", "", ""), *defaults] if defaults else [])


def _column(table: Table, column: str, name: tuple[str, ...]) -> pa.Table:
    """DESCRIBE of one column, maybe with the table's name before it; a field of a struct, too, which Spark does not
    describe."""
    (path,) = parse_names(column)
    before = tuple(part.lower() for part in path[:-1])
    if before and before == tuple(part.lower() for part in name[-len(before) :]) and table.schema.find(path[0]) is None:
        path = path[-1:]
    field = field_at(char.sized(table.schema), path)
    (found,) = to_spark(StructType((field,))).fields
    rows: list[_Row] = [
        ("col_name", spelled(path) if len(path) > 1 else field.name),
        ("data_type", found.dataType.simpleString()),
        ("comment", found.metadata.get("comment", "NULL")),  # Spark's word
    ]
    return _texts(rows, "info_name", "info_value")


def _partitions(table: Table, timezone: str, partition: Mapping[str, str | None]) -> pa.Table:
    """The values of the partition columns, each row once, in their order; null comes last."""
    if not table.partition_by:
        hint = "DESCRIBE DETAIL shows how it is laid out."
        raise UserError("INVALID_ARGUMENT", f"{table.path} has no partitions to show", hint=hint)
    found = table.partitions(timezone=timezone).select(range(len(table.partition_by)))
    for name, text in fixed_values(table, partition, timezone).items():
        place, column = table.partition_by.index(name), table.schema.field(name)
        wanted = parse_values(arrow_array([text], pa.string()), column.type, timezone=timezone)
        # The log may have a CHAR(n) without its blanks.
        held = char.padded(one_array(found.column(place)), char.declared(column))
        found = found.filter(pc.is_in(held, value_set=wanted))
    return found


def history(table: Table, limit: int | None) -> pa.Table:
    """DESCRIBE HISTORY; what only Databricks writes is null."""
    found = table.history(limit)
    own = {n: found.column(of) if isinstance(of, str) else pa.nulls(len(found), of) for n, of in _HISTORY.items()}
    return pa.table(own)


def counts(found: Mapping[str, int]) -> pa.Table:
    """One row with these numbers, as statements that change a table return them."""
    return pa.table({name: arrow_array([number], pa.int64()) for name, number in found.items()})


def vacuumed(done: Vacuum, location: str, storage: Storage) -> pa.Table:
    """What VACUUM answers: the table's location, or the full names of what a dry run would delete."""
    names = map(storage.path, done.deleted.column("path").to_pylist()) if done.dry_run else [location]
    return pa.table({"path": arrow_array(list(names), pa.string())})


def fscked(done: Fsck) -> pa.Table:
    """What FSCK REPAIR TABLE answers: the files that left the table, or would leave it."""
    return done.missing.rename_columns(
        ["dataFilePath", "dataFileMissing", "deletionVectorPath", "deletionVectorFileMissing"]
    )


def _detail(table: Table, name: str | None) -> pa.Table:
    snapshot, metadata, protocol = table.snapshot, table.metadata, table.protocol
    own = protocol.reader_features | protocol.writer_features
    row: dict[str, Any] = {
        "format": "delta", "id": metadata.id, "name": name, "description": metadata.description,
        "location": table.path,
        "createdAt": _micros(metadata.created_time), "lastModified": _micros(snapshot.timestamp),
        "partitionColumns": list(table.partition_by),
        "clusteringColumns": clustering.shown(clustering.cluster_by(snapshot)),
        "numFiles": snapshot.files.num_rows, "sizeInBytes": pc.sum(snapshot.files.column("size")).as_py() or 0,
        "properties": sorted(table.properties.items()),
        **_versions(protocol),
        "tableFeatures": sorted(own or features.names(protocol)),
    }  # fmt: skip
    return pa.Table.from_batches([batch_of([row], _DETAIL)])


def _properties(table: Table, key: str | None) -> pa.Table:
    every = _every_property(table)
    missing = f"Table {table.path} does not have property: {key}"  # Spark's words
    return _texts([*every.items()] if key is None else [(key, every.get(key, missing))], "key", "value")


def _every_property(table: Table) -> Mapping[str, str]:
    """The properties with features and versions of the protocol, in the order of their names."""
    protocol = table.protocol
    columns = [parse_names(column)[0] for column in clustering.cluster_by(table.snapshot)]
    every = {
        **table.properties,
        **({"clusteringColumns": orjson.dumps(columns).decode()} if columns else {}),
        **{f"{FEATURE}{name}": "supported" for name in protocol.reader_features | protocol.writer_features},
        **{f"delta.{name}": str(version) for name, version in _versions(protocol).items()},
    }
    return dict(sorted(every.items()))


def _texts(rows: Sequence[_Row], *names: str) -> pa.Table:
    return pa.table({name: arrow_array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)})


def _versions(protocol: Protocol) -> dict[str, int]:
    return {"minReaderVersion": protocol.reader, "minWriterVersion": protocol.writer}


def _micros(time: Any) -> int | None:
    """Not as a time of Python's, which has no year after 9999: a writer may have meant microseconds."""
    ms = whole(time)
    return None if ms is None or abs(ms) >= 2**63 // 1000 else ms * 1000
