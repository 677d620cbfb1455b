"""Merges a source that is too large for every task: the keys of both sides are brought together by an engine's shuffle.

The rule: only what decides is shuffled. Of the target these are the columns of ON and of the conditions; whole rows are
read by the task that writes the file again, and only of files that change.

    source rows ──┐  by keys                   by file
    target keys ──┴──────────▶ match_rows ──────────────▶ change_files ──▶ facts
                               one bucket of keys         some files, or rows to insert

A bucket's source rows are in memory, its target rows stream by. Matching and writing are those of `tasks.merge`.
Without an equality in ON there are no keys: see `blocked_merge`.
"""

from __future__ import annotations

import itertools
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, batch_of, scalar, to_numpy
from mica.cached import cached_property
from mica.expressions.bind import Leaf
from mica.expressions.evaluate import RowError
from mica.records import dataclass
from mica.schema.arrow import from_arrow_type, to_arrow, to_arrow_type
from mica.schema.evolution import plan_write
from mica.schema.types import BOOLEAN, INTEGER, LONG, StructField, StructType
from mica.skipping.keys import KeyValues
from mica.skipping.row_ranges import numbers_at
from mica.stats.partition import format_values
from mica.tasks.batches import cut, joined
from mica.tasks.each_file import each_file
from mica.tasks.file import DataFileReader
from mica.tasks.groups import groups
from mica.tasks.leaf_values import Leaves, extract
from mica.tasks.matching import (
    SOURCE,
    Changes,
    MatchSpec,
    Rows,
    SourceRows,
    choose,
    comparable,
    key_values,
)
from mica.tasks.merge import MergeSpec, change_file, insert_chosen, inserted_columns, target_rows
from mica.tasks.parts import FilePart
from mica.tasks.row_errors import located
from mica.tasks.unshred import unshredded

Batches = Iterable[pa.RecordBatch]

#: What `summarize` yields.
SUMMARY = pa.schema(
    [
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("keys", pa.binary(), nullable=False),
    ]
)

#: What `source_strings` yields.
STRINGS = pa.schema([pa.field("key", pa.int32(), nullable=False), pa.field("string", pa.string())])

#: Rows and bytes of the target that meet the source of a bucket at once: each time all its keys are hashed.
_CHUNK_ROWS = 1 << 19
_CHUNK_BYTES = 64 << 20

#: The file number of rows to insert.
_INSERTED = -1


@dataclass(frozen=True)
class ShuffleSpec:
    """What is the same for all tasks of a shuffled merge."""

    merge: MergeSpec
    #: The columns of the source that the merge needs.
    source: StructType
    #: The files by the number of the task that changes them.
    files: tuple[tuple[FilePart, ...], ...] = ()
    #: How many tasks insert rows; their numbers follow those of the files.
    inserting: int = 1

    @property
    def match(self) -> MatchSpec:
        """ON and the clauses."""
        return self.merge.match

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of `rows` by which rows of both sides are brought together."""
        return (*(f"key{i}" for i in range(len(self.match.on.keys))), "salt")

    @property
    def leaf_columns(self) -> Mapping[Leaf, tuple[str, ...]]:
        """The columns of `rows` with the values of a leaf and, if it is a path, the mask of failed casts."""
        numbered = enumerate(self.match.key_leaves)
        return {leaf: (f"leaf{i}",) if leaf.path is None else (f"leaf{i}", f"failed{i}") for i, leaf in numbered}

    @cached_property
    def rows(self) -> StructType:
        """The columns of rows of both sides on their way to a bucket."""
        on = self.match.on
        none = Leaves(0, {leaf: _nothing(leaf.type, leaf.path is not None) for leaf in self.match.key_leaves})
        made = zip(self.keys, _hashable(comparable(on, "target", key_values(on, "target", none)[1])), strict=False)
        fields = [StructField(name, from_arrow_type(array.type)) for name, array in made]
        fields += [StructField(name, INTEGER) for name in ("salt", "side", "file")]
        fields += [StructField("row", LONG), StructField("source", self.source)]
        for leaf, names in self.leaf_columns.items():
            fields += [StructField(name, type_) for name, type_ in zip(names, (leaf.type, BOOLEAN), strict=False)]
        return StructType(tuple(fields))

    @property
    def changes(self) -> StructType:
        """The columns of changes on their way to the task of their file."""
        names = {"task": INTEGER, "file": INTEGER, "row": LONG, "clause": INTEGER, "source": self.source}
        return StructType(tuple(StructField(name, type_) for name, type_ in names.items()))

    @cached_property
    def needing(self) -> list[int]:
        """The clauses whose values are made of the source's."""
        clauses = enumerate(self.match.clauses)
        return [i for i, c in clauses if any(given.value.leaves("source") for given in c.values.values())]

    @cached_property
    def task_of(self) -> Mapping[int, int]:
        """The number of the task that changes a file, by the file's number."""
        return {part.number: task for task, parts in enumerate(self.files) for part in parts}

    def tasks_of(self, files: Rows) -> Rows:
        """The same for many."""
        known = np.fromiter(self.task_of, np.int64, len(self.task_of))
        tasks = np.fromiter(self.task_of.values(), np.int64, len(self.task_of))
        order = np.argsort(known)
        found: Rows = tasks[order][np.searchsorted(known[order], files)]
        return found


