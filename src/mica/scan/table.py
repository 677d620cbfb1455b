"""A snapshot of a table as the source of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, from_numpy, one_array, scalar, to_numpy
from mica.cached import cached_property
from mica.collation.ordering import Ordering
from mica.expressions.bind import BoundExpr, Leaf, bind_value
from mica.expressions.tree import Column
from mica.log import row_tracking
from mica.log.file_facts import file_facts
from mica.log.paths import decode_path, with_names
from mica.log.snapshot import Snapshot
from mica.scan.source import Source
from mica.schema.hidden import ROW_ID, ROW_VERSION, Readable
from mica.schema.types import StructType
from mica.skipping.file_plan import FilePlan
from mica.stats import documents
from mica.stats.columns import physical_names
from mica.stats.partition import column_texts, parse_values
from mica.storage.tails import Tails
from mica.tasks.parts import FilePart, parts_of
from mica.variant import kernel

#: The parts of so many files, of some 500 bytes each, are kept with a snapshot.
FEW = 10_000


class TableSource(Source):
    """One version of a table."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.storage = snapshot.storage
        self.name = str(snapshot.storage)
        self.version = snapshot.version
        self.schema = snapshot.schema
        self.partition_by = snapshot.partition_columns
        self.column_mapping = snapshot.mapping != "none"
        self.by_id = snapshot.mapping == "id"
        self.row_ids = row_tracking.materialized(snapshot.metadata)
        self.tails = Tails()
        # Statistics that one scan has read are reused by the next: a snapshot never changes.
        self._cache: dict[Any, Any] = {}

    @property
    def readable(self) -> StructType:
        """The columns of the table, and the hidden ones."""
        return Readable(self.schema.fields)

    @property
    def kept_ids(self) -> Mapping[str, BoundExpr]:
        """The ids and versions of rows, by the columns that hold them in files."""
        hidden = zip(self.row_ids or (), (ROW_ID, ROW_VERSION), strict=False)
        return {name: bind_value(Column(names), self.readable) for name, names in hidden}

    def plan(self, predicate: BoundExpr | None, ordering: Ordering | None = None) -> FilePlan:
        """Which files are kept, and why the others are skipped."""
        if predicate is None:
            return FilePlan.of_all(self.snapshot.files.num_rows)
        from mica.skipping.plan import plan_files

        return plan_files(predicate, self.snapshot, cache=self._cache, ordering=ordering, facts=self._file_facts)

    def _file_facts(self, field: str) -> pa.Array | None:
        columns = (one_array(self._every.column(name)) for name in ("path", "size", "modification_time"))
        return file_facts(self.storage, field, *columns)

    def all_files(self) -> pa.Table:
        """The table's files, as the log names them."""
        return self.snapshot.files

    def path_of(self, file: int) -> str:
        """The path of one of all files, decoded."""
        return decode_path(super().path_of(file))

    def files(self, indices: pa.Array, *, ids: bool = False) -> pa.Table:
        """The files at `indices`, with decoded paths."""
        files = self.snapshot.files
        every = len(indices) == files.num_rows and bool((to_numpy(indices) == np.arange(files.num_rows)).all())
        found = self._every if every else with_names(pc.take(files, indices))
        return found.append_column("ids", self.snapshot.file_ids(indices)) if ids else found

    @cached_property
    def _every(self) -> pa.Table:
        """All files in their order, with decoded paths: most scans of small tables keep them."""
        return with_names(self.snapshot.files)

    def parts(self, files: pa.Table) -> list[FilePart]:
        """Those of all files are made once, where they are few."""
        every = files.num_rows == self.snapshot.files.num_rows <= FEW and files is self._every
        return self._parts if every else parts_of(files)

    @cached_property
    def _parts(self) -> list[FilePart]:
        return parts_of(self._every)

    def rewritten(self, indices: NDArray[np.int64] | None = None) -> list[FilePart]:
        """Files (all, or those at `indices`) whose rows are written again, numbered by their places in the snapshot."""
        places = np.arange(self.snapshot.files.num_rows) if indices is None else indices
        parts = parts_of(self.files(from_numpy(places), ids=self.row_ids is not None))
        return [replace(part, number=number) for part, number in zip(parts, places.tolist(), strict=True)]

    def rows(self, indices: pa.Array) -> pa.Array:
        """How many rows of the files at `indices` are in the table; null if the log does not say."""
        vectors = pc.take(self.snapshot.files.column("deletion_vector"), indices)
        return rows_in(self.snapshot.stats(indices), one_array(vectors))

    def nearest_path(self, leaf: Leaf, file: int) -> str | None:
        """Returns the path most like the leaf's that has bounds in a file; None if that file has the leaf's own."""
        from mica.skipping.kept import nearest_path

        text = self.snapshot.stats([file])[0].as_py()
        bounds = documents.at(documents.read(text), ("minValues", *physical_names(self.schema, leaf.column)))
        near = nearest_path(leaf, bounds if isinstance(bounds, str) else None)
        return None if near is None else f"{leaf.name.partition(':')[0]}:{near}"

    def partitions(self, timezone: str) -> pa.Table:
        """The partitions that have files, sorted: typed partition columns, then files, bytes, rows (null: unknown)."""
        files, names = self.snapshot.files, list(self.partition_by)
        keys = []
        for name in names:
            texts = column_texts(files.column("partition_values"), physical_names(self.schema, (name,))[0])
            keys.append(parse_values(texts, self.schema.field(name).type, timezone=timezone))
        rows = self.rows(from_numpy(np.arange(files.num_rows)))
        # Grouped by position, not by name: a partition column may be called `rows`.
        places = [str(i) for i in range(len(names))]
        table = pa.table([*keys, files.column("size"), rows], names=[*places, "bytes", "rows"])
        known = pc.ScalarAggregateOptions(skip_nulls=False)
        counted = [("bytes", "count"), ("bytes", "sum"), ("rows", "sum", known)]
        found = pc.grouped(table, places, counted).select([*places, "bytes_count", "bytes_sum", "rows_sum"])
        found = found.sort_by([(place, "ascending") for place in places]) if names else found
        # Without keys there is always one group, even without files.
        return found.rename_columns([*names, "files", "bytes", "rows"]).slice(0, found.num_rows if len(files) else 0)

    def may_hold_late_types(self, indices: pa.Array) -> bool:
        """Whether Variants of the files at `indices` may hold values that Spark has no type for."""
        from mica.tasks.late_types import may_hold_late_types

        key = ("late types", tuple(indices.to_pylist()))
        if key not in self._cache:
            tags = self.snapshot.tags(indices).to_pylist(maps_as_pydicts="lossy")
            self._cache[key] = may_hold_late_types(self.storage, parts_of(self.files(indices)), tags)
        return bool(self._cache[key])


def rows_in(stats: pa.Array, vectors: pa.Array) -> pa.Array:
    """`numRecords` of files with these statistics, less the rows that their deletion vectors mark; null if unknown,
    since statistics are only a hint."""
    found = kernel.stats_leaves(stats, [(("numRecords",), pa.int64())]).column(0)
    deleted = pc.if_else(pc.is_null(vectors), scalar(0, pa.int64()), pc.struct_field(vectors, "cardinality"))
    left = pc.subtract(found, deleted)
    return pc.if_else(pc.less(left, 0), scalar(None, pa.int64()), left)
