"""What changes a table's schema, properties, features and files, and no values of its rows.

The rule: every call makes commits of its own, or none if there is nothing to do; the work is in `maintain`, which is
imported when it is called: a process that only reads does not wait for it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from mica.arguments import (
    ALTERATIONS,
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
    takes,
)
from mica.errors import UserError
from mica.table.opened import OpenedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.log.time_travel import Timestamp
    from mica.maintain.fsck import Fsck
    from mica.maintain.restore import Restore
    from mica.maintain.vacuum import Retention, Vacuum
    from mica.write.commit import Commit
    from mica.write.once import Txn


class ShapedTable(OpenedTable):
    """What changes a table's schema, properties and files, and no row."""

    @takes(properties=CHANGES)
    def set_properties(self, properties: Mapping[str, str | None]) -> Self:
        """Sets properties (None removes one) and adds the table features that they need, in one commit.

        Errors: UNKNOWN_TABLE_PROPERTY, INVALID_PROPERTY; UNSUPPORTED_WRITER_FEATURE for one that mica cannot honour.
        """
        from mica.maintain import alter

        return self._moved(alter.set_properties(self._snapshot, properties))

    @takes(columns=TEXT, into=TEXT, first=FLAG, after=TEXT)
    def add_columns(
        self, columns: str, *, into: str | None = None, first: bool = False, after: str | None = None
    ) -> Self:
        """Adds columns, given as Spark DDL: `"title STRING COLLATE de, n INT"`, or fields of a struct: `into` is its
        path (`s`, `l.element`, `m.value`). They come last, `first`, or `after` another, and are null in existing rows.
        As in SQL, the text may say it of each: `"a INT FIRST, b INT AFTER a, s.x STRING"`.

        Errors: INVALID_DDL, DUPLICATE_COLUMN, UNKNOWN_COLUMN, MISSING_COLUMN for a column that is NOT NULL, has a
        default or is generated; TYPE_MISMATCH where `into` is no struct; INVALID_ARGUMENT for two places of one column.
        """
        from mica.maintain import columns as columns_of

        return self._moved(columns_of.add_columns(self._snapshot, columns, into, columns_of.Position(first, after)))

    @takes(columns=TEXT)
    def replace_columns(self, columns: str) -> Self:
        """Gives the table its columns in the order of the DDL, with others that it names: these are null in existing
        rows. As in SQL, none goes or gets another type; comments change where the text has one, and NOT NULL goes.

        Errors: INVALID_DDL, DUPLICATE_COLUMN, INCOMPATIBLE_TYPE, INVALID_ARGUMENT for a column that the text leaves
        out, MISSING_COLUMN as for `add_columns`.
        """
        from mica.maintain.replace_columns import replace_columns

        return self._moved(replace_columns(self._snapshot, columns))

    @takes(columns=NAMES, if_exists=FLAG)
    def drop_columns(self, columns: Sequence[str], *, if_exists: bool = False) -> Self:
        """Drops columns and fields (`s.x`, `l.element.x`). Data files stay as they are: the table needs column mapping
        (`set_properties({"delta.columnMapping.mode": "name"})`), unless it has no files.

        Errors: NEEDS_COLUMN_MAPPING, UNKNOWN_COLUMN, unless `if_exists`, COLUMN_IN_USE for one that a constraint or a
        generated column uses, INVALID_PARTITION_COLUMN, INVALID_ARGUMENT for the last one.
        """
        from mica.maintain import columns as columns_of

        return self._moved(columns_of.drop_columns(self._snapshot, columns, if_exists=if_exists))

    @takes(column=TEXT, type=TEXT, nullable=FLAG, comment=TEXT, default=TEXT, first=FLAG, after=TEXT, spark=SESSION)
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
        spark: SparkSession | None = None,
    ) -> Self:
        """Changes a column or field (`s.x`): its `type` to a wider one, whether it is `nullable`, its `comment` and its
        `default` for new rows (SQL; an empty text removes either), its place (`first`, or `after` another one). What
        is inside arrays and maps (`l.element`, `m.key`, `m.value`) has only a type. None leaves something as
        it is. Data files stay as they are; wider types need `delta.enableTypeWidening`, and NOT NULL is checked against
        the rows. Defaults and the table's other rules are judged with the time zone and ANSI mode of `spark` if it is
        given.

        Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE, FEATURE_NEEDED, COLUMN_IN_USE, CONSTRAINT_VIOLATED; TYPE_MISMATCH for
        a generated column that becomes wider than its expression; INVALID_ARGUMENT for a default of what is no column;
        UNSUPPORTED_EXPRESSION for NOT NULL inside of arrays and maps. Source: PROTOCOL.md, "Type Widening", "Default
        Columns".
        """
        from mica import engines
        from mica.maintain import columns as columns_of

        ansi, timezone = engines.of(spark).settings()
        change = columns_of.ColumnChange(type, nullable, comment, default, columns_of.Position(first, after))
        return self._moved(columns_of.alter_columns(self._snapshot, {column: change}, ansi=ansi, timezone=timezone))

    @takes(changes=ALTERATIONS, spark=SESSION)
    def alter_columns(self, changes: Mapping[str, Mapping[str, Any]], *, spark: SparkSession | None = None) -> Self:
        """Changes several columns in one commit, each as `alter_column` does:
        `{"id": {"type": "BIGINT"}, "s.x": {"comment": "the x", "first": True}}`. Errors: those of `alter_column`.
        """
        from mica import engines
        from mica.maintain import columns as columns_of

        ansi, timezone = engines.of(spark).settings()
        found = {column: columns_of.ColumnChange.of(given) for column, given in changes.items()}
        return self._moved(columns_of.alter_columns(self._snapshot, found, ansi=ansi, timezone=timezone))

    @takes(column=TEXT)
    def sync_identity(self, column: str) -> Self:
        """Lets an identity column count on from the values that its rows have, as after rows with numbers of their own
        (GENERATED BY DEFAULT). The rows are read; numbers that were given out once are not given again.

        Errors: UNKNOWN_COLUMN; INVALID_ARGUMENT for another column; ARITHMETIC_OVERFLOW; ConflictError if another
        writer changed the table meanwhile. Source: PROTOCOL.md, "Identity Columns".
        """
        from mica.maintain import identity

        return self._moved(identity.sync_identity(self._snapshot, column))

    @takes(column=TEXT, name=TEXT)
    def rename_column(self, column: str, name: str) -> Self:
        """Renames a column, or a field of a struct (`s.name`); it keeps its collations.

        Data files stay as they are: the table needs column mapping
        (`set_properties({"delta.columnMapping.mode": "name"})`), unless it has no files. Errors: NEEDS_COLUMN_MAPPING,
        UNKNOWN_COLUMN, DUPLICATE_COLUMN, COLUMN_IN_USE, INVALID_PARTITION_COLUMN.
        """
        from mica.maintain import columns as columns_of

        return self._moved(columns_of.rename_column(self._snapshot, column, name))

    @takes(name=TEXT)
    def add_feature(self, name: str) -> Self:
        """Adds a table feature to the protocol, with those that it needs. Errors: UNKNOWN_TABLE_PROPERTY for one that
        mica does not know, UNSUPPORTED_WRITER_FEATURE. Source: PROTOCOL.md, "Table Features".
        """
        from mica.maintain import features

        return self._moved(features.add_feature(self._snapshot, name))

    @takes(name=TEXT, truncate_history=FLAG)
    def drop_feature(self, name: str, truncate_history: bool = False) -> Self:
        """Drops a table feature: files that use it are rewritten first (deletion vectors are applied, mapped columns
        get their names, shredded Variants are unshredded), in a commit that changes no data.

        For a feature of readers the history still needs it. It stays, protected by the feature `checkpointProtection`;
        or, with `truncate_history`, it is deleted if it is older than
        `delta.dropFeatureTruncateHistory.retentionDuration` (24 hours).

        Errors: UNKNOWN_FEATURE, FEATURE_NOT_REMOVABLE, FEATURE_IN_HISTORY with the time to call it again;
        ConflictError if another writer changed the table meanwhile.
        """
        from mica.maintain import features

        self.refresh()
        try:
            return self._moved(features.drop_feature(self._snapshot, name, truncate_history=truncate_history))
        except UserError:
            self.refresh()  # what used the feature may be gone already
            raise

    @takes(name=TEXT, expr=TEXT, spark=SESSION)
    def add_constraint(self, name: str, expr: str, *, spark: SparkSession | None = None) -> Self:
        """Adds the CHECK constraint `name`: from now on `expr` must be true for every row, whatever writes it; NULL
        violates it, as in delta-spark. Existing rows are checked, with the time zone and ANSI mode of `spark` if it is
        given; files whose bounds prove them are not read. Engines that do not know a function of it, as Spark 4.2
        `variant_set`, cannot write the table then.

        Errors: CONSTRAINT_VIOLATED with the values of a row; CONSTRAINT_EXISTS; INVALID_NAME; those of a scan's
        `where`; ConflictError if another writer changed the table meanwhile. Source: PROTOCOL.md, "CHECK Constraints".
        """
        from mica import engines
        from mica.maintain import constraints

        ansi, timezone = engines.of(spark).settings()
        return self._moved(constraints.add_constraint(self._snapshot, name, expr, ansi, timezone))

    @takes(name=TEXT, if_exists=FLAG)
    def drop_constraint(self, name: str, *, if_exists: bool = False) -> Self:
        """Drops a CHECK constraint. Errors: UNKNOWN_CONSTRAINT, unless `if_exists`."""
        from mica.maintain import constraints

        return self._moved(constraints.drop_constraint(self._snapshot, name, if_exists=if_exists))

    @takes(column=TEXT, collation=TEXT)
    def set_collation(self, column: str, collation: str | None = None) -> Self:
        """Sets the collation of a string column (None: compare bytes). No data is rewritten; statistics of other
        collations are not used for comparisons by the new one.

        `column` may be a path into structs, arrays and maps (`s.name`, `tags.element`, `m.key`); `collation` is Spark's
        name (`UNICODE_CI`, `de`) or an identifier (`icu.de`). Errors: UNKNOWN_COLUMN, UNKNOWN_COLLATION,
        INVALID_PARTITION_COLUMN, COLUMN_IN_USE for one that a constraint or a generated column uses.
        """
        from mica.maintain import alter

        return self._moved(alter.set_collation(self._snapshot, column, collation))

    @takes(columns=NAMES)
    def cluster_by(self, columns: Sequence[str]) -> Self:
        """Clusters the table by these columns (`s.x`: a field), or by none: `optimize` orders its files by them.

        No data is rewritten. Errors: UNKNOWN_COLUMN; INVALID_ARGUMENT for a partitioned table, more than 4 columns, and
        a column without bounds in the log.
        """
        from mica.maintain import cluster

        return self._moved(cluster.cluster_by(self._snapshot, columns))

    @takes(columns=NAMES, spark=SESSION, txn=TXN)
    def restats(
        self, columns: Sequence[str] | None = None, spark: SparkSession | None = None, *, txn: Txn | None = None
    ) -> Commit:
        """Adds or refreshes bounds of collated columns and variant paths of existing files; no data is rewritten.
        `columns` (None: all) are collated or Variant columns.

        Collated bounds need the comparator of `spark`; variant paths need no session. Where no bound changes, nothing
        is committed, but for the version of a `txn`, which is as in `Table.append`. Errors: NEEDS_SPARK,
        UNKNOWN_COLUMN, ConflictError if another writer removed a file meanwhile.
        """
        from mica.maintain.restats import restats
        from mica.write.once import checked

        return self._changed(restats(self._snapshot, columns, spark, checked(txn)))

    @takes(where=TEXT, zorder_by=NAMES, full=FLAG, purge=FLAG, target_file_size=SIZE, spark=SESSION, txn=TXN)
    def optimize(
        self,
        where: str | None = None,
        *,
        zorder_by: Sequence[str] | None = None,
        full: bool = False,
        purge: bool = False,
        target_file_size: int | str | None = None,
        spark: SparkSession | None = None,
        txn: Txn | None = None,
    ) -> Commit:
        """Joins the small files of each partition into files of about `target_file_size` (bytes, or a text such as
        `"128MB"`; None: `delta.targetFileSize`) and writes files with deletion vectors without their deleted rows.
        `where` chooses partitions. Rows keep their order, and each new file gets a shredding schema of its own rows.
        Where no file is worth it, nothing is committed, but for the version of a `txn`, which is as in `Table.append`.

        `zorder_by` names columns and Variant paths (`["day", "v:user.id", "v:time::timestamp"]`). All files of the
        chosen partitions are then rewritten, their rows ordered along a curve through these, so that predicates on any
        of them skip files; paths among them get bounds in the log before all others. Nulls come first; of a path
        without a cast, numbers, strings, times and other values each have their place. Large tables are sorted on local
        disk in process, and by a shuffle on Spark. A clustered table is ordered by its clustering columns: new files,
        and those that mica clustered before; with `full` all files, as after other columns were chosen.

        `purge` also rewrites files that hold columns which were dropped, without these, as delta-spark's REORG TABLE …
        APPLY (PURGE). The files of older versions hold them until `vacuum`.

        The commit changes no data: appends go on beside it. Errors: NOT_A_PARTITION_PREDICATE; INVALID_ARGUMENT for
        `where` or `zorder_by` of a clustered table and `full` of another one; UNKNOWN_COLUMN, TYPE_MISMATCH and
        INVALID_PARTITION_COLUMN for columns of `zorder_by`; ConflictError where another writer removed one of the files
        meanwhile; then the table is as it was.
        """
        from mica.maintain.optimize import optimize
        from mica.write.ingest_options import size_of
        from mica.write.once import checked

        size, once = size_of(target_file_size), checked(txn)
        return self._changed(
            optimize(self._snapshot.refresh(), where, size, spark, zorder_by, once, full=full, purge=purge)
        )

    @takes(schema=SHREDDING, where=TEXT, spark=SESSION, txn=TXN)
    def reshred(
        self,
        schema: Any = None,
        where: str | None = None,
        *,
        spark: SparkSession | None = None,
        txn: Txn | None = None,
    ) -> Commit:
        """Rewrites the Variants of existing files with another shredding schema; values stay the same. `where` chooses
        partitions.

        `schema` maps Variant columns to schemas as `shredding` of `append` does (None or VARIANT: unshredded; columns
        that it leaves out stay as they are), or is the schema itself if there is one Variant column. Without it, or by
        rules, the schema is inferred from a sample of the rows of all files; where the table does not allow shredding
        (`delta.enableVariantShredding`), all columns become unshredded, which dropping the feature needs.

        Files that have the schema already are not rewritten; if all have it, nothing is committed, but for the version
        of a `txn`, which is as in `Table.append`. The commit changes no data: appends go on beside it. Errors:
        UNKNOWN_COLUMN, INVALID_SHREDDING_SCHEMA, FEATURE_NEEDED for a schema in a table that does not allow shredding,
        NOT_A_PARTITION_PREDICATE; ConflictError as for `optimize`.
        """
        from mica.maintain.reshred import reshred
        from mica.write.once import checked

        return self._changed(reshred(self._snapshot.refresh(), schema, where, spark, checked(txn)))

    @takes(dry_run=FLAG, enforce_retention=FLAG, lite=FLAG)
    def vacuum(
        self,
        retention: Retention | None = None,
        *,
        dry_run: bool = False,
        enforce_retention: bool = True,
        lite: bool = False,
    ) -> Vacuum:
        """Deletes the files in the table's directory that no version within `retention` uses: removed files, their
        deletion vectors, change files, and leftovers of killed writers. Older versions cannot be read afterwards.

        `retention` is a number of hours, a text (`"7 days"`) or a timedelta; None is the table's
        `delta.deletedFileRetentionDuration` (by default a week). A shorter one is refused unless `enforce_retention` is
        False. `dry_run` deletes nothing and lists what would be deleted. A vacuum makes two commits, as delta-spark
        does. With `lite` only files go that the log says were removed, as far back as it goes: leftovers of killed
        writers stay. Errors: RETENTION_TOO_SHORT, INVALID_ARGUMENT, PERMISSION_DENIED.
        """
        from mica.maintain.vacuum import vacuum

        snapshot = self._snapshot.refresh()
        done = vacuum(snapshot, retention, dry_run=dry_run, enforce_retention=enforce_retention, lite=lite)
        assert done.snapshot is not None
        self._snapshot = done.snapshot
        return done

    @takes(dry_run=FLAG)
    def fsck(self, *, dry_run: bool = False) -> Fsck:
        """Leaves files of the newest version out of the table that are gone: deleted by hand, by a rule of the bucket,
        or lost. Their rows are lost with them; all others can be read again. A file whose deletion vector is gone goes,
        too, since nobody knows which of its rows are deleted; the file itself stays until a vacuum.

        Put files back that there is a copy of, or `restore` an older version, before: a fsck does not look for either.
        `dry_run` commits nothing and lists what would go. The change feed of the commit cannot be read: it would have
        the lost rows. Errors: APPEND_ONLY; ConflictError if another writer removed one of the files meanwhile; those of
        the store, if it does not say whether a file is there. The table is then unchanged.
        Source: Databricks' FSCK REPAIR TABLE.
        """
        from mica.maintain.fsck import fsck

        done = fsck(self._snapshot.refresh(), dry_run=dry_run)
        assert done.snapshot is not None
        self._snapshot = done.snapshot
        return done

    @takes(version=COUNT, timestamp=TIME, txn=TXN)
    def restore(
        self, version: int | None = None, timestamp: Timestamp | None = None, *, txn: Txn | None = None
    ) -> Restore:
        """Restores the content of an older version as the newest one, in one commit; nothing is rewritten. Schema,
        properties and clustering are restored too; the protocol is never lowered. `txn` is as in `Table.append`, and
        `Restore.repeated` says that it was found.

        Errors: VERSION_NOT_FOUND, VERSION_EXPIRED, TIMESTAMP_OUT_OF_RANGE, INVALID_ARGUMENT without either, NOT_FOUND
        if files of that version were vacuumed, ConflictError if another writer changed the table meanwhile. The table
        is then unchanged.
        """
        from mica.maintain.restore import restore
        from mica.write.once import checked

        if version is None and timestamp is None:
            raise UserError("INVALID_ARGUMENT", "restore needs a version", hint="Give version= or timestamp=.")
        done = restore(self._snapshot.refresh(), version, timestamp, checked(txn))
        self._snapshot = done.snapshot
        return done

    @takes(
        target=PATH, is_shallow=FLAG, replace=FLAG, properties=TEXTS, version=COUNT, timestamp=TIME,
        storage_options=OPTIONS,
    )  # fmt: skip
    def clone(
        self,
        target: str | os.PathLike[str],
        is_shallow: bool = True,
        replace: bool = False,
        properties: Mapping[str, str] | None = None,
        *,
        version: int | None = None,
        timestamp: Timestamp | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> Self:
        """Makes a shallow clone at `target` and returns it: a table of its own that has the rows of this version, or of
        `version` or the one current at `timestamp`, in one commit. No data file is read or copied: the clone names
        those of its source, and a change of either table is none of the other's.

        Schema, partitions, clustering, constraints, features and properties are the source's; `properties` change some.
        History, change feed, `txn` and ids of rows start anew. `replace` makes a table that has no rows a clone; its
        older versions stay. `storage_options` are those of the target, without any this table's. A vacuum of the clone
        deletes no file of the source, but one of the source may delete files that only the clone still needs (NOT_FOUND
        when they are read).

        Errors: TABLE_EXISTS; VERSION_NOT_FOUND, VERSION_EXPIRED, TIMESTAMP_OUT_OF_RANGE; EXTERNAL_PATH if the clone's
        log may not name the source's files (another store, without `allow_external_paths`); INVALID_ARGUMENT for a
        folder inside the source's, or around it, and for `is_shallow=False`; those of `set_properties`.
        Source: delta-spark's `DeltaTable.clone`.
        """
        from mica.log.snapshot import load
        from mica.maintain.clone import clone

        if not is_shallow:
            raise UserError(
                "INVALID_ARGUMENT",
                "a clone with is_shallow=False would be a deep one, which does not exist here (nor in delta-spark)",
                hint="Write the rows to another table; in SQL, CREATE TABLE … USING mica AS SELECT ….",
            )
        pinned = version is not None or timestamp is not None
        source = load(self._snapshot.storage, version, timestamp) if pinned else self._snapshot
        return type(self)(clone(source, source.storage.like(target, storage_options), properties, replaces=replace))

    def checkpoint(self) -> Self:
        """Writes a checkpoint of this version and removes expired log files (`delta.logRetentionDuration`,
        `delta.enableExpiredLogCleanup`). Commits do both automatically, every `delta.checkpointInterval` versions.
        Source: PROTOCOL.md, "Checkpoints", "Metadata Cleanup".
        """
        from mica.log.checkpoint_writer import write_checkpoint
        from mica.log.cleanup import clean_log
        from mica.maintain import alter

        write_checkpoint(alter.writable(self._snapshot))
        # The newest version decides what may go.
        clean_log(self._snapshot.refresh(), now=int(time.time() * 1000))
        return self
