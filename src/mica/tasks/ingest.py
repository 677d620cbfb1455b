"""Ingests JSON text into data files.

The rule: text becomes shredded columns without a Variant in between. A line that cannot be read, or that makes no row
of the table, is an error or is quarantined; it is never dropped.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

import pyarrow as pa

from mica import compute as pc
from mica import late, threads
from mica.cached import cached_property
from mica.collation.near import placed
from mica.errors import CorruptDataError, UserError
from mica.expressions.bind import BoundExpr
from mica.records import dataclass
from mica.schema.arrow import to_arrow, to_arrow_field
from mica.schema.types import StructField, StructType
from mica.storage import Storage
from mica.storage.base import another
from mica.tasks import lane, not_json
from mica.tasks.bad_lines import BadLines
from mica.tasks.batches import HELD, JOINED_BYTES
from mica.tasks.facts import facts, numbers
from mica.tasks.leaf_values import compute, distinct, extract
from mica.tasks.left import facts_of
from mica.tasks.write import TableWriter, WriteSpec
from mica.variant import kernel
from mica.variant.shredding import Limits

#: Rows and bytes of one batch between the parser and the writer.
BATCH_ROWS = 16_384
BATCH_BYTES = 16 << 20

#: Documents of files are joined up to so many rows.
FEW_ROWS = 1024

#: Rows of a split of so many bytes are enough to say which columns a file has.
SAMPLE_BYTES = 64 << 10

#: Bytes that are fetched at once from an object store, and how many such requests are under way.
FETCH_BYTES = 4 << 20
FETCHES = 3

#: The first bytes of a file, which say how it is compressed and mostly whether it is NDJSON. A small file of an object
#: store is fetched whole.
HEAD_BYTES = 64 << 10
SMALL_BYTES = 1 << 20

#: A zstd file may begin with a frame to skip, as those of pzstd do (RFC 8878, 3.1.2).
_MAGIC = {"gzip": re.compile(rb"\x1f\x8b"), "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")}


@dataclass(frozen=True)
class Split:
    """A part of one input file: all of it, or the lines that begin in [start, end).

    `format` is `ndjson` (one document per line), `json` (one array, or documents over several lines) or `auto`, which
    decides for the whole file.
    """

    storage: Storage
    path: str
    size: int
    start: int = 0
    end: int | None = None
    format: str = "auto"
    #: The modification time of the file, in ms since the epoch.
    modified: int = 0

    @cached_property
    def name(self) -> str:
        """The name of the file in messages, and in the record of the files that a table has: it is asked for often."""
        return self.storage.path(self.path)

    @property
    def bytes(self) -> int:
        """The bytes of it."""
        return (self.size if self.end is None else self.end) - self.start


@dataclass(frozen=True)
class IngestSpec:
    """What is the same for every split of an ingest."""

    write: WriteSpec
    column: str
    tree: pa.DataType | None = None
    columns: Mapping[str, BoundExpr] = field(default_factory=dict)
    keys: Mapping[str, BoundExpr] = field(default_factory=dict)
    quarantine: Storage | None = None
    reader: kernel.JsonOptions = field(default_factory=kernel.JsonOptions)
    timezone: str = "UTC"

    @property
    def bare(self) -> bool:
        """Whether files hold the documents as they are, and nothing else: their rows stay in the kernel."""
        return len(self.write.schema.fields) == 1 and not self.write.rules

    @property
    def absent(self) -> frozenset[str]:
        """The columns that the rules of the table complete."""
        return self.write.rules.absent((self.column, *self.columns))

    @property
    def numbered(self) -> frozenset[str]:
        """The identity columns to complete, and those that are generated of them: the tasks that write do it, and
        report the numbers."""
        own = self.absent & self.write.rules.identities.keys()
        generated = self.write.rules.generated.items()
        of_them = {name for name, value in generated if any(leaf.column[0] in own for leaf in value.leaves)}
        return own | (self.absent & of_them)

    def sorted_by(self, batch: pa.RecordBatch, name: str) -> list[pa.Array]:
        """The sort keys of documents of the file `name`; those with a collation are in its order, as bounds are."""
        keys = []
        for key in self.keys.values():
            values, collation = compute(key, batch, self.timezone, name=name), dict(key.collations).get("")
            keys.append(values if collation is None else placed(values, collation))
        return keys

    @property
    def rows_schema(self) -> StructType:
        """The columns of `ingest_rows`: the table's, then the sort keys."""
        keys = tuple(StructField(name, value.type) for name, value in self.keys.items())
        return StructType((*(f for f in self.write.schema.fields if f.name not in self.numbered), *keys))


