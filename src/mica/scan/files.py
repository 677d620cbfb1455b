"""Bare Parquet files as the source of a scan.

The rule: each file's own footer defines its columns, and the directories that it is in add partition columns
(`scan.hive`), which replace columns of the same name. Columns are matched by name across files (`scan.one_schema`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica import late
from mica.arrays import arrow_array
from mica.collation.ordering import Ordering
from mica.engines import local
from mica.errors import UserError
from mica.expressions.bind import BoundExpr
from mica.records import dataclass
from mica.scan import hive
from mica.scan.one_schema import one_schema
from mica.scan.said_by_spark import SCHEMA, as_spark_says
from mica.scan.source import Listed, Source
from mica.schema.arrow import from_arrow
from mica.schema.types import DataType, StructField, StructType
from mica.skipping.file_plan import FilePlan
from mica.skipping.plan import plan_files
from mica.storage import Storage
from mica.storage.options import ALLOW_EXTERNAL
from mica.storage.patterns import Found
from mica.storage.tails import BRIEFLY, Tails
from mica.tasks.ahead import readers_of
from mica.variant import kernel

#: Which columns are of the early layout: True: detected by their fields; False: none; or the paths of these columns.
Early = bool | list[list[str]]


_TEXTS = pa.map_(pa.string(), pa.string())


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
        self,
        found: Sequence[Found],
        storage_options: Mapping[str, str] | None = None,
        early: Early = True,
        check: Callable[[str, pa.Schema], None] | None = None,
        *,
        exact: bool = False,
    ) -> None:
        """`check` may refuse a file by its columns. `exact`: the files, or their pages, become those of a table."""
        paths = [place.path(entry.path) for place, entry in found]
        # The caller named the files, so they may be anywhere.
        anywhere = {**(storage_options or {}), ALLOW_EXTERNAL: "true"}
        self.storage = Storage.open(os.path.dirname(paths[0]) or ".", anywhere)  # noqa: PTH120 - may be a URI
        self.name = paths[0] if len(paths) == 1 else f"{len(paths)} Parquet files"
        self.tails = Tails(BRIEFLY)
        several = max(local.threads(), *(readers_of(place) for place, _ in found))
        with late.futures.ThreadPoolExecutor(min(several, len(paths))) as threads:
            heads = list(threads.map(partial(_head, early=early, tails=self.tails), found))
        self.early = early
        partitions = hive.values_of_all(entry.path for _, entry in found)
        columns = hive.columns_of(partitions)
        self.partition_by = tuple(columns)
        replaced = {name.lower() for name in columns}
        for path, head in zip(paths, heads, strict=True):
            if check is not None:
                check(path, pa.schema([field for field in head.schema if field.name.lower() not in replaced]))
        # A scan may leave out a column of a type that Delta does not have; a table cannot.
        own = [as_spark_says(from_arrow(head.schema, strict=exact), head.said) for head in heads]
        _refuse_unknown(early, own)
        self.schema = _with_partitions(one_schema(paths, own, replaced, exact=exact), columns)
        self._files = pa.table(
            {
                "path": arrow_array(paths, pa.string()),
                "size": arrow_array([entry.size for _, entry in found], pa.int64()),
                "partition_values": arrow_array([list(own.items()) for own in partitions], _TEXTS),
                "deletion_vector": pa.nulls(len(paths)),
                "rows": arrow_array([head.rows for head in heads], pa.int64()),
            }
        )

    def plan(self, predicate: BoundExpr | None, ordering: Ordering | None = None) -> FilePlan:
        """The files that their partition values do not skip: only a log has bounds of whole files."""
        if not self.partition_by:
            every = np.arange(self._files.num_rows)
            return FilePlan(len(every), every, every[:0], every[:0], (), None)
        files = self._files.append_column("stats", pa.nulls(self._files.num_rows, pa.string()))
        return plan_files(predicate, Listed(self.schema, files), ordering=ordering)

    def all_files(self) -> pa.Table:
        """The files."""
        return self._files

    def files(self, indices: pa.Array, *, ids: bool = False) -> pa.Table:  # noqa: ARG002 - bare files have none
        """The files at `indices`."""
        return self._files.take(indices)

    def rows(self, indices: pa.Array) -> pa.Array:
        """Their numbers of rows, from their footers."""
        return self._files.column("rows").take(indices).combine_chunks()


def _refuse_unknown(early: Early, schemas: Sequence[StructType]) -> None:
    """Refuses names of early columns that no file has."""
    for names in [] if isinstance(early, bool) else early:
        if not any(_has(schema, names) for schema in schemas):
            text, known = ".".join(names), dict.fromkeys(name for schema in schemas for name in schema.names)
            hint = f"There are: {', '.join(known)}."
            raise UserError("UNKNOWN_COLUMN", f"early names {text!r}, which no file has", hint=hint)


def _has(type_: DataType, names: Sequence[str]) -> bool:
    if not names:
        return True
    found = type_.find(names[0]) if isinstance(type_, StructType) else None
    return found is not None and _has(found.type, names[1:])


@dataclass(frozen=True)
class Head:
    """The content of a file's footer that a scan needs."""

    schema: pa.Schema
    rows: int
    said: str | None


def _head(found: Found, early: Early, tails: Tails) -> Head:
    place, entry = found
    reader = kernel.open_file(place, entry.path, entry.size, early=early, tails=tails)
    return Head(reader.schema, reader.num_rows, reader.key_value_metadata.get(SCHEMA))


def _with_partitions(schema: StructType, columns: Mapping[str, DataType]) -> StructType:
    """The columns of the files, with partition columns in their places or at the end, as Spark has them: a directory
    `P=1` stands for a column `p` too."""
    left = {name.lower(): StructField(name, type_) for name, type_ in columns.items()}
    own = [left.pop(f.name.lower(), None) if f.name.lower() in left else f for f in schema.fields]
    return StructType((*(f for f in own if f is not None), *left.values()))
