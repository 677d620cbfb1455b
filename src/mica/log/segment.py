"""Chooses the files of `_delta_log` that make up a version: one checkpoint and the commits after it.

The rule: a segment has no gaps. It starts at version 0 or at a complete checkpoint, and every later version has its
commit; otherwise an error names the missing version. A log compaction is taken where one of its commits is missing, and
nowhere else: its writer may leave out removals that are older than the retention of files (deltalake does), and what it
does not remove comes back. Pure function: a listing in, a segment out (PROTOCOL.md "Checkpoints", "Log Compaction
Files", "Last Checkpoint File").
"""

from __future__ import annotations

from mica.errors import CorruptDataError, UnsupportedTableError, UserError
from mica.log.listing import Checkpoint, Listing, LogFile
from mica.log.paths import LogName
from mica.records import dataclass
from mica.storage import Entry


@dataclass(frozen=True)
class Segment:
    """The files that make up `version`, in the order of replay."""

    version: int
    checkpoint: Checkpoint | None
    deltas: tuple[LogFile, ...]

    @property
    def last_entry(self) -> Entry:
        """The file whose modification time is the version's time."""
        return self.deltas[-1].entry if self.deltas else self.checkpoint.entries[0]  # type: ignore[union-attr]


def choose_segment(listing: Listing, version: int | None, table: str, skip: frozenset[str]) -> Segment:
    """Returns the segment of `version` (None: the latest) of a log that has commits. `skip` names checkpoint files that
    proved unreadable."""
    latest = listing.latest
    target = latest if version is None else version
    if target > latest or target < 0:
        raise UserError(
            "VERSION_NOT_FOUND", f"{table} has no version {target}", hint=f"Its latest version is {latest}.", path=table
        )
    usable = [
        checkpoint
        for found in listing.checkpoints.values()
        for checkpoint in found
        if checkpoint.version <= target and not any(entry.path in skip for entry in checkpoint.entries)
    ]
    # The newest checkpoint wins; for one version the one with the fewest files.
    best = max(usable, key=lambda c: (c.version, -len(c.entries)), default=None)
    start = 0 if best is None else best.version + 1
    deltas: list[LogFile] = []
    at = start
    while at <= target:
        step = _compaction(listing, at, target)
        if step is None:
            entry = listing.commits.get(at)
            if entry is None:
                raise _gap(listing, at, target, table, version, whole=at - 1 if at > start or best else None)
            step = LogFile(LogName("commit", at, end=at), entry)
        deltas.append(step)
        at = step.name.end + 1
    return Segment(target, best, tuple(deltas))


def _compaction(listing: Listing, start: int, target: int) -> LogFile | None:
    # The last commit is always read itself: it holds the commitInfo with the in-commit timestamp.
    fitting = [
        c
        for c in listing.compactions.get(start, ())
        if start < c.name.end < target and any(at not in listing.commits for at in range(start, c.name.end + 1))
    ]
    return max(fitting, key=lambda c: c.name.end, default=None)


def _gap(
    listing: Listing, missing: int, target: int, table: str, asked: int | None, whole: int | None
) -> UserError | CorruptDataError | UnsupportedTableError:
    later = min((at for at in listing.checkpoints if at > target), default=None)
    # Engines that do not know checkpoints with UUIDs leave them behind when they clean up (deltalake does).
    left_behind = whole is not None and not any(at <= target for at in listing.commits)
    nothing = missing == 0 and min(listing.checkpoints, default=0) > target
    if asked is not None and later is not None and (nothing or left_behind):
        hint = f"The oldest version that can be read is {later}."
        return UserError(
            "VERSION_EXPIRED",
            f"version {target} of {table} can no longer be rebuilt: earlier log files were cleaned up",
            hint=f"The versions next to it that can be read are {whole} and {later}." if left_behind else hint,
            version=target,
        )
    return CorruptDataError(
        "LOG_GAP",
        f"the log of {table} has no commit {missing}, which version {target} needs",
        hint="Restore the missing file" + ("." if whole is None else f", or read version {whole}."),
        version=target,
        missing=missing,
    )
