"""The change data feed of a table as the source of a scan.

The rule: a scan of changes plans and reads like any scan; only its files are those of commits instead of a version, and
three columns say what happened (`log/feed.py`). Version and time of a commit are constants of its files, like partition
values, so a predicate on them opens no file. The columns are those of the last version of the range, as in delta-spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from mica import compute as pc
from mica.arrays import no_rows, one_array, scalar
from mica.collation.ordering import Ordering
from mica.errors import CorruptDataError, UserError
from mica.expressions.bind import BoundExpr
from mica.log import time_travel
from mica.log.feed import changed_files
from mica.log.feed_columns import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, other_type
from mica.log.feed_commits import FEED
from mica.log.listing import list_log
from mica.log.paths import decode_path, with_names
from mica.log.snapshot import Snapshot, load
from mica.log.time_travel import Timestamp, to_millis
from mica.scan.source import Listed, Source
from mica.scan.table import rows_in
from mica.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType
from mica.skipping.file_plan import FilePlan
from mica.skipping.plan import plan_files
from mica.storage.tails import Tails

#: The columns that a scan of changes has beside those of the table.
FEED_COLUMNS = (
    StructField(CHANGE_TYPE, STRING),
    StructField(COMMIT_VERSION, LONG),
    StructField(COMMIT_TIMESTAMP, TIMESTAMP),
)


class ChangesSource(Source):
    """The changes of some versions of a table, whose files are `log.feed_commits.FEED`; `partition_by` are the
    partition columns of all of them (None: those of `end`). Unless it is `told` what happened, the rows are those of a
    table.
    """

    plain = False

    def __init__(
        self, end: Snapshot, files: pa.Table, name: str, partition_by: Sequence[str] | None = None, *, told: bool = True
    ) -> None:
        self.storage = end.storage
        self.name = name
        self.version, self.of_commits = end.version, True
        common = end.partition_columns if partition_by is None else partition_by
        self.schema, self.partition_by = end.schema, tuple(common)
        if told:
            self.schema = StructType((*end.schema.fields, *FEED_COLUMNS))
            self.partition_by = (*common, COMMIT_VERSION, COMMIT_TIMESTAMP)
        self.column_mapping = end.mapping != "none"
        self.by_id = end.mapping == "id"
        self.tails = Tails()
        self._files = files
        self._cache: dict[Any, Any] = {}

    def plan(self, predicate: BoundExpr | None, ordering: Ordering | None = None) -> FilePlan:
        """Which files are kept, and why the others are skipped."""
        try:
            return plan_files(predicate, Listed(self.schema, self._files), cache=self._cache, ordering=ordering)
        except CorruptDataError as e:
            if e.code != "INVALID_PARTITION_VALUE":
                raise
            raise other_type(f"{e.message}, the column's type") from None

    def all_files(self) -> pa.Table:
        """All files with changes, as the log names them."""
        return self._files

    def path_of(self, file: int) -> str:
        """The path of one of all files, decoded."""
        return decode_path(super().path_of(file))

    def files(self, indices: pa.Array, *, ids: bool = False) -> pa.Table:  # noqa: ARG002 - change files have none
        """The files at `indices`, with decoded paths."""
        return with_names(self._files.take(indices))

    def rows(self, indices: pa.Array) -> pa.Array:
        """How many rows the files at `indices` have, those of which all are read; null if the log does not say."""
        names = ("stats", "deletion_vector", "chosen")
        stats, vectors, chosen = (one_array(pc.take(self._files.column(name), indices)) for name in names)
        rows = rows_in(stats, vectors)
        return pc.if_else(pc.is_null(chosen), rows, scalar(None, rows.type))


def changes(
    snapshot: Snapshot,
    from_version: int | None,
    to_version: int | None,
    from_timestamp: Timestamp | None,
    to_timestamp: Timestamp | None,
) -> ChangesSource:
    """The changes of a range of versions; see `Table.changes`."""
    for version, timestamp in ((from_version, from_timestamp), (to_version, to_timestamp)):
        if version is not None and timestamp is not None:
            raise time_travel.both_given()
    if from_version is None and from_timestamp is None:
        raise UserError("INVALID_ARGUMENT", "no start was given", hint="Give from_version= or from_timestamp=.")
    first, last = from_version, snapshot.version if to_version is None else to_version
    if from_timestamp is not None or to_timestamp is not None:
        listing = list_log(snapshot.storage)
        if from_timestamp is not None:
            first = time_travel.version_after(snapshot.storage, listing, from_timestamp)
        if to_timestamp is not None:
            last = min(last, time_travel.version_before(snapshot.storage, listing, to_timestamp))
    assert first is not None
    if (beyond := max(first, last)) > snapshot.version:
        message, newest = f"{snapshot.storage} has no version {beyond}", list_log(snapshot.storage).latest
        hint = f"Its latest version is {newest}."
        if newest >= beyond:
            message = f"the table is read at version {snapshot.version}, and has no changes of version {beyond} there"
            hint = f"{hint} Refresh or open the table again to read them."
        raise UserError("VERSION_NOT_FOUND", message, hint=hint, version=beyond)
    end = snapshot if last == snapshot.version else load(snapshot.storage, last)
    end.check_readable()
    name = f"the changes of {end.storage} from version {first}"
    if from_timestamp is not None and to_timestamp is not None:
        if to_millis(from_timestamp) > to_millis(to_timestamp):
            asked = f"{from_timestamp} to {to_timestamp}"
            raise UserError.bad_value("the range of times", asked, "from a time to the same or a later one")
        if first > last:
            return ChangesSource(end, no_rows(FEED), name)  # no commit is between the two
    if first > last:
        asked = f"{first} to {last}"
        raise UserError.bad_value("the range of versions", asked, "from a version to the same or a later one")
    files, partition_by = changed_files(end, first)
    return ChangesSource(end, files, name, partition_by)
