"""A reader like `pyarrow.dataset.Dataset`, for libraries and people who take one.

The rule: pyarrow's own Scanner evaluates filters and columns over the rows of a scan, which reads only the columns that
they need, and skips files by the parts of the filter that are certain (`terms`).
"""

# ruff: noqa: A002 - the names of pyarrow's arguments

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from mica.arguments import COUNT, OPTIONS, TEXT, one_of, takes
from mica.engines.foreign import Foreign
from mica.errors import UserError
from mica.readers.arrow_filters import columns_of, pushed
from mica.readers.source import ScanSource, Shape, source_of
from mica.readers.terms import Terms
from mica.scan.scan import Scan

Columns = Sequence[str] | Mapping[str, pc.Expression] | None


@takes(where=TEXT, timezone=TEXT, storage_options=OPTIONS)
def dataset(
    source: Any,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    timezone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    variants: Shape = "arrow",
) -> Dataset:
    """Returns a reader like `pyarrow.dataset.Dataset` of a path (a Delta table, or Parquet files as in `read_parquet`),
    a `Table` or a `Scan`.

    `columns` maps names to expressions, such as `{"did": "v:did::string"}`; filters on these columns skip files, row
    groups and pages as predicates on the path do. `where` is a predicate in SQL. `variants` says how Variants are
    given: "arrow" as their extension type (`struct<metadata, value>`), "json" as JSON texts.

    Filters compare bytes, also on columns with a collation: `columns={"hit": "s = 'ada'"}` compares by it.

    Errors: INVALID_ARGUMENT, and those of `Table.open`, `read_parquet` and `Table.scan`.
    """
    one_of("variants", variants, ("arrow", "json"))
    return Dataset(source_of(source, columns, where, timezone, storage_options, variants))


class Dataset:
    """The rows of a scan, by the methods of `pyarrow.dataset.Dataset`. Filters are pyarrow's expressions."""

    def __init__(self, source: ScanSource, filter: pc.Expression | None = None) -> None:
        self._source, self._filter = source, filter

    def __repr__(self) -> str:
        return f"Dataset({self.scan!r}, filter={self._filter})"

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._source.schema

    @property
    def scan(self) -> Scan:
        """The scan of the rows, without filters."""
        return self._source.scan

    def filter(self, expression: pc.Expression) -> Dataset:
        """The rows for which the expression is true."""
        return Dataset(self._source, self._both(expression))

    def narrowed(self, columns: Columns = None, filter: pc.Expression | None = None) -> Scan:
        """The scan that reads these columns for this filter: `.explain()` says what it skips."""
        return self._read(columns, self._both(filter)).scan

    @takes(batch_size=COUNT)
    def scanner(
        self,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        batch_size: int | None = None,
        **_hints: Any,
    ) -> ds.Scanner:
        """A pyarrow Scanner of these columns and rows, to be run once. `columns` are names, or a dict of names to
        expressions; other options of pyarrow (`use_threads`, `batch_readahead`, …) are hints that are not needed."""
        wanted = self._both(filter)
        read = self._read(columns, wanted)
        reader = pa.RecordBatchReader.from_batches(read.schema, Foreign(read.batches(batch_size or None)))
        chosen: Any = self.schema.names if columns is None else columns
        chosen = chosen if isinstance(chosen, Mapping) else list(chosen)
        return ds.Scanner.from_batches(reader, columns=chosen, filter=wanted)

    def to_reader(self, columns: Columns = None, filter: pc.Expression | None = None) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow batches."""
        return self.scanner(columns, filter).to_reader()

    def to_batches(
        self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches."""
        found: Iterator[pa.RecordBatch] = self.scanner(columns, filter, **options).to_batches()
        return found

    def to_table(self, columns: Columns = None, filter: pc.Expression | None = None, **options: Any) -> pa.Table:
        """The rows as one Arrow table."""
        return self.scanner(columns, filter, **options).to_table()

    @takes(num_rows=COUNT)
    def head(
        self,
        num_rows: int,
        columns: Columns = None,
        filter: pc.Expression | None = None,
        **options: Any,
    ) -> pa.Table:
        """The first rows, in the order of files and rows."""
        return self.scanner(columns, filter, **options).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **options: Any) -> int:
        """The number of rows; without a filter files with a row count in the log are not opened."""
        if self._both(filter) is None:
            return self.scan.count()
        found: int = self.scanner([], filter, **options).count_rows()
        return found

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for readers of Arrow streams; each call reads again. Source: Arrow PyCapsule Interface."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def _both(self, filter_: pc.Expression | None) -> pc.Expression | None:
        if filter_ is not None and not isinstance(filter_, pc.Expression):
            raise UserError.bad_value("filter", filter_, "a pyarrow expression, as pc.field('a') > 1")
        parts = [f for f in (self._filter, filter_) if f is not None]
        return parts[0] & parts[1] if len(parts) > 1 else parts[0] if parts else None

    def _read(self, columns: Columns, filter_: pc.Expression | None) -> ScanSource:
        """What is read: the columns that are asked for and filtered by, and the rows that may pass."""
        asked = list(columns.values()) if isinstance(columns, Mapping) else []
        needed = {name for e in [*asked, *([] if filter_ is None else [filter_])] for name in _named(e, self.schema)}
        needed |= {*(self.schema.names if columns is None else () if isinstance(columns, Mapping) else columns)}
        unknown = next((n for n in needed if n not in self.schema.names), None)
        if unknown is not None:
            raise UserError.unknown_column(unknown, self.schema.names)
        kept = [n for n in self.schema.names if n in needed] or self.schema.names[:1]
        return self._source.narrowed(kept, [] if filter_ is None else pushed(filter_, Terms(self.scan)))


def _named(expression: pc.Expression, schema: pa.Schema) -> list[str]:
    """The columns in an expression; all, if they are not named."""
    found = columns_of(expression)
    return list(schema.names) if found is None else found