def ingest_splits(spec: IngestSpec, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """Writes the documents of the splits to data files; yields facts, with those of kind `read` as it proceeds."""
    shredding = spec.write.shredding
    infers, limits = shredding.trees is not None and spec.tree is None, shredding.limits_of((spec.column,))
    mine, bare = lane.current(), spec.bare
    places = [(split.name, split.start) for split in splits]
    with TableWriter(spec.write) as writer, BadLines(spec.quarantine, places) as bad:
        tree = spec.tree if shredding.trees is not None and spec.tree is not None else pa.null()
        # Arrow cannot select rows of views: those of a partition, or those that are good.
        views = not spec.write.partition_by and (bare or spec.quarantine is None)
        documents = _Documents(bad, partial(_completed, spec, mine))
        readers = _Readers(splits, partial(open_reader, spec, views=views))
        progress = ReadCounter(bad)

        def written(made: Iterable[kernel.Rows]) -> None:
            for rows in made:
                writer.write(rows, {(spec.column,): tree} if tree != pa.null() else {})
                progress.rows += rows.num_rows

        for at, split in enumerate(splits):
            reader = readers.take(at)
            while True:
                # Waiting documents have the columns of a file that begins with them.
                if infers and writer.rolls() and not documents.waiting:
                    tree, left = readers.inferred(at, reader, spec.column, limits)
                    writer.report_left(facts_of((spec.column,), left, limits) if shredding.reports_left else ())
                batch = reader.next_batch(tree, BATCH_ROWS, BATCH_BYTES)
                bad.take(reader)
                if batch is None:
                    break
                written([batch] if bare else documents.add(batch.to_arrow(), split.name))
                yield from progress.facts(spec.write, reader.bytes_read, every=1.0)
            progress.ended(reader.bytes_read)
        written(documents.rest())
        yield from progress.facts(spec.write, 0, every=0.0)
        adds = writer.close()
        bad.close()
    yield facts([*adds, *numbers(mine)], spec.write.collated)


def ingest_rows(spec: IngestSpec, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """The documents of the splits as rows of the table, Variants unshredded, with the sort keys at the end."""
    schema = to_arrow(spec.rows_schema)
    with BadLines(spec.quarantine, [(split.name, split.start) for split in splits]) as bad:
        documents = _Documents(bad, partial(_keyed, spec, schema))
        readers = _Readers(splits, partial(open_reader, spec))
        for at, split in enumerate(splits):
            reader = readers.take(at)
            while True:
                read = reader.next_batch(pa.null(), BATCH_ROWS, BATCH_BYTES)
                bad.take(reader)
                if read is None:
                    break
                yield from documents.add(read.to_arrow(), split.name)
        yield from documents.rest()
        bad.close()


class _Documents:
    """What `make` makes of the documents of files, given the name of the file: those of small files are joined, as each
    step costs a row what it costs thousands, and a batch of a row holds the memory of thousands."""

    def __init__(self, bad: BadLines, make: Callable[[str, pa.RecordBatch], pa.RecordBatch]) -> None:
        self._bad, self._make = bad, make
        self.waiting: list[tuple[pa.RecordBatch, str]] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of documents that are enough, with these; those of a large file at once."""
        if self.waiting and (batch.num_rows >= FEW_ROWS or batch.schema != self.waiting[0][0].schema):
            yield from self.rest()
        self.waiting.append((batch, name))
        self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes
        if self._rows >= FEW_ROWS or self._bytes >= JOINED_BYTES or len(self.waiting) >= HELD:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """The rows of the documents that wait."""
        pieces, self.waiting, self._rows, self._bytes = self.waiting, [], 0, 0
        if len(pieces) > 1:
            try:
                made = self._make("", pa.concat_batches([batch for batch, _ in pieces]))
            except (UserError, CorruptDataError):
                pass  # each file again, as the error is to name it
            else:
                yield made
                return
        for batch, name in pieces:
            yield from self._bad.sift(batch, partial(self._make, name), name)


def _completed(spec: IngestSpec, mine: lane.Lane, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of the table that these documents make, as its rules complete and check them."""
    table = complete(spec, batch, name)
    return spec.write.rules.apply(table, spec.absent, mine) if spec.write.rules else table


def _keyed(spec: IngestSpec, schema: pa.Schema, name: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with their sort keys, as `schema` says: the tasks that write them number and check them."""
    if spec.quarantine is not None:
        # Only here is it known which document a row was.
        table = _completed(spec, lane.Lane(0), name, batch)
    else:
        table = spec.write.rules.fill(complete(spec, batch, name), spec.absent - spec.numbered, lane.Lane(0))
    keys = spec.sorted_by(batch, name)
    table = table.drop_columns(list(spec.numbered))
    return pa.RecordBatch.from_arrays([*_unshredded(table, schema), *keys], schema=schema)


def _unshredded(batch: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """The columns in the types of `schema`: a Variant that came without a tree may still carry an empty typed_value."""
    if all(c.type == f.type for c, f in zip(batch.columns, schema, strict=False)):
        return list(batch.columns)
    return list(kernel.unshred(batch).columns)


def complete(spec: IngestSpec, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """The table's columns: the documents as they are, the computed columns, and null for the rest."""
    document, absent = batch.column(0), spec.absent
    leaves = extract(distinct(leaf for value in spec.columns.values() for leaf in value.leaves), batch, spec.timezone)
    arrays, fields = [], []
    for column in spec.write.schema.fields:
        field_ = to_arrow_field(column)
        if column.name == spec.column:
            array, field_ = document, batch.schema.field(0)
        elif column.name in spec.columns:
            computed = compute(spec.columns[column.name], batch, spec.timezone, name=name, leaves=leaves)
            array = pc.as_type(computed, field_.type)
        else:
            array = pa.nulls(batch.num_rows, field_.type)
        if not column.nullable and array.null_count and column.name not in absent:
            error = CorruptDataError(
                "NULL_IN_NOT_NULL_COLUMN",
                f"{name}: column {column.name!r} is NOT NULL and a document has no value for it",
                path=name,
            )
            raise error.at_rows(pc.is_null(array))
        arrays.append(array)
        fields.append(field_)
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


class _Readers:
    """Readers of splits, opened in their turn, or before it: where a file begins with a split of a line or two, the
    rows of a larger one after it say which columns it has. The first bytes of files in an object store are asked for
    before their turn, several at once."""

    def __init__(self, splits: Sequence[Split], opened: Callable[[Split, Head], JsonSource]) -> None:
        self._splits, self._opened = splits, opened
        self._waiting: dict[int, JsonSource] = {}
        self._heads: dict[int, late.futures.Future[Head]] = {}
        self._asked = 0

    def take(self, at: int) -> JsonSource:
        """The reader of this split."""
        self._asked = max(self._asked, at)
        self._ask(at + threads.REQUESTS)
        self._heads.pop(at - 1, None)
        return self._waiting.pop(at, None) or self._open(at)

    def _ask(self, end: int) -> None:
        """Asks for the first bytes of the files before `end`."""
        for split in self._splits[self._asked : end]:
            if split.storage.local_path is None and self._asked not in self._waiting:
                self._heads[self._asked] = threads.soon(partial(head_of, split))
            self._asked += 1

    def _open(self, at: int) -> JsonSource:
        split, coming = self._splits[at], self._heads.get(at)
        return self._opened(split, head_of(split) if coming is None else coming.result())

    def inferred(self, at: int, reader: JsonSource, column: str, limits: Limits) -> kernel.Inferred:
        """The columns of a file that begins with the split `at`, while `reader` reads it: those of the next split that
        is large enough for a sample, or of the documents of several, all small."""
        chosen = next((n for n, split in enumerate(self._splits[at:], at) if split.bytes >= SAMPLE_BYTES), None)
        if chosen is None and at + 1 < len(self._splits) and (few := self._few(at)) is not None:
            return kernel.infer(few, [column], limits)
        if chosen is None or chosen == at:
            return reader.infer(limits)
        if chosen not in self._waiting:
            self._waiting[chosen] = self._open(chosen)
        return self._waiting[chosen].infer(limits)

    def _few(self, at: int) -> pa.RecordBatch | None:
        """The documents of small splits from `at` on, as many as are a sample: they are read again in turn. None if
        there are none."""
        found, size = [], 0
        for number, split in enumerate(self._splits[at:], at):
            self._ask(number + threads.REQUESTS)
            reader = self._open(number)
            while (batch := reader.next_batch(pa.null(), BATCH_ROWS, BATCH_BYTES)) is not None:
                found.append(batch.to_arrow())
            size += split.bytes
            if size >= SAMPLE_BYTES:
                break
        return pa.concat_batches(found) if found else None


class ReadCounter:
    """Counts the rows, the bad lines and the bytes read since the last fact, over all splits of a task: facts are kept
    until the end of the write, and one of each small file took 50 kB."""

    def __init__(self, bad: BadLines) -> None:
        self._bad, self._told = bad, bad.count
        self.rows = self._bytes = self._ended = 0
        self._at = time.monotonic()

    def ended(self, bytes_read: int) -> None:
        """Says how much was read of a split that has ended."""
        self._ended += bytes_read

    def facts(self, spec: WriteSpec, bytes_read: int, *, every: float) -> Iterator[pa.RecordBatch]:
        """One fact, if `every` seconds have passed since the last. `bytes_read` are those of the open split."""
        now, bytes_read = time.monotonic(), self._ended + bytes_read
        if now - self._at >= every:
            one = {"kind": "read", "rows": self.rows, "bytes": bytes_read - self._bytes}
            yield facts([{**one, "bad": self._bad.count - self._told}], spec.collated)
            self.rows, self._bytes, self._told = 0, bytes_read, self._bad.count
            self._at = now


def open_reader(spec: IngestSpec, split: Split, head: Head | None = None, *, views: bool = False) -> JsonSource:
    """A reader of the split: the kernel reads local files itself; bytes of other files are fed to it."""
    head = head_of(split) if head is None else head
    compression, format_ = told_by(head, split)
    local = split.storage.path(split.path) if split.storage.local_path is not None else None
    reader = kernel.JsonReader(
        column=spec.column, format=format_, compression=compression, path=local, name=split.name, start=split.start,
        end=split.end, options={"on_error": "fail" if spec.quarantine is None else "collect", **spec.reader},
        views=views,
    )  # fmt: skip
    return reader if local is not None else _Fed(reader, split, *head)


class _Fed:
    """A reader that is fed from a storage, with the interface of one that reads by itself. `head` is what has been read
    of the file, of which `tag` is the tag."""

    def __init__(self, reader: kernel.JsonReader, split: Split, head: bytes, tag: str | None) -> None:
        self._reader, self._split, self._head, self._tag = reader, split, head, tag
        # The byte before a split says whether a line begins at its start.
        self._at = max(0, split.start - 1)
        self._asked = self._at + len(head)
        self._coming = deque[late.futures.Future[Head]]()

    def infer(self, limits: Limits) -> kernel.Inferred:
        self._feed()
        found = self._reader.infer(limits)
        while self._reader.wants_input():
            # All that was fed is in the sample, which is not full: a row may be longer than one fetch.
            self._feed()
            found = self._reader.infer(limits)
        return found

    def next_batch(self, tree: pa.DataType, max_rows: int, max_bytes: int) -> kernel.Batch | None:
        self._feed()
        return self._reader.next_batch(tree, max_rows, max_bytes)

    def take_errors(self) -> pa.RecordBatch:
        return self._reader.take_errors()

    @property
    def bytes_read(self) -> int:
        return self._reader.bytes_read

    def _feed(self) -> None:
        split = self._split
        while self._reader.wants_input():
            data, self._head = self._head, b""
            if not data and self._at < split.size:
                data = self._fetched()
            if data:
                self._reader.feed(data)
                self._at += len(data)
            if self._at >= split.size:
                # Said with the last bytes: a row without a line break, and what gzip holds back, are there at once.
                self._reader.finish()

    def _fetched(self) -> bytes:
        """The next bytes, while those after them are asked for. Beyond its end a split needs the rest of a line."""
        split = self._split
        while not self._coming or (len(self._coming) < FETCHES and self._asked < split.start + split.bytes):
            # A small split of a large file does not need a full fetch.
            end = min(self._asked + min(FETCH_BYTES, max(split.bytes, HEAD_BYTES)), split.size)
            read = partial(split.storage.read_same, split.path, self._asked, end, self._tag, size=split.size)
            self._coming.append(threads.soon(read))
            self._asked = end
        data, tag = self._coming.popleft().result()
        if self._tag not in (None, tag):
            raise another(split.storage.path(split.path))
        self._tag = tag
        return data


JsonSource = kernel.JsonReader | _Fed

#: The first bytes of a file and, in a store, its tag.
Head = tuple[bytes, str | None]


def look(split: Split) -> tuple[str | None, str]:
    """(compression, format) of a file by its first bytes; the format is `auto` where they do not say."""
    return told_by(head_of(split), split)


def head_of(split: Split) -> Head:
    """The head of a file; nothing of a part of one, or of an empty one."""
    if split.start or split.end is not None or not split.size:
        return b"", None
    if split.storage.local_path is not None:
        return split.storage.read_ranges(split.path, [(0, min(HEAD_BYTES, split.size))])[0], None
    end = split.size if split.size <= SMALL_BYTES else HEAD_BYTES
    return split.storage.read_same(split.path, 0, end, None, size=split.size)


def told_by(head: Head, split: Split) -> tuple[str | None, str]:
    """The same of a file whose head is known."""
    if split.start or split.end is not None:
        return None, "ndjson"  # only plain NDJSON is split
    data = text = head[0][:HEAD_BYTES]
    compression = next((name for name, magic in _MAGIC.items() if magic.match(data)), None)
    if compression is not None:
        text = b""
        # The reader reports a damaged file, with the position.
        with contextlib.suppress(OSError, pa.ArrowInvalid):
            text = pa.CompressedInputStream(pa.BufferReader(data), compression).read(4096)
    not_json.refuse(split.name, text)
    if split.format != "auto":
        return compression, split.format
    whole = compression is None and len(data) == split.size
    return compression, kernel.json_format(text, whole, split.path) or "auto"