#: From what was found of a file, sorted by row and maybe with several changes of one, to its changes.
Settled = Callable[[ShuffleSpec, DataFileReader, Changes], Changes]


def _nothing(type_: Any, is_path: bool) -> list[pa.Array]:
    values = pa.nulls(0, to_arrow_type(type_))
    return [values, pa.nulls(0, pa.bool_())] if is_path else [values]


def _hashable(keys: Sequence[pa.Array]) -> list[pa.Array]:
    """Keys as columns that Spark has too; equal ones stay equal."""
    return [key.cast(pa.string()) if pa.types.is_decimal256(key.type) else key for key in keys]


def in_schema(batches: Batches, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The batches in exactly these columns."""
    for batch in batches:
        plain = unshredded(batch, schema)
        yield plan_write(schema, plain.schema).apply(plain)


def summarize(spec: MatchSpec, source: StructType, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rows and bytes of a part of the source, and the values of its keys."""
    rows = size = 0
    known: list[list[KeyValues]] = [[] for _ in spec.on.keys]
    for batch in in_schema(batches, source):
        rows, size = rows + batch.num_rows, size + batch.nbytes
        usable, values, _ = _source_keys(spec, batch)
        for key, found, mine in zip(spec.on.keys, known, values, strict=True):
            found[:] = [KeyValues.joined(key, [*found, KeyValues.of(key, mine.filter(arrow_array(usable)))])]
    packed = pickle.dumps([found[0] if found else None for found in known])
    yield batch_of([{"rows": rows, "bytes": size, "keys": packed}], schema=SUMMARY)


def source_strings(spec: MatchSpec, source: StructType, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The strings that are keys by a collation in a part of the source, with the numbers of their keys."""
    for batch in in_schema(batches, source):
        for number, (key, values) in enumerate(zip(spec.on.keys, _source_keys(spec, batch)[1], strict=True)):
            if key.collation is not None:
                strings = pc.unique(values)
                yield pa.RecordBatch.from_arrays([all_of(number, len(strings)), strings], schema=STRINGS)


def source_rows(spec: ShuffleSpec, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The rows of the source with their keys."""
    for batch in in_schema(batches, spec.source):
        keys = comparable(spec.match.on, "source", _source_keys(spec.match, batch)[1])
        count = batch.num_rows
        own = {"side": all_of(0, count), "file": all_of(0, count), "source": _struct(batch, spec.source)}
        yield from _shuffled(spec, keys, count, own)


def _source_keys(spec: MatchSpec, batch: pa.RecordBatch) -> tuple[np.ndarray[Any, Any], list[pa.Array], bool]:
    try:
        return key_values(spec.on, "source", extract(spec.source_key_leaves, batch, spec.timezone))
    except RowError as e:
        raise located(e, SOURCE) from None


def target_key_rows(spec: ShuffleSpec, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    """What matching needs of the target's rows, with their keys and places."""

    def keys_of(part: FilePart) -> Iterator[pa.RecordBatch]:
        file, before = DataFileReader(spec.merge.read, part), 0
        for chunk in target_rows(spec.merge, file):
            try:
                keys = comparable(spec.match.on, "target", key_values(spec.match.on, "target", chunk)[1])
            except RowError as e:
                raise located(e, file.name) from None
            places = numbers_at(file.passed, np.arange(before, before + chunk.rows))
            before += chunk.rows
            own = {"side": all_of(1, chunk.rows), "file": all_of(part.number, chunk.rows)}
            own["row"] = arrow_array(places, pa.int64())
            for leaf, names in spec.leaf_columns.items():
                own |= zip(names, chunk.columns[leaf], strict=True)
            yield from _shuffled(spec, keys, chunk.rows, own)

    yield from each_file(keys_of, parts, spec.merge.read)


def _shuffled(
    spec: ShuffleSpec, keys: Sequence[pa.Array], rows: int, own: Mapping[str, pa.Array]
) -> Iterator[pa.RecordBatch]:
    """Rows of one side as `spec.rows`: their keys and their own columns; the others are null."""
    # Rows that match nothing, because a key is null, need not meet; together they would be one large bucket.
    salt = np.zeros(rows, np.int32)
    for key, values in zip(spec.match.on.keys, keys, strict=True):
        if not key.null_safe and values.null_count:
            salt = np.where(to_numpy(values.is_null()), np.arange(rows, dtype=np.int32) % 4096 + 1, salt)
    known = {**dict(zip(spec.keys, [*_hashable(keys), arrow_array(salt, pa.int32())], strict=True)), **own}
    schema = to_arrow(spec.rows)
    arrays = [pc.as_type(known[f.name], f.type) if f.name in known else pa.nulls(rows, f.type) for f in schema]
    yield from cut(pa.RecordBatch.from_arrays(arrays, schema=schema))


def all_of(value: int, rows: int) -> pa.Array:
    """A number for each row."""
    return pa.repeat(scalar(value, pa.int32()), rows)


def _struct(batch: pa.RecordBatch, schema: StructType) -> pa.StructArray:
    return pa.StructArray.from_arrays(batch.columns, fields=list(to_arrow(schema)))


def unpacked(structs: pa.StructArray, schema: StructType) -> pa.RecordBatch:
    """The fields of structs as a batch of their own."""
    return pa.RecordBatch.from_arrays(structs.flatten(), schema=to_arrow(schema))


def match_rows(spec: ShuffleSpec, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The changes of the rows of one bucket, which come with the source's first; then the rows to insert."""
    ours: list[pa.RecordBatch] = []
    source: SourceRows | None = None
    matched = np.zeros(0, np.bool_)

    def of_target() -> Iterator[pa.RecordBatch]:
        for batch in in_schema(batches, spec.rows):
            is_target = pc.equal(batch.column("side"), 1)
            mine = batch.filter(pc.invert(is_target))
            if mine.num_rows:
                ours.append(unpacked(mine.column("source"), spec.source))
            theirs = batch.filter(is_target)
            if theirs.num_rows:
                yield theirs

    for theirs in joined(of_target(), _CHUNK_ROWS, _CHUNK_BYTES):
        if source is None:
            source = together(spec, ours)
            matched = np.zeros(source.batch.num_rows, np.bool_)
        try:
            found = source.changes(_leaves(spec, theirs), matched)
        except RowError as e:
            raise located(e, str(spec.merge.read.storage)) from None
        if len(found.rows):
            yield from _changes(spec, source.batch, found, theirs)
    if source is None:
        source = together(spec, ours)
        matched = np.zeros(source.batch.num_rows, np.bool_)
    if spec.match.numbers("not matched"):
        yield from inserts(spec, source, np.flatnonzero(~matched).astype(np.int64))


def together(spec: ShuffleSpec, batches: Sequence[pa.RecordBatch]) -> SourceRows:
    """Rows of the source, ready to be matched."""
    whole = pa.Table.from_batches(batches, to_arrow(spec.source)).combine_chunks().to_batches()
    return SourceRows(spec.match, whole[0] if whole else batch_of([], to_arrow(spec.source)))


def _leaves(spec: ShuffleSpec, rows: pa.RecordBatch) -> Leaves:
    columns = spec.leaf_columns.items()
    return Leaves(rows.num_rows, {leaf: [rows.column(name) for name in names] for leaf, names in columns})


def _changes(
    spec: ShuffleSpec, source: pa.RecordBatch, found: Changes, rows: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    places = arrow_array(found.rows)
    files = rows.column("file").take(places)
    tasks = arrow_array(spec.tasks_of(to_numpy(files)), pa.int32())
    yield from moving(spec, tasks, files, rows.column("row").take(places), found.clauses, source, found.sources)


def inserts(spec: ShuffleSpec, source: SourceRows, free: Rows) -> Iterator[pa.RecordBatch]:
    """The rows to insert among those of the source that match nothing."""
    acting, clauses = choose(spec.match, "not matched", {"source": (source.leaves, free)})
    yield from inserted(spec, source.batch, source.leaves, free[acting], clauses)


def inserted(
    spec: ShuffleSpec, source: pa.RecordBatch, leaves: Leaves, rows: Rows, clauses: Rows
) -> Iterator[pa.RecordBatch]:
    """Rows of the source on their way to the tasks that insert them, as these clauses say."""
    count = len(rows)
    tasks = arrow_array(_insert_tasks(spec, leaves, rows, clauses) + len(spec.files), pa.int32())
    files, places = all_of(_INSERTED, count), arrow_array(np.zeros(count), pa.int64())
    yield from moving(spec, tasks, files, places, clauses, source, rows)


def _insert_tasks(spec: ShuffleSpec, source: Leaves, rows: Rows, clauses: Rows) -> Rows:
    """The task that inserts each row: rows of a partition meet in one, so that its files are not many and small."""
    names = spec.merge.write.partition_by
    if not names:
        return np.arange(len(rows)) % spec.inserting
    found = np.zeros(len(rows), np.int64)
    changes = Changes(np.arange(len(rows)), clauses, rows)
    made = inserted_columns(spec.merge, source, changes, names)
    texts = [format_values(made[name], spec.merge.write.schema.field(name).type) for name in names]
    for values, indices in groups(texts):
        found[to_numpy(indices)] = zlib.crc32(repr(values).encode()) % spec.inserting
    return found


def moving(
    spec: ShuffleSpec,
    tasks: pa.Array,
    files: pa.Array,
    rows: pa.Array,
    clauses: Rows,
    source: pa.RecordBatch,
    sources: Rows,
) -> Iterator[pa.RecordBatch]:
    """Changes on their way to the tasks of their files, with the rows of the source that their clauses need; `sources`
    are the numbers of these."""
    taken = arrow_array(sources, pa.int64(), mask=~np.isin(clauses, spec.needing))
    structs = _struct(source, spec.source).take(taken)
    arrays = [tasks, files, rows, arrow_array(clauses, pa.int32()), structs]
    yield from cut(pa.RecordBatch.from_arrays(arrays, schema=to_arrow(spec.changes)))


def change_files(spec: ShuffleSpec, settled: Settled | None, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Changes the files of one task, whose changes are sorted by file and row, or inserts rows; yields facts. `settled`
    says what happens to a file of which several tasks found changes.
    """
    parts = {part.number: part for some in spec.files for part in some}
    by_file = itertools.groupby(_by_file(in_schema(batches, spec.changes)), lambda one: one[0])
    for number, some in by_file:
        if number == _INSERTED:
            yield from insert_chosen(spec.merge, (_chosen(spec, batch) for _, batch in some))
            continue
        whole = pa.Table.from_batches([batch for _, batch in some]).combine_chunks().to_batches()[0]
        rows, clauses = (to_numpy(whole.column(name)).astype(np.int64) for name in ("row", "clause"))
        source = unpacked(whole.column("source"), spec.source)
        leaves = extract(spec.match.leaves("source", "update"), source, spec.match.timezone)
        file = DataFileReader(spec.merge.read, parts[number])
        changes = Changes(rows, clauses, np.arange(len(rows)))
        yield from change_file(spec.merge, file, changes if settled is None else settled(spec, file, changes), leaves)


def _by_file(batches: Batches) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        files = to_numpy(batch.column("file"))
        edges = [0, *(np.flatnonzero(np.diff(files)) + 1).tolist(), len(files)]
        for start, end in itertools.pairwise(edges):
            if end > start:
                yield int(files[start]), batch.slice(start, end - start)


def _chosen(spec: ShuffleSpec, batch: pa.RecordBatch) -> tuple[Leaves, Rows, Rows]:
    source = unpacked(batch.column("source"), spec.source)
    leaves = extract(spec.match.leaves("source", "insert"), source, spec.match.timezone)
    return leaves, np.arange(batch.num_rows), to_numpy(batch.column("clause")).astype(np.int64)
