"""What a table is, and its rows: the part of `Table` that changes nothing.

The rule: a table is at one version. A write through it moves it to the version that it wrote; writes of others become
visible when the table is opened again or refreshed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from mica.arguments import (
    COUNT,
    OPTIONS,
    PATH,
    TEXT,
    TIME,
    Kind,
    takes,
)
from mica.errors import MicaError, UserError
from mica.log.actions import Metadata, Protocol
from mica.log.at_path import at_path
from mica.log.folders import no_table
from mica.log.snapshot import Snapshot, exists, load
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.schema.types import StructType
from mica.storage import Storage
from mica.write.commit import Commit

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

    from mica.log.time_travel import Timestamp


#: Held while a Table moves to another version: threads may share one.
_MOVES = threading.Lock()

_SNAPSHOT = Kind("a Snapshot (Table.open opens the table at a path)", lambda v: isinstance(v, Snapshot))


def _stands(moved: Snapshot) -> bool:
    """Whether a version stays the Table's when an older one comes: another thread has moved it meanwhile, and goes on
    reading what it wrote. If the table was recreated, the older one is right."""
    try:
        return moved.stands()
    except MicaError:  # a commit that is done must not look as if it failed
        return True


class OpenedTable:
    """A Delta table at one version: what it is, and its rows."""

    @takes(snapshot=_SNAPSHOT)
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
    ) -> Self:
        """Opens the table at `path`: its newest version, `version`, or the one that was current at `timestamp`. Where
        no table is at the path, `path@v3` and `path@20260131120000000` (`yyyyMMddHHmmssSSS`, in UTC) are that version
        and time of `path`, as in delta-spark.

        Errors: TABLE_NOT_FOUND, VERSION_NOT_FOUND, TIMESTAMP_OUT_OF_RANGE, INVALID_ARGUMENT for two versions. Unknown
        reader features are refused only when rows or files are read, so that metadata can be shown.
        """
        storage, asked = at_path(path, storage_options)
        if asked is not None:
            if version is not None or timestamp is not None:
                from mica.log.time_travel import both_given

                raise both_given()
            version, timestamp = (asked, None) if isinstance(asked, int) else (None, asked)
        try:
            return cls(load(storage, version, timestamp))
        except UserError as error:
            if error.code != "TABLE_NOT_FOUND":
                raise
        raise no_table(storage, asks=True)

    @staticmethod
    @takes(path=PATH, storage_options=OPTIONS)
    def exists(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> bool:
        """Whether there is a Delta table at `path`: a log with a commit or a checkpoint. Only the names of log files
        are listed, so this is True also for a table that cannot be opened (a newer feature, a damaged log).

        Errors: those of the storage, such as PERMISSION_DENIED.
        """
        return exists(Storage.open(path, storage_options))

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
        return Scan(self._source).file_uris()

    @takes(timezone=TEXT)
    def partitions(self, *, timezone: str = "UTC") -> pa.Table:
        """The partitions that have files, sorted: the partition columns with their types, then `files`, `bytes` (of the
        data files) and `rows` (BIGINT each). `rows` excludes deleted rows; it is null if the statistics of a file have
        no row count. A table without partition columns is one partition.

        No data file is opened. `timezone` is that of timestamps that the log has without one.

        Errors: INVALID_PARTITION_VALUE. Source: PROTOCOL.md, "Partition Value Serialization".
        """
        return self._source.partitions(timezone)

    @takes(limit=COUNT)
    def history(self, limit: int | None = None) -> pa.Table:
        """The commits, newest first: version, timestamp, operation, parameters, metrics, engine."""
        from mica.log.history import history

        return history(self._snapshot.storage, limit=limit, opened=self._snapshot)

    def refresh(self) -> Self:
        """Moves this Table to the newest version and returns it."""
        self._snapshot = self._snapshot.refresh()
        return self

    @property
    def _snapshot(self) -> Snapshot:
        return self._source.snapshot

    @_snapshot.setter
    def _snapshot(self, snapshot: Snapshot) -> None:
        while (now := self._source).snapshot is not snapshot:
            if snapshot.version < now.snapshot.version and _stands(now.snapshot):
                return
            with _MOVES:  # not while storage is asked: all Tables share the lock
                if self._source is now:
                    self._source = TableSource(snapshot)
                    return

    def __repr__(self) -> str:
        return f"Table({self.path!r}, version={self.version})"

    def _repr_html_(self) -> str:
        from mica.scan.pictured import table_page

        return table_page(self._source)

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

        Where rows are tracked (`delta.enableRowTracking`), both may name `_metadata.row_id`, the stable id of a row,
        and `_metadata.row_commit_version`, the version that inserted or last updated it, as in Spark. Elsewhere that is
        an error, FEATURE_NEEDED.

        `ansi` and `timezone` apply to reading in process; on Spark the session's ANSI mode and time zone apply, and no
        other setting changes what a text means. `spark` is the session that compares strings by collation during
        planning (`to_df` uses its own). Without a session only UTF8_LCASE comparisons skip files; `explain()` says so.

        Errors: NO_COLUMNS for a table that has none yet, as of delta-spark.
        """
        if not self.schema.fields:
            raise UserError(
                "NO_COLUMNS",
                f"{self.path} has no columns yet, and so no rows to read",
                hint="Add some by ALTER TABLE … ADD COLUMNS, or append rows with schema evolution.",
            )
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
        CHANGES_UNREADABLE if its files name columns otherwise (column mapping was dropped, or the table made anew);
        VERSION_NOT_FOUND; VERSION_EXPIRED if the log of a version was cleaned up; TIMESTAMP_OUT_OF_RANGE; NOT_FOUND,
        when rows are read, if a file was vacuumed.
        Source: PROTOCOL.md, "Change Data Files"; delta-spark's `readChangeFeed`.
        """
        from mica.scan.changes import changes

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
        """The whole table as a Spark DataFrame; see `Scan.to_df`. In a session that `mica.enable` was called for, its
        actions skip files by what is filtered later."""
        from mica.engines.spark.doors import is_enabled
        from mica.table import marked

        frame = self.scan().to_df(spark)
        session = frame.sparkSession
        return marked.of_table(session, frame, self.snapshot) if is_enabled(session) else frame

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The whole table as a DuckDB relation; see `Scan.to_duckdb`."""
        return self.scan().to_duckdb(connection)

    # --- moving to another version -----------------------------------------------------------------------------------

    def _changed(self, commit: Commit) -> Commit:
        assert commit.snapshot is not None
        self._snapshot = commit.snapshot
        return commit

    def _moved(self, snapshot: Snapshot) -> Self:
        self._snapshot = snapshot
        return self
