"""JSON files to a table.

The rule: everything or nothing. Files are written first and one commit makes them part of the table; where anything
fails there is no commit, and what was written is never read.
"""

from __future__ import annotations

import itertools
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from mica.arguments import CALLABLE, FLAG, INPUTS, NAMES, OPTIONS, PATH, SESSION, SIZE, TEXT, TEXTS, Mode, one_of, takes
from mica.engines import local
from mica.errors import UserError
from mica.expressions.bind import BoundExpr, bind_value
from mica.properties import BYTES
from mica.schema.arrow import to_arrow
from mica.schema.ddl import type_to_ddl
from mica.schema.evolution import plan_write
from mica.schema.types import INTEGER, VARIANT, VOID, Primitive, StructField, StructType
from mica.storage import Storage
from mica.tasks import ranges
from mica.tasks.ingest import IngestSpec, Split, count_bad_lines, ingest_rows, ingest_splits
from mica.tasks.write import FACTS, FACTS_DDL, WriteSpec, write_files
from mica.tasks.zones import zone_tags
from mica.variant import kernel
from mica.variant.shredding import ShreddingSchema, trees_of
from mica.write import computed, inputs
from mica.write.target import Target, load_if_any, open_target, undone_where_it_fails

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The largest Variant that Spark reads.
MAX_SIZE = 128 << 20

#: The column that says into which file of a sorted job a row goes; it is in no table.
RANGE = "__mica_range"

#: Bytes on disk per byte of plain JSON, about, for choosing how many files a sorted job writes.
ON_DISK = 0.22


