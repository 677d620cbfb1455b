"""Writes batches to data files and yields facts about them.

The rule: a fact is yielded only for a file that is complete and durable, and has as columns all that a commit needs.
File names have a unique id per attempt, so a retry never collides with leftovers of an earlier attempt; a failed
attempt deletes its files if it can.

Source: Delta protocol, "Add File and Remove File", "Partition Value Serialization".
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any, Literal, Self, TypeAlias

import pyarrow as pa

from mica.arrays import batch_of
from mica.errors import MicaError, UserError
from mica.log.paths import encode_path, new_file_name, partition_directory
from mica.records import dataclass
from mica.schema.arrow import to_arrow
from mica.schema.evolution import check_nulls, plan_write
from mica.schema.types import LONG, VARIANT, StructField, StructType, contains
from mica.stats.collated import CollatedColumn
from mica.stats.columns import physical_name, physical_names
from mica.stats.named import Named
from mica.stats.partition import log_texts
from mica.stats.render import stats_json
from mica.storage import Storage, Writer
from mica.storage.uploads import Uploads
from mica.tasks import candidates, lane
from mica.tasks.batches import cut
from mica.tasks.facts import facts, numbers
from mica.tasks.groups import MAX_OPEN, groups, together
from mica.tasks.held import HeldRows, Trees
from mica.tasks.left import facts_of
from mica.tasks.physical import is_mapped, physical
from mica.tasks.rules import Rules
from mica.tasks.shredding import Shredding
from mica.tasks.stored import StoredRows
from mica.tasks.strings import gathered
from mica.tasks.unshred import unshredded
from mica.variant import kernel
from mica.variant.plain import to_variants

#: Rows and bytes of the sample from which a file's shredding schema is chosen.
SAMPLE_ROWS, SAMPLE_BYTES = 4096, 16 << 20

#: Rows that are shredded at once have about so many bytes then.
SHREDDED_BYTES = 16 << 20


#: The texts of a partition's values in the log.
Values: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True)
class WriteSpec:
    """The spec that is common to all files of a write. It is sent to workers; `storage` hides its secrets."""

    storage: Storage
    schema: StructType
    partition_by: tuple[str, ...] = ()
    #: Of partition columns the texts that are spelled otherwise than `stats.partition` does, by how it spells them.
    spelled: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    shredding: Shredding = field(default_factory=Shredding)
    properties: Mapping[str, str] = field(default_factory=dict)
    #: Variant paths (names of the column in lower case, normalized path) that get bounds before all others.
    bounded: frozenset[Named] = frozenset()
    target_file_size: int = 128 << 20
    #: Whether the protocol allows bounds of Variants in the statistics.
    bounds: bool = True
    #: The name of the only file to write; it replaces an existing one when it is complete.
    name: str | None = None
    #: Whether a task without rows writes a file too, as where the file is named.
    even_empty: bool = False
    #: The part that the names of all files of this write share, to find them if it fails.
    mark: str = ""
    #: What the files are in the log (`cdc`: change files, `tasks.changed_rows`), and their directory below the table.
    kind: Literal["add", "cdc"] = "add"
    directory: str = ""
    options: kernel.FileOptions = field(default_factory=kernel.FileOptions)
    #: Who clustered the rows of the files (PROTOCOL.md, "Clustered Table").
    clustering_provider: str | None = None
    #: False if the rows are those of files that the same commit removes.
    data_change: bool = True
    #: Columns whose strings are gathered for a comparator, and its version.
    collated: tuple[CollatedColumn, ...] = ()
    version: str = ""
    #: Whether files hold the partition columns too (PROTOCOL.md, "Materialize Partition Columns").
    materialized: bool = False
    #: What new rows must fulfil and get.
    rules: Rules = field(default_factory=Rules)
    #: The columns for ids and versions of rows that are written again, if the table tracks rows.
    row_ids: tuple[str, str] | None = None

    def stored(self, names: Iterable[str]) -> StructType:
        """The columns of files for rows with columns of these names: those of the table, and the ids that rows keep.
        They are in no schema, and so have no statistics and no field ids (PROTOCOL.md, "Row Tracking").
        """
        kept = set(self.row_ids or ()) & set(names)
        return StructType((*self.schema.fields, *(StructField(n, LONG) for n in self.row_ids or () if n in kept)))


def new_mark() -> str:
    """A unique mark for the file names of one write."""
    return f"{uuid.uuid4().hex[:12]}-"


def write_files(
    spec: WriteSpec,
    batches: Iterable[pa.RecordBatch | StoredRows],
    also: Callable[[pa.RecordBatch], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Writes the rows and yields facts. The batches have the columns of the table; Variants are unshredded, shredded,
    or values that become Variants (`variant.plain`). `also` gets each batch as the files get it: cast, with the values
    that the table's rules add; rows that are stored are not new.
    """
    rows = size = 0
    plan = seen = None
    rules, mine = spec.rules, lane.current()
    absent: frozenset[str] = frozenset()
    with TableWriter(spec) as writer:
        for given in batches:
            if isinstance(given, StoredRows):
                rows += given.batch.num_rows
                size += given.batch.nbytes
                writer.write(given.batch, given.trees)
                continue
            batch = unshredded(given, spec.schema)
            if plan is None or seen != batch.schema:
                supplied = rules.supplied
                stored = spec.stored(batch.schema.names)
                plan = plan_write(stored, batch.schema, variants=to_variants, supplied=supplied)
                absent, seen = rules.absent(batch.schema.names), batch.schema
            rows += batch.num_rows
            size += batch.nbytes
            for piece in cut(batch):
                made = plan.apply(piece)
                made = rules.apply(made, absent, mine) if rules else made
                writer.write(made)
                if also is not None:
                    also(made)
        if (spec.name is not None or spec.even_empty) and rows == 0:
            writer.write_empty()
        adds = writer.close()
    yield facts([*adds, *numbers(mine), {"kind": "read", "rows": rows, "bytes": size}], spec.collated)


