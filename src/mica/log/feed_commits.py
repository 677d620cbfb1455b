"""Reads commits for the change feed, some at a time, and makes its files of them.

The rule is that of `log/feed.py`. Only what matters to the feed is kept of a commit, in the arrays of its share: tables
of one commit each took 40 KB and 1.6 ms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import arrow_array, from_numpy, one_array, scalar, to_numpy
from mica.errors import CorruptDataError
from mica.log import features
from mica.log.actions import Metadata, Protocol, parse_line
from mica.log.commit_info import in_commit_timestamp
from mica.log.feed_columns import COMMIT_TIMESTAMP, COMMIT_VERSION
from mica.log.json_lines import BrokenLinesError, joined, read_lines, split_lines
from mica.log.listing import Listing
from mica.log.paths import canonical_keys, file_keys
from mica.log.replay import DELETION_VECTOR, PARTITION_VALUES, partition_keys, partition_map
from mica.log.shares import in_shares, places_of
from mica.log.snapshot import Snapshot, load
from mica.records import dataclass
from mica.storage import Entry, Storage

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


@dataclass(frozen=True)
class FeedCommit:
    """What a commit says of itself: in-commit timestamp in ms, and the metadata, if it has them; and whether its files
    hold copies of rows, and no change."""

    version: int
    name: str
    timestamp: int | None
    metadata: Metadata | None
    copies: bool


@dataclass(frozen=True)
class FeedActions:
    """Actions of one kind, and for each the place of its commit in the share."""

    values: pa.StructArray
    places: np.ndarray

    def field(self, name: str) -> pa.Array:
        """A field of each."""
        return pc.struct_field(self.values, name)

    def where(self, chosen: np.ndarray) -> FeedActions:
        """Those of them for which `chosen` is true."""
        return FeedActions(self.values.filter(from_numpy(chosen)), self.places[chosen])

    def changing(self) -> FeedActions:
        """Those that change data."""
        return self.where(to_numpy(pc.fill_null(self.field("dataChange"), True)))

    def keys(self) -> pa.Array:
        """The path of each, by `canonical_keys`."""
        return canonical_keys(self.field("path"))

    def names(self) -> pa.Array:
        """The path of each, and which commit names it."""
        return pc.binary_join_element_wise(pc.cast(from_numpy(self.places), pa.string()), self.keys(), "|")


@dataclass
class _Before:
    """The files of versions that are asked for one after another: each is read on from the last."""

    last: Snapshot | None = None

    def files(self, storage: Storage, version: int) -> pa.Table:
        known = self.last
        later = known is not None and known.version <= version
        self.last = known.refresh(version, known_to_stand=True) if known and later else load(storage, version)
        return self.last.files


@dataclass(frozen=True)
class FeedShare:
    """The actions of some commits in turn that matter to the feed."""

    end: Snapshot
    commits: Sequence[FeedCommit]
    of: Mapping[str, FeedActions]
    #: The keys of partition values in the actions; those of the files that are added, and of those that are removed.
    keys: Sequence[str]
    added: Sequence[str]
    removed: Sequence[str]
    before: _Before
    #: The columns that are not partition columns of all files of the range, by their keys.
    apart: Mapping[str, str] = field(default_factory=dict)

    def files(self, modified: Sequence[int]) -> tuple[pa.Table, np.ndarray]:
        """The files with the changes, as `FEED`, and the places of their commits, in order; `modified` are the times of
        the commits in ms, where they have none of their own."""
        commits = zip(self.commits, modified, strict=True)
        times = [when if commit.timestamp is None else commit.timestamp for commit, when in commits]
        silent = np.array([commit.copies for commit in self.commits])
        silent[self.of["cdc"].places] = True
        changing = (self.of[kind].changing() for kind in ("add", "remove"))
        adds, removes = (found.where(~silent[found.places]) for found in changing)
        tables = [(self.of["cdc"].places, self.table(self.of["cdc"], None, times, self.added))]
        tables += self._changed(adds, removes, times)
        places = np.concatenate([own for own, _ in tables])
        order = np.argsort(places, kind="stable")
        table = pa.concat_tables([table for _, table in tables]).combine_chunks()
        return pc.take(table, from_numpy(order)), places[order]

    def _changed(
        self, adds: FeedActions, removes: FeedActions, times: Sequence[int]
    ) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """The removed and added files; those that are both, which is how they get another vector, come last."""
        added, removed = (found.names() for found in (adds, removes))
        at = pc.index_in(added, value_set=removed)
        both = to_numpy(at.is_valid())
        alone = removes.where(~to_numpy(pc.is_in(removed, value_set=added))) if both.any() else removes
        others = adds.where(~both)
        yield alone.places, self.table(alone, "delete", times, self.removed)
        yield others.places, self.table(others, "insert", times, self.added)
        if not both.any():
            return
        new, old = adds.where(both), removes.values.take(at.drop_null())
        before, after = (pc.struct_field(found, "deletionVector") for found in (old, new.values))
        same = pc.equal(*(file_keys(pc.struct_field(found, "path"), vector)
                          for found, vector in ((old, before), (new.values, after))))  # fmt: skip
        for change, chosen, left in (("delete", after, before), ("insert", before, after)):
            found = self.table(new, change, times, self.added, chosen, left)
            other = pc.and_not(chosen.is_valid(), same)
            yield new.places[to_numpy(other)], found.filter(other)

    def table(
        self,
        actions: FeedActions,
        change: str | None,
        times: Sequence[int] | None,
        keys: Sequence[str],
        chosen: pa.Array | None = None,
        others: pa.Array | None = None,
    ) -> pa.Table:
        """The files of some of its actions, as `FEED`; `keys` are their partition columns. Without a change and times
        of commits (ms) their rows are those of a table."""
        count = len(actions.places)
        vectors = actions.field("deletionVector") if others is None else others
        paths = actions.field("path")
        if paths.null_count:
            name = self.commits[actions.places[to_numpy(paths.is_null())][0]].name
            raise CorruptDataError("CORRUPT_LOG", f"{name} names a file without a path", hint="Restore it.")
        values = self._partition_values(actions)
        apart = [key for key in keys if key in self.apart]
        return pa.table(
            [
                paths,
                self._values(actions.places, {key: values[key] for key in keys}, times),
                actions.field("size"),
                vectors,
                pa.nulls(count, DELETION_VECTOR) if chosen is None else chosen,
                pa.nulls(count, pa.string()) if change is None else pa.repeat(scalar(change), count),
                _map([self.apart[key] for key in apart], [values[key] for key in apart])
                if apart
                else pa.nulls(count, PARTITION_VALUES),
                actions.field("stats"),
            ],
            schema=FEED,
        )

    def _values(self, places: np.ndarray, own: Mapping[str, pa.Array], times: Sequence[int] | None) -> pa.Array:
        """The partition values, with version and time of the commit."""
        commits = () if times is None else zip(self.commits, times, strict=True)
        known = [known_values(commit.version, time) for commit, time in commits]
        if not own and not known:
            return arrow_array([[]] * len(places), PARTITION_VALUES)
        told = {
            name: arrow_array([one[name] for one in known], pa.string()).take(from_numpy(places))
            for name in (known[0] if known else ())
        }
        return _map([*own, *told], [*own.values(), *told.values()])

    def _partition_values(self, actions: FeedActions) -> dict[str, pa.Array]:
        if not self.keys:
            return {}
        found = actions.field("partitionValues")
        values = [pc.struct_field(found, [i]) for i in range(len(self.keys))]
        if found.null_count:  # those of a remove are optional: the version before has them
            there = to_numpy(found.is_valid())
            maps = np.full(len(there), None)
            maps[~there] = self._earlier(actions.where(~there))
            values = [
                pc.coalesce(value, arrow_array([(one or {}).get(key) for one in maps], pa.string()))
                for key, value in zip(self.keys, values, strict=True)
            ]
        return dict(zip(self.keys, values, strict=True))

    def _earlier(self, actions: FeedActions) -> list[Mapping[str, str] | None]:
        """The partition values that files had before the commits of these actions."""
        if not len(actions.places):
            return []
        first, names = int(actions.places.min()), actions.keys()
        files = self.before.files(self.end.storage, self.commits[first].version - 1)
        at = pc.index_in(names, value_set=canonical_keys(one_array(files["path"])))
        found = files["partition_values"].take(at).to_pylist(maps_as_pydicts="lossy")
        adds = self.of["add"].where(self.of["add"].places >= first)
        adds = adds.where(to_numpy(pc.is_in(adds.keys(), value_set=names)))
        rows = zip(adds.places, adds.keys().to_pylist(), adds.field("partitionValues").to_pylist(), strict=True)
        later = defaultdict(list)
        for place, name, own in rows:
            later[name].append((place, own))
        return [
            next((own for added, own in reversed(later[name]) if added < place), known)
            for place, name, known in zip(actions.places, names.to_pylist(), found, strict=True)
        ]


def shares_of(
    end: Snapshot, listing: Listing, versions: Sequence[int], keys: Sequence[str] | None = None
) -> Iterator[FeedShare]:
    """The commits of the versions, some at a time; `keys` are those of partition values: by default those of `end`."""
    version_of = {listing.commits[version].path: version for version in versions}
    own, before, storage = partition_keys(end.metadata, end.protocol) if keys is None else keys, _Before(), end.storage

    def parse(entries: Sequence[Entry], texts: Sequence[bytes]) -> FeedShare:
        data, names = joined(texts), [storage.path(entry.path) for entry in entries]
        lines, longest = split_lines(data)
        try:
            actions = read_lines(data, lines, longest, _schema(own))
        except BrokenLinesError as error:
            raise CorruptDataError("CORRUPT_LOG", f"{names[0]} cannot be used: {error}", hint="Restore it.") from None
        at = places_of(texts, len(lines))
        of = {}
        for kind in actions.column_names:
            values = one_array(actions[kind])
            of[kind] = FeedActions(values.drop_null(), at[to_numpy(values.is_valid())])
        told = [(None, None, False)] * len(entries)
        is_head = pc.match_substring_regex(lines, r'^\s*\{\s*"(commitInfo|metaData|protocol)"\s*:')
        for place, line in zip(at[to_numpy(is_head)].tolist(), lines.filter(is_head), strict=True):
            timestamp, metadata, copies = told[place]
            action = parse_line(line.as_buffer().to_pybytes())
            if isinstance(action.get("commitInfo"), dict):
                timestamp, copies = in_commit_timestamp(action["commitInfo"]), _counts_none(action["commitInfo"])
            elif isinstance(action.get("metaData"), dict):
                metadata = Metadata.parse(action["metaData"])
            elif isinstance(action.get("protocol"), dict):
                features.check_read(Protocol.parse(action["protocol"]), str(storage))
            told[place] = timestamp, metadata, copies
        paths = (entry.path for entry in entries)
        commits = [FeedCommit(version_of[path], name, *one) for path, name, one in zip(paths, names, told, strict=True)]
        return FeedShare(end, commits, of, own, own, own, before)

    return in_shares(storage, [listing.commits[version] for version in versions], parse)


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


def known_values(version: int, timestamp: int | None) -> dict[str, str]:
    """What the feed says of a commit in the columns that it adds; nothing without a timestamp."""
    return {} if timestamp is None else {COMMIT_VERSION: str(version), COMMIT_TIMESTAMP: _text(timestamp)}


def _text(timestamp: int) -> str:
    """A time in ms as a partition value in UTC (PROTOCOL.md, "Partition Value Serialization")."""
    return f"{np.datetime64(timestamp, 'ms')}Z"
