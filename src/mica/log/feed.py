"""The change data feed: which rows each commit inserted, deleted or updated.

The rule (PROTOCOL.md, "Change Data Files"): if a commit has `cdc` actions, their files hold all of its changes, and its
adds and removes are ignored. Otherwise rows of added files are inserts and rows of removed files are deletes, unless
the action changes no data (`dataChange` is false), or the commit is a merge that counted no row: delta-spark's copies
rows then (its CDCReader, `shouldSkipFileActionsInCommit`). A file that gets another deletion vector changes only the
rows in which the two vectors differ. The feed must be enabled at every version of the range, as in delta-spark.
Partition columns may change in it: where they did, each file says by itself which columns have one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica import properties
from mica.arrays import arrow_array, no_rows, scalar, to_numpy
from mica.errors import UserError
from mica.log.actions import Metadata
from mica.log.feed_columns import COLUMNS
from mica.log.feed_commits import FEED, FeedCommit, FeedShare, known_values, shares_of
from mica.log.listing import Listing, list_log
from mica.log.replay import DELETION_VECTOR, PARTITION_VALUES, partition_keys
from mica.log.snapshot import Snapshot, load
from mica.log.stream_schema import check_goes_on, columns_of, same_in_files
from mica.log.time_travel import increasing
from mica.schema.types import StructType
from mica.stats.columns import physical_name

T = TypeVar("T")


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
    shares = list(shares_of(end, listing, versions))
    commits = [commit for share in shares for commit in share.commits]
    found = _metadata_at(end, shares[0], commits)
    _check_recorded(end, versions, found[1:])
    keys = _of_each(found, lambda metadata: partition_keys(metadata, end.protocol))
    common = [key for key in keys[-1] if all(key in own for own in keys)]
    if any(own != keys[-1] for own in keys):
        every = list(dict.fromkeys(key for own in keys for key in own))
        apart = {physical_name(f): f.name for f in end.schema.fields if physical_name(f) not in common}
        shares = [
            replace(share, added=added, removed=removed, apart=apart)
            for (removed, added), some in groupby(
                versions, lambda version: (keys[version - first], keys[version - first + 1])
            )
            for share in shares_of(end, listing, list(some), every)
        ]
    modified = _times(listing, first, end.version)
    fits = _of_each(found, lambda own: own is end.metadata or same_in_files(columns_of(own), end.schema))
    files = [no_rows(FEED)]
    for share in _let_go(shares):
        start = share.commits[0].version - first
        table, places = share.files(modified[start : start + len(share.commits)])
        files.append(table)
        for number in (start + np.unique(places)).tolist():
            if not (fits[number] and fits[number + 1]):
                raise _other_columns(end, versions[number], following=fits[number + 1])
    names = tuple(f.name for f in end.schema.fields if physical_name(f) in common)
    return pa.concat_tables(files), tuple(n for n in end.partition_columns if n in names)


def change_files_since(snapshot: Snapshot, oldest: int) -> pa.Array:
    """Returns the change files that commits since `oldest` (ms) name, by `canonical_keys`."""
    listing = list_log(snapshot.storage)
    versions = [version for version, entry in sorted(listing.commits.items()) if entry.modified >= oldest]
    found = [share.of["cdc"].keys() for share in shares_of(snapshot, listing, versions)]
    return pa.concat_arrays([arrow_array([], pa.string()), *found])


#: How a stream of new rows takes a commit that removes files: it fails; skips the commit; skips it if it adds no files
#: and fails otherwise; or gives all rows of the files that the commit adds, changed or not.
Changing = Literal["refused", "skipped", "deletes skipped", "given again"]


def appended_files(end: Snapshot, listing: Listing, version: int, *, changing: Changing) -> pa.Table:
    """Returns the files that the commit of a version added, as `FEED`, in its order; the table needs no feed for it.

    Errors: CHANGES_IN_STREAM if the commit deletes or changes rows, unless `changing` says what to do;
    STREAM_CHANGED if it changes the columns so that those of `end` do not fit (`log/stream_schema.py`).
    """
    (share,) = shares_of(end, listing, [version])
    (commit,) = share.commits
    if commit.metadata is not None:
        check_goes_on(end, version, commit.metadata)
    adds, removes = (share.of[kind].changing() for kind in ("add", "remove"))
    if len(removes.places):  # change files say nothing here: a merge that only inserts has them too
        if changing == "skipped" or (changing == "deletes skipped" and not len(adds.places)):
            return no_rows(FEED)
        if changing == "given again":
            return share.table(adds, None, None, share.added)
        raise UserError(
            "CHANGES_IN_STREAM",
            f"version {version} of {end.storage} deleted or changed rows, which a stream of new rows cannot say",
            hint="Leave such commits out with option skipChangeCommits (ignoreDeletes if they only delete), have the "
            "rows of rewritten files again (ignoreChanges), or stream the change feed (readChangeFeed).",
            version=version,
        )
    return share.table(adds, None, None, share.added)


def recorded_files(end: Snapshot, listing: Listing, version: int) -> pa.Table:
    """Returns the files that hold the changes of one version, as `FEED`. Errors: those of `changed_files`;
    STREAM_CHANGED as for `appended_files`.
    """
    (share,) = shares_of(end, listing, [version])
    (commit,) = share.commits
    _check_recorded(end, [version], [commit.metadata or end.metadata])
    if commit.metadata is not None:
        check_goes_on(end, version, commit.metadata)
    return share.files(_times(listing, version, version))[0]


def is_one_change(files: pa.Table) -> bool:
    """Whether the files with the changes of one version are more than rows of whole files that came or went: change
    files, or deletion vectors. A stream has them in one batch, as in delta-spark: else it could have rows before an
    update without those after it."""
    told, *vectors = (files.column(name) for name in ("change_type", "chosen", "deletion_vector"))
    return bool(told.null_count) or any(column.null_count < files.num_rows for column in vectors)


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
    known = known_values(snapshot.version, timestamp)
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


def _times(listing: Listing, first: int, last: int) -> list[int]:
    """The times of the files of these versions, each later than that of the version before, as far as it is listed: a
    store may know whole seconds only, and a version has one time wherever a feed begins."""
    versions = sorted(version for version in listing.commits if version <= last)
    return increasing(listing.commits[version].modified for version in versions)[first - last - 1 :]


def _let_go(shares: list[FeedShare]) -> Iterator[FeedShare]:
    """The shares in turn, of which nothing is kept."""
    shares.reverse()
    while shares:
        yield shares.pop()


def _of_each(found: Sequence[Metadata], make: Callable[[Metadata], T]) -> list[T]:
    """What is made of each; once of one that stands for many versions."""
    made = {id(one): make(one) for one in {id(one): one for one in found}.values()}
    return [made[id(one)] for one in found]


def _metadata_at(end: Snapshot, share: FeedShare, commits: Sequence[FeedCommit]) -> list[Metadata]:
    """The metadata of the version before the first commit, and of each commit; `share` is the first one. That before
    matters only if the first commit removes files and changes the metadata."""
    first = commits[0]
    if all(commit.metadata is None for commit in commits):
        return [end.metadata] * (len(commits) + 1)
    own = first.metadata or load(end.storage, first.version).metadata
    removes = first.metadata is not None and 0 in share.of["remove"].places
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
        asked = f"versions {versions[0]} to {end.version}" if versions[0] < end.version else f"version {versions[0]}"
        raise UserError(
            "CHANGES_NOT_RECORDED",
            f"{end.storage} had no change data feed at version {missing[0]}, so the changes of {asked} were not "
            "recorded",
            hint=f"Start at version {first}: changes are recorded from there on." if first <= last else hint,
            version=missing[0],
        )
