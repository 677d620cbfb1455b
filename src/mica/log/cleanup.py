"""Removes files of the log that the table no longer needs.

The rule: every version from the cutoff on can still be rebuilt. The newest checkpoint at or before the last commit
before the cutoff stays, with its own commit and everything after it; everything before it is deleted. The cutoff
is the midnight (UTC) before `delta.logRetentionDuration`, so a table is cleaned at most once a day. Sidecars go if no
checkpoint that stays names them, unless they are so young that their checkpoint may not be written yet.

Source: PROTOCOL.md, "Metadata Cleanup", "Writer Requirements for Checkpoint Protection".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mica import properties
from mica.errors import MicaError
from mica.log import features
from mica.log.checkpoint import sidecars_of
from mica.log.listing import Checkpoint, Listing, log_entries, read_listing
from mica.log.paths import LOG, SIDECARS, parse_log_name
from mica.log.snapshot import Snapshot
from mica.log.time_travel import increasing
from mica.storage import Entry, Storage

_DAY = 86_400_000
_VERSIONED = re.compile(r"(\d{20})\.(json|crc|checkpoint\..*|\d{20}\.compacted\.json)")


def clean_log(snapshot: Snapshot, *, now: int) -> int:
    """Deletes log files that are no longer needed and returns their number. `now` in ms since the epoch. Keeps all if
    `delta.enableExpiredLogCleanup` is false, and keeps the versions that the feature `checkpointProtection` protects.
    """
    configuration = snapshot.properties
    if not properties.EXPIRED_LOG_CLEANUP.of(configuration):
        return 0
    storage, before = snapshot.storage, cutoff(now, properties.LOG_RETENTION.of(configuration))
    if storage.is_behind_link(LOG):  # the log of another table, which is not to lose its versions by this one
        return 0
    entries = list(_old_log(storage, before))
    listing = read_listing(entries)
    kept = oldest_kept(listing, before)
    protected = 0
    if features.supports(snapshot.protocol, "checkpointProtection"):
        protected = properties.CHECKPOINT_PROTECTION.of(configuration)
    if kept is None or kept.version < protected:
        return 0
    gone = expired(entries, kept.version)
    if not gone:
        return 0
    stay = (one for found in listing.checkpoints.values() for one in found if one.version >= kept.version)
    try:
        listed = storage.list(SIDECARS, recursive=False, links=False)
        sidecars = [entry.path for entry in unnamed_sidecars(storage, listed, stay, now)]
    except MicaError:
        return 0  # never delete on the strength of an unreadable checkpoint
    storage.discard(gone)
    storage.discard(sidecars)  # after those that name them
    return len(gone) + len(sidecars)


def _old_log(storage: Storage, before: int) -> Iterator[Entry]:
    """The files of the log; those behind the first commit only if it is old: a disk is asked for the time of each, and
    nearly always nothing has to go."""
    first = True
    for entry in log_entries(storage):
        name = parse_log_name(entry.path.rpartition("/")[2])
        if first and name is not None and name.kind == "commit":
            if entry.modified > before:
                return
            first = False
        yield entry


def unnamed_sidecars(
    storage: Storage, sidecars: Iterable[Entry], checkpoints: Iterable[Checkpoint], now: int
) -> list[Entry]:
    """Returns those of the sidecars that none of the checkpoints names and that are older than a day, counted from
    midnight (UTC) as PROTOCOL.md does. `CorruptDataError` if a checkpoint cannot be read.
    """
    needed = {name for one in checkpoints for name in sidecars_of(storage, one)}
    return [entry for entry in sidecars if entry.modified < cutoff(now, _DAY) and entry.path not in needed]


def cutoff(now: int, retention: int) -> int:
    """Returns the midnight before which commits may be deleted."""
    return (now - retention) // _DAY * _DAY


def oldest_kept(listing: Listing, before: int) -> Checkpoint | None:
    """Returns the checkpoint with which the log may begin; None if all of the log is needed."""
    versions = sorted(listing.commits)
    times = increasing([listing.commits[version].modified for version in versions])
    old = [version for version, time in zip(versions, times, strict=True) if time <= before]
    usable = [one for found in listing.checkpoints.values() for one in found if old and one.version <= old[-1]]
    return max(usable, key=lambda one: (one.version, -len(one.entries)), default=None)


def expired(entries: Iterable[Entry], kept: int) -> list[str]:
    """Returns the log files that only versions before `kept` need."""
    gone = []
    for entry in entries:
        found = _VERSIONED.fullmatch(entry.path.rpartition("/")[2])
        if found is None:
            continue
        version = int(found[1])
        if version < kept or (version == kept and found[2].endswith(".compacted.json")):
            gone.append(entry.path)
    return gone
