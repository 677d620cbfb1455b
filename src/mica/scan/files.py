"""Bare Parquet files as the source of a scan.

The rule: each file's own footer defines its columns. Columns are matched by name across files; a column that a file
lacks is null there, and a column with different types in two files is an error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica.engines import local
from mica.errors import UserError
from mica.expressions.bind import BoundExpr
from mica.scan.source import Source
from mica.schema.arrow import from_arrow, looks_like_variant
from mica.schema.ddl import type_to_ddl
from mica.schema.types import VARIANT, StructField, StructType
from mica.skipping.collated import Ordering
from mica.skipping.plan import FilePlan
from mica.storage import Storage
from mica.storage.options import ALLOW_EXTERNAL
from mica.storage.patterns import Found
from mica.storage.tails import BRIEFLY, Tails
from mica.variant import kernel

#: Which columns are of the early layout: True: detected by their fields; False: none; or the paths of these columns.
Early = bool | list[list[str]]


def early_option(given: Any) -> Early:
    """The option `early` in the form of the kernel."""
    if given is None or isinstance(given, bool):
        return given is not False
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise UserError.bad_value("early", given, "False, or a list of column names")
    return [name.split(".") for name in given]


class FilesSource(Source):
    """A list of Parquet files, each opened once for its schema and its number of rows."""

    def __init__(
        self, found: Sequence[Found], storage_options: Mapping[str, str] | None = None, early: Early = True
    ) -> None:
        paths = [place.path(entry.path) for place, entry in found]
        # The caller named the files, so they may be anywhere.
        anywhere = {**(storage_options or {}), ALLOW_EXTERNAL: "true"}
        self.storage = Storage.open(os.path.dirname(paths[0]) or ".", anywhere)  # noqa: PTH120 - may be a URI
        self.name = paths[0] if len(paths) == 1 else f"{len(paths)} Parquet files"
        self.tails = Tails(BRIEFLY)
        with ThreadPoolExecutor(min(local.threads(), len(paths))) as threads:
            heads = list(threads.map(partial(_head, early=early, tails=self.tails), found))
        self.early = early
        self.schema = _one_schema(paths, [from_arrow(head.schema) for head in heads])
        self._files = pa.table(
            {
                "path": pa.array(paths, pa.string()),
                "size": pa.array([entry.size for _, entry in found], pa.int64()),
                "partition_values": pa.nulls(len(paths), pa.map_(pa.string(), pa.string())),
                "deletion_vector": pa.nulls(len(paths)),
                "rows": pa.array([head.rows for head in heads], pa.int64()),
            }
        )

    def plan(self, predicate: BoundExpr | None, ordering: Ordering | None = None) -> FilePlan:  # noqa: ARG002 - files without a log have no bounds to ask
        """All files: only a log has bounds of whole files."""
        every = np.arange(self._files.num_rows)
        return FilePlan(len(every), every, every[:0], every[:0], (), None)

    def all_files(self) -> pa.Table:
        """The files."""
        return self._files

    def files(self, indices: pa.Array) -> pa.Table:
        """The files at `indices`."""
        return self._files.take(indices)

    def rows(self, indices: pa.Array) -> pa.Array:
        """Their numbers of rows, from their footers."""
        return self._files.column("rows").take(indices).combine_chunks()


@dataclass(frozen=True)
class Head:
    """The content of a file's footer that a scan needs."""

    schema: pa.Schema
    rows: int


def _head(found: Found, early: Early, tails: Tails) -> Head:
    place, entry = found
    reader = kernel.open_file(place, entry.path, entry.size, early=early, tails=tails)
    return Head(reader.schema, reader.num_rows)


def _one_schema(paths: Sequence[str], schemas: Sequence[StructType]) -> StructType:
    """The columns of all files in order of first appearance; nullable where a file lacks them."""
    fields: dict[str, StructField] = {}
    origin: dict[str, str] = {}
    for path, schema in zip(paths, schemas, strict=True):
        for f in schema.fields:
            known = fields.get(f.name)
            if known is None:
                fields[f.name], origin[f.name] = f, path
            elif known.type != f.type and all(t == VARIANT or looks_like_variant(t) for t in (known.type, f.type)):
                fields[f.name] = StructField(f.name, VARIANT, known.nullable or f.nullable)
            elif known.type != f.type:
                raise UserError(
                    "INCOMPATIBLE_FILES",
                    f"column {f.name!r} is {type_to_ddl(known.type)} in {origin[f.name]}"
                    f" and {type_to_ddl(f.type)} in {path}",
                    hint="Read the files separately.",
                    column=f.name,
                )
            elif f.nullable:
                fields[f.name] = f
    everywhere = set.intersection(*(set(schema.names) for schema in schemas))
    return StructType(
        tuple(f if name in everywhere else StructField(name, f.type, True, f.metadata) for name, f in fields.items())
    )
