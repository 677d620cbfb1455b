"""Which version was current at a time.

The rule (as delta-spark has it): a commit's time is its in-commit timestamp where the table had them at that version,
else its file's modification time made increasing; the answer is the last version that is not later than the time asked
for, and a time outside the history is an error that says what the history covers. Times are ms since the epoch.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from mica.errors import UserError
from mica.log.actions import parse_line
from mica.log.paths import commit_name
from mica.log.segment import Listing, no_table
from mica.storage import Storage

Timestamp = int | str | datetime | date
"""Milliseconds since the epoch, an ISO text, a datetime or a date; without a zone they are UTC."""


def both_given() -> UserError:
    """The error for a version and a timestamp at once."""
    return UserError("INVALID_ARGUMENT", "both a version and a timestamp were given", hint="Give one of them.")


def to_millis(asked: Timestamp) -> int:
    """A time in any of its forms as ms since the epoch."""
    if isinstance(asked, bool):
        raise UserError.bad_value("timestamp", asked, "a time")
    if isinstance(asked, int):
        return asked
    if isinstance(asked, str):
        try:
            # Fractions of any length, as the log of others may print them.
            asked = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", asked.strip()))
        except ValueError:
            raise UserError.bad_value("timestamp", asked, "an ISO time such as 2026-01-31 12:00:00") from None
    if not isinstance(asked, datetime):
        asked = datetime(asked.year, asked.month, asked.day, tzinfo=UTC)
    moment = asked if asked.tzinfo is not None else asked.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000 // 1)


def version_at(storage: Storage, listing: Listing, asked: Timestamp) -> int:
    """The version of the table that was current at `asked`."""
    wanted = to_millis(asked)
    times = commit_times(storage, listing)
    if not times:
        raise no_table(str(storage))
    (first, first_time), (last, last_time) = times[0], times[-1]
    if wanted < first_time:
        raise _outside(storage, asked, f"the oldest version that is left ({first}) was made at {_shown(first_time)}")
    if wanted > last_time:
        raise _outside(storage, asked, f"the latest version ({last}) was made at {_shown(last_time)}")
    return max(version for version, time in times if time <= wanted)


def commit_times(storage: Storage, listing: Listing) -> list[tuple[int, int]]:
    """(version, time) of all versions that have a commit file, oldest first, with increasing times."""
    versions = sorted(listing.commits)
    times = [listing.commits[version].modified for version in versions]
    # The feature may have been turned on at any version: from the newest back until one has no timestamp of its own.
    inside = len(versions)
    while inside > 0:
        own = in_commit_timestamp(storage, versions[inside - 1])
        if own is None:
            break
        inside -= 1
        times[inside] = own
    for at in range(1, len(times)):
        times[at] = max(times[at], times[at - 1] + 1)
    return list(zip(versions, times, strict=True))


def in_commit_timestamp(storage: Storage, version: int) -> int | None:
    """The in-commit timestamp of a commit, which is in its first line; None where it has none."""
    head = storage.read(commit_name(version)).lstrip().partition(b"\n")[0]
    info = parse_line(head).get("commitInfo") if head.strip() else None
    own = info.get("inCommitTimestamp") if isinstance(info, dict) else None
    return own if isinstance(own, int) else None


def _shown(millis: int) -> str:
    return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")


def _outside(storage: Storage, asked: Timestamp, why: str) -> UserError:
    return UserError(
        "TIMESTAMP_OUT_OF_RANGE",
        f"{storage} has no version for the time {asked}: {why}",
        hint="Ask for a time in between.",
    )
