"""A table as a stream: what is there when it starts, then what each commit adds or, with the feed, changes.

The rule: an offset is a place in the log, the version and the number of the file in it that comes next; so a batch has
the same files whenever it is read again. A snapshot's files come first, in the order of the log. Each offset also says
where the stream began: Spark keeps the end of a first batch, and asks for its beginning again if it was killed in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType as SparkStructType

from mica import compute as pc
from mica.arrays import no_rows, to_numpy
from mica.cores import cores
from mica.engines.spark.types import from_spark, to_spark
from mica.errors import UserError
from mica.expressions.collations import FRAME
from mica.format.brief import brief
from mica.format.options import Options
from mica.format.read import Partition, columns_of, rows_of
from mica.log import feed, time_travel
from mica.log.at_path import at_path
from mica.log.feed_commits import FEED
from mica.log.listing import Listing, list_log
from mica.log.snapshot import Snapshot, load
from mica.properties import ENABLE_CHANGE_DATA
from mica.records import dataclass
from mica.scan.changes import ChangesSource
from mica.scan.scan import Scan
from mica.table import Table
from mica.tasks.file import ReadSpec

#: Files of a batch if no limit is given (delta-spark's default).
FILES = 1000

#: Versions before one that may have moved its time on (delta-spark's `POTENTIALLY_UNMONOTONIZED_TIMESTAMPS`).
_BEFORE = 100

#: Options for commits that remove files. If several are given, the first in this table applies, as in delta-spark.
_CHANGING: Mapping[str, feed.Changing] = {
    "skipChangeCommits": "skipped",
    "ignoreChanges": "given again",
    "ignoreDeletes": "deletes skipped",
}


@dataclass(frozen=True)
class StreamPlace:
    """Where a stream is: before file number `file` of a version; of all of its files if it is the `initial` one."""

    table: str
    version: int
    file: int = 0
    initial: bool = False
    #: The version at which the stream began, and whether it began with all of its files.
    began: tuple[int, bool] | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> StreamPlace:
        """The place that Spark kept. Errors: INVALID_ARGUMENT for an offset of another source."""
        try:
            if "reservoirId" in offset:
                return cls._of_delta(offset)
            began = None if "began" not in offset else (int(offset["began"][0]), bool(offset["began"][1]))
            table, initial = str(offset["table"]), bool(offset["initial"])
            return cls(table, int(offset["version"]), int(offset["file"]), initial, began)
        except UserError:
            raise
        except (LookupError, TypeError, ValueError):
            raise UserError(
                "INVALID_ARGUMENT",
                f"the checkpoint folder holds {dict(offset)!r}, which is no place in a table of mica",
                hint="It is that of another stream: give this one a checkpointLocation of its own.",
            ) from None

    @classmethod
    def _of_delta(cls, offset: Mapping[str, Any]) -> StreamPlace:
        """The place that delta-spark's source kept (its `DeltaSourceOffset`), if no file of a version was read without
        the others of it: it counts files otherwise. Errors: INVALID_ARGUMENT."""
        version = int(offset["reservoirVersion"])
        if (offset["sourceVersion"], offset["index"], offset["isStartingVersion"]) != (1, -1, False):
            raise UserError(
                "INVALID_ARGUMENT",
                f"the checkpoint is that of a stream of format delta, which has read a part of version {version}",
                hint='Let that stream read the rest, by format("delta") and the trigger availableNow, then start '
                "this one again. Or give it a checkpointLocation of its own.",
                version=version,
            )
        return cls(str(offset["reservoirId"]), version)

    def offset(self) -> dict[str, Any]:
        """What Spark keeps."""
        began = {} if self.began is None else {"began": list(self.began)}
        return {"table": self.table, "version": self.version, "file": self.file, "initial": self.initial} | began

    def start(self) -> StreamPlace:
        """The same as the place where a stream begins."""
        return replace(self, began=(self.version, self.initial))

    def start_of(self, end: StreamPlace) -> StreamPlace:
        """Where the batch begins that ends there, if Spark has it begin here: not here if the first batch was killed,
        and its beginning was asked for again of a table that has grown."""
        if self.began and end.began and self.began != end.began:
            return StreamPlace(end.table, end.began[0], initial=end.began[1])
        if self.initial and not end.began and end.version < self.version + (not end.initial):
            # The checkpoint of an earlier mica: all that was there before the end.
            return replace(end, file=0) if end.initial else StreamPlace(end.table, end.version - 1, initial=True)
        return self


try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1, which runs such a trigger as one batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing."""


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream.format("mica")`."""

    def __init__(self, options: Options, schema: SparkStructType, loaded: SparkStructType | None = None) -> None:
        """`loaded` are all columns when Spark asked for them, unless the user named them."""
        for name in ("versionAsOf", "timestampAsOf", "endingVersion", "endingTimestamp"):
            if options.text(name) is not None:
                raise UserError(
                    "INVALID_ARGUMENT",
                    f"{name} is an option of reads in a batch: a stream goes on with the table",
                    hint="Use startingVersion or startingTimestamp.",
                )
        storage, asked = at_path(options.path, options.storage)
        if asked is not None:
            what = f"the path {options.path} names a version, and a stream goes on with the table"
            raise UserError("INVALID_ARGUMENT", what, hint=f"Load {storage} with startingVersion or startingTimestamp.")
        self._options = options
        self._feed = options.flag("readChangeFeed")
        found = [meaning for name, meaning in _CHANGING.items() if options.flag(name)]
        self._changing: feed.Changing = found[0] if found else "refused"
        self._passes = options.text("failOnDataLoss") is not None and not options.flag("failOnDataLoss")
        self._files = options.number("maxFilesPerTrigger")
        self._bytes = options.number("maxBytesPerTrigger")
        self._table = Table.open(options.path, storage_options=options.storage)
        self._end = self._seen = self._table.snapshot
        self._end.check_readable()
        columns = columns_of(self._table, options)
        if loaded is not None and loaded.simpleString() != to_spark(columns.schema).simpleString():
            raise UserError(
                "STREAM_CHANGED",
                f"the columns of {self._end.storage} are not those that load() gave to this stream",
                hint="Call load() again and start that stream: it goes on from the same checkpointLocation.",
            )
        self._columns = columns.chosen(from_spark(schema))
        self._known: dict[StreamPlace, pa.Table] = {}
        self._until: int | None = None
        self._began: tuple[int, bool] | None = None
        #: Whether the columns at the version where this reader goes on were compared with those of `_end`.
        self._checked = False
        self.spec: ReadSpec = self._scan(no_rows(FEED)).spec()

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self.spec}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state

    # --- places ------------------------------------------------------------------------------------------------------

    @brief
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a new stream begins: with all rows of the newest version, unless a start is given."""
        place = self._first().start()
        self._began = place.began
        return place.offset()

    def _first(self) -> StreamPlace:
        table, storage = self._end.metadata.id, self._end.storage
        version, timestamp = self._options.text("startingVersion"), self._options.moment("startingTimestamp")
        if version is not None and timestamp is not None:
            raise UserError.bad_value("startingVersion and startingTimestamp", (version, timestamp), "one of them")
        if timestamp is not None:
            return StreamPlace(table, time_travel.version_after(storage, self._listing(None), timestamp))
        if version is None:
            if self._feed and not ENABLE_CHANGE_DATA.of(self._end.properties):
                raise UserError(
                    "CHANGES_NOT_RECORDED",
                    f"{storage} has no change data feed: a stream of its changes would end at its next commit",
                    hint="Set delta.enableChangeDataFeed to true, or stream new rows, without readChangeFeed.",
                    version=self._end.version,
                )
            return StreamPlace(table, self._end.version, initial=True)
        if version.lower() == "latest":
            return StreamPlace(table, self._end.version + 1)
        first = self._options.version("startingVersion") or 0
        if first > self._end.version + 1:  # the next version may be awaited; beyond it, versions would be passed over
            raise UserError(
                "VERSION_NOT_FOUND",
                f"{storage} has no version {first} to start from",
                hint=f'Its latest version is {self._end.version}; "latest" begins with the next one.',
                version=first,
            )
        return StreamPlace(table, first)

    @brief
    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802 - as above
        """How far the next batch goes. Spark 4.1 gives neither start nor limit: then to the end."""
        place = None if start is None else self._place(start)
        listing = self._listing(self._end.version if place is None else max(place.version - 1, 0))
        if place is not None and listing.latest < place.version - 1 and not self._passes:
            raise self._put_back(place.version - 1)
        newest = listing.latest if self._until is None else min(self._until, listing.latest)
        if place is None:
            return StreamPlace(self._end.metadata.id, newest + 1, began=self._began).offset()
        unlimited = type(limit).__name__ == "ReadAllAvailable"
        files = None if unlimited else (self._files or (None if self._bytes else FILES))
        size, begun = None if unlimited else self._bytes, False
        while place.initial or place.version <= newest:
            found = self._at(place, listing)
            rest = found.num_rows - place.file
            taken = rest if files is None else min(rest, files)
            if size is not None and taken:
                sizes = pc.fill_null(found.column("size").slice(place.file, taken), 0)  # a remove may lack it
                sums = to_numpy(pc.cumulative_sum(sizes))
                # A file that is larger than the limit is a batch of its own.
                taken = max(int((sums <= size).sum()), int(not begun))
                size -= int(sums[taken - 1]) if taken else 0
            if taken < rest and self._feed and not place.initial and feed.is_one_change(found):
                return (place if begun else StreamPlace(place.table, place.version + 1, began=place.began)).offset()
            begun = begun or taken > 0
            files = None if files is None else files - taken
            if taken < rest:
                return replace(place, file=place.file + taken).offset()
            # A commit without rows belongs to the batch before it.
            place = StreamPlace(place.table, place.version + 1, began=place.began)
        return place.offset()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 - as above
        """The limit of the options; Spark gives it back, or none where a trigger wants everything."""
        from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxFiles

        return ReadMaxBytes(self._bytes) if self._bytes and not self._files else ReadMaxFiles(self._files or FILES)

    @brief
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - as above
        """Ends the stream with the version that is the newest now."""
        self._until = self._listing(self._end.version).latest

    @brief
    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - as above
        """The end of the table, for the stream's progress."""
        return StreamPlace(self._end.metadata.id, self._listing(self._end.version).latest + 1).offset()

    # --- rows --------------------------------------------------------------------------------------------------------

    @brief
    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        """The files between two places."""
        first, last = self._place(start), self._place(end)
        first = first.start_of(last)
        listing, place, tables = self._listing(first.version), first, [no_rows(FEED)]
        while (place.version, place.file) < (last.version, last.file):
            whole, ends = self._at(place, listing), place.version == last.version
            tables.append(whole.slice(place.file, (last.file if ends else whole.num_rows) - place.file))
            if ends:
                break
            place = StreamPlace(place.table, place.version + 1)
        self._known = {place: files for place, files in self._known.items() if place.version >= last.version}
        return [Partition(files) for files in self._scan(pa.concat_tables(tables)).sent(cores())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of the files."""
        return rows_of(self.spec, partition.value)

    def _place(self, offset: Mapping[str, Any]) -> StreamPlace:
        """A place in this table. Errors: STREAM_CHANGED."""
        place = StreamPlace.of(offset)
        if place.table != self._end.metadata.id:
            raise self._changed()
        return place

    def _changed(self) -> UserError:
        return UserError(
            "STREAM_CHANGED",
            f"{self._end.storage} is not the table that this stream has read: it was replaced, or the checkpoint "
            "folder is that of another stream",
            hint="Give the stream a checkpointLocation of its own: it begins with all rows of this table.",
        )

    def _put_back(self, read: int) -> UserError:
        """The error for a table that lacks a version that was read: later ones of that number would be left out."""
        return UserError(
            "STREAM_CHANGED",
            f"{self._end.storage} is at version {self._listing(None).latest}, and this stream has read version {read}: "
            "an earlier state of the table was put back",
            hint="Give the stream a checkpointLocation of its own, and startingVersion if it need not begin with all "
            "rows; failOnDataLoss=false leaves out what is written up to the version that was read.",
            version=read,
        )

    def _scan(self, files: pa.Table) -> Scan:
        source = ChangesSource(self._end, files, f"the stream of {self._end.storage}", told=self._feed)
        timezone = self._options.text("timeZone") or "UTC"
        scan = Scan(source, self._options.text("where"), dict(self._columns.spelled), timezone=timezone)
        scan.refuse_collated(FRAME)
        return scan

    def _at(self, place: StreamPlace, listing: Listing) -> pa.Table:
        """All files of the version of a place."""
        key = StreamPlace(place.table, place.version, 0, place.initial)
        if key not in self._known:
            self._known[key] = self._files_of(key, listing)
        return self._known[key]

    def _files_of(self, place: StreamPlace, listing: Listing) -> pa.Table:
        kept = place.initial or place.version in listing.commits
        if not kept and self._passes:
            return no_rows(FEED)
        if kept and not self._checked and place.version < self._end.version:
            feed.check_start(self._end, place.version, recorded=self._feed and not place.initial)
        self._checked = True
        if place.initial:
            snapshot = self._end if self._end.version == place.version else self._begun(place.version)
            return feed.standing_files(snapshot, snapshot.timestamp if self._feed else None)
        if place.version not in listing.commits:
            raise UserError(
                "VERSION_EXPIRED",
                f"version {place.version} of {self._end.storage} was cleaned up before this stream read its commit",
                hint="Give the stream a new checkpointLocation, to begin with all rows of the newest version; "
                "failOnDataLoss=false goes on with the commits that are left.",
                version=place.version,
            )
        if self._feed:
            return feed.recorded_files(self._end, listing, place.version)
        return feed.appended_files(self._end, listing, place.version, changing=self._changing)

    def _begun(self, version: int) -> Snapshot:
        """The version with whose rows the stream began, of which some are left. Errors: VERSION_EXPIRED."""
        try:
            return load(self._end.storage, version)
        except UserError as error:
            if error.code == "VERSION_EXPIRED":
                error.hint = (
                    "The stream began with the rows of that version, and has not read all of them. Give it a "
                    "checkpointLocation of its own: it begins with all rows of the newest version."
                )
            raise

    def _listing(self, start: int | None) -> Listing:
        """The log's files from a version on: a stream that goes on for long does not list what it has read, but for the
        versions that may have had the same time. Errors:
        STREAM_CHANGED if it is that of another table now; TABLE_NOT_FOUND."""
        if not self._seen.stands():
            self._seen = load(self._end.storage)
            if self._seen.metadata.id != self._end.metadata.id:
                raise self._changed()
        return list_log(self._end.storage, start if start is None or not self._feed else max(start - _BEFORE, 0))
