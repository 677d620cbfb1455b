"""Which version was current at a given time.

The rule (as in delta-spark): a commit's time is its in-commit timestamp if the table had them at that version, else its
file's modification time made increasing. The result is the last version that is not later than the requested time.
A time outside the history is an error that states the covered range. Times are ms since the epoch.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mica.errors import CorruptDataError, UserError
from mica.log.commit_info import commit_info, in_commit_timestamp
from mica.log.folders import no_table
from mica.log.listing import Listing
from mica.properties import ICT_VERSION
from mica.storage import Entry, Storage

if TYPE_CHECKING:
    from mica.log.snapshot import Snapshot

Timestamp = int | str | datetime | date
"""Milliseconds since the epoch, a text, a datetime or a date; without a zone they are UTC."""


def both_given() -> UserError:
    """The error for a version and a timestamp given together, or one of them beside a path with a version."""
    return UserError(
        "INVALID_ARGUMENT", "both a version and a timestamp were given, or one of them twice", hint="Give one."
    )


def to_millis(asked: Timestamp) -> int:
    """Converts a time in any of its forms to ms since the epoch."""
    if isinstance(asked, bool):
        raise UserError.bad_value("timestamp", asked, "a time")
    if isinstance(asked, int):
        return asked
    if isinstance(asked, str):
        asked = parse_time(asked)
    if not isinstance(asked, datetime):
        asked = datetime(asked.year, asked.month, asked.day, tzinfo=UTC)
    moment = asked if asked.tzinfo is not None else asked.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000 // 1)


def parse_time(text: str, name: str = "timestamp") -> datetime:
    """Reads an ISO time, or one that Spark casts (`2026-1-31`, `… Europe/Berlin`), as delta-spark does; without a zone
    if the text has none; `name` is what the user calls it. Errors: INVALID_ARGUMENT."""
    try:
        # Fractions may have any length, as in other engines' output.
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text.strip()))
    except ValueError:
        found = _cast(text)
    if found is None:
        raise UserError.bad_value(name, text, "a time such as 2026-01-31 12:00:00")
    return found


def _cast(text: str) -> datetime | None:
    """The text as Spark casts it to a time; None if it does not, or if the year is not one from 1 to 9999."""
    from mica.variant import kernel

    batch = pa.record_batch({"text": [text]})
    # A text with a zone is the same time in all zones of a session.
    utc, other = (
        kernel.cast(batch, pa.timestamp("us", "UTC"), timezone=zone).column(0).cast(pa.int64())[0].as_py()
        for zone in ("UTC", "+01:00")
    )
    if utc is None or other is None:
        return None
    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=utc)
    except OverflowError:
        return None
    return found if utc == other else found.replace(tzinfo=None)


def version_at(storage: Storage, listing: Listing, asked: Timestamp) -> int:
    """Returns the version of the table that was current at `asked`."""
    wanted = to_millis(asked)
    versions, time = commit_times(storage, listing)
    first, last = time(0), time(len(versions) - 1)
    if wanted < first:
        raise _outside(storage, asked, f"the oldest available version ({versions[0]}) was made at {_shown(first)}")
    if wanted > last:
        raise _outside(storage, asked, f"the latest version ({versions[-1]}) was made at {_shown(last)}")
    return versions[bisect_right(range(len(versions)), wanted, key=time) - 1]


def version_after(storage: Storage, listing: Listing, asked: Timestamp) -> int:
    """Returns the first version at or after `asked`: the start of a range of changes."""
    wanted = to_millis(asked)
    versions, time = commit_times(storage, listing)
    at = bisect_left(range(len(versions)), wanted, key=time)
    if at == len(versions):
        last = f"the latest version ({versions[-1]}) was made at {_shown(time(at - 1))}"
        raise _outside(storage, asked, last)
    return versions[at]


def version_before(storage: Storage, listing: Listing, asked: Timestamp) -> int:
    """Returns the last version at or before `asked`: the end of a range of changes."""
    wanted = to_millis(asked)
    versions, time = commit_times(storage, listing)
    at = bisect_right(range(len(versions)), wanted, key=time)
    if not at:
        first = f"the oldest available version ({versions[0]}) was made at {_shown(time(0))}"
        raise _outside(storage, asked, first)
    return versions[at - 1]


def commit_times(
    storage: Storage,
    listing: Listing,
    read: Callable[[Entry], Mapping[str, Any]] | None = None,
    opened: Snapshot | None = None,
) -> tuple[list[int], Callable[[int], int]]:
    """The versions with a commit, sorted, and their times by position. `read` reads a commit's info, of the few that
    are needed; `opened` is a version that may be the newest. Errors: TABLE_NOT_FOUND, TIMESTAMP_OUT_OF_RANGE."""
    versions = sorted(listing.commits)
    if not versions and listing.latest >= 0:
        raise UserError(
            "TIMESTAMP_OUT_OF_RANGE",
            f"{storage} has no times: its log has a checkpoint of version {listing.latest}, and no commit",
            hint="Open it without a time.",
        )
    if not versions:
        raise no_table(storage)
    entries = [listing.commits[version] for version in versions]

    @cache
    def own(at: int) -> int | None:
        entry = entries[at]
        return in_commit_timestamp(commit_info(storage, entry.path, entry.size) if read is None else read(entry))

    def stamped(at: int) -> int:
        """Its own time; that of the file where a writer forgot it."""
        found = own(at)
        return entries[at].modified if found is None else found

    count = len(entries)
    inside = count
    if own(count - 1) is not None:
        newest = opened if opened is not None and opened.version == versions[-1] else _loaded(storage)
        if newest is None:
            inside = bisect_left(range(count), True, key=lambda at: own(at) is not None)
        else:
            # They may have been on before, and off again (PROTOCOL.md, "Recommendations for Readers of Tables with
            # In-Commit Timestamps").
            inside = bisect_left(versions, ICT_VERSION.of(newest.properties) or 0)
    modified = increasing([entry.modified for entry in entries[:inside]])
    if 0 < inside < count:
        # Files of a copied table are younger than the stamps in them; their commits are older all the same.
        first = stamped(inside)
        modified = [min(time, first - (inside - at)) for at, time in enumerate(modified)]
    return versions, lambda at: modified[at] if at < inside else stamped(at)


def _loaded(storage: Storage) -> Snapshot | None:
    """The newest version; None if the log is damaged, whose times can be told all the same."""
    from mica.log.snapshot import load

    try:
        return load(storage)
    except CorruptDataError:
        return None


def increasing(times: Iterable[int]) -> list[int]:
    """Returns the times, each at least one more than the previous."""
    out: list[int] = []
    for time in times:
        out.append(max(time, out[-1] + 1) if out else time)
    return out


def _shown(millis: int) -> str:
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):  # not in a year from 1 to 9999: microseconds, perhaps
        return f"{millis} ms since 1970"


def _outside(storage: Storage, asked: Timestamp, why: str) -> UserError:
    return UserError(
        "TIMESTAMP_OUT_OF_RANGE",
        f"{storage} has no version for the time {_shown(asked) if isinstance(asked, int) else asked}: {why}",
        hint="Give a time within the history.",
    )