class TableWriter:
    """Writes rows to files of one table: one open file per partition value, rolled when it is large enough. Rows wait
    once they are of more partitions than may be open (`tasks.held`).

    Leaving the `with` block without `close` deletes all its files.
    """

    def __init__(self, spec: WriteSpec) -> None:
        self.spec = spec
        self._open: OrderedDict[Values, DataFileWriter] = OrderedDict()
        #: Partitions whose files were finished for those of others, before they were large.
        self._evicted = set[Values]()
        self._held, self._holds = HeldRows(), False
        self._adds: list[dict[str, Any]] = []
        self._left: list[dict[str, Any]] = []
        self._finished: list[str] = []
        self._uploads = Uploads()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._closed:
            self.abort()

    def write(self, batch: kernel.Rows, trees: Trees = None) -> None:
        """Writes rows of the table. With `trees` the Variants are in their storage layout, shredded by these."""
        if batch.num_rows == 0:
            return
        if not self.spec.partition_by:
            self._put((), batch, trees)
            return
        if not self._holds:
            rows = kernel.arrow(batch)
            found = self._groups(rows)
            self._holds = len(found) > MAX_OPEN or any(values in self._evicted for values, _ in found)
            if not self._holds:
                self._put_groups(rows, found, trees)
                return
        self._held.add(batch, trees)
        if self._held.are_many:
            self._release()

    def _release(self) -> None:
        for rows, trees in self._held.released():
            self._put_groups(rows, self._groups(rows), trees)

    def _put(self, values: Values, rows: kernel.Rows, trees: Trees) -> None:
        # A file can only be rolled between two pieces.
        for piece in cut(rows, self.spec.target_file_size):
            file = self._file(values)
            file.write(piece, trees)
            if file.bytes >= self.spec.target_file_size:
                self._finish(values)

    def write_empty(self) -> None:
        """Begins a file without rows, so that a file that was requested by name exists even without rows."""
        self._file(()).begin_empty()

    def rolls(self) -> bool:
        """Whether no file is open: the next rows begin a new file, which may have another shredding schema."""
        return not self._open and not self._held

    def close(self) -> list[dict[str, Any]]:
        """Finishes all files; one fact (of kind `add`) each, and those of kind `left`."""
        self._release()
        for values in list(self._open):
            self._finish(values)
        self._uploads.wait()
        self._closed = True
        return [*self._adds, *self._left]

    def report_left(self, left: Iterable[dict[str, Any]]) -> None:
        """Adds facts about paths that did not become typed columns, of rows that came shredded."""
        self._left += left

    def abort(self) -> None:
        """Deletes the written files, as far as the storage allows."""
        for file in self._open.values():
            file.abort()
        self._open.clear()
        self._uploads.give_up()
        self.spec.storage.discard(self._finished)
        self._finished.clear()
        self._closed = True

    def _file(self, values: Values) -> DataFileWriter:
        file = self._open.get(values)
        if file is None:
            if len(self._open) >= MAX_OPEN:
                least_used = next(iter(self._open))
                self._finish(least_used)
                self._evicted.add(least_used)
            file = self._open[values] = DataFileWriter(self.spec, values)
        self._open.move_to_end(values)
        return file

    def _finish(self, values: Values) -> None:
        file = self._open[values]
        add = file.close(self._uploads)
        del self._open[values]
        self._finished.append(file.path)
        self._adds.append(add)
        self._left += file.left

    def _groups(self, batch: pa.RecordBatch) -> list[tuple[Values, pa.Array]]:
        """The partitions of rows, each with its rows."""
        names = self.spec.partition_by
        fields = [self.spec.schema.field(name) for name in names]
        columns = [log_texts(batch.column(f.name), f, self.spec.spelled.get(f.name, {})) for f in fields]
        for f, texts in zip(fields, columns, strict=True):
            # An empty text is null as the value of a partition (PROTOCOL.md, "Partition Value Serialization").
            check_nulls(texts, pa.field(f.name, texts.type, f.nullable), f.name)
        return list(groups(columns))

    def _put_groups(self, batch: pa.RecordBatch, found: list[tuple[Values, pa.Array]], trees: Trees) -> None:
        """Writes the rows of each partition to its file."""
        rest = batch if self.spec.materialized else batch.drop_columns(list(self.spec.partition_by))
        # Taken once, and handed over once, then cut: either costs more than the few rows of a partition.
        rest = together(rest, found)
        # With trees the kernel takes the rows as they are.
        rows: kernel.Rows = rest if trees is None else kernel.taken(rest)
        start = 0
        for values, indices in found:
            self._put(values, rows.slice(start, len(indices)), trees)
            start += len(indices)


