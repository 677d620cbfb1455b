"""The change data feed: which rows each commit inserted, deleted or updated.

The rule (PROTOCOL.md, "Change Data Files"): if a commit has `cdc` actions, their files hold all of its changes, and its
adds and removes are ignored. Otherwise rows of added files are inserts and rows of removed files are deletes, unless
the action changes no data (`dataChange` is false), or the commit is a merge that counted no row: delta-spark's copies
rows then (its CDCReader, `shouldSkipFileActionsInCommit`). A file that gets another deletion vector changes only the
rows in which the two vectors differ. The feed must be enabled at every version of the range, as in delta-spark.
Partition columns may change in it: where they did, each file says by itself which columns have one value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import arrow_array, no_rows, one_array, scalar, to_numpy
from mica.errors import CorruptDataError, UserError
from mica.log import features
from mica.log.actions import Metadata, Protocol, parse_line
from mica.log.commit_info import in_commit_timestamp
from mica.log.feed_columns import COLUMNS, COMMIT_TIMESTAMP, COMMIT_VERSION
from mica.log.json_lines import BrokenLinesError, read_lines, split_lines
from mica.log.listing import Listing, list_log
from mica.log.paths import canonical_keys, file_keys
from mica.log.replay import DELETION_VECTOR, PARTITION_VALUES, partition_keys, partition_map
from mica.log.snapshot import Snapshot, load
from mica.log.stream_schema import check_goes_on, columns_of, same_in_files
from mica.log.time_travel import increasing
from mica.records import dataclass
from mica.schema.types import StructType
from mica.stats.columns import physical_name

#: Files of so many commits are held as tables of their own: each takes 50 kB, for a file or two.
_HELD = 64

#: A file that holds changes. `partition_values` include version and time of its commit. `deletion_vector`: its rows are
#: no change; `chosen`: a vector of the only rows that are; `change_type`: null if the file itself has the column;
#: `constants`: the values of columns that are partition columns of this file, but not of all.
FEED = pa.schema(
    [
        ("path", pa.string()),
        ("partition_values", PARTITION_VALUES),
        ("size", pa.int64()),
        ("deletion_vector", DELETION_VECTOR),
        ("chosen", DELETION_VECTOR),
        ("change_type", pa.string()),
        ("constants", PARTITION_VALUES),
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


def changed_files(end: Snapshot, first: int) -> tuple[pa.Table, tuple[str, ...]]:
    """Returns the files that hold the changes of the versions from `first` to that of `end`, as `FEED`, by version; and
    the partition columns of all of them.

    Errors: VERSION_EXPIRED, CHANGES_NOT_RECORDED, CHANGES_UNREADABLE, INVALID_NAME.
    """
    refuse_reserved(end.schema)
    versions = range(first, end.version + 1)
    listing = _kept(end, versions)
    commits = [_Commit.read(end, listing, version) for version in versions]
    found = _metadata_at(end, commits)
    _check_recorded(end, versions, found[1:])
    keys = [partition_keys(metadata, end.protocol) for metadata in found]
    common = [key for key in keys[-1] if all(key in own for own in keys)]
    if any(own != keys[-1] for own in keys):
        every = list(dict.fromkeys(key for own in keys for key in own))
        apart = {physical_name(f): f.name for f in end.schema.fields if physical_name(f) not in common}
        commits = [
            replace(_Commit.read(end, listing, version, every), added=own, removed=before, apart=apart)
            for version, before, own in zip(versions, keys[:-1], keys[1:], strict=True)
        ]
    modified = increasing(listing.commits[version].modified for version in versions)
    fits = [own is end.metadata or same_in_files(columns_of(own), end.schema) for own in found]
    files, few = [no_rows(FEED)], list[pa.Table]()
    for number, (commit, when) in enumerate(zip(commits, modified, strict=True)):
        few.append(commit.files(when if commit.timestamp is None else commit.timestamp))
        if few[-1].num_rows and not (fits[number] and fits[number + 1]):
            raise _other_columns(end, commit.version, following=fits[number + 1])
        if len(few) == _HELD:
            files.append(pa.concat_tables(few).combine_chunks())
            few = []
    names = tuple(f.name for f in end.schema.fields if physical_name(f) in common)
    return pa.concat_tables([*files, *few]), tuple(n for n in end.partition_columns if n in names)


def change_files_since(snapshot: Snapshot, oldest: int) -> pa.Array:
    """Returns the change files that commits since `oldest` (ms) name, by `canonical_keys`."""
    listing, found = list_log(snapshot.storage), [arrow_array([], pa.string())]
    for version, entry in sorted(listing.commits.items()):
        if entry.modified >= oldest:
            commit = _Commit.read(snapshot, listing, version)
            found.append(canonical_keys(pc.struct_field(one_array(commit.actions["cdc"]).drop_null(), "path")))
    return pa.concat_arrays(found)


#: How a stream of new rows takes a commit that removes files: it fails; skips the commit; skips it if it adds no files
#: and fails otherwise; or gives all rows of the files that the commit adds, changed or not.
Changing = Literal["refused", "skipped", "deletes skipped", "given again"]


def appended_files(end: Snapshot, listing: Listing, version: int, *, changing: Changing) -> pa.Table:
    """Returns the files that the commit of a version added, as `FEED`, in its order; the table needs no feed for it.

    Errors: CHANGES_IN_STREAM if the commit deletes or changes rows, unless `changing` says what to do;
    STREAM_CHANGED if it changes the columns so that those of `end` do not fit (`log/stream_schema.py`).
    """
    commit = _Commit.read(end, listing, version)
    if commit.metadata is not None:
        check_goes_on(end, version, commit.metadata)
    adds, removes = (_changing(commit.of(kind)) for kind in ("add", "remove"))
    if len(removes):  # change files say nothing here: a merge that only inserts has them too
        if changing == "skipped" or (changing == "deletes skipped" and not len(adds)):
            return no_rows(FEED)
        if changing == "given again":
            return commit.table(adds, None, None, commit.added)
        raise UserError(
            "CHANGES_IN_STREAM",
            f"version {version} of {end.storage} deleted or changed rows, which a stream of new rows cannot say",
            hint="Leave such commits out with option skipChangeCommits (ignoreDeletes if they only delete), have the "
            "rows of rewritten files again (ignoreChanges), or stream the change feed (readChangeFeed).",
            version=version,
        )
    return commit.table(adds, None, None, commit.added)


def recorded_files(end: Snapshot, listing: Listing, version: int) -> pa.Table:
    """Returns the files that hold the changes of one version, as `FEED`. Errors: those of `changed_files`;
    STREAM_CHANGED as for `appended_files`.
    """
    commit = _Commit.read(end, listing, version)
    _check_recorded(end, [version], [commit.metadata or end.metadata])
    if commit.metadata is not None:
        check_goes_on(end, version, commit.metadata)
    return commit.files(listing.commits[version].modified if commit.timestamp is None else commit.timestamp)


def check_start(end: Snapshot, version: int, *, recorded: bool) -> None:
    """Refuses a stream of `end` that goes on at an earlier version, before which the table had columns that those of
    `end` do not fit, or, if it is `recorded`, no feed. Errors: STREAM_CHANGED, CHANGES_NOT_RECORDED."""
    try:
        then = load(end.storage, version)
    except UserError as error:
        if error.code != "VERSION_EXPIRED":
            raise
        return  # its commit may be there without those before it: the metadata of the commits after it are checked
    check_goes_on(end, version, then.metadata)
    if recorded:
        _check_recorded(end, [version], [then.metadata])


def standing_files(snapshot: Snapshot, timestamp: int | None) -> pa.Table:
    """Returns the files of a version, as `FEED`: as if all of its rows were inserted by it at `timestamp` (ms); without
    one nothing is said of what happened. In an order that is the same whichever checkpoint the version is loaded from:
    a stream counts them.
    """
    order = pc.sort_indices(snapshot.files, [("modification_time", "ascending"), ("path", "ascending")])
    files = snapshot.files.take(order)
    count = files.num_rows
    known = _known(snapshot.version, timestamp)
    values = [[*(one or ()), *known.items()] for one in files.column("partition_values").to_pylist()]
    return pa.table(
        [
            files.column("path"), arrow_array(values, PARTITION_VALUES), files.column("size"),
            files.column("deletion_vector"), pa.nulls(count, DELETION_VECTOR),
            pa.repeat(scalar(None if timestamp is None else "insert", pa.string()), count),
            pa.nulls(count, PARTITION_VALUES), snapshot.stats(to_numpy(order)),
        ],
        schema=FEED,
    )  # fmt: skip


def _kept(end: Snapshot, versions: range) -> Listing:
    listing = list_log(end.storage)
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
    #: The keys of partition values in `actions`; those of the files that it adds, and of those that it removes.
    keys: Sequence[str]
    added: Sequence[str]
    removed: Sequence[str]
    #: In-commit timestamp in ms, and the metadata, if the commit has them.
    timestamp: int | None
    metadata: Metadata | None
    #: Whether its files hold copies of rows, and no change.
    copies: bool = False
    #: The columns that are not partition columns of all files of the range, by their keys.
    apart: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, end: Snapshot, listing: Listing, version: int, keys: Sequence[str] | None = None) -> _Commit:
        entry = listing.commits[version]
        data, name = end.storage.read(entry.path), end.storage.path(entry.path)
        keys = partition_keys(end.metadata, end.protocol) if keys is None else keys
        lines, longest = split_lines(data)
        try:
            actions = read_lines(data, lines, longest, _schema(keys))
        except BrokenLinesError as error:
            raise CorruptDataError("CORRUPT_LOG", f"{name} cannot be used: {error}", hint="Restore it.") from None
        timestamp, metadata, copies = None, None, False
        for line in lines.filter(pc.match_substring_regex(lines, r'^\s*\{\s*"(commitInfo|metaData|protocol)"\s*:')):
            action = parse_line(line.as_buffer().to_pybytes())
            if isinstance(action.get("commitInfo"), dict):
                timestamp, copies = in_commit_timestamp(action["commitInfo"]), _counts_none(action["commitInfo"])
            elif isinstance(action.get("metaData"), dict):
                metadata = Metadata.parse(action["metaData"])
            elif isinstance(action.get("protocol"), dict):
                features.check_read(Protocol.parse(action["protocol"]), str(end.storage))
        return cls(end, version, name, actions, keys, keys, keys, timestamp, metadata, copies)

    def files(self, timestamp: int) -> pa.Table:
        """The files with its changes, as `FEED`; `timestamp` in ms."""
        changes = self.of("cdc")
        if len(changes):
            return self.table(changes, None, timestamp, self.added)
        if self.copies:
            return no_rows(FEED)
        adds, removes = (_changing(self.of(kind)) for kind in ("add", "remove"))
        both = self._with_other_vectors(adds, removes, timestamp)
        if both is None:
            gone = self.table(removes, "delete", timestamp, self.removed)
            return pa.concat_tables([gone, self.table(adds, "insert", timestamp, self.added)])
        return both

    def of(self, kind: str) -> pa.StructArray:
        """Its actions of this kind."""
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
        tables = [
            self.table(alone, "delete", timestamp, self.removed),
            self.table(adds.filter(at.is_null()), "insert", timestamp, self.added),
        ]
        for change, chosen, others in (("delete", after, before), ("insert", before, after)):
            found = self.table(new, change, timestamp, self.added, chosen, others)
            tables.append(found.filter(pc.and_not(chosen.is_valid(), same)))
        return pa.concat_tables(tables)

    def table(
        self,
        actions: pa.StructArray,
        change: str | None,
        timestamp: int | None,
        keys: Sequence[str],
        chosen: pa.Array | None = None,
        others: pa.Array | None = None,
    ) -> pa.Table:
        """The files of some of its actions, as `FEED`; `keys` are their partition columns. Without a change and a
        timestamp their rows are those of a table."""
        count = len(actions)
        vectors = pc.struct_field(actions, "deletionVector") if others is None else others
        paths = pc.struct_field(actions, "path")
        if paths.null_count:
            raise CorruptDataError("CORRUPT_LOG", f"{self.name} names a file without a path", hint="Restore it.")
        return pa.table(
            [
                paths,
                self._values(actions, timestamp, keys),
                pc.struct_field(actions, "size"),
                vectors,
                pa.nulls(count, DELETION_VECTOR) if chosen is None else chosen,
                pa.nulls(count, pa.string()) if change is None else pa.repeat(scalar(change), count),
                self._constants(actions, keys),
                pc.struct_field(actions, "stats"),
            ],
            schema=FEED,
        )

    def _values(self, actions: pa.StructArray, timestamp: int | None, keys: Sequence[str]) -> pa.Array:
        """The partition values, with version and time of the commit."""
        count = len(actions)
        own = dict(zip(self.keys, self._partition_values(actions), strict=True)) if self.keys else {}
        known = _known(self.version, timestamp)
        constant = [pa.repeat(scalar(text, pa.string()), count) for text in known.values()]
        if not keys and not known:
            return arrow_array([[]] * count, PARTITION_VALUES)
        return _map([*keys, *known], [*(own[key] for key in keys), *constant])

    def _constants(self, actions: pa.StructArray, keys: Sequence[str]) -> pa.Array:
        """The values of partition columns of these files that are not those of all."""
        own = [key for key in keys if key in self.apart]
        if not own:
            return pa.nulls(len(actions), PARTITION_VALUES)
        values = dict(zip(self.keys, self._partition_values(actions), strict=True))
        return _map([self.apart[key] for key in own], [values[key] for key in own])

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
            pc.coalesce(value, arrow_array([(one or {}).get(key) for one in maps], pa.string()))
            for key, value in zip(self.keys, values, strict=True)
        ]


def _counts_none(info: Mapping[str, Any]) -> bool:
    """Whether a commit is a merge that inserted, updated and deleted no row, by its metrics."""
    metrics = info.get("operationMetrics")
    if info.get("operation") != "MERGE" or not isinstance(metrics, dict):
        return False
    return all(metrics.get(f"numTargetRows{done}") == "0" for done in ("Inserted", "Updated", "Deleted"))


def _map(names: Sequence[str], values: Sequence[pa.Array]) -> pa.Array:
    struct = pa.StructArray.from_arrays(list(values), list(names))
    wrapped = pa.StructArray.from_arrays([struct], ["partitionValues"])
    return partition_map(wrapped, list(names), len(names))


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


def _known(version: int, timestamp: int | None) -> dict[str, str]:
    """What the feed says of a commit in the columns that it adds; nothing without a timestamp."""
    return {} if timestamp is None else {COMMIT_VERSION: str(version), COMMIT_TIMESTAMP: _text(timestamp)}


def _text(timestamp: int) -> str:
    """A time in ms as a partition value in UTC (PROTOCOL.md, "Partition Value Serialization")."""
    return f"{np.datetime64(timestamp, 'ms')}Z"


def _metadata_at(end: Snapshot, commits: Sequence[_Commit]) -> list[Metadata]:
    """The metadata of the version before the first commit, and of each commit. The first matters only if that commit
    removes files and changes the metadata."""
    first = commits[0]
    if all(commit.metadata is None for commit in commits):
        return [end.metadata] * (len(commits) + 1)
    own = first.metadata or load(end.storage, first.version).metadata
    removes = first.metadata is not None and first.actions["remove"].null_count < len(first.actions)
    found = [load(end.storage, first.version - 1).metadata if removes and first.version else own]
    for commit in commits:
        own = commit.metadata or own
        found.append(own)
    return found


def _other_columns(end: Snapshot, version: int, *, following: bool) -> UserError:
    """The error for a version whose files name columns otherwise than those of `end`: values would be read as null."""
    what = "removed files that name their columns" if following else "has files that name their columns"
    hint = f"Read the changes from version {version + 1} on, or those up to an earlier version, each by themselves."
    message = f"version {version} of {end.storage} {what} otherwise than version {end.version} (column mapping)"
    return UserError("CHANGES_UNREADABLE", message, hint=hint, version=version)


def _check_recorded(end: Snapshot, versions: Sequence[int], found: Sequence[Metadata]) -> None:
    """Refuses a range in which the feed is not enabled at every version."""
    pairs = zip(versions, found, strict=True)
    missing = [version for version, own in pairs if not properties.ENABLE_CHANGE_DATA.of(own.configuration)]
    if missing:
        first, last = missing[-1] + 1, versions[-1]
        hint = "Read a range in which delta.enableChangeDataFeed is true, or compare two versions of the table."
        raise UserError(
            "CHANGES_NOT_RECORDED",
            f"{end.storage} had no change data feed at version {missing[0]}, so the changes of versions "
            f"{versions[0]} to {end.version} were not recorded",
            hint=f"Start at version {first}: changes are recorded from there on." if first <= last else hint,
            version=missing[0],
        )
