"""What makes tables, and what changes their rows: append, overwrite, delete, update, merge, erase.

The rule: every call changes rows in one commit or none, and moves the table to the version that it wrote. `maintain`
and `write` are imported when they are called: a process that only reads does not wait for them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from mica.arguments import (
    EXPRESSIONS,
    FLAG,
    NAMES,
    OPTIONS,
    PATH,
    SESSION,
    SHREDDING,
    TEXT,
    TEXTS,
    TXN,
    Mode,
    one_of,
    takes,
)
from mica.errors import UserError, delta_names
from mica.errors.delta_names import with_names_of
from mica.log.snapshot import load
from mica.storage import Storage
from mica.table.opened import OpenedTable
from mica.table.shaped import ShapedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.write.commit import Commit
    from mica.write.merge import Merge
    from mica.write.once import Txn
    from mica.write.replace_matching import Matching


@with_names_of(delta_names.TABLE)
class Table(ShapedTable):
    """A Delta table at one version. Use `Table.open` or `Table.create` to get one."""

    @classmethod
    @takes(path=PATH, partition_by=NAMES, properties=TEXTS, storage_options=OPTIONS, cluster_by=NAMES, spark=SESSION)
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Any,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        mode: Mode = "error",
        storage_options: Mapping[str, str] | None = None,
        *,
        data: Any = None,
        cluster_by: Sequence[str] = (),
        spark: SparkSession | None = None,
        if_exists: str | None = None,
    ) -> Table:
        """Creates a table. `schema` is Spark DDL, a StructType or a pyarrow schema. It is empty, or has the rows of
        `data` (as in `append`) in the same commit. `cluster_by`: as for `Table.cluster_by`.

        `mode` says what to do if the table exists: `error` refuses, `ignore` opens it as it is, `overwrite` replaces
        its rows and its schema: older versions stay readable, and properties stay that are not named, but those of
        columns which are gone. `if_exists` is the deprecated name of `mode`. Generated columns, defaults and
        constraints are judged with the time zone and ANSI mode of `spark` if it is given.

        Errors: TABLE_EXISTS, INVALID_DDL, INVALID_PARTITION_COLUMN, INVALID_NAME, UNSUPPORTED_TYPE; those of `append`
        for `data`, of `Table.set_properties` and of `Table.cluster_by`.
        """
        from mica import engines
        from mica.maintain.create import base_of, create

        if if_exists is not None:
            warnings.warn("if_exists is deprecated: use mode", DeprecationWarning, stacklevel=3)
            mode = cast("Mode", if_exists)
        one_of("mode", mode, ("error", "ignore", "overwrite"))
        base, judged = base_of(Storage.open(path, storage_options)), engines.of(spark).settings()
        return cls(create(base, schema, partition_by, properties, mode, data, cluster_by, *judged))

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
        n INT"`) and maybe comments, otherwise they are inferred. All columns become nullable; structs get the fields of
        all files; strings get no collation, whatever Spark's schema in the footers says, so that every writer can go
        on (`alter_column` gives one). Files whose names begin with `_` or `.` are left out. With `spark` the footers
        are read by a job.

        Errors: TABLE_EXISTS; NOT_FOUND without a Parquet file; INCOMPATIBLE_FILES; INVALID_PARTITION_COLUMN,
        INVALID_PARTITION_VALUE; UNSUPPORTED_TYPE, also for what Spark cannot read in a table's files: nanoseconds, half
        floats, columns without a type, Variants of the early layout (`convert_files` rewrites them). The folder is then
        unchanged.
        """
        from mica.maintain.adopt import convert_to_delta

        return cls(convert_to_delta(os.fspath(path), partition_by, properties, storage_options, spark))

    @takes(application=TEXT, schema_evolution=FLAG)
    def foreach_batch(self, application: str, *, schema_evolution: bool = False) -> Callable[[Any, int], None]:
        """Returns what `DataStreamWriter.foreachBatch` calls: it appends each batch to this table, once.

            events.writeStream.foreachBatch(t.foreach_batch("events")).option("checkpointLocation", …).start()

        `application` names the stream in the table (`txn`): a batch that is repeated after a crash is found there. Keep
        the name for one checkpoint folder. Errors: those of `append`; they end the stream.
        """
        from mica.write.once import checked

        checked((application, 0))
        return partial(_append_batch, self._snapshot.storage, application, schema_evolution)

    # --- rows --------------------------------------------------------------------------------------------------------

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
        the column unshredded) or rules (`features.*: skip`), or is the schema itself if there is one Variant column, or
        rules for all. Other schemas are inferred per file, as the rules of the table say (`mica.shredding`).

        With `schema_evolution` columns and nested fields that the table lacks are added to it, in the same commit: in
        structs, arrays of structs and values of maps. They are null in existing rows.

        `txn=(application, version)` makes the write happen once: the commit records it, and if the table has this
        version of the application, or a later one, nothing is written and `Commit.repeated` is True (delta-spark's
        `txnAppId` and `txnVersion`). All writes take it.

        Errors: UNKNOWN_COLUMN, INCOMPATIBLE_TYPE, INVALID_VALUE, INVALID_JSON, NULL_IN_NOT_NULL_COLUMN,
        CONSTRAINT_VIOLATED, IDENTITY_GIVEN; the table is then unchanged.
        """
        return self._write(data, shredding, schema_evolution, overwrite=False, txn=txn)

    @takes(
        where=TEXT, using=NAMES, on=TEXT, source_alias=TEXT, target_alias=TEXT, shredding=SHREDDING,
        schema_evolution=FLAG, txn=TXN,
    )  # fmt: skip
    def overwrite(
        self,
        data: Any,
        where: str | None = None,
        *,
        using: Sequence[str] | None = None,
        on: str | None = None,
        source_alias: str = "source",
        target_alias: str = "target",
        shredding: Any = None,
        schema_evolution: bool = False,
        txn: Txn | None = None,
    ) -> Commit:
        """Replaces all rows, or those for which `where` is true (delta-spark's `replaceWhere`). `where` must be true
        for every new row too. The old rows are deleted as by `delete`: no file is read where partition columns decide.
        `data` and `schema_evolution` are as in `append`; `data` may be a scan of this table.

        With `using` they replace the rows that have the same values in these columns as one of them, as `=` says it
        (delta-spark's `replaceUsing`): a key that comes again brings its new rows, one that does not keeps its old
        ones, and a NULL replaces nothing. With `on` they replace those for which this condition on both is true, as in
        `merge` (`replaceOn`). Only files that can hold one of the keys are read, as in `merge`.

        Errors: those of `append` and of a scan's `where`; ROWS_OUTSIDE_OVERWRITE; APPEND_ONLY; MISSING_COLUMN for rows
        without a column of `using`, UNKNOWN_COLUMN and TYPE_MISMATCH for one that does not match; INVALID_ARGUMENT for
        `using` or `on` beside `where`; ConflictError if another writer changed these files, or added rows that might
        match. The table is then unchanged.
        """
        if using is not None or on is not None:
            from mica.write.replace_matching import Matching

            if using is not None and not using:
                raise UserError.bad_value("using", "[]", "a list of one column at least")
            others = {"where": where, "shredding": shredding, "on": on if using else None}
            by = Matching(using or (), on, source_alias, target_alias)
            return self._replace(data, by, schema_evolution, txn, others)
        return self._write(data, shredding, schema_evolution, overwrite=True, where=where, txn=txn)

    @takes(shredding=SHREDDING, schema_evolution=FLAG, txn=TXN)
    def dynamic_partition_overwrite(
        self, data: Any, *, shredding: Any = None, schema_evolution: bool = False, txn: Txn | None = None
    ) -> Commit:
        """Replaces the partitions of which `data` has rows, and leaves the others alone, as Spark does where
        `partitionOverwriteMode` is `dynamic`; all rows of a table without partitions. `data` and `schema_evolution` are
        as in `append`.

        Errors: those of `append`; ConflictError if another writer changed these partitions.
        """
        return self._write(data, shredding, schema_evolution, overwrite=True, dynamic=True, txn=txn)

    @takes(where=TEXT, spark=SESSION, txn=TXN)
    def delete(self, where: str | None = None, *, spark: SparkSession | None = None, txn: Txn | None = None) -> Commit:
        """Deletes the rows for which `where` is true (None: all rows). Files that cannot hold such a row are not read,
        files without one are not rewritten, and rewritten files keep their shredding. With
        `delta.enableDeletionVectors`, a file that keeps some rows gets a deletion vector instead of a rewrite. With
        `delta.enableChangeDataFeed` the changed rows are written to change files too, where the log alone does not tell
        them.

        Runs on `spark`, or on threads of this process; comparisons by ICU's collations take a session
        (docs/guides/collations.md). `Commit.metrics` has the metrics of delta-spark's history. If no row of this
        version matches, nothing is committed, but for the version of a `txn`; `refresh` first where others write.

        Errors: those of a scan's `where`; APPEND_ONLY; ConflictError if another writer changed the files, or added rows
        that might match. The table is then unchanged.
        """
        from mica.write.once import checked
        from mica.write.row_changes import delete

        return self._changed(delete(self._snapshot, where, spark, checked(txn)))

    @takes(set=EXPRESSIONS, where=TEXT, spark=SESSION, txn=TXN)
    def update(
        self,
        set: Mapping[str, str],  # noqa: A002 - the word of SQL and of delta-spark
        where: str | None = None,
        *,
        spark: SparkSession | None = None,
        txn: Txn | None = None,
    ) -> Commit:
        """Updates the rows for which `where` is true (None: all rows). `set` maps columns to expressions over the old
        row: `{"n": "n + 1", "kind": "v:kind::string"}`. A field of a struct can be set alone (`{"s.x": "1"}`); a null
        struct becomes one whose other fields are null. Files and deletion vectors are handled as in `delete`.

        Errors: those of `delete`; UNKNOWN_COLUMN; INCOMPATIBLE_TYPE for a value that needs a cast to the column's type;
        DUPLICATE_COLUMN for a column that is set twice, or with a field of it; NULL_IN_NOT_NULL_COLUMN. The table is
        then unchanged.
        """
        from mica.write.once import checked
        from mica.write.row_changes import update

        return self._written(update(self._snapshot, set, where, spark, checked(txn)), spark)

    @takes(path=TEXT, where=TEXT, spark=SESSION, txn=TXN)
    def erase(
        self, path: str, where: str | None = None, *, spark: SparkSession | None = None, txn: Txn | None = None
    ) -> Commit:
        """Erases a path of a Variant column, `v:user.email`, from every row, or from those for which `where` is true.

        Every file of the table that holds the path in such a row is rewritten; rows that deletion vectors hide go with
        it. Without `where` the new files name the path neither in shredded columns nor in bounds nor in metadata. Files
        that cannot hold it are not read. A change data feed has the changed rows as updates, without the path before
        and after. Files of older versions and their change files keep it until `vacuum`, the log's bounds and the
        predicates of commits until the log's cleanup, a clone's source until it is erased there: `mica.check_erased`
        and `mica check --erased` tell what holds it still.

        Errors: INVALID_PATH; those of `update`. The table is then unchanged.
        """
        from mica.write.erase import erase
        from mica.write.once import checked

        return self._changed(erase(self._snapshot, path, where, spark, checked(txn)))

    @takes(on=TEXT, source_alias=TEXT, target_alias=TEXT, schema_evolution=FLAG, spark=SESSION)
    def merge(
        self,
        source: Any,
        on: str,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        schema_evolution: bool = False,
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

        With `schema_evolution` the table gets the columns and fields of the source that it lacks and a clause sets, by
        name or by `…_all`, in the same commit; `…_all` leaves columns that the source lacks as they are.

        A DataFrame is merged on its Spark session, other sources on `spark` or on threads of this process. Every task
        gets the whole source; on Spark many rows are shuffled by their keys instead, or, where `on` has no equality,
        cut into blocks, each of which meets the whole table. Errors: see
        `Merge.execute`.
        """
        from mica.write.merge import Merge

        source = source.scan() if isinstance(source, OpenedTable) else source
        done = partial(self._written, on=source if spark is None else spark)
        return Merge(self._snapshot, source, on, source_alias, target_alias, spark, done, evolves=schema_evolution)

    def _replace(self, data: Any, by: Matching, evolves: bool, txn: Txn | None, others: Mapping[str, object]) -> Commit:
        from mica.write.once import checked, once
        from mica.write.replace_matching import replace_matching

        for name in [name for name, given in others.items() if given is not None]:
            said = f"using={[*by.using]}" if by.using else f"on={by.on!r}"
            message = f"{said} says which rows are replaced, and takes no {name}"
            raise UserError("INVALID_ARGUMENT", message, hint="Leave one of them out.")
        data, asked = data.scan() if isinstance(data, OpenedTable) else data, checked(txn)

        def write() -> Commit:
            return replace_matching(self._snapshot, data, by, txn=asked, schema_evolution=evolves)

        return self._written(once(self._snapshot.storage, self._snapshot, asked, write), data)

    def _written(self, commit: Commit, on: Any) -> Commit:
        """Moves to the version of a write, and compacts where the table asks for it, on the engine of `on`."""
        from mica import engines
        from mica.write import compact

        return self._changed(compact.afterwards(commit, engines.of(on)))

    def _write(
        self,
        data: Any,
        shredding: Any,
        evolves: bool,
        *,
        overwrite: bool,
        where: str | None = None,
        dynamic: bool = False,
        txn: Txn | None = None,
    ) -> Commit:
        from mica import engines
        from mica.write.once import checked, once
        from mica.write.rows import write_rows
        from mica.write.target import target_of

        data = data.scan() if isinstance(data, OpenedTable) else data
        asked = checked(txn)
        _, timezone = engines.of(data).settings()

        def write() -> Commit:
            whole = overwrite and where is None
            target = target_of(self._snapshot, asked, overwrite=whole, dynamic=dynamic, timezone=timezone)
            return write_rows(target, data, shredding, where=where, schema_evolution=evolves)

        return self._written(once(self._snapshot.storage, self._snapshot, asked, write), data)


def _append_batch(storage: Storage, application: str, evolves: bool, rows: Any, number: int) -> None:
    """Appends a batch of a stream to the newest version of a table."""
    Table(load(storage)).append(rows, schema_evolution=evolves, txn=(application, number))
