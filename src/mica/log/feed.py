"""The change data feed: which rows each commit inserted, deleted or updated.

The rule (PROTOCOL.md, "Change Data Files"): if a commit has `cdc` actions, their files hold all of its changes, and its
adds and removes are ignored. Otherwise rows of added files are inserts and rows of removed files are deletes, unless
the action changes no data (`dataChange` is false). A file that gets another deletion vector changes only the rows in
which the two vectors differ. The feed must be enabled at every version of the range, as in delta-spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica import properties
from mica.errors import CorruptDataError, UnsupportedTableError, UserError
from mica.log.actions import Metadata, parse_line
from mica.log.arrays import one_array
from mica.log.commit_info import in_commit_timestamp
from mica.log.json_lines import BrokenLinesError, read_lines, split_lines
from mica.log.paths import LOG, canonical_keys, file_keys
from mica.log.replay import DELETION_VECTOR, PARTITION_VALUES, partition_keys, partition_map
from mica.log.segment import Listing, read_listing
from mica.log.snapshot import Snapshot, load
from mica.log.time_travel import increasing
from mica.schema.types import StructType

#: The columns that a reader of the feed sees beside those of the table; change files hold the first one.
CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP = "_change_type", "_commit_version", "_commit_timestamp"
COLUMNS = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)

#: The directory of change files, below the table's root.
DIRECTORY = "_change_data"

#: A file that holds changes. `partition_values` include version and time of its commit. `deletion_vector`: its rows are
#: no change; `chosen`: a vector of the only rows that are; `change_type`: null if the file itself has the column.
FEED = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", PARTITION_VALUES),
        ("size", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
        ("chosen", DELETION_VECTOR),
        ("change_type", pa.string()),
        ("stats", pa.string()),
    ]
)


def refuse_reserved(schema: StructType) -> None:
    """Refuses a schema with a column that the feed adds by itself, as delta-spark does. Errors: INVALID_NAME."""
    for name in schema.names:
        if name.lower() in COLUMNS:
            raise UserError(
                "INVALID_NAME",
                f"the column {name!r} has a name that the change data feed needs for itself",
                hint="Rename the column, or set delta.enableChangeDataFeed to false.",
                column=name,
            )


def changed_files(end: Snapshot, first: int) -> pa.Table:
    """Returns the files that hold the changes of the versions from `first` to that of `end`, as `FEED`, by version.

    Errors: VERSION_EXPIRED, CHANGES_NOT_RECORDED, SCHEMA_CHANGED (UnsupportedTableError), INVALID_NAME.
    """
    refuse_reserved(end.schema)
    versions = range(first, end.version + 1)
    listing = _kept(end, versions)
    commits = [_Commit.read(end, listing, version) for version in versions]
    _check_recorded(end, commits)
    modified = increasing(listing.commits[version].modified for version in versions)
    tables = [
        commit.files(when if commit.timestamp is None else commit.timestamp)
        for commit, when in zip(commits, modified, strict=True)
    ]
    return pa.concat_tables([FEED.empty_table(), *tables])


def change_files_since(snapshot: Snapshot, oldest: int) -> pa.Array:
    """Returns the change files that commits since `oldest` (ms) name, by `canonical_keys`."""
    listing, found = read_listing(snapshot.storage.list(LOG, recursive=False)), [pa.array([], pa.string())]
    for version, entry in sorted(listing.commits.items()):
        if entry.modified >= oldest:
            commit = _Commit.read(snapshot, listing, version)
            found.append(canonical_keys(pc.struct_field(one_array(commit.actions["cdc"]).drop_null(), "path")))
    return pa.concat_arrays(found)


def _kept(end: Snapshot, versions: range) -> Listing:
    listing = read_listing(end.storage.list(LOG, recursive=False))
    missing = [version for version in versions if version not in listing.commits]
    if missing:
        oldest = min((version for version in listing.commits if version > missing[-1]), default=None)
        raise UserError(
            "VERSION_EXPIRED",
            f"the commit of version {missing[0]} of {end.storage} was cleaned up, so its changes are unknown",
            hint="The newest changes are gone too." if oldest is None else f"Changes are known from version {oldest}.",
            version=missing[0],
        )
    return listing


@dataclass(frozen=True)
class _Commit:
    """The actions of one commit that matter to the feed."""

    end: Snapshot
    version: int
    name: str
    actions: pa.Table
    keys: Sequence[str]
    #: In-commit timestamp in ms, and the metadata, if the commit has them.
    timestamp: int | None
    metadata: Metadata | None

    @classmethod
    def read(cls, end: Snapshot, listing: Listing, version: int) -> _Commit:
        entry = listing.commits[version]
        data, name = end.storage.read(entry.path), end.storage.path(entry.path)
        keys = partition_keys(end.metadata, end.protocol)
        lines, longest = split_lines(data)
        try:
            actions = read_lines(data, lines, longest, _schema(keys))
        except BrokenLinesError as error:
            raise CorruptDataError("CORRUPT_LOG", f"{name} cannot be used: {error}", hint="Restore it.") from None
        timestamp, metadata = None, None
        for line in lines.filter(pc.match_substring_regex(lines, r'^\s*\{\s*"(commitInfo|metaData)"\s*:')):
            action = parse_line(line.as_buffer().to_pybytes())
            if isinstance(action.get("commitInfo"), dict):
                timestamp = in_commit_timestamp(action["commitInfo"])
            elif isinstance(action.get("metaData"), dict):
                metadata = Metadata.parse(action["metaData"])
        return cls(end, version, name, actions, keys, timestamp, metadata)

    def files(self, timestamp: int) -> pa.Table:
        """The files with its changes, as `FEED`; `timestamp` in ms."""
        changes = self._of("cdc")
        if len(changes):
            return self._table(changes, None, timestamp)
        adds, removes = (_changing(self._of(kind)) for kind in ("add", "remove"))
        both = self._with_other_vectors(adds, removes, timestamp)
        if both is None:
            return pa.concat_tables([self._table(removes, "delete", timestamp), self._table(adds, "insert", timestamp)])
        return both

    def _of(self, kind: str) -> pa.StructArray:
        return one_array(self.actions[kind]).drop_null()

    def _with_other_vectors(self, adds: pa.Array, removes: pa.Array, timestamp: int) -> pa.Table | None:
        """The files if some are both removed and added, which is how they get another vector; None if none are."""
        if not len(adds) or not len(removes):
            return None
        added, removed = (canonical_keys(pc.struct_field(found, "path")) for found in (adds, removes))
        at = pc.index_in(added, value_set=removed)
        if at.null_count == len(at):
            return None
        new, old = adds.filter(at.is_valid()), removes.take(at.drop_null())
        alone = removes.filter(pc.invert(pc.is_in(removed, value_set=added)))
        before, after = (pc.struct_field(found, "deletionVector") for found in (old, new))
        same = pc.equal(*(file_keys(pc.struct_field(found, "path"), vector)
                          for found, vector in ((old, before), (new, after))))  # fmt: skip
        tables = [self._table(alone, "delete", timestamp), self._table(adds.filter(at.is_null()), "insert", timestamp)]
        for change, chosen, others in (("delete", after, before), ("insert", before, after)):
            found = self._table(new, change, timestamp, chosen, others)
            tables.append(found.filter(pc.and_not(chosen.is_valid(), same)))
        return pa.concat_tables(tables)

    def _table(
        self,
        actions: pa.StructArray,
        change: str | None,
        timestamp: int,
        chosen: pa.Array | None = None,
        others: pa.Array | None = None,
    ) -> pa.Table:
        count = len(actions)
        vectors = pc.struct_field(actions, "deletionVector") if others is None else others
        paths = pc.struct_field(actions, "path")
        if paths.null_count:
            raise CorruptDataError("CORRUPT_LOG", f"{self.name} names a file without a path", hint="Restore it.")
        return pa.table(
            [
                paths,
                self._values(actions, timestamp),
                pc.struct_field(actions, "size"),
                vectors,
                pa.nulls(count, DELETION_VECTOR) if chosen is None else chosen,
                pa.nulls(count, pa.string()) if change is None else pa.repeat(pa.scalar(change), count),
                pc.struct_field(actions, "stats"),
            ],
            schema=FEED,
        )

    def _values(self, actions: pa.StructArray, timestamp: int) -> pa.Array:
        """The partition values, with version and time of the commit."""
        count = len(actions)
        values = [] if not self.keys else self._partition_values(actions)
        known = {COMMIT_VERSION: str(self.version), COMMIT_TIMESTAMP: _text(timestamp)}
        constant = [pa.repeat(pa.scalar(text, pa.string()), count) for text in known.values()]
        names = [*self.keys, *known]
        struct = pa.StructArray.from_arrays([*values, *constant], [*names])
        wrapped = pa.StructArray.from_arrays([struct], ["partitionValues"])
        return partition_map(wrapped, names, len(names))

    def _partition_values(self, actions: pa.StructArray) -> list[pa.Array]:
        found = pc.struct_field(actions, "partitionValues")
        values = [pc.struct_field(found, [i]) for i in range(len(self.keys))]
        if not found.null_count:
            return values
        # `partitionValues` of a remove are optional: the version before has them.
        files = load(self.end.storage, self.version - 1).files
        at = pc.index_in(
            canonical_keys(pc.struct_field(actions, "path")), value_set=canonical_keys(one_array(files["path"]))
        )
        maps = files["partition_values"].take(at).to_pylist(maps_as_pydicts="lossy")
        return [
            pc.coalesce(value, pa.array([(one or {}).get(key) for one in maps], pa.string()))
            for key, value in zip(self.keys, values, strict=True)
        ]


def _schema(keys: Sequence[str]) -> pa.Schema:
    fields: list[tuple[str, Any]] = [
        ("path", pa.string()), ("size", pa.int64()), ("dataChange", pa.bool_()), ("deletionVector", DELETION_VECTOR),
        ("stats", pa.string()),
    ]  # fmt: skip
    if keys:
        fields.append(("partitionValues", pa.struct([(key, pa.string()) for key in keys])))
    return pa.schema([(kind, pa.struct(fields)) for kind in ("add", "remove", "cdc")])


def _changing(actions: pa.StructArray) -> pa.StructArray:
    return actions.filter(pc.fill_null(pc.struct_field(actions, "dataChange"), True))


def _text(timestamp: int) -> str:
    """A time in ms as a partition value in UTC (PROTOCOL.md, "Partition Value Serialization")."""
    return f"{np.datetime64(timestamp, 'ms')}Z"


def _check_recorded(end: Snapshot, commits: Sequence[_Commit]) -> None:
    """Refuses a range in which the feed is not enabled at every version, or the partition columns change."""
    first = commits[0]
    metadata = first.metadata
    if metadata is None:
        changed = any(commit.metadata is not None for commit in commits)
        metadata = load(end.storage, first.version).metadata if changed else end.metadata
    for commit in commits:
        metadata = commit.metadata or metadata
        if not properties.ENABLE_CHANGE_DATA.of(metadata.configuration):
            raise UserError(
                "CHANGES_NOT_RECORDED",
                f"{end.storage} had no change data feed at version {commit.version}, so the changes of versions "
                f"{first.version} to {end.version} were not recorded",
                hint="Read a range in which delta.enableChangeDataFeed is true, or compare two versions of the table.",
                version=commit.version,
            )
        if metadata.partition_columns != end.metadata.partition_columns:
            raise UnsupportedTableError(
                "SCHEMA_CHANGED",
                f"{end.storage} is partitioned by {list(metadata.partition_columns)} at version {commit.version} and "
                f"by {list(end.metadata.partition_columns)} at version {end.version}",
                hint="Read the changes before and after that in two calls.",
                version=commit.version,
            )
