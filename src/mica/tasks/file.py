"""Reads one data file of a scan: the values of its leaves, in the rows for which a predicate is true.

The rule: a row is left out only if the deletion vector in the log names it, the file proves that it cannot match
(`skipper.py`), or the predicate is not true for it. Partition values, which are in the log, and columns that the file
lacks are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mica import threads
from mica.arrays import arrow_array, scalar
from mica.cached import cached_property
from mica.errors import CorruptDataError, MicaError, UserError
from mica.expressions.bind import BoundExpr, Leaf
from mica.expressions.tree import LeafRef
from mica.log.feed_columns import CHANGE_TYPE, COMMIT_VERSION
from mica.log.file_facts import file_facts
from mica.records import dataclass
from mica.schema.arrow import is_variant, to_arrow_type
from mica.schema.char import at as declared_at
from mica.schema.char import padded
from mica.schema.collations import COLLATIONS
from mica.schema.hidden import ROW_ID, ROW_INDEX, ROW_VERSION, is_hidden
from mica.schema.special import CHAR_VARCHAR
from mica.schema.types import StructField, StructType, nests_variants, variant_columns
from mica.skipping.bloom import questions, searches
from mica.skipping.row_ranges import Numbers, Positions, RowRanges, intersect, ranges_of, without_rows
from mica.stats.columns import field_of, physical_name, physical_names
from mica.stats.partition import parse_values
from mica.storage import Storage
from mica.storage.tails import Fetch, Tails
from mica.tasks import file_errors
from mica.tasks.file_columns import Level, Located, aligned, find, has_ids, locate, unmarked
from mica.tasks.leaf_columns import ColumnOfFiles, FileColumn, leaves_in
from mica.tasks.leaf_values import Leaves, distinct
from mica.tasks.parts import FilePart
from mica.tasks.row_errors import text, whole
from mica.variant import kernel

if TYPE_CHECKING:
    from mica.tasks.skipper import Skipper

#: Returns the rows that a deletion vector names.
Rows = Callable[[], np.ndarray]

#: Rows and bytes of one batch.
BATCH_ROWS = 65_536
BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class ReadSpec:
    """The spec that is common to all files of a scan. It is sent to workers; `storage` hides its secrets."""

    storage: Storage
    #: The columns of the table, and which of them are in the log instead of the files.
    columns: StructType
    partition_by: tuple[str, ...]
    outputs: Mapping[str, BoundExpr]
    predicate: BoundExpr | None = None
    #: By what row groups and pages are skipped in place of the predicate; whoever gets the rows evaluates it.
    skips: BoundExpr | None = None
    limit: int | None = None
    timezone: str = "UTC"
    #: The version of the table, None for bare files.
    version: int | None = None
    #: Whether the files are those of commits up to that version.
    of_commits: bool = False
    #: Whether files identify columns by ids instead of names.
    by_id: bool = False
    #: The columns of files that hold the ids and versions of rows (`schema/hidden.py`); None: they are not tracked.
    row_ids: tuple[str, str] | None = None
    #: Which columns may be of the early shredding layout; a table has none.
    early: bool | list[list[str]] = False
    #: Cached ends of files that were opened before.
    tails: Tails = field(default_factory=Tails, repr=False, compare=False)

    @cached_property
    def variants(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The Variant columns, and their names in files."""
        columns = self.columns
        return {at: physical_names(columns, at) for at in variant_columns(columns)}

    @cached_property
    def nested_variants(self) -> tuple[StructField, ...]:
        """The columns with Variants in arrays and maps."""
        return tuple(f for f in self.columns.fields if nests_variants(f.type))

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """What the outputs and the predicate are evaluated on, each once."""
        bound = [*self.outputs.values(), *([] if self.predicate is None else [self.predicate])]
        return tuple(distinct(leaf for one in bound for leaf in one.leaves))

    def questions_of(self, predicate: BoundExpr) -> Iterable[tuple[int, int, pa.Array]]:
        """What a predicate asks of bloom filters; that of the scan is asked once for all files."""
        return self._questions if predicate is self.predicate else questions(predicate)

    def searches_of(self, predicate: BoundExpr) -> Iterable[tuple[int, pa.Array]]:
        """Which texts a predicate wants in every row; that of the scan is asked once for all files."""
        return self._searches if predicate is self.predicate else searches(predicate)

    @cached_property
    def _questions(self) -> tuple[tuple[int, int, pa.Array], ...]:
        return () if self.predicate is None else tuple(questions(self.predicate))

    @cached_property
    def _searches(self) -> tuple[tuple[int, pa.Array], ...]:
        return () if self.predicate is None else tuple(searches(self.predicate))

    @cached_property
    def schema(self) -> StructType:
        """The output columns. One that is a column of the table has its comment, under any name, as in Spark."""
        outputs = self.outputs.items()
        return StructType(tuple(StructField(n, v.type, True, _metadata(n, v, self.columns)) for n, v in outputs))


