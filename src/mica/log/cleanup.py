"""Old files of the log: which a table no longer needs, and their removal.

The rule: every version from the cutoff on can still be rebuilt. The newest checkpoint that is not newer than the last
commit before the cutoff stays, with its own commit and all that comes after it; what lies before it goes. The cutoff
is the midnight (UTC) before `delta.logRetentionDuration`, so that a table is cleaned once a day at most.

Source: PROTOCOL.md, "Metadata Cleanup", "Writer Requirements for Checkpoint Protection".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mica import properties
from mica.errors import MicaError
from mica.log import features
from mica.log.checkpoint import sidecars_of
from mica.log.paths import LOG, SIDECARS
from mica.log.segment import Checkpoint, Listing, read_listing
from mica.log.snapshot import Snapshot
from mica.log.time_travel import increasing
from mica.storage import Entry

_DAY = 86_400_000
_VERSIONED = re.compile(r"(\d{20})\.(json|crc|checkpoint\..*|\d{20}\.compacted\.json)")


def clean_log(snapshot: Snapshot, *, now: int) -> int:
    """Removes what the log no longer needs; how many files. `now` in ms since the epoch. A table keeps everything where
    `delta.enableExpiredLogCleanup` is false, and below the version that the feature `checkpointProtection` names.
    """
    configuration = snapshot.properties
    if not properties.EXPIRED_LOG_CLEANUP.of(configuration):
        return 0
    storage = snapshot.storage
    entries = list(storage.list(LOG, recursive=False))
    listing = read_listing(entries)
    kept = oldest_kept(listing, cutoff(now, properties.LOG_RETENTION.of(configuration)))
    protected = 0
    if features.supports(snapshot.protocol, "checkpointProtection"):
        protected = properties.CHECKPOINT_PROTECTION.of(configuration)
    if kept is None or kept.version < protected:
        return 0
    gone = expired(entries, kept.version)
    if not gone:
        return 0
    try:
        needed = {name for found in listing.checkpoints.values() for one in found if one.version >= kept.version
                  for name in sidecars_of(storage, one)}  # fmt: skip
    except MicaError:
        return 0  # nothing rests on a checkpoint that cannot be read
    sidecars = [entry for entry in storage.list(SIDECARS, recursive=False) if entry.modified < now - _DAY]
    gone += [entry.path for entry in sidecars if entry.path not in needed]
    storage.discard(gone)
    return len(gone)


def cutoff(now: int, retention: int) -> int:
    """Before when commits may go: a midnight."""
    return (now - retention) // _DAY * _DAY


def oldest_kept(listing: Listing, before: int) -> Checkpoint | None:
    """The checkpoint that the log is to begin with; None where all of it is needed."""
    versions = sorted(listing.commits)
    times = increasing([listing.commits[version].modified for version in versions])
    old = [version for version, time in zip(versions, times, strict=True) if time <= before]
    usable = [one for found in listing.checkpoints.values() for one in found if old and one.version <= old[-1]]
    return max(usable, key=lambda one: (one.version, -len(one.entries)), default=None)


def expired(entries: Iterable[Entry], kept: int) -> list[str]:
    """The files of the log that only versions before `kept` need."""
    gone = []
    for entry in entries:
        found = _VERSIONED.fullmatch(entry.path.rpartition("/")[2])
        if found is None:
            continue
        version = int(found[1])
        if version < kept or (version == kept and found[2].endswith(".compacted.json")):
            gone.append(entry.path)
    return gone
