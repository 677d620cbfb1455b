"""What other libraries read: a scan that is narrowed by the columns and filters that they ask for.

The rule: a filter is pushed into the scan as far as it certainly means the same there, or less; the library's own
filter is applied to the rows in any case. So rows, errors of types aside, are those of a filter that is not pushed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa

from mica.cached import cached_property
from mica.errors import UserError
from mica.moment import now
from mica.parquet import read_parquet
from mica.readers.terms import asked_columns
from mica.readers.variants import json_array, json_type
from mica.records import dataclass
from mica.scan.scan import Scan
from mica.schema.arrow import to_arrow
from mica.schema.types import VARIANT, contains
from mica.table import Table

#: How Variants are given: as their Arrow extension type, or as JSON texts.
Shape = Literal["arrow", "json"]


@dataclass(frozen=True)
class ScanSource:
    """A scan whose columns and predicate may be narrowed, and the shape of its Variants."""

    scan: Scan
    variants: Shape

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        schema = to_arrow(self.scan.schema, marked=True)
        if self.variants == "arrow":
            return schema
        fields = [
            f if not contains(own.type, VARIANT) else pa.field(f.name, json_type(own.type), f.nullable)
            for f, own in zip(schema, self.scan.schema.fields, strict=True)
        ]
        return pa.schema(fields)

    def narrowed(self, names: Sequence[str], conjuncts: Sequence[str]) -> ScanSource:
        """The same rows with fewer columns, for which the conjuncts are true."""
        asked = asked_columns(self.scan)
        kept = {n: asked[n] for n in names} if isinstance(self.scan.columns, Mapping) else [asked[n] for n in names]
        if not conjuncts:
            return replace(self, scan=replace(self.scan, columns=kept, moment=now()))
        # The line break ends a comment in the given text.
        given = [] if self.scan.where is None else [f"{self.scan.where}\n"]
        where = " AND ".join(f"({w})" for w in (*given, *conjuncts))
        return replace(self, scan=replace(self.scan, columns=kept, where=where, planned=None, moment=now()))

    def batches(self, size: int | None = None) -> Iterator[pa.RecordBatch]:
        """The rows, in batches of at most `size`."""
        types = [f.type for f in self.scan.schema.fields]
        for batch in self.scan.batches():
            columns = batch.columns
            if self.variants == "json":
                pairs = zip(columns, types, strict=True)
                columns = [json_array(c, t, self.scan.timezone) if contains(t, VARIANT) else c for c, t in pairs]
            made = pa.RecordBatch.from_arrays(columns, schema=self.schema)  # not a cast: see `Scan.to_reader`
            for start in range(0, made.num_rows, size or max(made.num_rows, 1)):
                yield made.slice(start, size)


def source_of(
    source: Any,
    columns: Mapping[str, str] | Sequence[str] | None,
    where: str | None,
    timezone: str,
    storage_options: Mapping[str, str] | None,
    variants: Shape,
) -> ScanSource:
    """The scan of a path, a table or a scan. Errors: INVALID_ARGUMENT, and those of reading it."""
    if isinstance(source, Scan):
        if columns is not None or where is not None:
            raise UserError.bad_value("columns and where", "both of the call", "those of the scan that is given")
        return ScanSource(source, variants)
    if isinstance(source, Table):
        return ScanSource(source.scan(where, columns, timezone=timezone), variants)
    if isinstance(source, str | os.PathLike) or (isinstance(source, Sequence) and len(source)):
        found = read_parquet(source, columns, where, timezone=timezone, storage_options=storage_options)
        return ScanSource(found, variants)
    raise UserError.bad_value("source", source, "a path, a list of paths, a mica Table or a Scan")
