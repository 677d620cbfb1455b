"""`Table`: the public class to open, read and change a Delta table. Its methods delegate to other modules.

The rule: a Table is at one version. A write through it moves it to the version that it wrote; writes of others become
visible when the table is opened again or refreshed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from mica import engines
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
    TXN,
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
from mica.maintain import alter, constraints
from mica.maintain import columns as columns_of
from mica.maintain import features as features_of
from mica.maintain.adopt import convert_to_delta
from mica.maintain.optimize import optimize
from mica.maintain.reshred import reshred
from mica.maintain.restats import restats
from mica.maintain.restore import Restore, restore
from mica.maintain.vacuum import Retention, Vacuum, vacuum
from mica.scan.changes import changes
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.types import StructType
from mica.storage import Storage
from mica.write import compact
from mica.write.change import delete, update
from mica.write.erase import erase
from mica.write.ingest_options import size_of
from mica.write.merge import Merge
from mica.write.once import Txn, checked, once
from mica.write.rows import write_rows
from mica.write.target import Commit, open_target

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Commit", "Table"]


class Table:
    """A Delta table at one version. Use `Table.open` or `Table.create` to get one."""

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
        """Opens the table at `path`: its newest version, `version`, or the one that was current at `timestamp`.

        Errors: TABLE_NOT_FOUND, VERSION_NOT_FOUND, TIMESTAMP_OUT_OF_RANGE. Unknown reader features are refused only
        when rows or files are read, so that metadata can be shown.
        """
        return cls(load(Storage.open(path, storage_options), version, timestamp))

    @staticmethod
    @takes(path=PATH, storage_options=OPTIONS)
    def exists(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether there is a Delta table at `path`: a log with a commit or a checkpoint. Only the names of log files
        are listed, so this is True also for a table that cannot be opened (a newer feature, a damaged log).

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
        """Creates an empty table. `schema` is Spark DDL, a StructType or a pyarrow schema.

        `mode` says what to do if the table exists: `error` refuses, `ignore` opens it as it is, `overwrite` empties it
        and sets this schema (older versions stay readable). `if_exists` is the deprecated name of `mode`.

        Errors: TABLE_EXISTS, INVALID_DDL, INVALID_PARTITION_COLUMN.
        """
        if if_exists is not None:
            warnings.warn("if_exists is deprecated: use mode", DeprecationWarning, stacklevel=3)
            mode = cast("Mode", if_exists)
        one_of("mode", mode, ("error", "ignore", "overwrite"))
        return cls(alter.create(Storage.open(path, storage_options), schema, partition_by, properties, mode))

    @classmethod
    @takes(path=PATH, partition_by=TEXT, properties=TEXTS, storage_options=OPTIONS, spark=SESSION)
    def convert_to_delta(
        cls,
        path: str | os.PathLike[str],
        partition_by: str | None = None,
        *,
        properties: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        spark: SparkSession | None = None,
    ) -> Table:
        """Makes a folder of Parquet files a Delta table in place, in one commit: the files stay where they are, and
        only their footers are read. Statistics, those of Variant paths too, come from the footers.

        Directories such as `day=2026-11-20` are partition columns; `partition_by` gives their types as DDL (`"day DATE,
        n INT"`), otherwise they are inferred. All columns become nullable. Files whose names begin with `_` or `.` are
        left out. With `spark` the footers are read by a job.

        Errors: TABLE_EXISTS; NOT_FOUND without a Parquet file; INCOMPATIBLE_FILES; INVALID_PARTITION_COLUMN,
        INVALID_PARTITION_VALUE; UNSUPPORTED_TYPE. The folder is then unchanged.
        """
        return cls(convert_to_delta(os.fspath(path), partition_by, properties, storage_options, spark))

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """The table's location, as a path or URL."""
        return str(self._snapshot.storage)

    @property
    def version(self) -> int:
        """The version of this Table."""
        return self._snapshot.version

    @property
    def schema(self) -> StructType:
        """The columns; `str()` returns them as Spark DDL."""
        return self._snapshot.schema

    @property
    def protocol(self) -> Protocol:
        """The reader and writer versions and the table features (PROTOCOL.md, "Protocol Evolution")."""
        return self._snapshot.protocol

    @property
    def metadata(self) -> Metadata:
        """The `metaData` action: id, name, description, schema as JSON, partition columns, properties, creation time in
        milliseconds since 1970 (PROTOCOL.md, "Change Metadata")."""
        return self._snapshot.metadata

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The partition columns."""
        return self._snapshot.partition_columns

    @property
    def properties(self) -> dict[str, str]:
        """The table properties as in the log."""
        return dict(self._snapshot.metadata.configuration)

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot of this version."""
        return self._snapshot

    def files(self) -> pa.Table:
        """The data files: path as in the log, partition_values, size (bytes), modification_time (ms since 1970),
        deletion_vector, stats (JSON).
        """
        files = self._snapshot.files
        return files.append_column("stats", self._snapshot.stats())

    def file_uris(self) -> list[str]:
        """The full names of the data files, for readers of bare Parquet files; `Scan.file_uris` says what such readers
        miss. Errors: DELETED_ROWS.
        """
        return self.scan().file_uris()

    def partitions(self) -> pa.Table:
        """The partitions that have files, sorted: the partition columns with their types, then `files`, `bytes` (of the
        data files) and `rows` (BIGINT each). `rows` excludes deleted rows; it is null if the statistics of a file have
        no row count. A table without partition columns is one partition.

        No data file is opened. Errors: INVALID_PARTITION_VALUE. Source: PROTOCOL.md, "Partition Value Serialization".
        """
        return self._source.partitions()

    @takes(limit=COUNT)
    def history(self, limit: int | None = None) -> pa.Table:
        """The commits, newest first: version, timestamp, operation, parameters, metrics, engine."""
        return history(self._snapshot.storage, limit=limit)

    def refresh(self) -> Table:
        """Moves this Table to the newest version and returns it."""
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
        """A scan of the rows for which `where` is true, with `columns`: names, or name → expression (None: all).

        `ansi` and `timezone` apply to reading in process; on Spark the session's settings apply. `spark` is the session
        that compares strings by collation during planning (`to_df` uses its own). Without a session only UTF8_LCASE
        comparisons skip files; `explain()` says so.
        """
        return Scan(self._source, where, columns, limit, ansi, timezone, spark)

    @takes(from_version=COUNT, to_version=COUNT, from_timestamp=TIME, to_timestamp=TIME)
    def changes(
        self,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        from_timestamp: Timestamp | None = None,
        to_timestamp: Timestamp | None = None,
        where: str | None = None,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        limit: int | None = None,
        ansi: bool = True,
        timezone: str = "UTC",
        spark: SparkSession | None = None,
    ) -> Scan:
        """A scan of the rows that changed in the versions from `from_version` to `to_version` (None: this one), both
        included: the change data feed. Or from the first version at or after `from_timestamp` to the last one at or
        before `to_timestamp`. The other arguments are those of `scan`.

        The columns are those of the table at the last version, then `_change_type` (`insert`, `delete`,
        `update_preimage` or `update_postimage`), `_commit_version` BIGINT and `_commit_timestamp` TIMESTAMP. Rows come
        by version. Operations that change no rows, such as `optimize`, are not in it.

        Errors: CHANGES_NOT_RECORDED if `delta.enableChangeDataFeed` was not true at a version of the range;
        VERSION_NOT_FOUND; VERSION_EXPIRED if the log of a version was cleaned up; TIMESTAMP_OUT_OF_RANGE;
        SCHEMA_CHANGED; NOT_FOUND, when rows are read, if a file was vacuumed.
        Source: PROTOCOL.md, "Change Data Files"; delta-spark's `readChangeFeed`.
        """
        source = changes(self._snapshot, from_version, to_version, from_timestamp, to_timestamp)
        return Scan(source, where, columns, limit, ansi, timezone, spark)

    def count(self) -> int:
        """The number of rows; see `Scan.count`, which opens a file only if the log has no row count for it."""
        return self.scan().count()

    def to_reader(self) -> pa.RecordBatchReader:
        """The whole table as a stream of Arrow batches; see `Scan.to_reader`."""
        return self.scan().to_reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The whole table for readers of Arrow streams; see `Scan.__arrow_c_stream__`."""
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

    @takes(shredding=SHREDDING, schema_evolution=FLAG, txn=TXN)
    def append(
        self, data: Any, *, shredding: Any = None, schema_evolution: bool = False, txn: Txn | None = None
    ) -> Commit:
        """Adds rows: a Spark DataFrame (written by a Spark job), a pandas or polars DataFrame, a polars LazyFrame, a
        list of dicts by column, a `Scan` or a `Table`, Arrow data (a table, batches, a `pyarrow.dataset.Dataset`,
        anything with `__arrow_c_stream__`), or an iterator of dicts or of any of these. Streams and iterators are
        written as they arrive, in flat memory.

        A VARIANT column accepts Variants, JSON texts (a STRING column or str is parsed, as by Spark's `parse_json`),
        structs and lists (objects and arrays; a null field becomes the JSON null), and, in lists of dicts and columns
        of Python objects, Python values as in `mica.variant.from_python`.

        `shredding` maps Variant columns to schemas (Spark DDL, a type, a `mica.variant.ShreddingSchema`; None: leave
        the column unshredded), or is the schema itself if there is one Variant column. Other schemas are inferred per
        file.

        With `schema_evolution` columns and nested fields that the table lacks are added to it, in the same commit: in
        structs, arrays of structs and values of maps. They are null in existing rows.

        `txn=(application, version)` makes the write happen once: the commit records it, and if the table has this
        version of the application, or a later one, nothing is written and `Commit.repeated` is True (delta-spark's
        `txnAppId` and `txnVersion`). All writes take it.

        Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE, INVALID_VALUE, INVALID_JSON, NULL_IN_NOT_NULL_COLUMN,
        CONSTRAINT_VIOLATED, IDENTITY_GIVEN; the table is then unchanged.
        """
        return self._write(data, shredding, schema_evolution, overwrite=False, where=None, txn=txn)

    @takes(where=TEXT, shredding=SHREDDING, schema_evolution=FLAG, txn=TXN)
    def overwrite(
        self,
        data: Any,
        where: str | None = None,
        *,
        shredding: Any = None,
        schema_evolution: bool = False,
        txn: Txn | None = None,
    ) -> Commit:
        """Replaces all rows, or the partitions for which `where` is true; new rows must then be in these partitions.
        `data` and `schema_evolution` are as in `append`; `data` may be a scan of this table.
        """
        return self._write(data, shredding, schema_evolution, overwrite=True, where=where, txn=txn)

    @takes(where=TEXT, spark=SESSION, txn=TXN)
    def delete(self, where: str | None = None, *, spark: SparkSession | None = None, txn: Txn | None = None) -> Commit:
        """Deletes the rows for which `where` is true (None: all rows). Files that cannot hold such a row are not read,
        files without one are not rewritten, and rewritten files keep their shredding. With
        `delta.enableDeletionVectors`, a file that keeps some rows gets a deletion vector instead of a rewrite. With

        Runs on `spark`, or on threads of this process. `Commit.metrics` has the metrics of delta-spark's history. If no
        row matches, nothing is committed, but for the version of a `txn`.

        `delta.enableChangeDataFeed` the changed rows are written to change files too, where the log alone does not tell
        them.

        Errors: those of a scan's `where`; APPEND_ONLY; ConflictError if another writer changed the files, or added rows
        that might match. The table is then unchanged.
        """
        return self._changed(delete(self._snapshot, where, spark, checked(txn)))

    @takes(set=TEXTS, where=TEXT, spark=SESSION, txn=TXN)
    def update(
        self,
        set: Mapping[str, str],  # noqa: A002 - the word of SQL and of delta-spark
        where: str | None = None,
        *,
        spark: SparkSession | None = None,
        txn: Txn | None = None,
    ) -> Commit:
        """Updates the rows for which `where` is true (None: all rows). `set` maps columns to expressions over the old
        row: `{"n": "n + 1", "kind": "v:kind::string"}`. Files and deletion vectors are handled as in `delete`.

        Errors: those of `delete`; UNKNOWN_COLUMN; INCOMPATIBLE_TYPE for a value that needs a cast to the column's type;
        NULL_IN_NOT_NULL_COLUMN. The table is then unchanged.
        """
        return self._written(update(self._snapshot, set, where, spark, checked(txn)), spark)

    @takes(path=TEXT, where=TEXT, spark=SESSION)
    def erase(self, path: str, where: str | None = None, *, spark: SparkSession | None = None) -> Commit:
        """Erases a path of a Variant column, `v:user.email`, from every row, or from those for which `where` is true.

        Every file of the table that holds the path in such a row is rewritten; rows that deletion vectors hide go with
        it. Without `where` the new files name the path neither in shredded columns nor in bounds nor in metadata. Files
        that cannot hold it are not read. Files of older versions keep it until `vacuum`, the log's bounds until the
        log's cleanup: `mica.check_erased` and `mica check --erased` tell what holds it still.

        Errors: INVALID_PATH; UNSUPPORTED_WRITER_FEATURE for a table with a change data feed, whose change files would
        hold the old rows; those of `update`. The table is then unchanged.
        """
        return self._changed(erase(self._snapshot, path, where, spark))

    @takes(on=TEXT, source_alias=TEXT, target_alias=TEXT, spark=SESSION)
    def merge(
        self,
        source: Any,
        on: str,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        spark: SparkSession | None = None,
    ) -> Merge:
        """Merges the rows of `source` into the table: rows that match by `on` are updated or deleted, other rows of the
        source are inserted. Returns a `Merge`, whose clauses say what happens to which rows, in order: the first whose
        condition is true applies.

            t.merge(events, "target.v:id::string = source.id")
                .when_matched_update({"v": "source.v", "seen": "target.seen + 1"}, condition="source.v IS NOT NULL")
                .when_not_matched_insert_all()
                .execute()

        `source` is what `append` accepts, with any columns; `on` and all conditions and values are expressions over the
        columns of both, named by `source_alias` and `target_alias`. Equalities in `on` decide which files are read:
        those that can hold a key of the source, by their partition values and bounds. Files and deletion vectors are
        handled as in `update`; inserted rows get new files.

        A DataFrame is merged on its Spark session, other sources on `spark` or on threads of this process. Every task
        gets the whole source; of a DataFrame with many rows Spark shuffles them by their keys instead. Errors: see
        `Merge.execute`.
        """
        done = partial(self._written, on=source if spark is None else spark)
        return Merge(self._snapshot, source, on, source_alias, target_alias, spark, done)

    @takes(properties=CHANGES)
    def set_properties(self, properties: Mapping[str, str | None]) -> Table:
        """Sets properties (None removes one) and adds the table features that they need, in one commit."""
        return self._moved(alter.set_properties(self._snapshot, properties))

    @takes(columns=TEXT, into=TEXT, first=FLAG, after=TEXT)
    def add_columns(
        self, columns: str, *, into: str | None = None, first: bool = False, after: str | None = None
    ) -> Table:
        """Adds columns, given as Spark DDL: `"title STRING COLLATE de, n INT"`, or fields of a struct: `into` is its
        path (`s`, `l.element`, `m.value`). They come last, `first`, or `after` another, and are null in existing rows.

        Errors: INVALID_DDL, DUPLICATE_COLUMN, UNKNOWN_COLUMN, MISSING_COLUMN for a column that is NOT NULL, has a
        default or is generated.
        """
        return self._moved(columns_of.add_columns(self._snapshot, columns, into, columns_of.Position(first, after)))

    @takes(columns=NAMES)
    def drop_columns(self, columns: Sequence[str]) -> Table:
        """Drops columns and fields (`s.x`, `l.element.x`). Data files stay as they are: the table needs column mapping
        (`set_properties({"delta.columnMapping.mode": "name"})`), unless it has no files.

        Errors: NEEDS_COLUMN_MAPPING, UNKNOWN_COLUMN, COLUMN_IN_USE for one that a constraint or a generated column
        uses, INVALID_PARTITION_COLUMN, INVALID_ARGUMENT for the last one.
        """
        return self._moved(columns_of.drop_columns(self._snapshot, columns))

    @takes(column=TEXT, type=TEXT, nullable=FLAG, comment=TEXT, default=TEXT, first=FLAG, after=TEXT)
    def alter_column(
        self,
        column: str,
        *,
        type: str | None = None,  # noqa: A002 - the word of SQL
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        first: bool = False,
        after: str | None = None,
    ) -> Table:
        """Changes a column or field (`s.x`, `l.element`): its `type` to a wider one, whether it is `nullable`, its
        `comment` and its `default` for new rows (SQL; an empty text removes either), its place (`first`, or `after`
        another one). None leaves something as it is. Data files stay as they are; wider types need
        `delta.enableTypeWidening`, and NOT NULL is checked against the rows.

        Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE, FEATURE_NEEDED, COLUMN_IN_USE, CONSTRAINT_VIOLATED. Source:
        PROTOCOL.md, "Type Widening", "Default Columns".
        """
        return self._moved(
            columns_of.alter_column(
                self._snapshot, column, type=type, nullable=nullable, comment=comment, default=default,
                position=columns_of.Position(first, after),
            )
        )  # fmt: skip

    @takes(column=TEXT, name=TEXT)
    def rename_column(self, column: str, name: str) -> Table:
        """Renames a column, or a field of a struct (`s.name`); it keeps its collations.

        Data files stay as they are: the table needs column mapping
        (`set_properties({"delta.columnMapping.mode": "name"})`), unless it has no files. Errors: NEEDS_COLUMN_MAPPING,
        UNKNOWN_COLUMN, DUPLICATE_COLUMN, COLUMN_IN_USE, INVALID_PARTITION_COLUMN.
        """
        return self._moved(columns_of.rename_column(self._snapshot, column, name))

    @takes(name=TEXT)
    def add_feature(self, name: str) -> Table:
        """Adds a table feature to the protocol, with those that it needs. Errors: UNKNOWN_TABLE_PROPERTY for one that
        mica does not know, UNSUPPORTED_WRITER_FEATURE. Source: PROTOCOL.md, "Table Features".
        """
        return self._moved(features_of.add_feature(self._snapshot, name))

    @takes(name=TEXT, truncate_history=FLAG)
    def drop_feature(self, name: str, truncate_history: bool = False) -> Table:
        """Drops a table feature: files that use it are rewritten first (deletion vectors are applied, mapped columns
        get their names, shredded Variants are unshredded), in a commit that changes no data.

        For a feature of readers the history still needs it. It stays, protected by the feature `checkpointProtection`;
        or, with `truncate_history`, it is deleted if it is older than
        `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours).

        Errors: UNKNOWN_FEATURE, FEATURE_NOT_REMOVABLE, FEATURE_IN_HISTORY with the time to call it again;
        ConflictError if another writer changed the table meanwhile.
        """
        self.refresh()
        try:
            return self._moved(features_of.drop_feature(self._snapshot, name, truncate_history=truncate_history))
        except UserError:
            self.refresh()  # what used the feature may be gone already
            raise

    @takes(name=TEXT, expr=TEXT)
    def add_constraint(self, name: str, expr: str) -> Table:
        """Adds the CHECK constraint `name`: from now on `expr` must be true for every row, whatever writes it; NULL
        violates it, as in delta-spark. Existing rows are checked; files whose bounds prove them are not read.

        Errors: CONSTRAINT_VIOLATED with the values of a row; CONSTRAINT_EXISTS; those of a scan's `where`;
        ConflictError if another writer changed the table meanwhile. Source: PROTOCOL.md, "CHECK Constraints".
        """
        return self._moved(constraints.add_constraint(self._snapshot, name, expr))

    @takes(name=TEXT, if_exists=FLAG)
    def drop_constraint(self, name: str, *, if_exists: bool = False) -> Table:
        """Drops a CHECK constraint. Errors: UNKNOWN_CONSTRAINT, unless `if_exists`."""
        return self._moved(constraints.drop_constraint(self._snapshot, name, if_exists=if_exists))

    @takes(column=TEXT, collation=TEXT)
    def set_collation(self, column: str, collation: str | None = None) -> Table:
        """Sets the collation of a string column (None: compare bytes). No data is rewritten; statistics of other
        collations are not used for comparisons by the new one.

        `column` may be a path into structs, arrays and maps (`s.name`, `tags.element`, `m.key`); `collation` is Spark's
        name (`UNICODE_CI`, `de`) or an identifier (`icu.de`). Errors: UNKNOWN_COLUMN, UNKNOWN_COLLATION,
        INVALID_PARTITION_COLUMN.
        """
        return self._moved(alter.set_collation(self._snapshot, column, collation))

    @takes(columns=NAMES, spark=SESSION)
    def restats(self, columns: Sequence[str] | None = None, spark: SparkSession | None = None) -> Commit:
        """Adds or refreshes bounds of collated columns and variant paths of existing files; no data is rewritten.
        `columns` (None: all) are collated or Variant columns.

        Collated bounds need the comparator of `spark`; variant paths need no session. Errors: NEEDS_SPARK,
        UNKNOWN_COLUMN, ConflictError if another writer removed a file meanwhile.
        """
        return self._changed(restats(self._snapshot, columns, spark))

    @takes(where=TEXT, zorder_by=NAMES, target_file_size=SIZE, spark=SESSION)
    def optimize(
        self,
        where: str | None = None,
        *,
        zorder_by: Sequence[str] | None = None,
        target_file_size: int | str | None = None,
        spark: SparkSession | None = None,
    ) -> Commit:
        """Joins the small files of each partition into files of about `target_file_size` (bytes, or a text such as
        `"128MB"`; None: `delta.targetFileSize`) and writes files with deletion vectors without their deleted rows.
        `where` chooses partitions. Rows keep their order, and each new file gets a shredding schema of its own rows.
        Where no file is worth it, nothing is committed.

        `zorder_by` names columns and Variant paths (`["day", "v:user.id", "v:time::timestamp"]`). All files of the
        chosen partitions are then rewritten, their rows ordered along a curve through these, so that predicates on any
        of them skip files; paths among them get bounds in the log before all others. Nulls come first; of a path
        without a cast, numbers, strings, times and other values each have their place. Large tables are sorted on local
        disk in process, and by a shuffle on Spark. A clustered table is ordered by its clustering columns: new files,
        and those that mica clustered before.

        The commit changes no data: appends go on beside it. Errors: NOT_A_PARTITION_PREDICATE; ConflictError where
        another writer removed one of the files meanwhile; then the table is as it was.
        """
        return self._changed(optimize(self._snapshot.refresh(), where, size_of(target_file_size), spark, zorder_by))

    @takes(schema=SHREDDING, where=TEXT, spark=SESSION)
    def reshred(self, schema: Any = None, where: str | None = None, *, spark: SparkSession | None = None) -> Commit:
        """Rewrites the Variants of existing files with another shredding schema; values stay the same. `where` chooses
        partitions.

        `schema` maps Variant columns to schemas as `shredding` of `append` does (None or VARIANT: unshredded; columns
        that it leaves out stay as they are), or is the schema itself if there is one Variant column. Without it the
        schema is inferred from a sample of the rows of all files; where the table does not allow shredding
        (`delta.enableVariantShredding`), all columns become unshredded, which dropping the feature needs.

        Files that have the schema already are not rewritten; if all have it, nothing is committed. The commit changes
        no data: appends go on beside it. Errors: UNKNOWN_COLUMN, INVALID_SHREDDING_SCHEMA, FEATURE_NEEDED for a schema
        in a table that does not allow shredding, NOT_A_PARTITION_PREDICATE; ConflictError as for `optimize`.
        """
        return self._changed(reshred(self._snapshot.refresh(), schema, where, spark))

    @takes(dry_run=FLAG, enforce_retention=FLAG)
    def vacuum(
        self, retention: Retention | None = None, *, dry_run: bool = False, enforce_retention: bool = True
    ) -> Vacuum:
        """Deletes the files in the table's directory that no version within `retention` uses: removed files, their
        deletion vectors, change files, and leftovers of killed writers. Older versions cannot be read afterwards.

        `retention` is a number of hours, a text (`"7 days"`) or a timedelta; None is the table's
        `delta.deletedFileRetentionDuration` (by default a week). A shorter one is refused unless `enforce_retention` is
        False. `dry_run` deletes nothing and lists what would be deleted. A vacuum makes two commits, as delta-spark
        does. Errors: RETENTION_TOO_SHORT, INVALID_ARGUMENT, PERMISSION_DENIED.
        """
        done = vacuum(self._snapshot.refresh(), retention, dry_run=dry_run, enforce_retention=enforce_retention)
        assert done.snapshot is not None
        self._snapshot = done.snapshot
        return done

    @takes(version=COUNT, timestamp=TIME)
    def restore(self, version: int | None = None, timestamp: Timestamp | None = None) -> Restore:
        """Restores the content of an older version as the newest one, in one commit; nothing is rewritten. Schema,
        properties and domains are restored too; the protocol is never lowered.

        Errors: VERSION_NOT_FOUND, VERSION_EXPIRED, TIMESTAMP_OUT_OF_RANGE, NOT_FOUND if files of that version were
        vacuumed, ConflictError if another writer changed the table meanwhile. The table is then unchanged.
        """
        if version is None and timestamp is None:
            raise UserError("INVALID_ARGUMENT", "restore needs a version", hint="Give version= or timestamp=.")
        newest = self._snapshot.refresh()
        done = restore(newest, load(newest.storage, version, timestamp))
        self._snapshot = done.snapshot
        return done

    def checkpoint(self) -> Table:
        """Writes a checkpoint of this version and removes expired log files (`delta.logRetentionDuration`,
        `delta.enableExpiredLogCleanup`). Commits do both automatically, every `delta.checkpointInterval` versions.
        Source: PROTOCOL.md, "Checkpoints", "Metadata Cleanup".
        """
        write_checkpoint(alter.writable(self._snapshot))
        # The newest version decides what may go.
        clean_log(self._snapshot.refresh(), now=int(time.time() * 1000))
        return self

    def _written(self, commit: Commit, on: Any) -> Commit:
        """Moves to the version of a write, and compacts where the table asks for it, on the engine of `on`."""
        return self._changed(compact.afterwards(commit, engines.of(on)))

    def _changed(self, commit: Commit) -> Commit:
        assert commit.snapshot is not None
        self._snapshot = commit.snapshot
        return commit

    def _moved(self, snapshot: Snapshot) -> Table:
        self._snapshot = snapshot
        return self

    def _write(
        self, data: Any, shredding: Any, evolves: bool, *, overwrite: bool, where: str | None, txn: Txn | None
    ) -> Commit:
        asked = checked(txn)

        def write() -> Commit:
            target = open_target(
                self._snapshot.storage, self.schema, (), mode="overwrite" if overwrite else "append",
                properties={}, snapshot=self._snapshot, where=where,
            )  # fmt: skip
            target.applications = dict([asked] if asked is not None else ())
            return write_rows(target, data, shredding, schema_evolution=evolves)

        return self._written(once(self._snapshot.storage, self._snapshot, asked, write), data)
