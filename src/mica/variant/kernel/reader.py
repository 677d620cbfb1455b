"""Reads Parquet files. Exceptions of `fetch` are re-raised unchanged, because the kernel keeps only their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import pyarrow as pa

from mica.errors import MicaError, UserError
from mica.schema.arrow import has_extension
from mica.storage import Storage
from mica.storage.tails import Fetch, Tails
from mica.variant.kernel.door import P, T, call, native
from mica.variant.kernel.request import Early, Request, RowRanges


class Fetching(Protocol):
    """Fetches the bytes of ranges (first, end) of a file."""

    def __call__(self, ranges: Sequence[tuple[int, int]], /) -> Sequence[bytes]:
        """Returns the bytes of these ranges."""

    def announce(self, ranges: Sequence[tuple[int, int]], /) -> None:
        """These ranges will be asked for together soon; they may be fetched already."""


class FileReader:
    """Reads one Parquet file: at a local `path`, of this `size` by `fetch`, or all of whose bytes are `data`. `name` is
    for errors.

    `variants` are columns to treat as Variants even if the file does not mark them, `early` those that may have the
    early shredding layout. Ranges are rows of the file; without them all rows are meant.

    `more` are further files, (path, size, data), local ones if there is no data, read as if they were one with the
    first: the rows of all, their row groups numbered through. Those from the first one on that has other columns are
    left out, as `ends` tells. What is said of one file (`schema`, `tree`, `cost`, `inspect`, ...) is said of the first,
    and `check` reads that.
    """

    def __init__(
        self,
        *,
        name: str,
        path: str | None = None,
        size: int | None = None,
        fetch: Fetching | None = None,
        data: bytes | None = None,
        variants: Sequence[Sequence[str]] = (),
        early: Early = False,
        more: Sequence[tuple[str, int | None, bytes | None]] = (),
    ) -> None:
        self._name = name
        self._fetch = None if fetch is None else _Watched(fetch)
        self._row_groups: pa.RecordBatch | None = None
        #: The kernel's own reader, for this package.
        self.native = self.call(
            native.FileReader, name=name, path=path, size=size, fetch=self._fetch, data=data,
            variants=[list(names) for names in variants], early=early, more=list(more),
        )  # fmt: skip

    @property
    def schema(self) -> pa.Schema:
        """The columns as a scan returns them, Variants unshredded."""
        return self.call(lambda: self.native.schema)

    @property
    def ends(self) -> list[int]:
        """Where the rows of each file end that is read."""
        return self.native.ends

    @property
    def num_rows(self) -> int:
        """The rows of the file."""
        return self.native.num_rows

    @property
    def created_by(self) -> str | None:
        """The file's writer, from the footer."""
        return self.native.created_by

    @property
    def key_value_metadata(self) -> Mapping[str, str | None]:
        """The footer's key-value metadata."""
        return self.native.key_value_metadata

    @property
    def bytes_read(self) -> int:
        """Bytes of the file read so far."""
        return self.native.bytes_read

    def tree(self, column: Sequence[str]) -> tuple[pa.DataType, bool] | None:
        """Returns a Variant column's shredding tree, and whether the layout is the early one. None if the file
        does not have the column, or its tree is deeper than the limit of inference."""
        return self.call(self.native.tree, list(column))

    def row_groups(self) -> pa.RecordBatch:
        """row_group, first_row, rows, bytes."""
        if self._row_groups is None:
            self._row_groups = self.call(self.native.row_groups)
        return self._row_groups

    def annotations(self) -> list[str | None]:
        """What the file says of its leaves outside of Variants, in their order, beyond Arrow's types: UUID, JSON, BSON,
        ENUM and others. A writer takes it as metadata of the fields, `PARQUET:annotation`."""
        return self.call(self.native.annotations)

    def held_leaves(self) -> list[list[str]]:
        """Per row group the leaves that may hold something, by the footer: their names joined by dots."""
        return self.call(self.native.held_leaves)

    def bounds(
        self, requests: Sequence[Request], *, pages: bool = False, ranges: RowRanges | None = None
    ) -> pa.RecordBatch:
        """Returns per row group or page: row_group, first_row, rows and, under the request's name, min, max,
        null_count, usable. Row groups without rows of `ranges` are skipped. One file's."""
        [found] = self.bounds_in_runs(requests, pages=pages, ranges=ranges)
        return found

    def bounds_in_runs(
        self, requests: Sequence[Request], *, pages: bool, ranges: RowRanges | None
    ) -> list[pa.RecordBatch]:
        """Returns the bounds of all files, a batch for each run of files in which they have the same types."""
        return self.call(self.native.bounds, list(requests), pages=pages, ranges=ranges)

    def may_contain(self, request: Request, values: pa.Array, *, ranges: RowRanges | None = None) -> list[str]:
        """Returns for each row group whether the leaf may equal any of the values: "no" (certain), "yes", or "untyped"
        if only residual values may."""
        return self.call(self.native.may_contain, request, pa.record_batch([values], ["values"]), ranges=ranges)

    def search(self, request: Request, values: pa.Array, ranges: RowRanges) -> list[tuple[int, int]]:
        """Returns those of the rows in which the leaf, a text, may equal one of the values: pages of the others hold
        the bytes of none. Files that are fetched are not searched."""
        return self.call(self.native.search, request, pa.record_batch([values], ["values"]), ranges)

    def cost(self, requests: Sequence[Request], *, ranges: RowRanges | None = None) -> tuple[int, int, int, int]:
        """Returns what the requests would read: (row groups, rows, pages, bytes)."""
        return self.call(self.native.cost, list(requests), ranges=ranges)

    def scan(
        self,
        requests: Sequence[Request],
        *,
        filter: Sequence[Request] = (),  # noqa: A002 - the kernel's word
        judge: Callable[[pa.RecordBatch], pa.BooleanArray] | None = None,
        texts: Sequence[tuple[int, list[str]]] = (),
        only_texts: bool = False,
        ranges: RowRanges | None = None,
        limit: int | None = None,
        max_rows: int = 65_536,
        max_bytes: int = 64 << 20,
        timezone: str = "UTC",
        masks: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a scan. With `filter`, `judge` receives those columns of some rows and returns the mask
        of matching rows: the other columns are read only for these. Texts may be codes of a dictionary for `judge`.
        `texts` are what all rows must have that pass, by the number of their filter; batches in which no row has them
        are not judged, and none if the filter asks `only_texts`, but for one in which a cast failed.
        Without `masks` a batch in which no cast failed has no masks of failed casts.
        """
        if filter and judge is None:
            raise ValueError("a filter needs a judge")
        scan = self.call(
            self.native.scan, list(requests), filter=list(filter), texts=(list(texts), only_texts), ranges=ranges,
            limit=limit, max_rows=max_rows, max_bytes=max_bytes, timezone=timezone, masks=masks,
        )  # fmt: skip
        while (step := self.call(scan.step)) is not None:
            if step[0] is False:
                yield from step[1]
            elif judge is not None:
                self.call(scan.keep, judge(step[1]))

    def check(self, *, limit: int) -> Check:
        """Checks the file's Variants and keeps `limit` violations of each kind."""
        return Check(self, self.call(self.native.check, limit=limit))

    def inspect(self) -> pa.RecordBatch:
        """Returns per node of every Variant column: column, path, type, typed_rows, residual_rows, other_rows,
        typed_bytes, residual_bytes."""
        return self.call(self.native.inspect)

    def inspect_columns(self) -> dict[tuple[str, ...], pa.RecordBatch]:
        """Returns the rows of `inspect` by their column's names, which two columns may share once dots join them."""
        rows = self.inspect()
        starts = [at for at, path in enumerate(rows["path"].to_pylist()) if path == "$"]
        trees = [rows.slice(at, end - at) for at, end in pairwise([*starts, len(rows)])]
        return dict(zip(_variants(self.schema), trees, strict=True))

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`door.call`, plus the file's name if it is missing, and the exception of `fetch`."""
        if self._fetch is not None:
            self._fetch.error = None
        try:
            return call(function, *args, **kwargs)
        except MicaError as e:
            if self._fetch is not None and self._fetch.error is not None:
                raise self._fetch.error from None
            if e.code == "UNSUPPORTED_TYPE":
                found = f"{self._name} holds data that Arrow rejects: {e.message}"
                raise UserError(e.code, found, hint="mica check says whether the file is damaged.") from None
            raise


class _Watched:
    """A function that fetches byte ranges, and the exception that it raised."""

    def __init__(self, fetch: Fetching) -> None:
        self._fetch = fetch
        self.error: MicaError | None = None

    def __call__(self, ranges: Sequence[tuple[int, int]]) -> Sequence[bytes]:
        try:
            return self._fetch(ranges)
        except MicaError as e:
            self.error = e
            raise

    def announce(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._fetch.announce(ranges)


def _variants(fields: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The Variants among the columns and in structs, by their names, in the order of `inspect`."""
    for f in fields:
        if has_extension(f):
            yield (*above, f.name)
        elif pa.types.is_struct(f.type):
            yield from _variants(f.type, (*above, f.name))


class Check:
    """A running check: batches of kind, rule, path, row_group, row and found."""

    def __init__(self, reader: FileReader, running: native.Check) -> None:
        self._reader, self._native = reader, running

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while (batch := self._reader.call(next, self._native, None)) is not None:
            yield batch

    def totals(self) -> pa.RecordBatch:
        """Returns the totals so far: kind, rule, count."""
        return self._reader.call(self._native.totals)


def open_file(
    place: Storage,
    rel: str,
    size: int | None = None,
    *,
    variants: Sequence[Sequence[str]] = (),
    early: Early = False,
    tails: Tails | None = None,
) -> FileReader:
    """Opens the Parquet file `rel` of a location; `tails` caches the end of the file for later opens. The size of a
    local file is read from the disk."""
    name = place.path(rel)
    if place.local_path is not None:
        return FileReader(name=name, path=name, variants=variants, early=early)
    size = place.size(rel) if size is None else size
    fetch = Fetch(tails or Tails(), place, rel, size)
    return FileReader(name=name, size=size, fetch=fetch, variants=variants, early=early)