@dataclass
class IngestReport:
    """What an ingest did. `bytes` are those of the data files, `input_bytes` those of the JSON files as they lie."""

    table: str
    version: int
    rows: int
    files: int
    bytes: int
    seconds: float
    input_files: int
    input_bytes: int
    #: Inputs that the table has rows of already (`idempotent`).
    skipped_files: int = 0
    bad_lines: int = 0
    quarantine: str | None = None
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def __str__(self) -> str:
        rate = self.input_bytes / 1e6 / max(self.seconds, 1e-9)
        lines = [
            f"{self.table}, version {self.version}: {self.rows:,} rows in {self.files:,} files, {_mb(self.bytes)}",
            f"  from {self.input_files:,} files, {_mb(self.input_bytes)}, in {self.seconds:.1f} s ({rate:.0f} MB/s)",
        ]
        if self.skipped_files:
            lines.append(f"  skipped {self.skipped_files:,} files that were ingested before")
        if self.bad_lines:
            lines.append(f"  {self.bad_lines:,} bad lines are kept in {self.quarantine}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


@dataclass
class Progress:
    """How far an ingest has come; `input_bytes` of `total_bytes` are read."""

    rows: int = 0
    input_bytes: int = 0
    total_bytes: int = 0
    files: int = 0


@takes(
    paths=INPUTS, table=PATH, spark=SESSION, column=TEXT, columns=TEXTS, partition_by=NAMES, sort_by=NAMES,
    quarantine=PATH, target_file_size=SIZE, properties=TEXTS, max_size=SIZE, idempotent=FLAG, ansi=FLAG, timezone=TEXT,
    storage_options=OPTIONS, progress=CALLABLE,
)  # fmt: skip
def ingest_json(
    paths: inputs.Paths,
    table: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    column: str = "v",
    columns: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    shredding: Any = None,
    mode: Mode = "append",
    format: Literal["auto", "ndjson", "json"] = "auto",  # noqa: A002 - what the files are, as Spark's readers call it
    on_error: Literal["fail", "quarantine"] = "fail",
    quarantine: str | os.PathLike[str] | None = None,
    target_file_size: int | str | None = None,
    properties: Mapping[str, str] | None = None,
    duplicate_keys: Literal["error", "last"] = "error",
    invalid_utf8: Literal["error", "replace"] = "error",
    max_size: int | str = "16MB",
    idempotent: bool = False,
    ansi: bool = True,
    timezone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Reads NDJSON (plain, gzip, zstd) or JSON arrays into the Variant `column` of a Delta table, in one commit.

    `paths` is a path or pattern, a list of them, or a Spark DataFrame with one per row. `columns` are computed from
    each document (`{"day": "v:time::date"}`); a table made here keeps them (`mica.ingest.columns`), and a later run
    computes what it does not give itself. `partition_by` names some of them. `sort_by` (expressions over the document)
    orders the whole job, so that its files do not overlap; in process it sorts in memory. `shredding` is a schema
    (Spark DDL, a type or a `ShreddingSchema`), or a mapping of `column` to one; without it each file's is inferred from
    its first documents.

    `format` is `ndjson` (a document a line), `json` (one array, or documents over several lines), or `auto`: which of
    both each file is, by all of it. `mode` is `append` (creates the table where there is none), `error` (refuses one
    that exists), `ignore` (reads nothing where there is one) or `overwrite`. `on_error="quarantine"` keeps bad lines
    under the table's `_quarantine/` (or under `quarantine`) instead of failing. A line that is not UTF-8 is a bad line;
    `invalid_utf8="replace"` puts U+FFFD for what is not, as Spark does. `idempotent` counts each file once: the commit
    records it (a `txn` action by its full name, with the time it was written last), and a later run skips it. Sizes are
    bytes or texts such as `128MB`. With `spark` the work is a Spark job, without it threads of this process; ANSI mode
    and time zone are then the session's, else `ansi` and `timezone`.

    Errors: INVALID_JSON, INVALID_UTF8 and DUPLICATE_KEY with file, line and column; UNSUPPORTED_INPUT for what is not
    JSON text; INCOMPATIBLE_TYPE and UNKNOWN_COLUMN where a table that exists has other columns, MISSING_COLUMN where it
    is partitioned by one that nobody computes; INPUT_CHANGED for a file that was written again since it was ingested;
    NOT_FOUND, IS_A_DIRECTORY, NOT_A_FILE, PERMISSION_DENIED, DISK_FULL. Nothing is committed then.
    """
    began = time.monotonic()
    one_of("mode", mode, ("append", "error", "ignore", "overwrite"))
    one_of("format", format, ("auto", "ndjson", "json"))
    one_of("on_error", on_error, ("fail", "quarantine"))
    one_of("duplicate_keys", duplicate_keys, ("error", "last"))
    one_of("invalid_utf8", invalid_utf8, ("error", "replace"))
    largest = _size(max_size)
    if largest is None or largest > MAX_SIZE:
        raise UserError.bad_value("max_size", max_size, "at most 128MB: Spark reads no larger Variant")
    if spark is not None:
        ansi = str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "true"
        timezone = str(spark.conf.get("spark.sql.session.timeZone"))
    kernel.fixed_offset(timezone)  # a zone that does not exist is an error now, whether or not a column asks for it
    if idempotent and mode == "overwrite":
        raise UserError.bad_value("idempotent", idempotent, "False with mode='overwrite', which replaces all rows")
    storage = Storage.open(table, storage_options)
    found = load_if_any(storage)
    if found is not None and mode == "ignore":
        note = f"there is a table at {storage} already: nothing was read"
        return _nothing(str(storage), found.version, 0, time.monotonic() - began, [note])
    given, kept = columns or {}, computed.kept_in(found)
    document = StructType((StructField(column, VARIANT),))
    bound = computed.bound(given, kept, document, ansi=ansi, timezone=timezone)
    schema = _schema(document, bound)
    target = open_target(
        storage, schema, tuple(partition_by), mode="error" if mode == "ignore" else mode, properties=properties or {},
        operation="ingest_json", snapshot=found, kept=computed.as_property(given),
    )  # fmt: skip
    computed.refuse_without(str(storage), target.metadata.partition_columns, bound, column)
    target.notes += computed.others(given, kept)
    plan_write(target.schema, to_arrow(schema))
    # Names match without regard to case; from here on the table's spelling is the one name of each column.
    column = target.schema.field(column).name
    document = StructType((StructField(column, VARIANT),))
    again = computed.bound(given, kept, document, ansi=ansi, timezone=timezone)
    bound = {target.schema.field(name).name: value for name, value in again.items()}
    keys = _sort_keys(sort_by, document, bound, ansi, timezone)
    tree = _tree(shredding, column)
    write = target.write_spec({} if tree is None else {(column,): tree}, target_file_size=_size(target_file_size))
    write = replace(write, from_json=True, tags=zone_tags())
    kept_aside = _quarantine(target, quarantine, storage_options) if on_error == "quarantine" else None
    spec = IngestSpec(
        write=write,
        column=column,
        tree=tree,
        columns=bound,
        keys=keys,
        quarantine=kept_aside,
        reader={
            "duplicate_keys": duplicate_keys,
            "max_size": largest,
            "replace_invalid_utf8": invalid_utf8 == "replace",
        },
        timezone=timezone,
    )
    every = files = inputs.find(paths, storage_options, format)
    if idempotent:
        files, target.applications = inputs.unread(every, {} if found is None else found.app_transactions)
    if not files:
        assert found is not None
        return _nothing(str(storage), found.version, len(every), time.monotonic() - began, target.notes)
    run = _Run(spec, files, [name.endswith(" desc") for name in _lower(sort_by)], progress)
    try:
        with undone_where_it_fails(write):
            facts = run.on_spark(spark) if spark is not None else run.in_process()
        commit = target.commit(facts, spark)
    except BaseException:
        if kept_aside is not None and target.certainly_not_written:
            kept_aside.clear()
        raise
    # Not from the facts: where rows are sorted or shuffled, the tasks that read are not those that write.
    bad = count_bad_lines(kept_aside) if kept_aside is not None else 0
    return IngestReport(
        table=str(target.storage),
        version=commit.version,
        rows=commit.rows,
        files=commit.files,
        bytes=commit.bytes,
        seconds=time.monotonic() - began,
        input_files=len(files),
        input_bytes=sum(f.size for f in files),
        skipped_files=len(every) - len(files),
        bad_lines=bad,
        quarantine=str(kept_aside) if bad else None,
        notes=target.notes,
    )


def _nothing(table: str, version: int, skipped: int, seconds: float, notes: list[str]) -> IngestReport:
    """The report of a run whose inputs the table has already."""
    return IngestReport(table, version, 0, 0, 0, seconds, 0, 0, skipped_files=skipped, notes=notes)


class _Run:
    """One ingest on an engine: direct where order does not matter, in two stages where it does."""

    def __init__(
        self, spec: IngestSpec, files: list[Split], descending: list[bool], progress: Callable[[Progress], None] | None
    ) -> None:
        self.spec, self.files, self.descending = spec, files, descending
        self._report = progress
        self._progress = Progress(total_bytes=sum(f.size for f in files))

    def in_process(self) -> pa.Table:
        tasks = inputs.share(self.files, local.threads())
        if not self.spec.keys:
            return self._collected(local.run(partial(ingest_splits, self.spec), tasks))
        rows = pa.Table.from_batches(local.run(partial(ingest_rows, self.spec), tasks), to_arrow(self.spec.rows_schema))
        partitions = [(name, False) for name in self.spec.write.partition_by]
        order = ranges.sort_indices(rows, [*partitions, *zip(self.spec.keys, self.descending, strict=True)])
        ordered = rows.drop_columns(list(self.spec.keys)).take(order)
        shares = _even(ordered, local.threads())
        return self._collected(local.run(partial(_write_table, self.spec.write), shares))

    def on_spark(self, spark: SparkSession) -> pa.Table:
        from mica.engines.spark import jobs

        return jobs.interruptible(spark, lambda: self._on_spark(spark))

    def _on_spark(self, spark: SparkSession) -> pa.Table:
        from mica.engines.spark import jobs

        spec = self.spec
        tasks = inputs.share(self.files, jobs.parallelism(spark))
        if not spec.keys and not spec.write.partition_by:
            return jobs.collect(jobs.over_tasks(spark, partial(ingest_splits, spec), tasks, FACTS_DDL), self._watch)
        from mica.engines.spark.types import to_spark

        plain = sum(f.size for f in self.files)
        keys = list(zip(spec.keys, self.descending, strict=True))
        found = self._ranges(spark, tasks, max(1, round(plain * ON_DISK / spec.write.target_file_size)))
        schema = _with_range(spec.rows_schema)
        frame = jobs.over_tasks(spark, partial(_for_spark, spec, found), tasks, to_spark(schema), size_in_bytes=plain)
        into = (RANGE, 1 if found is None else len(found)) if keys else None
        frame = jobs.arranged(frame, spec.write.partition_by, keys, into).drop(*spec.keys, RANGE)
        if keys:
            # Each range is to be one file: one that came out larger than planned is not cut into a file and a rest.
            spec = replace(spec, write=replace(spec.write, target_file_size=spec.write.target_file_size * 3 // 2))
        return jobs.collect(jobs.over_rows(frame, partial(write_files, spec.write), FACTS_DDL), self._watch)

    def _ranges(self, spark: SparkSession, tasks: list[list[Split]], count: int) -> ranges.Ranges | None:
        """Where the files of a sorted job begin; None where there is no order or one file."""
        from mica.engines.spark import jobs

        if not self.spec.keys or count == 1:
            return None
        task = partial(ranges.sample, self.spec, sum(f.size for f in self.files))
        samples = jobs.collect(jobs.over_tasks(spark, task, tasks, ranges.SAMPLE_DDL))
        return ranges.plan(samples.column("rows").to_pylist(), count, self.descending)

    @property
    def _watch(self) -> Callable[[float], None] | None:
        """What is told of a Spark job's progress, when somebody looks on."""
        report, total = self._report, self._progress.total_bytes
        if report is None:
            return None
        return lambda share: report(replace(self._progress, input_bytes=int(total * share)))

    def _collected(self, batches: Iterator[pa.RecordBatch]) -> pa.Table:
        kept = []
        for batch in batches:
            kept.append(batch)
            if self._report is not None:
                for row in batch.to_pylist():
                    self._progress.rows += row["rows"] if row["kind"] == "read" else 0
                    self._progress.input_bytes += row["bytes"] if row["kind"] == "read" else 0
                    self._progress.files += row["kind"] == "add"
                self._report(replace(self._progress))
        return pa.Table.from_batches(kept, FACTS)


def _with_range(schema: StructType) -> StructType:
    return StructType((*schema.fields, StructField(RANGE, INTEGER)))


def _for_spark(spec: IngestSpec, found: ranges.Ranges | None, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    from mica.tasks.batches import for_spark

    schema = _with_range(spec.rows_schema)
    for batch in ingest_rows(spec, splits):
        if found is None:
            numbers = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
        else:
            numbers = found.of([batch.column(name) for name in (*spec.write.partition_by, *spec.keys)])
        yield for_spark(batch.append_column(RANGE, numbers), schema)


def _write_table(spec: WriteSpec, table: pa.Table) -> Iterator[pa.RecordBatch]:
    return write_files(spec, table.to_batches(max_chunksize=16_384))


def _even(table: pa.Table, parallelism: int) -> list[pa.Table]:
    """Contiguous shares for as many threads as there is work for."""
    count = max(1, min(parallelism, table.nbytes // inputs.LEAST_BYTES))
    edges = [table.num_rows * i // count for i in range(count + 1)]
    return [table.slice(start, end - start) for start, end in itertools.pairwise(edges)]


def _schema(document: StructType, bound: Mapping[str, BoundExpr]) -> StructType:
    return StructType((*document.fields, *(StructField(name, value.type) for name, value in bound.items())))


def _sort_keys(
    sort_by: Sequence[str], document: StructType, bound: Mapping[str, BoundExpr], ansi: bool, timezone: str
) -> dict[str, BoundExpr]:
    """Hidden columns to sort by. A key may be a computed column's name or an expression, with ASC or DESC behind it."""
    keys = {}
    for place, text in enumerate(sort_by):
        words = text.strip()
        for direction in (" asc", " desc"):
            if words.lower().endswith(direction):
                words = words[: -len(direction)]
        known = next((value for name, value in bound.items() if name.lower() == words.lower()), None)
        key = known or bind_value(words, document, ansi=ansi, timezone=timezone)
        if not isinstance(key.type, Primitive) or key.type in (VARIANT, VOID):
            raise UserError("TYPE_MISMATCH", f"rows cannot be sorted by {words!r}, which is {type_to_ddl(key.type)}",
                            hint="Say which type the path has, as in v:a::bigint.")  # fmt: skip
        keys[f"__mica_sort_{place}"] = key
    return keys


def _lower(sort_by: Sequence[str]) -> list[str]:
    return [text.strip().lower() for text in sort_by]


def _tree(shredding: Any, column: str) -> pa.DataType | None:
    if isinstance(shredding, Mapping) and not {str(name).lower() for name in shredding} <= {column.lower()}:
        warnings.warn(
            f"a mapping of shredding= is by column: give {{{column!r}: {{…}}}}", DeprecationWarning, stacklevel=4
        )
        return ShreddingSchema.of(shredding).tree
    return trees_of(shredding, [(column,)]).get((column,))


def _quarantine(
    target: Target, where: str | os.PathLike[str] | None, storage_options: Mapping[str, str] | None
) -> Storage:
    run = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + uuid.uuid4().hex[:8]
    if where is not None:
        return Storage.open(where, storage_options).child(run)
    return target.storage.child(f"_quarantine/{run}")


def _size(size: int | str | None) -> int | None:
    if size is None or isinstance(size, int):
        if size is not None and size <= 0:
            raise UserError.bad_value("a size", size, "a positive number of bytes or a text such as 128MB")
        return size
    try:
        return BYTES.parse(size)
    except ValueError:
        raise UserError.bad_value("a size", size, BYTES.expected) from None


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