class DataFileWriter:
    """An unfinished data file of one partition."""

    def __init__(self, spec: WriteSpec, values: Values) -> None:
        self.spec, self._shredding = spec, spec.shredding
        names = (physical_name(spec.schema.field(name)) for name in spec.partition_by)
        self.values = dict(zip(names, values, strict=True))
        self._mapped = is_mapped(spec.schema)
        #: The Variants by their names in the file, with those that the spec has.
        self._variants = {physical_names(spec.schema, at): at for at in spec.shredding.variants}
        prefix = "part" if spec.kind == "add" else spec.kind
        name = spec.name or new_file_name(f".{spec.options.get('compression', 'zstd')}.parquet", spec.mark, prefix)
        self.path = "/".join(part for part in (spec.directory, partition_directory(self.values), name) if part)
        self._writer: kernel.FileWriter | kernel.Transcription | None = None
        self._fits: pa.Schema | None = None
        #: Rows that the file has so far, and those to shred next.
        self._rows, self._next_rows = 0, 64
        self._trees: dict[tuple[str, ...], pa.DataType] = {}
        self._upload: Writer | None = None
        #: Whether the kernel writes the file where it stays.
        self._is_direct = False
        self._waiting: list[kernel.Batch] = []
        self._waiting_bytes = 0
        self._has_variants = contains(spec.schema, VARIANT)
        self._late_types = False
        #: Facts about paths that did not become typed columns.
        self.left: list[dict[str, Any]] = []
        # Change files have no statistics in the log.
        leaves = spec.collated if spec.kind == "add" else ()
        self._candidates = [candidates.Candidates(leaf, spec.version) for leaf in leaves]

    @property
    def bytes(self) -> int:
        """The approximate current size of the file."""
        return self._waiting_bytes // 4 + (self._writer.bytes_written if self._writer else 0)

    def write(self, batch: kernel.Rows, trees: Trees) -> None:
        """Adds rows; the first ones are buffered until they suffice as the sample for the shredding schema."""
        for found in self._candidates:
            found.add(candidates.leaf_strings(kernel.arrow(batch), found.leaf))
            found.keep_few()
        if self._mapped:
            batch = physical(kernel.arrow(batch), self.spec.schema)
            trees = None if trees is None else {physical_names(self.spec.schema, at): t for at, t in trees.items()}
        batch = kernel.taken(batch)
        if self._has_variants and not self._shredding.from_json:
            if trees is None:
                batch = kernel.settle_nested(batch)
            self._late_types = self._late_types or kernel.may_hold_late_types(batch)
        if self._writer is None and trees is None and self._shredding.infers:
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes >= SAMPLE_BYTES or sum(b.num_rows for b in self._waiting) >= SAMPLE_ROWS:
                self._begin_inferred()
            return
        if self._writer is None:
            self._trees = dict(trees if trees is not None else self._given_trees())
        for ready in [batch] if trees is not None and trees == self._trees else self._pieces(batch):
            if self._writer is None:
                self._begin(ready)
            self._put(ready)

    def transcribe(self, reader: kernel.FileReader) -> kernel.Transcription | None:
        """Converts the other file page by page; returns None and writes nothing if that is not possible."""
        # Pages are copied with their types: where a column was widened since, they are not the table's.
        types = {f.name: f.type for f in reader.schema}
        if self._mapped or any(types.get(f.name, f.type) != f.type for f in to_arrow(self.spec.schema)):
            self.abort()
            return None
        columns = [(f.name, f.nullable) for f in self.spec.schema.fields]
        made = kernel.transcribe(reader, columns, self._shredding.layout, path=self._place(), options=self.spec.options)
        if made is None:
            self.abort()
            return None
        self._writer = made
        self._late_types = made.may_hold_late_types
        while made.step():
            self._drain()
        for _ in gathered(reader, self._candidates):
            for found in self._candidates:
                found.keep_few()
        return made

    def begin_empty(self) -> None:
        """Begins the file before there is a row; Variants are unshredded."""
        self._begin(physical(batch_of([], to_arrow(self.spec.schema)), self.spec.schema))

    def close(self, uploads: Uploads | None = None) -> dict[str, Any]:
        """Finishes the file and returns its fact. With `uploads` it is complete when these are."""
        if self._writer is None:
            self._begin_inferred()
        assert self._writer is not None
        closed = self._writer.close()
        storage = self.spec.storage
        if self._upload is not None:
            self._drain()
            # A file that replaces another is not one to discard while it may not be there yet.
            if uploads is None or self.spec.name is not None or storage.local_path is not None:
                self._upload.close()
            else:
                uploads.end(self._upload, closed["size"])
        else:
            storage.sync(self.path)
        found = {
            "kind": self.spec.kind,
            "path": encode_path(self.path),
            "partition_values": self.values,
            "size": closed["size"],
            "rows": closed["rows"],
            "bytes": closed["size"],
        }
        if self.spec.kind != "add":
            return found
        return found | {
            "modification_time": time.time_ns() // 1_000_000,
            "data_change": self.spec.data_change,
            "clustering_provider": self.spec.clustering_provider,
            "stats": stats_json(
                closed,
                self.spec.schema,
                self.spec.properties,
                variant_bounds=self.spec.bounds,
                partition_columns=self.spec.partition_by,
                first=self.spec.bounded,
            ),
            "tags": self._shredding.tags_of(self._late_types) if self._has_variants else None,
            "candidates": self._candidates,
        }

    def abort(self) -> None:
        """Deletes what was written of the file, as far as the storage allows. Before that there may be another file of
        this name, which it is to replace."""
        self._writer = None
        with contextlib.suppress(MicaError):
            if self._upload is not None:
                self._upload.abort()
            elif self._is_direct:
                self.spec.storage.delete(self.path)

    def _given_trees(self) -> Mapping[tuple[str, ...], pa.DataType]:
        """The trees of the table. A table without shredding still gets its Variants validated and encoded again."""
        if self._shredding.trees is not None:
            given = self._shredding.trees
            return {name: given[at] for name, at in self._variants.items() if at in given}
        return {} if self._shredding.from_json else {name: pa.null() for name in self._variants}

    def _begin_inferred(self) -> None:
        trees = dict(self._given_trees()) if self._shredding.trees is not None else {}
        sample = pa.Table.from_batches(map(kernel.arrow, self._waiting)).combine_chunks().to_batches()[0]
        if self._shredding.infers:
            for name, at in self._variants.items():
                if name not in trees:
                    limits = self._shredding.limits_of(at)
                    trees[name], left = kernel.infer(sample, name, limits)
                    self.left += facts_of(at, left, limits) if self._shredding.reports_left else ()
        self._trees = trees
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for batch in waiting:
            for piece in self._pieces(batch):
                if self._writer is None:
                    self._begin(self._shredded(sample) if self._shredding.omit_untyped else piece)
                self._put(piece)

    def _pieces(self, batch: kernel.Batch) -> Iterator[kernel.Batch]:
        """The rows, shredded. Each element of a list has a place in every column of it: few bytes may become many. So a
        piece has the rows that the one before lets expect in `SHREDDED_BYTES`, at most four times as many as that."""
        start = 0
        while start < batch.num_rows:
            piece = self._shredded(batch.slice(start, self._next_rows))
            start += piece.num_rows
            fit = SHREDDED_BYTES * piece.num_rows // max(piece.nbytes, 1)
            self._next_rows = max(min(fit, 4 * self._next_rows), 1)
            yield piece

    def _shredded(self, batch: kernel.R) -> kernel.R:
        early = self._shredding.layout == "early"
        return kernel.shred(batch, self._trees, early=early) if self._trees else batch

    def _begin(self, first: kernel.Rows) -> None:
        """Opens the file for rows of this schema, with a shredding schema that fits them."""
        schema = kernel.fitting_schema(kernel.arrow(first)) if self._shredding.omit_untyped else first.schema
        self._fits = schema if self._shredding.omit_untyped else None
        self._writer = kernel.FileWriter(schema, path=self._place(), **self.spec.options)

    def _place(self) -> str | None:
        """Prepares the target: the local path to write to, or None if the bytes are uploaded."""
        storage = self.spec.storage
        direct = storage.local_path is not None and self.spec.name is None
        if not direct:
            self._upload = storage.writer(self.path)
            return None
        storage.prepare(self.path)
        self._is_direct = True
        return storage.path(self.path)

    def _put(self, batch: kernel.Rows) -> None:
        assert isinstance(self._writer, kernel.FileWriter)
        self._writer.write(batch if self._fits is None else self._fitted(kernel.arrow(batch), self._fits))
        self._rows += batch.num_rows
        self._drain()

    def _fitted(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        try:
            return kernel.fit_batch(batch, schema)
        except UserError as e:
            # The kernel counts the rows of the batch.
            place = {**e.context, "row": e.context["row"] + self._rows} if "row" in e.context else e.context
            raise UserError(e.code, e.message, hint=e.hint, **place) from None

    def _drain(self) -> None:
        if self._upload is not None and self._writer is not None:
            data = self._writer.take_bytes()
            if data:
                self._upload.write(data)
