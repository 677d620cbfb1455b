"""What a scan reads: files with what is known of them before they are opened."""

from __future__ import annotations

import pyarrow as pa

from mica.expressions.bind import BoundExpr
from mica.schema.types import StructType
from mica.skipping.collated import Ordering
from mica.skipping.plan import FilePlan
from mica.storage import Storage
from mica.storage.tails import Tails


class Source:
    """What a scan reads: a snapshot of a table, or a list of Parquet files."""

    storage: Storage
    #: How a person knows it.
    name: str
    version: int | None = None
    schema: StructType
    partition_by: tuple[str, ...] = ()
    #: Table features that Spark's own reader does not know of.
    column_mapping: bool = False
    #: Whether files know columns by their ids, not by names.
    by_id: bool = False
    #: The ends of its files that were read already.
    tails: Tails
    #: Which columns are of the early shredding layout: by their fields, none, or those at these paths.
    early: bool | list[list[str]] = False

    def plan(self, predicate: BoundExpr | None, ordering: Ordering | None = None) -> FilePlan:
        """Which files are kept, and why the others are not; `ordering` compares strings by collations."""
        raise NotImplementedError

    def all_files(self) -> pa.Table:
        """All files as they are named: path, size."""
        raise NotImplementedError

    def files(self, indices: pa.Array) -> pa.Table:
        """path (decoded), size, partition_values, deletion_vector of the files at `indices`."""
        raise NotImplementedError

    def rows(self, indices: pa.Array) -> pa.Array:
        """The number of rows of the files at `indices`; null where only the file itself knows."""
        raise NotImplementedError

    def may_hold_late_types(self, indices: pa.Array) -> bool:  # noqa: ARG002 - of these nothing is known
        """Whether Variants of the files at `indices` may hold a time, nanoseconds or a UUID."""
        return True
