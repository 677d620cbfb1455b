"""A scan: a query of a table or of Parquet files, planned once and run by either engine.

The rule: a scan is a value. Its plan (files kept, files skipped and why) belongs to one snapshot and does not change;
running it twice returns the same rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from mica import compute as pc
from mica import engines, moment
from mica.arguments import COLUMNS, COUNT, FLAG, SESSION, TEXT, Kind, refuse_other, takes
from mica.arrays import from_numpy, to_numpy
from mica.cached import cached_property
from mica.engines import local
from mica.engines.foreign import Foreign
from mica.errors import UnsupportedTableError, UserError
from mica.errors.installed import extra
from mica.expressions.bind import BoundExpr, bind, bind_columns
from mica.expressions.collations import TO_DF, collations_of, refuse_in_process
from mica.expressions.tree import LeafRef
from mica.records import dataclass
from mica.scan.readable import refuse_unreadable
from mica.scan.source import Source
from mica.schema.arrow import to_arrow
from mica.schema.hidden import FIELDS, METADATA, is_hidden
from mica.schema.spelling import quote_if_needed, spelled
from mica.schema.types import VARIANT, StructType, contains
from mica.skipping.file_plan import FilePlan
from mica.skipping.partitions import holds, is_decided
from mica.tasks.file import ReadSpec
from mica.tasks.parts import FilePart, in_tasks, parts_of
from mica.tasks.read import count_rows, read_parts
from mica.tasks.sent_files import FEW, sent
from mica.tasks.workers import workers

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

    from mica.scan.explanation import Explanation

#: So many columns of scans of a source are kept bound: a query of a thousand columns binds them in four ways.
BOUND = 8192

#: Larger than any number of rows; the kernel counts in 64 bits.
_NO_LIMIT = 1 << 62


@dataclass(frozen=True, eq=False)
class Scan:
    """A plan to read rows. Nothing is read before a `to_…` method, `count` or `batches` is called."""

    source: Source
    where: str | None = None
    columns: Mapping[str, str] | Sequence[str] | None = None
    limit: int | None = None
    ansi: bool = True
    timezone: str = "UTC"
    #: The session that compares strings by collation during planning.
    spark: SparkSession | None = field(default=None, repr=False)
    #: The plan of another scan of the same source, to be used instead of a new one.
    planned: FilePlan | None = field(default=None, repr=False)
    #: What Spark evaluates above the scan: no row group or page is read in which it is true for no row.
    skips: BoundExpr | None = field(default=None, repr=False)
    #: Whether texts beside CHAR columns are padded; Spark's own conditions are so already, where they have to be.
    pads: bool = field(default=True, repr=False)
    #: Whether CHAR columns are read with their blanks, which settings of a session deny.
    blanks: bool = field(default=True, repr=False)
    #: What its expressions take for the current time: microseconds since 1970 UTC.
    moment: int = field(default_factory=moment.now, repr=False)

    def __post_init__(self) -> None:
        refuse_other("limit", self.limit, COUNT, optional=True)
        if self.limit is not None and self.limit > _NO_LIMIT:
            object.__setattr__(self, "limit", None)
        refuse_other("where", self.where, TEXT, optional=True)
        refuse_other("columns", self.columns, COLUMNS, optional=True)
        refuse_other("ansi", self.ansi, FLAG)
        refuse_other("timezone", self.timezone, TEXT)
        refuse_other("spark", self.spark, SESSION, optional=True)
        # Wrong names and texts are reported when the scan is made, not when it runs. Errors that depend on ANSI mode
        # wait: the session on which the scan will run may have another mode.
        try:
            _ = self.predicate, self.outputs
        except UserError as refused:
            try:
                _ = self._bind_where(not self.ansi), self._bind_columns(not self.ansi)
            except UserError:
                raise refused from None

    @cached_property
    def predicate(self) -> BoundExpr | None:
        """`where`, bound to the schema."""
        return self._bind_where(self.ansi)

    @cached_property
    def outputs(self) -> Mapping[str, BoundExpr]:
        """The output columns: name → bound expression."""
        return self._bind_columns(self.ansi)

    def _bind_where(self, ansi: bool) -> BoundExpr | None:
        if self.where is None:
            return None
        with moment.one_moment(self.moment):
            found = bind(self.where, self.source.readable, **self._options(ansi))
        refuse_unreadable(self.source, found.leaves)
        return found

    def _bind_columns(self, ansi: bool) -> Mapping[str, BoundExpr]:
        asked = self.source.schema.names if self.columns is None else self.columns
        columns = dict(asked) if isinstance(asked, Mapping) else asked
        names = tuple(columns.items() if isinstance(columns, dict) else columns)
        key = (isinstance(columns, dict), names, ansi, self.timezone, self.pads, self.blanks)
        known = self.source.bound.get(key)
        if known is not None:
            return known
        if not isinstance(columns, dict | str) and len(set(columns)) < len(list(columns)):
            raise UserError.bad_value("columns", asked, "a list of distinct names, or a dict of names to expressions")
        for name in () if isinstance(columns, dict) else columns:
            if ":" in name:
                self.source.readable.field(name, f"A path gets a name: give a dict, such as {{'name': {name!r}}}.")
        with moment.one_moment(self.moment):
            found = bind_columns(columns, self.source.readable, **self._options(ansi)) or {}
        refuse_unreadable(self.source, [leaf for one in found.values() for leaf in one.leaves])
        if not found and self.source.schema.fields:  # a table may get its columns later
            raise UserError.bad_value("columns", self.columns, "a list or dict of at least one column")
        if all(isinstance(value.expr, LeafRef) for value in found.values()):  # in others the current time is a constant
            bound = self.source.bound
            if len(found) + sum(map(len, list(bound.values()))) > BOUND:
                bound.clear()
            bound[key] = found
        return found

    def _options(self, ansi: bool) -> dict[str, Any]:
        own = {"ansi": ansi, "timezone": self.timezone, "pads": self.pads, "blanks": self.blanks}
        return {**own, "partition_columns": self.source.partition_by}

    @cached_property
    def collations(self) -> tuple[str, ...]:
        """The collations, without binary ones, of the comparisons in `where` and `columns`."""
        return tuple(dict.fromkeys(name for value in self._bound for name in collations_of(value.expr)))

    @property
    def _bound(self) -> list[BoundExpr]:
        return [*self.outputs.values(), *([] if self.predicate is None else [self.predicate])]

    @cached_property
    def schema(self) -> StructType:
        """The output columns with their types."""
        return self.spec().schema

    @cached_property
    def of_rows(self) -> StructType:
        """The same for Spark, which plans by it: a column that is the table's own has nulls only where that may. Rows
        of changes may be older than a NOT NULL, and what bare files say of nulls Spark itself does not believe."""
        if self.source.version is None or not self.source.plain:
            return self.schema
        required = {(f.name,) for f in self.source.schema.fields if not f.nullable}
        plain = {name: value.leaves[0] for name, value in self.outputs.items() if isinstance(value.expr, LeafRef)}
        filled = {name for name, leaf in plain.items() if leaf.path is None and leaf.column in required}
        return StructType(tuple(replace(f, nullable=f.nullable and f.name not in filled) for f in self.schema.fields))

    @cached_property
    def plan(self) -> FilePlan:
        """Which files are read, and why the others are skipped: see `planned_by`."""
        if self.planned is not None:
            return self.planned
        if self.predicate is None or not collations_of(self.predicate.expr):
            return self.source.plan(self.predicate)
        return self.planned_by(engines.of(self.spark).skips_by(self.predicate))

    def planned_by(self, predicate: BoundExpr) -> FilePlan:
        """Which files a predicate leaves that the session evaluates.

        Warns if files have collated bounds of another version than the comparator's.
        """
        from mica.skipping.reasons import other_versions

        found = self.source.plan(predicate, engines.of(self.spark).comparator)
        stale = other_versions(found)
        if stale:
            warnings.warn(f"{self.source.name}: {stale}", stacklevel=3)
        return found

    @cached_property
    def kept(self) -> pa.Table:
        """The files that are read: path, size, partition_values, deletion_vector."""
        hidden = any(is_hidden(self.source.schema, leaf.column) for value in self._bound for leaf in value.leaves)
        return self.source.files(from_numpy(self.plan.kept), ids=hidden and self.source.row_ids is not None)

    def explain(self, *, analyze: bool = False, footers: bool | None = None) -> Explanation:
        """Explains what the scan will read and why it skips the rest; the result prints well and has `to_dict()`.

        `analyze` runs the scan in this process, discards the rows and measures. `footers` says whether to open the
        footers of the kept files, for row groups and pages; None: if they are few (`mica.scan.explanation.FOOTERS`).
        Errors: those of reading, with `analyze` or `footers=True`.
        """
        from mica.scan.explanation import Explanation

        refuse_other("analyze", analyze, FLAG)
        refuse_other("footers", footers, FLAG, optional=True)
        if analyze or footers:
            self.refuse_collated()
        return Explanation(self, analyze, footers)

    def _repr_html_(self) -> str:
        return self.explain()._repr_html_()

    # --- in process --------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches, in the order of files and rows; memory stays flat."""
        self.refuse_collated()
        spec = self.spec()
        left = self.limit
        tasks, threads = self.for_threads(spec)
        for batch in local.run(partial(read_parts, spec), tasks, parallelism=threads):
            piece = batch if left is None else batch.slice(0, left)
            yield piece
            if left is not None:
                left -= piece.num_rows
                if left <= 0:
                    return

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches with their schema; memory stays flat. Variants are as in `to_arrow`.

        Errors that need no file are raised here; errors of reading come from the reader.
        """
        self.refuse_collated()
        _ = self.plan
        schema = to_arrow(self.schema, marked=True)
        # Not a cast: where a Variant is null, so may be its parts, which pyarrow refuses in columns that must not be.
        named = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in self.batches())
        return pa.RecordBatchReader.from_batches(schema, Foreign(named))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for readers of Arrow streams: `pa.table(scan)`, `pl.DataFrame(scan)`, `SELECT … FROM scan` in
        DuckDB. Each call reads again. Errors of reading are raised by the reader as its own, with mica's text.

        Source: Arrow PyCapsule Interface.
        """
        return self.to_reader().__arrow_c_stream__(requested_schema)

    @takes(n=COUNT)
    def head(self, n: int = 10) -> pa.Table:
        """The first `n` rows, in the order of files and rows, as one Arrow table; see `to_arrow`."""
        limit = n if self.limit is None else min(n, self.limit)
        return replace(self, limit=limit, moment=moment.now()).to_arrow()

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table; Variants are `struct<metadata, value>` with their extension name, which DuckDB
        and polars recognise."""
        return pa.Table.from_batches(self.batches(), to_arrow(self.schema, marked=True))

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame; Variants are Python values."""
        from mica.variant.frames import to_pandas

        return to_pandas(self.to_arrow(), self.schema)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame; Variants are Python values in columns of type Object."""
        from mica.variant.frames import to_polars

        return to_polars(self.to_arrow(), self.schema)

    @takes(connection=Kind("a DuckDB connection", lambda v: hasattr(v, "from_arrow")))
    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation (`.query("events", "SELECT … FROM events")`), on the default connection or on
        `connection`; Variants are DuckDB Variants. DuckDB sees the rows of the scan, with partition columns and without
        deleted rows. The relation is lazy: each query reads the rows as a stream, and memory stays flat. DuckDB
        compares bytes, also on columns with a collation: `scan(columns={"hit": "s = 'ada'"})` compares by it.

        Errors: NOT_INSTALLED without duckdb. Errors that need no file are raised here; those of reading come from
        DuckDB, with mica's text.
        """
        library = extra("duckdb", "to_duckdb")
        _ = self.to_reader().schema
        found: duckdb.DuckDBPyRelation = (
            library.default_connection() if connection is None else connection
        ).from_arrow(self)
        return found

    def file_uris(self) -> list[str]:
        """The full names of the kept files: paths, or URIs in object stores.

        A reader of bare files misses what is only in the log: partition columns (they are in the directory names too)
        and deletion vectors; with column mapping its columns have their physical names (`col-…`), as Delta's readers
        expect. Errors: DELETED_ROWS if a kept file has deleted rows; NOT_IN_FILES for changes.
        """
        if not self.source.plain:
            raise UnsupportedTableError(
                "NOT_IN_FILES",
                f"the rows of {self.source.name} are not those of its files",
                hint="Read the rows of the scan instead of its files.",
            )
        named = zip(self.kept.column("path").to_pylist(), self.kept.column("deletion_vector").to_pylist(), strict=True)
        found = []
        for path, vector in named:
            storage, rel = self.source.storage.locate(path)
            if vector is not None:
                raise UnsupportedTableError(
                    "DELETED_ROWS",
                    f"{storage.path(rel)} has deleted rows, which a reader of the bare file would return",
                    hint="Read the rows with to_arrow() or to_duckdb().",
                    path=storage.path(rel),
                )
            found.append(storage.path(rel))
        return found

    def count(self) -> int:
        """The number of rows. Without a predicate, or with one on partition columns only, files with a row count in
        the log are not opened.
        """
        self.refuse_collated()
        kept = self.plan.kept
        total = 0
        unknown = self.kept
        if is_decided(self.predicate):
            if self.predicate is not None:
                matching = holds(self.predicate, self.source.schema, unknown.column("partition_values"))
                kept, unknown = kept[to_numpy(matching)], unknown.filter(matching)
            rows = self.source.rows(from_numpy(kept))
            total = pc.sum(rows).as_py() or 0
            unknown = pc.filter(unknown, pc.is_null(rows))
        spec = self.spec()
        tasks, threads = self.for_threads(replace(spec, outputs={}), kept=unknown)
        for batch in local.shown(partial(count_rows, spec), tasks, parallelism=threads):
            total += batch.column("rows")[0].as_py()
        return total if self.limit is None else min(total, self.limit)

    def refuse_collated(self, hint: str = TO_DF) -> None:
        """Refuses comparisons that only Spark can make, before a file is read."""
        for value in self._bound:
            refuse_in_process(value.expr, hint)

    # --- on Spark ----------------------------------------------------------------------------------------------------

    @takes(spark=SESSION)
    def to_df(
        self, spark: SparkSession | None = None, *, unsupported: Literal["error", "string"] = "error"
    ) -> DataFrame:
        """The rows as a Spark DataFrame. The session's ANSI mode and time zone apply.

        A whole table is read by Spark's own reader, so that a later query reads only the paths of `v` that it uses (in
        an object store one of large files, if the session has the store's settings). If `columns` names a Variant
        column, mica builds it whole, which is faster. What mica reads of a few megabytes of files, such as most change
        feeds, is read in this process, when the rows are first asked for.

        `unsupported` says what to do with values that Spark's Variants have no type for (time, timestamps in
        nanoseconds, UUID): an error with their path when the rows are read, or strings.
        """
        if unsupported not in ("error", "string"):
            raise UserError.bad_value("unsupported", unsupported, "'error' or 'string'")
        from mica.engines.spark import reader
        from mica.engines.spark.batches import Late
        from mica.engines.spark.session import session
        from mica.scan import little

        spark = spark or session()
        scan = self.of_session(spark)
        if scan.collations:
            return _compared_by(spark, scan, unsupported)
        reading = scan.reading()
        if reader.reason_for_kernel(reading) is None and unsupported == "error":
            return reader.native(spark, reading)
        return little.frame(spark, scan, Late(unsupported == "string", scan.timezone))

    def of_session(self, spark: SparkSession) -> Scan:
        """The same scan with the ANSI mode and time zone of a Spark session, and CHAR columns as it has them."""
        from mica.engines.spark import chars

        ansi, timezone = engines.of(spark).settings(self.ansi, self.timezone)
        pads, blanks = chars.padding(spark, self.source.schema)
        pads, blanks = pads and self.pads, blanks and self.blanks
        found = self
        if (ansi, timezone, pads, blanks) != (self.ansi, self.timezone, self.pads, self.blanks):
            found = replace(self, ansi=ansi, timezone=timezone, pads=pads, blanks=blanks)
        return replace(found, spark=spark) if found.collations and not found.spark else found

    def reading(self) -> Any:
        """The facts that decide which reader Spark uses."""
        from mica.engines.spark.reader import Reading

        names = self.source.schema.names
        plain = self.columns is None or (not isinstance(self.columns, Mapping) and set(self.columns) <= set(names))
        return Reading(
            schema=self.schema,
            columns=self.source.schema,
            partition_by=self.source.partition_by,
            count=self.kept.num_rows,
            listed=self._by_partition,
            size=self.kept.column("size").to_numpy().sum(),
            storage=self.source.storage,
            is_table=self.source.version is not None,
            plain_files=self.source.plain,
            plain_columns=plain,
            names_columns=self.columns is not None,
            predicate=self.predicate is not None,
            limit=self.limit is not None,
            deletion_vectors=self.kept.column("deletion_vector").null_count < self.kept.num_rows,
            column_mapping=self.source.column_mapping,
            by_id=self.source.by_id,
            late_types=self._late_types,
        )

    def _by_partition(self) -> Mapping[tuple[str | None, ...], Sequence[str]]:
        """Partition values → paths of the kept files."""
        found: dict[tuple[str | None, ...], list[str]] = {}
        columns = (self.kept.column(name).to_pylist() for name in ("path", "partition_values"))
        for path, values in zip(*columns, strict=True):
            texts = dict(values or ())
            found.setdefault(tuple(texts.get(name) for name in self.source.partition_by), []).append(path)
        return found

    def _late_types(self) -> bool:
        return contains(self.schema, VARIANT) and self.source.may_hold_late_types(from_numpy(self.plan.kept))

    def for_threads(
        self, spec: ReadSpec, most: int | None = None, *, kept: pa.Table | None = None, each: int = 1
    ) -> tuple[list[list[FilePart]], int]:
        """The kept files, or some of them, as tasks for threads, at least `each` for each of several, and how many
        threads, at most `most`."""
        threads = most or local.threads()
        if threads > 1:
            tasks = self.tasks(threads * each, kept)
            threads = workers(spec, [file for task in tasks for file in task], threads)
        if threads == 1:
            tasks = self.tasks(1, kept, shared=False)  # each part of a file opens it
        return tasks, threads

    # --- both --------------------------------------------------------------------------------------------------------

    def spec(self) -> ReadSpec:
        """The spec that is common to all tasks of the scan."""
        return ReadSpec(
            storage=self.source.storage,
            columns=self.source.schema,
            partition_by=self.source.partition_by,
            outputs=self.outputs,
            predicate=self.predicate,
            skips=self.skips,
            limit=self.limit,
            timezone=self.timezone,
            version=self.source.version,
            of_commits=self.source.of_commits,
            early=self.source.early,
            by_id=self.source.by_id,
            row_ids=self.source.row_ids,
            tails=self.source.tails,
        )

    def rewriting(self) -> ReadSpec:
        """The spec to read rows that are written again: with the ids that they keep, if the table tracks rows."""
        return replace(self.spec(), outputs={**self.outputs, **self.source.kept_ids})

    def whole_files(self) -> list[FilePart]:
        """The kept files, one part each."""
        return parts_of(self.kept)

    def tasks(self, parallelism: int, kept: pa.Table | None = None, *, shared: bool = True) -> list[list[FilePart]]:
        """The kept files, or some of them, packed into tasks for `parallelism` cores; `shared` large ones are split."""
        return in_tasks(self.source.parts(self.kept if kept is None else kept), parallelism, shared=shared)

    def sent(self, parallelism: int) -> Sequence[Sequence[FilePart]]:
        """The same for other processes: of many files the parts are made there."""
        return self.tasks(parallelism) if self.kept.num_rows <= FEW else sent(self.kept, parallelism)