def _metadata(name: str, value: BoundExpr, columns: StructType) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if value.collations:
        found[COLLATIONS] = {name + way: one for way, one in value.collations}
    if isinstance(value.expr, LeafRef):
        leaf = value.leaves[value.expr.index]
        column, *path = leaf.column
        top = columns.find(column) if leaf.path is None else None
        if top is not None and top.name == column:
            kept, text = field_of(columns, leaf.column).metadata, declared_at(top, path)
            found |= {"comment": kept["comment"]} if "comment" in kept else {}
            found |= {CHAR_VARCHAR: text} if text else {}
    return found


class DataFileReader:
    """One open file, with the facts of its add action; or several small ones as if they were one (`together.py`):
    `ends` says how many of them. `data` are their bytes if they are in an object store.
    """

    def __init__(
        self, spec: ReadSpec, part: FilePart, more: Sequence[FilePart] = (), data: Sequence[bytes | None] = ()
    ) -> None:
        self.spec, self.part, self._parts = spec, part, (part, *more)
        storage, rel = spec.storage.locate(part.path)
        self.name = name = storage.path(rel)
        size = part.size
        places = [(spec.storage.locate(one.path), one.size) for one in more]
        first, *others = data or [None] * len(self._parts)
        self._fetch: Fetch | None = None
        if storage.local_path is None and first is None:
            size = storage.size(rel) if size is None else size
            self._fetch = Fetch(spec.tails, storage, rel, size)
        opened = partial(
            kernel.FileReader, name=name, path=name if self._fetch is None and first is None else None, size=size,
            fetch=self._fetch, data=first, early=spec.early,
            more=[(place.path(rel), size, held) for ((place, rel), size), held in zip(places, others, strict=True)],
        )  # fmt: skip
        try:
            with file_errors.of_gone(name, spec.version, of_commits=spec.of_commits):
                self.reader = self._open(opened)
        except CorruptDataError:
            if COMMIT_VERSION in part.partition or spec.of_commits:
                self._check_types(opened)
            raise
        if spec.by_id and self.reader.num_rows and not has_ids(self.schema):
            raise file_errors.without_ids(name)
        self._columns: dict[Leaf, FileColumn] = {}
        #: Which rows passed.
        self.passed: RowRanges = []

    def _open(self, opened: Callable[..., kernel.FileReader]) -> kernel.FileReader:
        """The file with its Variants. Files of old writers lack the annotation: the table's schema says which groups
        are Variants, and where the file has other names for them, or arrays and maps of them, it is opened again."""
        names = list(self.spec.variants.values())
        reader = opened(variants=names)
        self._has(reader.schema)
        called = [found.names for found in map(self._located, self.spec.variants) if found is not None]
        nested = list(unmarked(self._level, self.spec.nested_variants, by_id=self.spec.by_id))
        if nested or any(one not in names for one in called):
            reader = opened(variants=[*called, *nested])
            self._has(reader.schema)
        return reader

    def _has(self, schema: pa.Schema) -> None:
        self.schema, self._level = schema, Level(schema)

    def _check_types(self, opened: Callable[..., kernel.FileReader]) -> None:
        """Raises if a column is no Variant in the file: files of commits may have older schemas."""
        self._has(opened().schema)
        for at in self.spec.variants:
            found = self._located(at)
            if found is not None and find(self.schema, (*found.names, "metadata")) is None:
                raise self._other_type(".".join(at), found.field.type, field_of(self.spec.columns, at)) from None

    @cached_property
    def skipper(self) -> Skipper:
        """What is skipped of the file."""
        from mica.tasks.skipper import Skipper  # a read without a predicate skips nothing

        return Skipper(self.spec, self.reader)

    @property
    def ends(self) -> list[int]:
        """Where the rows of each file end that is open."""
        return self.reader.ends

    @property
    def is_remote(self) -> bool:
        """Whether each read asks an object store."""
        return self._fetch is not None

    @property
    def bytes_fetched(self) -> int:
        """Bytes read so far, footer included."""
        return int(self.reader.bytes_read) if self._fetch is None else self._fetch.fetched

    def _located(self, column: tuple[str, ...]) -> Located | None:
        try:
            by_id = self.spec.by_id and column[0] != CHANGE_TYPE  # change files have ids for the table's columns only
            return locate(self._level, self.spec.columns, column, by_id=by_id)
        except CorruptDataError as e:
            raise file_errors.in_file(self.name, ".".join(column), e) from None

    def _other_type(self, column: str, held: object, wanted: StructField) -> MicaError:
        return file_errors.of_other_type(self.name, self.part, column, held, wanted)

    @cached_property
    def ranges(self) -> RowRanges:
        """The rows of this part, or of each of the files, that are in the table: whole row groups less the deleted
        rows."""
        starts = [0, *self.ends]
        spans = list(pairwise(starts))
        if self.part.parts > 1:
            groups = self.reader.row_groups().column("rows").to_pylist()
            first, last = (len(groups) * n // self.part.parts for n in (self.part.part, self.part.part + 1))
            spans = [(sum(groups[:first]), sum(groups[:last]))]
        elif all(part.deletion_vector is None and part.chosen is None for part in self._parts):
            return [(0, starts[-1])] if starts[-1] else []
        parts = self._parts[: len(spans)]  # the others have other columns
        counts = [starts[-1]] if self.part.parts > 1 else [end - start for start, end in spans]
        vectors = [
            (self._rows_of(part.deletion_vector, count), self._rows_of(part.chosen, count))
            for part, count in zip(parts, counts, strict=True)
        ]
        owns = map(self._own, starts, spans, vectors)
        return [found for own in owns for found in own]

    def _rows_of(self, vector: Mapping[str, Any] | None, count: int) -> Rows | None:
        """What returns the rows of a vector of a file with so many. Those of several files are requested at once."""
        if vector is None:
            return None
        from mica.log.deletion_vectors import deleted_rows

        read = partial(deleted_rows, self.spec.storage, vector, most=count)
        alone = len(self._parts) == 1 or self.spec.storage.local_path is not None
        return read if alone else threads.soon(read).result

    @staticmethod
    def _own(before: int, span: tuple[int, int], vectors: Sequence[Rows | None]) -> RowRanges:
        """The rows of a span that are in the table; `before` come before those of the file."""
        if span[0] >= span[1]:
            return []
        # Deleted rows that a damaged vector has beyond its file are not those of the next one.
        end = np.uint64(span[1] - before)
        numbers = (None if one is None else one() for one in vectors)
        deleted, chosen = (None if one is None else one[one < end].astype(np.int64) + before for one in numbers)
        if chosen is not None:
            left = chosen if deleted is None else np.setdiff1d(chosen, deleted, assume_unique=True)
            return intersect([span], ranges_of(left))
        return [span] if deleted is None else without_rows(span, deleted)

    def candidates(self, predicate: BoundExpr | None) -> RowRanges:
        """The rows of this part that are in the table, without those that the footer excludes."""
        asked = self.spec.skips or predicate
        return self.ranges if asked is None else self.possible(asked, self.ranges)

    def possible(self, predicate: BoundExpr, ranges: RowRanges) -> RowRanges:
        """`ranges` without the row groups, then the pages, in which no row matches by the footer."""
        return self.skipper.possible(predicate, ranges, self.column)

    def read(self, leaves: Sequence[Leaf], predicate: BoundExpr | None, limit: int | None = None) -> Iterator[Leaves]:
        """The leaves of the rows for which the predicate is true, in batches; at most `limit` rows."""
        yield from self.passing(leaves, predicate, self.candidates(predicate), limit)

    def matching(self, predicate: BoundExpr | None, ranges: RowRanges) -> RowRanges:
        """Those of the rows for which the predicate is true."""
        if predicate is None:
            return ranges
        for _ in self.passing([], predicate, self.possible(predicate, ranges), tracked=True):
            pass
        return self.passed

    def passing(
        self,
        leaves: Sequence[Leaf],
        predicate: BoundExpr | None,
        ranges: RowRanges,
        limit: int | None = None,
        *,
        tracked: bool = False,
    ) -> Iterator[Leaves]:
        """As `read`, for the rows of `ranges`; `tracked` records in `passed` which rows were returned."""
        wanted = [self.column(leaf) for leaf in leaves] if ranges else []
        for batch, numbers in self.batches(wanted, predicate, ranges, limit, tracked=tracked):
            yield leaves_in(wanted, batch, numbers)

    def batches(
        self,
        wanted: Sequence[FileColumn],
        predicate: BoundExpr | None,
        ranges: RowRanges,
        limit: int | None = None,
        *,
        tracked: bool = False,
    ) -> Iterator[tuple[pa.RecordBatch, Numbers | None]]:
        """As `passing`, the kernel's batches of which `leaves_in` makes the leaves, and the numbers of their rows if a
        column counts them."""
        self.passed = ranges
        if predicate is not None and limit is None:
            self.passed = ranges = self.skipper.searched(predicate, ranges, self.column)
        if not ranges:
            return
        counts, judge = any(column.counts for column in wanted), None
        if predicate is not None:
            from mica.tasks.judging import Judge

            judge = Judge(self, predicate, ranges, numbered=tracked, keeps=counts)
            ranges, self.passed = judge.before_reading(BATCH_ROWS), judge.passed
            if not ranges:
                return
        texts = [] if judge is None else judge.texts
        passing = None if judge is None else judge.passing
        numbers = Positions(ranges) if counts and passing is None else passing
        for batch in self.reader.scan(
            [column.request for column in wanted if column.request is not None],
            filter=[] if judge is None else judge.filters,
            judge=judge,
            texts=texts,
            only_texts=predicate is not None and len(texts) == len(predicate.parts),
            ranges=None if ranges == [(0, self.reader.num_rows)] else ranges,
            limit=limit,
            max_rows=BATCH_ROWS,
            max_bytes=BATCH_BYTES,
            timezone=self.spec.timezone,
            masks=False,
        ):
            if batch.num_rows:
                yield batch, None if numbers is None else numbers.next(batch.num_rows)

    def texts(self, predicate: BoundExpr, asked: Sequence[FileColumn]) -> list[tuple[int, list[str]]]:
        """The texts that the predicate wants, by the number of their filter: the kernel judges these parts."""
        filters = [column.leaf for column in asked if column.request is not None]
        found = ((predicate.leaves[index], texts) for index, texts in self.spec.searches_of(predicate))
        return [(filters.index(leaf), texts.to_pylist()) for leaf, texts in found if leaf in filters]

    def value(self, leaf: Leaf, predicate: BoundExpr | None, ranges: RowRanges, number: int) -> str | None:
        """The JSON of a path in one row, given by its number among the rows of `ranges` that pass."""
        wanted = whole(leaf)
        for found in DataFileReader(self.spec, self.part).passing([wanted], predicate, ranges):
            if number < found.rows:
                return text(found.columns[wanted][0], number)
            number -= found.rows
        return None

    def asked(self, predicate: BoundExpr) -> list[FileColumn]:
        """The leaves of the predicate, each once. If only its residual can match, a leaf is null in other rows; there
        the predicate is not true in either case.
        """
        columns = [self.column(leaf) for leaf in distinct(predicate.leaves)]
        columns = [column.nulls() if column.leaf in predicate.only_nulls else column for column in columns]
        return [column.untyped_in(self.skipper.untyped(column.leaf)) for column in columns]

    def requests(self, leaves: Sequence[Leaf]) -> list[kernel.Request]:
        """The kernel requests for the leaves that are in the file itself."""
        return [column.request for column in map(self.column, leaves) if column.request is not None]

    def column(self, leaf: Leaf) -> FileColumn:
        """The leaf as a column of this file."""
        if leaf not in self._columns:
            self._columns[leaf] = self._column(leaf)
        return self._columns[leaf]

    def _column(self, leaf: Leaf) -> FileColumn:
        if is_hidden(self.spec.columns, leaf.column):
            return self._tracked(leaf) if leaf.column in (ROW_ID, ROW_VERSION) else self._of_file(leaf)
        top = self.spec.columns.field(leaf.column[0])
        if top.name in self.part.constants or top.name in self.spec.partition_by:
            return self._constant(leaf, top)
        found = self._located(leaf.column)
        if found is None:
            return FileColumn(leaf, None, value=scalar(None, to_arrow_type(leaf.type)))
        if leaf.path is not None:
            return FileColumn(leaf, leaf.request(found.names))
        wanted, at = field_of(self.spec.columns, leaf.column), ".".join(leaf.column)
        try:
            cast = aligned(found.field, wanted, at, by_id=self.spec.by_id)
        except UserError as e:
            held = "VARIANT" if is_variant(found.field) else found.field.type
            raise self._other_type(at, held, wanted) from e

        name = self.name  # not self, which keeps the column: the file would stay open until garbage is collected

        def checked(array: pa.Array) -> pa.Array:
            try:
                return padded(cast(array), leaf.padded)
            except pa.ArrowInvalid as e:
                raise file_errors.beyond(name, at, wanted, e) from None

        return FileColumn(leaf, leaf.request(found.names), cast=checked)

    def _constant(self, leaf: Leaf, top: StructField) -> FileColumn:
        """A column whose values are in the log."""
        name, key = top.name, physical_name(top)
        texts = [
            part.constants[name] if name in part.constants else part.partition.get(key)
            for part, _ in zip(self._parts, self.ends, strict=False)
        ]
        try:
            texts = texts[:1] if texts.count(texts[0]) == len(texts) else texts
            values = parse_values(arrow_array(texts, pa.string()), top.type, timezone=self.spec.timezone)
        except CorruptDataError:
            if COMMIT_VERSION not in self.part.partition:
                raise
            raise self._other_type(name, repr(texts[0]), top) from None
        return self._of_files(leaf, padded(values, leaf.padded))

    def _of_files(self, leaf: Leaf, values: pa.Array) -> FileColumn:
        """A constant of all files, or of each: then each row has that of its file."""
        if len(values) == 1:
            return FileColumn(leaf, None, value=values[0])
        return ColumnOfFiles(leaf, None, values=values, ends=self.ends)

    def _of_file(self, leaf: Leaf) -> FileColumn:
        """What `_metadata` says of the files themselves, or of the place of a row."""
        parts = self._parts[: len(self.ends)]
        if leaf.column == ROW_INDEX:
            first = arrow_array([0] * len(parts), pa.int64())
            return ColumnOfFiles(leaf, None, values=first, ends=self.ends, rises=True)
        sizes = arrow_array([part.size for part in parts], pa.int64())
        times = arrow_array([part.modified for part in parts], pa.int64())
        paths = arrow_array([part.path for part in parts], pa.string())
        facts = file_facts(self.spec.storage, leaf.column[1], paths, sizes, times)
        assert facts is not None  # the other fields are of rows
        return self._of_files(leaf, facts)

    def _tracked(self, leaf: Leaf) -> FileColumn:
        """The ids or versions of the rows. Errors: CORRUPT_LOG."""
        is_id, names = leaf.column == ROW_ID, self.spec.row_ids
        parts = self._parts[: len(self.ends)]
        first = [part.base_row_id if is_id else part.row_version for part in parts]
        if names is None or None in first:
            raise file_errors.untracked(self.name)
        name = names[0] if is_id else names[1]
        request = leaf.request((name,)) if self.schema.get_field_index(name) >= 0 else None
        return ColumnOfFiles(leaf, request, values=arrow_array(first, pa.int64()), ends=self.ends, rises=is_id)
