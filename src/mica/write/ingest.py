"""JSON files to a table.

The rule: everything or nothing. Files are written first and one commit makes them part of the table; where anything
fails there is no commit, and what was written is never read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from mica import engines
from mica.arguments import CALLABLE, FLAG, INPUTS, NAMES, OPTIONS, PATH, SESSION, SIZE, TEXT, TEXTS, Mode, takes
from mica.engines.base import Engine, MadeRows, Order
from mica.storage import Storage
from mica.tasks import ranges
from mica.tasks.ingest import IngestSpec, Split, count_bad_lines, ingest_rows, ingest_splits
from mica.write import flow, inputs
from mica.write.ingest_options import IngestOptions, largest_of, size_of
from mica.write.ingest_plan import IngestPlan, plan
from mica.write.target import Commit, load_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    began, engine = time.monotonic(), engines.of(spark)
    ansi, timezone = engine.settings(ansi, timezone)
    options = IngestOptions(
        column, columns or {}, partition_by, sort_by, shredding, mode, format, on_error, quarantine,
        size_of(target_file_size), properties or {}, duplicate_keys, invalid_utf8, largest_of(max_size), idempotent,
        ansi, timezone, storage_options,
    )  # fmt: skip
    storage = Storage.open(table, storage_options)
    found = load_if_any(storage)
    if found is not None and mode == "ignore":
        note = f"there is a table at {storage} already: nothing was read"
        return _nothing(str(storage), found.version, 0, time.monotonic() - began, [note])
    planned = plan(storage, found, options)
    target = planned.target
    every = files = inputs.find(paths, storage_options, format)
    if idempotent:
        files, target.applications = inputs.unread(every, {} if found is None else found.app_transactions)
    if not files:
        assert found is not None
        return _nothing(str(storage), found.version, len(every), time.monotonic() - began, target.notes)
    commit, bad = _run(engine, planned, files, options.descending, progress)
    kept_aside = planned.spec.quarantine
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


def _run(
    engine: Engine,
    planned: IngestPlan,
    files: Sequence[Split],
    descending: Sequence[bool],
    progress: Callable[[Progress], None] | None,
) -> tuple[Commit, int]:
    """Writes and commits; the commit, and how many bad lines there were."""
    spec, plain = planned.spec, sum(f.size for f in files)
    write, aside = spec.write, spec.quarantine
    source = _source(engine, spec, inputs.share(files, engine.parallelism), plain, descending)
    if spec.keys and engine.shuffles:
        # Each range is to be one file: one that came out larger than planned is not cut into a file and a rest.
        write = replace(write, target_file_size=write.target_file_size * 3 // 2)
    observer = flow.NOBODY if progress is None else _observer(progress, plain)
    commit, _ = flow.commit(engine, planned.target, write, source, observer=observer, aside=aside)
    # Not from the facts: where rows are sorted or shuffled, the tasks that read are not those that write.
    return commit, 0 if aside is None else count_bad_lines(aside)


def _source(
    engine: Engine, spec: IngestSpec, tasks: list[list[Split]], plain: int, descending: Sequence[bool]
) -> flow.RowSource:
    """Direct where order does not matter; rows that the engine arranges where it does. `plain` bytes are the text."""
    if not spec.keys and not (spec.write.partition_by and engine.shuffles):
        return flow.FromTasks(lambda write: partial(ingest_splits, replace(spec, write=write)), tasks)
    rows = MadeRows(
        task=partial(ingest_rows, spec),
        inputs=tasks,
        schema=spec.rows_schema,
        size=plain,
        files=max(1, round(plain * ON_DISK / spec.write.target_file_size)),
        sample=partial(ranges.sample, spec, plain),
        share_bytes=inputs.LEAST_BYTES,
    )
    return flow.FromRows(rows, Order(spec.write.partition_by, tuple(zip(spec.keys, descending, strict=True))))


def _observer(report: Callable[[Progress], None], total: int) -> flow.Observer:
    """Reports how far the ingest has come: by facts as they come, or by the share of a Spark job."""
    progress = Progress(total_bytes=total)

    def facts(batch: pa.RecordBatch) -> None:
        for row in batch.select(["kind", "rows", "bytes"]).to_pylist():
            if row["kind"] == "read":
                progress.rows += row["rows"]
                # Where rows are sorted, these are the bytes of the rows.
                progress.input_bytes = min(total, progress.input_bytes + row["bytes"])
            progress.files += row["kind"] == "add"
        report(replace(progress))

    return flow.Observer(facts, lambda share: report(replace(progress, input_bytes=int(total * share))))


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
