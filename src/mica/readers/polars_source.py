"""A lazy frame of polars over a scan, by its IO plugins.

The rule: polars asks for columns, a filter and a number of rows; the scan reads no others, as far as the filter is
certain (`terms`), and polars' own filter is applied to what is read.

Source: polars.io.plugins.register_io_source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from mica.arguments import OPTIONS, TEXT, takes
from mica.arrays import no_rows
from mica.errors import UserError
from mica.errors.installed import extra
from mica.readers.polars_filters import pushed
from mica.readers.source import ScanSource, source_of
from mica.readers.terms import Terms
from mica.schema.types import VARIANT, contains
from mica.variant.frames import to_polars

if TYPE_CHECKING:
    import polars as pl


@takes(where=TEXT, timezone=TEXT, storage_options=OPTIONS)
def scan_polars(
    source: Any,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    where: str | None = None,
    timezone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    variants: Literal["json", "python", "arrow"] = "json",
) -> pl.LazyFrame:
    """Returns a polars LazyFrame of a path (a Delta table, or Parquet files as in `read_parquet`), a `Table` or a
    `Scan`. Filters, columns and row limits of the query are pushed into the scan, which skips files, row groups and
    pages.

    `columns` maps names to expressions, such as `{"did": "v:did::string"}`: a filter on `did` skips as one on the path.
    `where` is a predicate in SQL. `variants` says how Variants are given: "json" as JSON texts, "python" as Python
    values (dtype Object), "arrow" as structs of `metadata` and `value`.

    Filters of the query compare bytes, also on columns with a collation: `columns={"hit": "s = 'ada'"}` compares by it.

    Errors: INVALID_ARGUMENT, NOT_INSTALLED without polars, and those of `Table.open`, `read_parquet` and `Table.scan`.
    """
    if variants not in ("json", "python", "arrow"):
        raise UserError.bad_value("variants", variants, "'json', 'python' or 'arrow'")
    polars = extra("polars", "scan_polars")
    plugins = extra("polars.io.plugins", "scan_polars")
    found = source_of(source, columns, where, timezone, storage_options, "json" if variants == "json" else "arrow")
    plugin = _Plugin(polars, found, python=variants == "python")
    frame: pl.LazyFrame = plugins.register_io_source(plugin, schema=plugin.schema(), is_pure=True)
    return frame


class _Plugin:
    def __init__(self, polars: Any, source: ScanSource, *, python: bool) -> None:
        self.polars, self.source, self.python = polars, source, python

    def schema(self) -> Any:
        return self.frame(self.source, no_rows(self.source.schema)).schema

    def __call__(
        self, with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """The rows as frames. A number of rows is counted before the filter, as polars does."""
        names = self.source.schema.names
        needed = set(names if with_columns is None else with_columns)
        needed |= set() if predicate is None else set(predicate.meta.root_names())
        kept = [n for n in names if n in needed] or names[:1]
        conjuncts = [] if predicate is None or n_rows is not None else pushed(predicate, Terms(self.source.scan))
        read = self.source.narrowed(kept, conjuncts)
        if n_rows is not None:
            limit = n_rows if read.scan.limit is None else min(n_rows, read.scan.limit)
            read = replace(read, scan=replace(read.scan, limit=limit))
        for batch in read.batches(batch_size):
            frame = self.frame(read, pa.Table.from_batches([batch], read.schema))
            if predicate is not None:
                frame = frame.filter(predicate)
            yield frame if with_columns is None else frame.select(with_columns)

    def frame(self, read: ScanSource, rows: pa.Table) -> Any:
        """The rows as a frame; columns that hold Variants are of dtype Object where Python values are wanted."""
        if self.python and contains(read.scan.schema, VARIANT):
            return to_polars(rows, read.scan.schema)
        return self.polars.from_arrow(rows)
