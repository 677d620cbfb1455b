"""A table: what a person opens, asks and writes to. Short methods that hand over.

The rule: a Table stands at one version. Writing through it moves it to the version that it wrote; others' writes are
seen when it is opened again or refreshed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from mica.arguments import (
    CHANGES,
    COUNT,
    FLAG,
    NAMES,
    OPTIONS,
    PATH,
    SESSION,
    SHREDDING,
    SIZE,
    TEXT,
    TEXTS,
    TIME,
    Mode,
    one_of,
    takes,
)
from mica.errors import UserError
from mica.log.actions import Metadata, Protocol
from mica.log.checkpoint_writer import write_checkpoint
from mica.log.cleanup import clean_log
from mica.log.history import history
from mica.log.snapshot import Snapshot, exists, load
from mica.log.time_travel import Timestamp
from mica.maintain import alter
from mica.maintain.optimize import optimize
from mica.maintain.restats import restats
from mica.maintain.restore import Restore, restore
from mica.maintain.vacuum import Retention, Vacuum, vacuum
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.types import StructType
from mica.storage import Storage
from mica.write.change import delete, update
from mica.write.ingest_options import size_of
from mica.write.rows import write_rows
from mica.write.target import Commit, open_target

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Commit", "Table"]


class Table:
    """A Delta table at one version. Make it with `Table.open` or `Table.create`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._source = TableSource(snapshot)

    @classmethod
    @takes(path=PATH, version=COUNT, timestamp=TIME, storage_options=OPTIONS)
    def open(
        cls,
        path: str | os.PathLike[str],
        version: int | None = None,
        timestamp: Timestamp | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Table:
        """The table at `path`: its newest version, `version`, or the one that was current at `timestamp`.

        Errors: TABLE_NOT_FOUND, VERSION_NOT_FOUND, TIMESTAMP_OUT_OF_RANGE; unknown reader features are refused when
        rows or files are asked for, so that metadata can be shown.
        """
        return cls(load(Storage.open(path, storage_options), version, timestamp))

    @staticmethod
    @takes(path=PATH, storage_options=OPTIONS)
    def exists(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether there is a Delta table at `path`: a log with a commit or a checkpoint. Only the log's file names are
        listed, so a table that cannot be opened (a newer feature, a damaged log) exists too.

        Errors: those of the storage, such as PERMISSION_DENIED.
        """
        return exists(Storage.open(path, storage_options))

    @classmethod
    @takes(path=PATH, partition_by=NAMES, properties=TEXTS, storage_options=OPTIONS)
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Any,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        mode: Mode = "error",
        storage_options: Mapping[str, str] | None = None,
        *,
        if_exists: str | None = None,
    ) -> Table:
        """Makes an empty table. `schema` is Spark DDL, a StructType or a pyarrow schema.

        `mode` says what becomes of a table that exists: `error` refuses, `ignore` opens it as it is, `overwrite`
        empties it and gives it this schema (older versions stay readable); there is nothing to `append`. `if_exists` is
        the name that `mode` had. Errors: TABLE_EXISTS, INVALID_DDL, INVALID_PARTITION_COLUMN.
        """
        if if_exists is not None:
            warnings.warn("if_exists is called mode", DeprecationWarning, stacklevel=3)
            mode = cast("Mode", if_exists)
        one_of("mode", mode, ("error", "ignore", "overwrite"))
        return cls(alter.create(Storage.open(path, storage_options), schema, partition_by, properties, mode))

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Where it lies."""
        return str(self._snapshot.storage)

    @property
    def version(self) -> int:
        """The version that it stands at."""
        return self._snapshot.version

    @property
    def schema(self) -> StructType:
        """Its columns; `str()` of them is Spark DDL."""
        return self._snapshot.schema

    @property
    def protocol(self) -> Protocol:
        """The reader and writer versions and the table features that it needs (PROTOCOL.md, "Protocol Evolution")."""
        return self._snapshot.protocol

    @property
    def metadata(self) -> Metadata:
        """Its `metaData` action: id, name, description, schema as JSON, partition columns, properties, creation time in
        milliseconds since 1970 (PROTOCOL.md, "Change Metadata")."""
        return self._snapshot.metadata

    @property
    def partition_by(self) -> tuple[str, ...]:
        """Its partition columns."""
        return self._snapshot.partition_columns

    @property
    def properties(self) -> dict[str, str]:
        """Its properties as they stand in the log."""
        return dict(self._snapshot.metadata.configuration)

    @property
    def snapshot(self) -> Snapshot:
        """The version as the log has it."""
        return self._snapshot

    def files(self) -> pa.Table:
        """Its data files: path as in the log, partition_values, size, modification_time, deletion_vector, stats
        (JSON).
        """
        files = self._snapshot.files
        return files.append_column("stats", self._snapshot.stats())

    def file_uris(self) -> list[str]:
        """The full names of its data files, for readers of bare Parquet files; `Scan.file_uris` says what these miss.
        Errors: DELETED_ROWS.
        """
        return self.scan().file_uris()

    def partitions(self) -> pa.Table:
        """Its partitions that have files, sorted: the partition columns with their types, then `files`, `bytes` (of the
        data files) and `rows` (BIGINT each). `rows` counts without deleted rows, and is null where the statistics of a
        file do not say how many it has. A table without partition columns is one partition.

        No data file is opened. Errors: INVALID_PARTITION_VALUE. Source: PROTOCOL.md, "Partition Value Serialization".
        """
        return self._source.partitions()

    @takes(limit=COUNT)
    def history(self, limit: int | None = None) -> pa.Table:
        """Its commits, newest first: version, timestamp, operation, parameters, metrics, engine."""
        return history(self._snapshot.storage, limit=limit)

    def refresh(self) -> Table:
        """Moves to the newest version; gives itself back."""
        self._snapshot = self._snapshot.refresh()
        return self

    @property
    def _snapshot(self) -> Snapshot:
        return self._source.snapshot

    @_snapshot.setter
    def _snapshot(self, snapshot: Snapshot) -> None:
        if snapshot is not self._source.snapshot:
            self._source = TableSource(snapshot)

    def __repr__(self) -> str:
        return f"Table({self.path!r}, version={self.version})"

    # --- reading -----------------------------------------------------------------------------------------------------

    def scan(
        self,
        where: str | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        limit: int | None = None,
        ansi: bool = True,
        timezone: str = "UTC",
        spark: SparkSession | None = None,
    ) -> Scan:
        """What to read: rows for which `where` is true, `columns` (names, or name → expression; None: all) of them.

        `ansi` and `timezone` are for reading in process; on Spark the session's count. `spark` compares strings by
        collations while the scan is planned, which `to_df` has its own session for; without one such comparisons drop
        no file (`explain()` says so), but for UTF8_LCASE.
        """
        return Scan(self._source, where, columns, limit, ansi, timezone, spark)

    def count(self) -> int:
        """How many rows it has; see `Scan.count`, which opens a file only where the log does not know."""
        return self.scan().count()

    def to_reader(self) -> pa.RecordBatchReader:
        """The whole table as a stream of Arrow batches; see `Scan.to_reader`."""
        return self.scan().to_reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The whole table for whoever reads Arrow streams; see `Scan.__arrow_c_stream__`."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """The whole table as one Arrow table; see `Scan.to_arrow`."""
        return self.scan().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """The whole table as a pandas DataFrame; see `Scan.to_pandas`."""
        return self.scan().to_pandas()

    def to_df(self, spark: SparkSession | None = None) -> DataFrame:
        """The whole table as a Spark DataFrame."""
        return self.scan().to_df(spark)

    def to_duckdb(self, connection: Any = None) -> Any:
        """The whole table as a DuckDB relation; see `Scan.to_duckdb`."""
        return self.scan().to_duckdb(connection)

    # --- writing -----------------------------------------------------------------------------------------------------

    @takes(shredding=SHREDDING)
    def append(self, data: Any, *, shredding: Any = None) -> Commit:
        """Adds rows: a Spark DataFrame (written by a Spark job), a pandas or polars DataFrame, a polars LazyFrame, a
        list of dicts by column, a `Scan` or a `Table`, Arrow data (a table, batches, a `pyarrow.dataset.Dataset`,
        anything with `__arrow_c_stream__`), or an iterator of dicts or of any of these. Streams and iterators are
        written as they come, in flat memory.

        A VARIANT column takes Variants, JSON texts (a STRING column or str is parsed as JSON, as by Spark's
        `parse_json`), structs and lists (objects and arrays; a null field is the JSON null), and, in lists of dicts and
        columns of Python objects, Python values as `mica.variant.from_python` reads them.

        `shredding` maps Variant columns to schemas (Spark DDL, a type, a `mica.variant.ShreddingSchema`; None: leave
        the column unshredded), or is the schema itself where there is one Variant column; others are inferred per file.

        Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE, INVALID_VALUE,
        INVALID_JSON, NULL_IN_NOT_NULL_COLUMN; then the table is as it was.
        """
        return self._write(data, shredding, overwrite=False, where=None)

    @takes(where=TEXT, shredding=SHREDDING)
    def overwrite(self, data: Any, where: str | None = None, *, shredding: Any = None) -> Commit:
        """Replaces all rows, or those of the partitions where `where` is true; the new rows must be of those too.
        `data` is what `append` takes, a scan of this table too.
        """
        return self._write(data, shredding, overwrite=True, where=where)

    @takes(where=TEXT, spark=SESSION)
    def delete(self, where: str | None = None, *, spark: SparkSession | None = None) -> Commit:
        """Deletes the rows for which `where` is true (None: all rows). Files that cannot hold such a row are not read,
        files without one are not rewritten, and others keep their shredding. With `delta.enableDeletionVectors` a file
        stays where some of its rows do, and a deletion vector says which. Runs on `spark`, or on threads of this
        process; `Commit.metrics` has what delta-spark's history has. Where no row matches, nothing is committed.

        Errors: those of a scan's `where`; APPEND_ONLY; UNSUPPORTED_WRITER_FEATURE where the table asks for change
        files; ConflictError where another writer changed the files, or added rows that might match. Then the table is
        as it was.
        """
        return self._changed(delete(self._snapshot, where, spark))

    @takes(set=TEXTS, where=TEXT, spark=SESSION)
    def update(
        self,
        set: Mapping[str, str],  # noqa: A002 - the word of SQL and of delta-spark
        where: str | None = None,
        *,
        spark: SparkSession | None = None,
    ) -> Commit:
        """Gives columns of the rows for which `where` is true (None: of all rows) other values: `set` maps columns to
        expressions over the row as it was, `{"n": "n + 1", "kind": "v:kind::string"}`. Files and deletion vectors are
        as in `delete`.

        Errors: those of `delete`; UNKNOWN_COLUMN; INCOMPATIBLE_TYPE for a value that only a cast makes the column's;
        NULL_IN_NOT_NULL_COLUMN. Then the table is as it was.
        """
        return self._changed(update(self._snapshot, set, where, spark))

    @takes(properties=CHANGES)
    def set_properties(self, properties: Mapping[str, str | None]) -> Table:
        """Sets properties (None removes one); what they need is added to the protocol in the same commit."""
        return self._moved(alter.set_properties(self._snapshot, properties))

    @takes(columns=TEXT)
    def add_columns(self, columns: str) -> Table:
        """Adds columns, given as Spark DDL: `"title STRING COLLATE de, n INT"`; rows that are there have null in them.

        Errors: INVALID_DDL, DUPLICATE_COLUMN, MISSING_COLUMN for a column that is NOT NULL.
        """
        return self._moved(alter.add_columns(self._snapshot, columns))

    @takes(column=TEXT, name=TEXT)
    def rename_column(self, column: str, name: str) -> Table:
        """Gives a column, or a field of a struct (`s.name`), another name; its collations stay with it.

        Data files know columns by name, and mica writes no mapping of names: so a table that has files refuses.
        Errors: NEEDS_COLUMN_MAPPING, UNSUPPORTED_WRITER_FEATURE for a table that maps names, UNKNOWN_COLUMN,
        DUPLICATE_COLUMN, INVALID_PARTITION_COLUMN.
        """
        return self._moved(alter.rename_column(self._snapshot, column, name))

    @takes(column=TEXT, collation=TEXT)
    def set_collation(self, column: str, collation: str | None = None) -> Table:
        """Gives a string the collation by which it is compared from now on; None: its bytes. No data is rewritten, and
        statistics of other collations serve no comparison by this one.

        `column` may lead into structs, arrays and maps (`s.name`, `tags.element`, `m.key`); `collation` is Spark's name
        (`UNICODE_CI`, `de`) or an identifier (`icu.de`). Errors: UNKNOWN_COLUMN, UNKNOWN_COLLATION,
        INVALID_PARTITION_COLUMN.
        """
        return self._moved(alter.set_collation(self._snapshot, column, collation))

    @takes(columns=NAMES, spark=SESSION)
    def restats(self, columns: Sequence[str] | None = None, spark: SparkSession | None = None) -> Commit:
        """Adds or refreshes bounds of collated columns and of variant paths in the files that are there; no data is
        rewritten. `columns` (None: all) are collated or Variant columns.

        Collated bounds are made by the comparator of `spark`; variant paths need no session. Errors: NEEDS_SPARK,
        UNKNOWN_COLUMN, ConflictError where another writer removed a file meanwhile.
        """
        return self._changed(restats(self._snapshot, columns, spark))

    @takes(where=TEXT, target_file_size=SIZE, spark=SESSION)
    def optimize(
        self,
        where: str | None = None,
        *,
        target_file_size: int | str | None = None,
        spark: SparkSession | None = None,
    ) -> Commit:
        """Joins the small files of each partition into files of about `target_file_size` (bytes, or a text such as
        `"128MB"`; None: `delta.targetFileSize`) and writes files with deletion vectors without their deleted rows.
        `where` chooses partitions. Rows keep their order, and each new file gets a shredding schema of its own rows.
        Where no file is worth it, nothing is committed.

        The commit changes no data: appends go on beside it. Errors: NOT_A_PARTITION_PREDICATE; ConflictError where
        another writer removed one of the files meanwhile; then the table is as it was.
        """
        return self._changed(optimize(self._snapshot.refresh(), where, size_of(target_file_size), spark))

    @takes(dry_run=FLAG, enforce_retention=FLAG)
    def vacuum(
        self, retention: Retention | None = None, *, dry_run: bool = False, enforce_retention: bool = True
    ) -> Vacuum:
        """Deletes the files below the table that no version within `retention` names: removed files, their deletion
        vectors, change files, and what killed writers left. Older versions can no longer be read afterwards.

        `retention` is a number of hours, a text (`"7 days"`) or a timedelta; None is the table's
        `delta.deletedFileRetentionDuration` (a week), and less than that is refused unless `enforce_retention` is
        False. `dry_run` deletes nothing and lists what would be deleted. A vacuum is recorded by two commits, as
        delta-spark writes them. Errors: RETENTION_TOO_SHORT, INVALID_ARGUMENT, PERMISSION_DENIED.
        """
        done = vacuum(self._snapshot.refresh(), retention, dry_run=dry_run, enforce_retention=enforce_retention)
        assert done.snapshot is not None
        self._snapshot = done.snapshot
        return done

    @takes(version=COUNT, timestamp=TIME)
    def restore(self, version: int | None = None, timestamp: Timestamp | None = None) -> Restore:
        """Makes the content of an older version the newest one, in one commit; nothing is rewritten. Schema, properties
        and domains come back too; the protocol is never lowered.

        Errors: VERSION_NOT_FOUND, VERSION_EXPIRED, TIMESTAMP_OUT_OF_RANGE, NOT_FOUND where files of that version were
        vacuumed, ConflictError where another writer changed the table meanwhile. Then the table is as it was.
        """
        if version is None and timestamp is None:
            raise UserError("INVALID_ARGUMENT", "no version was named", hint="Give version= or timestamp=.")
        newest = self._snapshot.refresh()
        done = restore(newest, load(newest.storage, version, timestamp))
        self._snapshot = done.snapshot
        return done

    def checkpoint(self) -> Table:
        """Writes a checkpoint of the version that the table stands at, and removes what the log no longer needs
        (`delta.logRetentionDuration`, `delta.enableExpiredLogCleanup`). Commits do both by themselves, each
        `delta.checkpointInterval` versions. Source: PROTOCOL.md, "Checkpoints", "Metadata Cleanup".
        """
        write_checkpoint(alter.writable(self._snapshot))
        # The newest version decides what may go.
        clean_log(self._snapshot.refresh(), now=int(time.time() * 1000))
        return self

    def _changed(self, commit: Commit) -> Commit:
        assert commit.snapshot is not None
        self._snapshot = commit.snapshot
        return commit

    def _moved(self, snapshot: Snapshot) -> Table:
        self._snapshot = snapshot
        return self

    def _write(self, data: Any, shredding: Any, *, overwrite: bool, where: str | None) -> Commit:
        target = open_target(
            self._snapshot.storage, self.schema, (), mode="overwrite" if overwrite else "append",
            properties={}, snapshot=self._snapshot, where=where,
        )  # fmt: skip
        return self._changed(write_rows(target, data, shredding))