def _compared_by(spark: SparkSession, scan: Scan, unsupported: Literal["error", "string"]) -> DataFrame:
    """The rows if Spark must compare by collation: mica reads the columns of the kept files, and Spark evaluates the
    user's own texts on them."""
    from mica.engines.spark.texts import NESTED, judged, nested

    used = {leaf.column for leaf in scan.spec().leaves}
    named = {column[0] for column in used}
    names = [name for name in scan.source.schema.names if name in named] or scan.source.schema.names[:1]
    hidden = {f"{NESTED}{field}": f"{METADATA}.{field}" for top, field in FIELDS if (top, field) in used}
    asked = names if METADATA in names or METADATA not in named else {n: quote_if_needed(n) for n in names} | hidden
    whole = replace(scan, where=None, columns=asked, limit=None, spark=None, planned=scan.plan)
    frame = whole.to_df(spark, unsupported=unsupported)
    if isinstance(asked, dict):
        frame = nested(frame, METADATA, list(hidden))
    if isinstance(scan.columns, Mapping):
        return judged(frame, scan.where, scan.columns, scan.limit)
    # A list of names: the output of a hidden column has another name.
    shown = {n: spelled(v.leaves[0].column) for n, v in scan.outputs.items()}
    return judged(frame, scan.where, shown, scan.limit)
