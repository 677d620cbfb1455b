"""Ingests JSON files into a table.

The rule: everything or nothing. Files are written first, and one commit adds them to the table. If anything fails there
is no commit, and no reader sees the written files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from mica import engines
from mica.arguments import CALLABLE, INPUTS, PATH, SESSION, TXN, Mode, takes
from mica.engines.base import Engine, MadeRows, Order
from mica.engines.progress import Progress, watched
from mica.log.snapshot import Snapshot
from mica.moment import one_moment
from mica.pictures.paged import Paged
from mica.records import dataclass
from mica.storage import Storage
from mica.tasks import ranges
from mica.tasks.bad_lines import count_bad_lines
from mica.tasks.ingest import IngestSpec, Split, ingest_rows, ingest_splits
from mica.tasks.left import RARE
from mica.wording import counted, sized
from mica.write import compact, flow, inputs
from mica.write.commit import Commit
from mica.write.facts import Facts
from mica.write.ingest_options import KINDS, IngestOptions, by_name
from mica.write.ingest_plan import IngestPlan, plan
from mica.write.ingested import STREAM, Ingested, Taken
from mica.write.once import Txn, checked, once, repeats
from mica.write.target import load_if_any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mica.pictures.page import Html

#: Approximate bytes on disk per byte of plain JSON, to choose how many files a sorted job writes.
ON_DISK = 0.22


@dataclass
class IngestReport(Paged):
    """The result of an ingest. `bytes` is the size of the data files, `input_bytes` that of the JSON files on disk."""

    table: str
    version: int
    rows: int
    files: int
    bytes: int
    seconds: float
    input_files: int
    input_bytes: int
    #: Inputs that were ingested before (`idempotent`).
    skipped_files: int = 0
    bad_lines: int = 0
    quarantine: str | None = None
    notes: list[str] = field(default_factory=list)
    #: Paths that did not become typed columns: `path`, `why`, how many `paths` of a file a rule left out, in how many
    #: of the written `files`. They are in the residual: nothing is lost.
    not_shredded: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The report as a dict of plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [*self._facts(), *self._not_shredded(), *(f"note: {note}" for note in self.notes)]
        return "\n".join([self.title(), *(f"  {line}" for line in lines)])

    def title(self) -> str:
        """The table, its version, and what was written."""
        written = f"{counted(self.rows, 'row')} in {counted(self.files, 'file')}, {sized(self.bytes)}"
        return f"{self.table}, version {self.version}: {written}"

    def _facts(self) -> Iterator[str]:
        read = f"{counted(self.input_files, 'file')}, {sized(self.input_bytes)}"
        rate = self.input_bytes / 1e6 / max(self.seconds, 1e-9)
        yield f"from {read}, in {self.seconds:.1f} s" + (f" ({rate:.0f} MB/s)" if rate >= 1 else "")
        if self.skipped_files:
            yield f"skipped {counted(self.skipped_files, 'file')}: ingested before"
        if self.bad_lines:
            yield f"kept {counted(self.bad_lines, 'bad line')} in {self.quarantine}"

    def _page(self) -> Html:
        from mica.pictures.page import code, fragment, heading, paragraph, table

        parts = [paragraph(line) for line in (*self._facts(), *(f"note: {note}" for note in self.notes))]
        if self.not_shredded:
            rows = [(code(one["path"]), one["why"], f"{one['files']:,}") for one in self.not_shredded]
            parts += [heading("Paths without a column"), table(("path", "why", "files"), rows, right=("files",))]
        return fragment(self.title(), parts)

    def _not_shredded(self) -> Iterator[str]:
        """A line for each reason, with some of its paths; paths that few rows have are as they should be."""
        by_reason: dict[str, list[str]] = {}
        for one in self.not_shredded:
            rule = one["why"].startswith("rule ")
            shown = counted(one["paths"], "path") if rule else one["path"]
            if one["why"] != RARE:
                by_reason.setdefault(one["why"], []).append(shown)
        for why, paths in by_reason.items():
            more = f" and {len(paths) - SHOWN:,} more" if len(paths) > SHOWN else ""
            yield f"kept in the Variant, without a column of their own ({why}): {', '.join(paths[:SHOWN])}{more}"


#: Paths that a line of the report names.
SHOWN = 5


@by_name
@takes(paths=INPUTS, table=PATH, spark=SESSION, txn=TXN, progress=CALLABLE, **KINDS)
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
    txn: Txn | None = None,
    schema_evolution: bool = False,
    ansi: bool = True,
    timezone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> IngestReport:
    """Reads NDJSON (plain, gzip, zstd) or JSON arrays into the Variant `column` of a Delta table, in one commit.

    `paths` is a path or pattern, a list of them, or a Spark DataFrame of one per row. `columns` are computed from each
    document (`{"day": "v:time::date"}`); a new table stores the expressions (`mica.ingest.columns`), and later runs use
    them for columns that they do not give. `partition_by` names some of these columns. `sort_by` (expressions over the
    document) sorts the whole job, so that its files do not overlap; in process, large ones on disk. Strings with a
    collation are sorted by it, by one of ICU's without case and accents. `shredding` is
    a schema (Spark DDL, a type or a `ShreddingSchema`), rules (`features.*: skip, price: decimal(18,2)`), or a mapping
    of `column` to one; without it the schema of each file is inferred from its first documents, as the table's rules
    say (`mica.shredding`, docs/guides/paths.md).

    `format` is `ndjson` (one document per line), `json` (one array, or documents over several lines), or `auto`, which
    decides per file. `mode` is `append` (creates a missing table), `error` (refuses an existing one), `ignore` (reads
    nothing if the table exists) or `overwrite`. `on_error="quarantine"` writes bad lines to the table's `_quarantine/`
    (or to `quarantine`) instead of failing: lines that cannot be read, and documents for which one of `columns` or
    `sort_by` cannot be computed or that a constraint refuses. A line that is not UTF-8 is a bad line;
    `invalid_utf8="replace"` replaces such bytes by U+FFFD, as Spark does. With `idempotent` each file is ingested once:
    the commit records it (its full name and modification time), and later runs skip it. With
    `txn=(application, version)` the whole run happens once: nothing is read if the table has this version of the
    application, or a later one. Sizes are bytes or texts such as `128MB`.

    With `schema_evolution` an existing table gets `column` and those `columns` that it lacks.

    With `spark` the work is a Spark job, and the session's ANSI mode and time zone apply. Without it the work runs on
    threads of this process, and `ansi` and `timezone` apply.

    Errors: INVALID_JSON, INVALID_UTF8 and DUPLICATE_KEY with file, line and column; UNSUPPORTED_INPUT for other than
    JSON text; INCOMPATIBLE_TYPE and UNKNOWN_COLUMN if an existing table has other columns; MISSING_COLUMN if a
    partition column of an existing table has no expression; INPUT_CHANGED for a file that changed since it was
    ingested; NOT_FOUND, IS_A_DIRECTORY, NOT_A_FILE, PERMISSION_DENIED, DISK_FULL. Nothing is committed then.
    """
    engine = engines.of(spark)
    ansi, timezone = engine.settings(ansi, timezone)
    options = IngestOptions.of(
        {
            "column": column, "columns": columns, "partition_by": partition_by, "sort_by": sort_by,
            "shredding": shredding, "mode": mode, "format": format, "on_error": on_error, "quarantine": quarantine,
            "target_file_size": target_file_size, "properties": properties, "duplicate_keys": duplicate_keys,
            "invalid_utf8": invalid_utf8, "max_size": max_size, "idempotent": idempotent, "ansi": ansi,
            "timezone": timezone, "storage_options": storage_options, "schema_evolution": schema_evolution,
        }
    )  # fmt: skip
    with watched(progress):
        job = Ingest(engine, options, Storage.open(table, storage_options))
        return job.run(lambda: inputs.find(paths, storage_options, options.format), checked(txn))


@dataclass
class Ingest:
    """Ingests into one table. A stream runs one for each batch: what it knows of the table stays."""

    engine: Engine
    options: IngestOptions
    storage: Storage
    #: The table as it is known, the version that the last run committed, and the input files of the table.
    snapshot: Snapshot | None = None
    committed: Snapshot | None = None
    ingested: Ingested = field(init=False)

    def __post_init__(self) -> None:
        self.ingested = Ingested(self.storage)
        self.refresh()

    def refresh(self) -> None:
        """Reads the newest version of the table, if there is one."""
        self.snapshot = load_if_any(self.storage) if self.snapshot is None else self.snapshot.refresh()

    def unread(self, files: Sequence[Split]) -> list[Split]:
        """The files of a stream that the table does not have. Errors: INPUT_CHANGED."""
        return list(self.ingested.move(self.snapshot).fresh(files, STREAM).values())

    @one_moment()
    def run(self, source: Sequence[Split] | Callable[[], list[Split]], txn: Txn | None = None) -> IngestReport:
        """Ingests files, or those that a function finds, in one commit. Errors: those of `ingest_json`."""
        began, found, table = time.monotonic(), self.snapshot, str(self.storage)
        if found is not None and self.options.mode == "ignore":
            note = f"a table already exists at {table}: nothing was read"
            return _nothing(table, found.version, 0, time.monotonic() - began, [note])
        if found is not None and repeats(found, txn):
            return _repeated(found, txn, began)
        planned = plan(self.storage, found, self.options)
        target = planned.target
        every = files = source() if callable(source) else source
        taken: Taken | None = None
        if self.options.idempotent:
            taken = Taken(self.ingested, self.ingested.move(found).fresh(every))
            files, target.following = list(taken.files.values()), taken
        if not files:
            assert found is not None
            return _nothing(table, found.version, len(every), time.monotonic() - began, target.notes)
        if txn is not None:
            target.applications = {txn[0]: txn[1]}
        bad, left = 0, list[dict[str, Any]]()

        def write() -> Commit:
            nonlocal bad, left
            try:
                commit, bad, left = _run(self.engine, planned, files, self.options.descending)
            except BaseException:
                if taken is not None and target.certainly_not_written:
                    taken.discard()
                raise
            return commit

        commit = once(self.storage, found, txn, write)
        if commit.repeated:
            self.snapshot = commit.snapshot
            return _repeated(commit.snapshot, txn, began)
        self.committed, self.snapshot = commit.snapshot, compact.afterwards(commit, self.engine).snapshot
        kept_aside = planned.spec.quarantine
        return IngestReport(
            table=table,
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
            not_shredded=left,
        )


def _repeated(snapshot: Snapshot | None, txn: Txn | None, began: float) -> IngestReport:
    """The report of a run that the table has already (`txn`)."""
    assert snapshot is not None
    assert txn is not None
    note = f"the table has version {txn[1]} of the application {txn[0]!r}, or a later one: nothing was read"
    return _nothing(str(snapshot.storage), snapshot.version, 0, time.monotonic() - began, [note])


def _nothing(table: str, version: int, skipped: int, seconds: float, notes: list[str]) -> IngestReport:
    """The report of a run that had nothing to read."""
    return IngestReport(table, version, 0, 0, 0, seconds, 0, 0, skipped_files=skipped, notes=notes)


def _run(
    engine: Engine,
    planned: IngestPlan,
    files: Sequence[Split],
    descending: Sequence[bool],
) -> tuple[Commit, int, list[dict[str, Any]]]:
    """Writes and commits; returns the commit, the number of bad lines, and the paths without a typed column."""
    spec, plain = planned.spec, sum(f.size for f in files)
    write, aside = spec.write, spec.quarantine
    source = _source(engine, spec, inputs.share(files, engine.parallelism), plain, descending)
    if spec.keys:
        # Each range becomes one file: one that is larger than planned is not split into a file and a small rest.
        write = replace(write, target_file_size=write.target_file_size * 3 // 2)
    bad = 0

    def count(_: Facts) -> None:
        # Not from the facts: if rows are sorted or shuffled, the tasks that read are not those that write.
        nonlocal bad
        bad = 0 if aside is None else count_bad_lines(aside)

    commit, facts = flow.commit(engine, planned.target, write, source, inspect=count, aside=aside, input_bytes=plain)
    return commit, bad, facts.left


def _source(
    engine: Engine, spec: IngestSpec, tasks: list[list[Split]], plain: int, descending: Sequence[bool]
) -> flow.RowSource:
    """Tasks that read and write if order does not matter; else rows that the engine arranges. `plain` is the size of
    the text in bytes."""
    splits = [split for task in tasks for split in task]
    if not spec.keys and not (spec.write.partition_by and (engine.shuffles or ranges.scatters(spec, splits))):
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
