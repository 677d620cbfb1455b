"""Files of a table's log that are damaged, although the version is read without them.

The rule: a checkpoint that cannot be read is a violation: the version is lost when the commits before it are. A commit
without a byte is noted: the protocol allows a commit without actions, but no engine is known to write an empty file.
"""

from __future__ import annotations

from collections.abc import Iterator

from mica.checking.statistics import Found
from mica.errors import CorruptDataError, StorageError
from mica.log.listing import list_log
from mica.log.snapshot import Snapshot


def unread_checkpoints(snapshot: Snapshot) -> Iterator[Found]:
    """Yields the checkpoints that a reader of the version passed over: newer ones than it was read from."""
    from mica.log.checkpoint import read_checkpoint  # most small tables have none

    used = snapshot.segment.checkpoint
    after = -1 if used is None else used.version
    listing = list_log(snapshot.storage, max(after, 0))
    for version, found in sorted(listing.checkpoints.items()):
        for checkpoint in found if after < version <= snapshot.version else ():
            try:
                read_checkpoint(snapshot.storage, checkpoint)
            except (CorruptDataError, StorageError) as e:
                if isinstance(e, StorageError) and e.code not in ("NOT_FOUND", "FILE_TOO_SHORT"):
                    raise
                name = checkpoint.entries[0].path.rpartition("/")[2]
                way = "the commits before it are still there, so delete it before a cleanup of the log deletes them"
                yield {"kind": "checkpoint", "path": name, "found": f"{e.message.rstrip('.')}; {way}"}


def empty_commits(snapshot: Snapshot) -> list[str]:
    """Returns a note for each commit that the version needs and whose file has no byte."""
    return [
        f"{snapshot.storage.path(delta.entry.path)} has 0 bytes: what version {delta.name.version} wrote is not in the "
        "table. Restore the file if it had content once, as before a crash"
        for delta in snapshot.segment.deltas
        if delta.entry.size == 0
    ]
