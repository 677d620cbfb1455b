"""Which pairs of commits conflict.

The rule: a transaction that lost the race for a version may be committed after the winners if and only if it would
have had the same outcome when started after them (serializable). With `delta.isolationLevel=WriteSerializable` it may
also be placed before a blind append, which is one that read nothing. A later write may then not have read the append:
it would come after that, and before mine, whose rows it did not see.

    the winner did                    conflicts with mine when mine
    --------------------------------  ----------------------------------------------------------
    another protocol                  anything
    other metaData                    anything; numbers that identity columns gave are no other, unless mine gives some
    add (changing data)               read files among which the added one would have been, by its partition and bounds
    remove                            removes the same file, or read files that it was among, by the same
    txn of an application             writes or relies on a txn of the same application
    domainMetadata of a domain        writes or relies on the same domain
    anything else (commitInfo, cdc)   never

An append reads nothing, so appends never conflict with appends. Overwriting reads what it replaces. Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from mica import compute as pc
from mica.arrays import NDArray, arrow_array, from_numpy
from mica.errors import ConflictError
from mica.log.actions import Metadata, Protocol, parse_line
from mica.log.paths import file_keys
from mica.log.replay import Commits
from mica.records import dataclass
from mica.schema import json as schema_json
from mica.schema.special import HIGH_WATER_MARK
from mica.schema.types import StructType

FilePredicate = Callable[[pa.Table], pa.Array]
"""A table of files (`replay.FILES`) → a boolean array: whether the transaction would have read the file."""


def every_file(files: pa.Table) -> pa.Array:
    """The predicate of a transaction that read the whole table."""
    return arrow_array(np.ones(files.num_rows, bool))


@dataclass(frozen=True)
class Bounded:
    """The predicate of a transaction that read some files by their bounds too: by `partitions`, whose values commits
    have, and of the files of a version (a `Snapshot`) those at the places that `kept` returns."""

    partitions: FilePredicate
    kept: Callable[[Any], NDArray[np.int64]]

    def __call__(self, files: pa.Table) -> pa.Array:
        """By partition values."""
        return self.partitions(files)


#: The keys of files that hold nothing that was read, by their bounds.
Excluded = Callable[[FilePredicate], pa.Array]


def nothing(_: FilePredicate) -> pa.Array:
    """Excludes no file."""
    return arrow_array([], pa.string())


def excluded_in(snapshot: Any) -> Excluded:
    """Those of the files of a version."""

    @cache
    def excluded(reads: FilePredicate) -> pa.Array:
        if not isinstance(reads, Bounded):
            return nothing(reads)
        files = snapshot.files
        rest = np.setdiff1d(np.arange(files.num_rows), reads.kept(snapshot))
        return _keys(files.take(from_numpy(rest)))

    return excluded


@dataclass(frozen=True)
class Intent:
    """What a transaction read and is about to write, as far as other commits can affect it."""

    reads: tuple[FilePredicate, ...]
    read_files: pa.Table  # FILES of the base snapshot
    removed_keys: pa.Array  # keys of the files that it removes
    applications: frozenset[str]
    domains: frozenset[str]
    #: What it was planned with, None for what it commits itself: a winner may commit the same again.
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    #: Whether files of blind appends are no conflict (WriteSerializable): as if they had come later.
    lets_append: bool = False
    #: Whether it adds or removes rows, rather than put them into other files.
    changes_rows: bool = False
    #: Whether it does, and has to come before a blind append of what it read.
    precedes: bool = False


def check(
    mine: Intent, winner: Commits, version: int, table: str, before: Excluded = nothing, after: Excluded = nothing
) -> Intent:
    """Raises `ConflictError` if `mine` cannot be committed after the winner's commit of `version`; returns it for the
    winners after that. Files are excluded among those of the version that was read (`before`), and of the newest one
    (`after`)."""
    for _, line in winner.others:
        if "protocol" in line and Protocol.parse(line["protocol"]) != mine.protocol:
            raise _conflict("PROTOCOL_CHANGED", "changed the protocol", version, table)
        if "metaData" in line and not _stays(mine.metadata, Metadata.parse(line["metaData"])):
            raise _conflict("METADATA_CHANGED", "changed the schema or the properties", version, table)
        application = (line.get("txn") or {}).get("appId")
        if application in mine.applications:
            raise _conflict("CONCURRENT_TRANSACTION", f"wrote for the application {application!r} too", version, table)
        domain = (line.get("domainMetadata") or {}).get("domain")
        if domain in mine.domains:
            raise _conflict("CONCURRENT_DOMAIN", f"changed the domain {domain!r} too", version, table)
    blind = any((line.get("commitInfo") or {}).get("isBlindAppend") is True for _, line in winner.others)
    added = bool(mine.reads) and _adds_to(winner, mine.reads, after)
    if added and not (blind and mine.lets_append):
        raise _conflict("CONCURRENT_APPEND", "added files to what this transaction read", version, table)
    if winner.removes.num_rows:
        keys = _keys(winner.removes)
        if len(mine.removed_keys) and pc.any(pc.is_in(mine.removed_keys, value_set=keys)).as_py():
            raise _conflict("CONCURRENT_DELETE", "removed files that this transaction removes too", version, table)
        if mine.reads and mine.read_files.num_rows:
            gone = mine.read_files.filter(pc.is_in(_keys(mine.read_files), value_set=keys))
            if any(_any_left(gone, reads, before) for reads in mine.reads):
                raise _conflict("CONCURRENT_DELETE", "removed files that this transaction read", version, table)
    if mine.precedes and not blind and _changes_rows(winner):
        raise _conflict("CONCURRENT_APPEND", "may have read an append that this one has to precede", version, table)
    return replace(mine, precedes=mine.precedes or (added and mine.changes_rows))


def _stays(known: Metadata | None, now: Metadata) -> bool:
    """Whether the metadata is the same, but for what identity columns gave meanwhile."""
    return known is not None and (known == now or _without_numbers(known) == _without_numbers(now))


def _without_numbers(metadata: Metadata) -> Metadata:
    fields = tuple(f.with_metadata({HIGH_WATER_MARK: None}) for f in schema_json.loads(metadata.schema_string).fields)
    return replace(metadata, schema_string=schema_json.dumps(StructType(fields)))


def _adds_to(winner: Commits, reads: tuple[FilePredicate, ...], excluded: Excluded) -> bool:
    """Whether it adds rows to what was read."""
    changing = winner.adds.filter(data_changing(winner))
    return any(_any_left(changing, one, excluded) for one in reads)


def _any_left(files: pa.Table, reads: FilePredicate, excluded: Excluded) -> bool:
    """Whether any of the files may hold what was read."""
    found = files.filter(reads(files))
    return bool(found.num_rows and not pc.all(pc.is_in(_keys(found), value_set=excluded(reads))).as_py())


def _changes_rows(winner: Commits) -> bool:
    """Whether it adds or removes rows, rather than put them into other files."""
    removed = (parse_line(winner.lines[int(row)].as_buffer().to_pybytes())["remove"] for row in winner.remove_rows)
    return bool(pc.any(data_changing(winner)).as_py()) or any(one.get("dataChange") is not False for one in removed)


def data_changing(commits: Commits) -> pa.Array:
    """Returns for each add whether it adds new data (PROTOCOL.md, `dataChange`; missing means true)."""
    return pc.fill_null(commits.data_change, True)


def _keys(files: pa.Table) -> pa.Array:
    return file_keys(
        files["path"].combine_chunks(),
        files["deletion_vector"].combine_chunks(),
    )


def _conflict(code: str, did: str, version: int, table: str) -> ConflictError:
    return ConflictError(
        code,
        f"another writer committed version {version} of {table} concurrently and {did}",
        hint="Nothing was written. Read the table again and repeat the operation.",
        version=version,
    )
