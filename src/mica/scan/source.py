"""The source of a scan: files, and what is known about them before they are opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from mica.cached import cached_property
from mica.collation.ordering import Ordering
from mica.expressions.bind import BoundExpr
from mica.records import dataclass
from mica.schema.types import StructType
from mica.skipping.file_plan import FilePlan
from mica.stats.read import Share, shares_of
from mica.storage import Storage
from mica.storage.tails import Tails
from mica.tasks.parts import FilePart, parts_of


class Source:
    """The source of a scan: a snapshot of a table, or a list of Parquet files."""

    storage: Storage
    #: Its name in messages.
    name: str
    version: int | None = None
    #: Whether its files are those of commits up to the version, which the version itself may no longer name.
    of_commits: bool = False
    schema: StructType
    partition_by: tuple[str, ...] = ()
    #: Whether the table maps columns, which Spark's own reader does not know.
    column_mapping: bool = False
    #: Whether files identify columns by ids instead of names.
    by_id: bool = False
    #: Whether its rows are those of its files less deleted ones, so that readers of bare files see them too.
    plain: bool = True
    #: The columns of files that hold the ids of rows, if it tracks rows.
    row_ids: tuple[str, str] | None = None
    #: Cached ends of files that were read already.
    tails: Tails
    #: Which columns are of the early shredding layout: True: detected by their fields; False: none; or their paths.
    early: bool | list[list[str]] = False

    def __repr__(self) -> str:
        version = "" if self.version is None else f", version={self.version}"
        return f"{type(self).__name__}({self.name!r}{version})"

    @cached_property
    def bound(self) -> dict[Any, Mapping[str, BoundExpr]]:
        """The columns of scans that were bound before and are paths and no more, by what they were asked for as."""
        return {}

    @property
    def readable(self) -> StructType:
        """The columns that expressions may name."""
        return self.schema

    @property
    def kept_ids(self) -> Mapping[str, BoundExpr]:
        """The ids and versions of rows, by the columns that hold them in files; what is written again keeps them."""
        return {}

    def plan(self, predicate: BoundExpr | None, ordering: Ordering | None = None) -> FilePlan:
        """Which files are kept, and why the others are skipped; `ordering` compares strings by collation."""
        raise NotImplementedError

    def all_files(self) -> pa.Table:
        """All files: path as in the source, size."""
        raise NotImplementedError

    def path_of(self, file: int) -> str:
        """The path of one of all files, decoded."""
        found: str = self.all_files().column("path")[file].as_py()
        return found

    def files(self, indices: pa.Array, *, ids: bool = False) -> pa.Table:
        """path (decoded), size, partition_values, deletion_vector of the files at `indices`; with `ids` those of their
        rows (`row_tracking.FILE_IDS`).
        """
        raise NotImplementedError

    def parts(self, files: pa.Table) -> list[FilePart]:
        """What `files` returned, one part each."""
        return parts_of(files)

    def rows(self, indices: pa.Array) -> pa.Array:
        """How many rows of the files at `indices` the source has; null if only the file itself says."""
        raise NotImplementedError

    def may_hold_late_types(self, indices: pa.Array) -> bool:  # noqa: ARG002 - nothing is known without a log
        """Whether Variants of the files at `indices` may hold a time, nanoseconds or a UUID."""
        return True


@dataclass(frozen=True)
class Listed:
    """Files that are no snapshot, as planning sees them: with partition values, and `stats` (null: none)."""

    schema: StructType
    files: pa.Table

    def stats(self) -> pa.Array:
        """The statistics of the files as JSON."""
        return self.files.column("stats").combine_chunks()

    def stats_shares(self) -> Iterator[Share]:
        """The same, some files at a time."""
        yield from shares_of(self.stats())

    def tags(self) -> pa.Array:
        """None: without them, bounds by collations are not used."""
        return pa.nulls(self.files.num_rows, pa.map_(pa.string(), pa.string()))
