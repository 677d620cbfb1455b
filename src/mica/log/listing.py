"""Lists `_delta_log` and sorts its files by what they are: commits, checkpoints, log compactions.

The rule: names decide what files are, and files of other names are ignored. An empty checkpoint is none, nor is one of
which a part is missing (PROTOCOL.md "Checkpoints", "Log Compaction Files"). No store lists a folder at one moment: of
two commits that are made meanwhile the later one may be there alone. So commits that are missing between others are
asked for by name; if one is not there, the log is listed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from mica.errors import CorruptDataError, StorageError
from mica.log.folders import table_above
from mica.log.paths import LOG, LogName, commit_name, parse_log_name
from mica.records import dataclass
from mica.storage import Entry, Storage

#: How often a log is listed while each time other commits are gone.
_ATTEMPTS = 5


@dataclass(frozen=True)
class LogFile:
    """One file of the log with its parsed name."""

    name: LogName
    entry: Entry


@dataclass(frozen=True)
class Checkpoint:
    """All files of one complete checkpoint of a version; `kind` as in `LogName`."""

    version: int
    kind: str
    entries: tuple[Entry, ...]


class ReplacedCheckpointError(CorruptDataError):
    """A file of a checkpoint is missing, or another one than was read before: its rows may have another order."""


@dataclass(frozen=True)
class Listing:
    """The files found in `_delta_log`, by version."""

    commits: dict[int, Entry]
    checkpoints: dict[int, list[Checkpoint]]
    compactions: dict[int, list[LogFile]]

    @property
    def latest(self) -> int:
        """The newest version with any file; -1 for an empty log."""
        return max([-1, *self.commits, *self.checkpoints])

    def gaps(self, start: int | None = None) -> list[int]:
        """The first missing commit of each gap before the newest commit; `start` is where the listing began."""
        versions = sorted(self.commits)
        if not versions:
            return []
        if start is not None:
            first = start + (start in self.checkpoints)
        else:
            first = versions[0] if any(version >= versions[0] - 1 for version in self.checkpoints) else 0
        return [before + 1 for before, after in pairwise([first - 1, *versions]) if after > before + 1]


def list_log(storage: Storage, start: int | None = None) -> Listing:
    """Lists the log, or its files from version `start` on. Commits that are missing between others are missing, not
    only in the listing. Errors: NOT_A_DIRECTORY if the table is a file."""
    before: list[int] = []
    for _ in range(_ATTEMPTS):
        found, missing = _filled(read_listing(log_entries(storage, start)), storage, start)
        if missing == before:
            break
        before = missing
    return found


def _filled(listing: Listing, storage: Storage, start: int | None) -> tuple[Listing, list[int]]:
    """The listing with the missing commits that are there, and the first one of each gap that is not."""
    gaps = listing.gaps(start)
    if not gaps:
        return listing, []
    commits, left = dict(listing.commits), []
    for version in gaps:
        at = version
        while at not in commits:
            try:
                commits[at] = storage.stat(commit_name(at))
            except StorageError as error:
                if error.code != "NOT_FOUND":
                    raise
                left.append(version)
                break
            at += 1
    return replace(listing, commits=dict(sorted(commits.items()))), left


def log_entries(storage: Storage, start: int | None = None) -> Iterator[Entry]:
    """The files of the log in the order of their names, whatever they are. Errors as of `list_log`."""
    after = None if start is None else f"{LOG}/{start:020d}"
    try:
        yield from storage.list(LOG, start_after=after, recursive=False)
    except StorageError as error:
        if error.code != "NOT_A_DIRECTORY":
            raise
        place = str(storage)
        if storage.exists(LOG):
            log, hint = storage.path(LOG), "Restore the folder of the table's log from a copy."
            raise StorageError("NOT_A_DIRECTORY", f"{log} is a file, and a log is a folder", hint=hint) from None
        if (table := table_above(place, storage.options)) is not None:
            hint = f"Name the folder of its table: {table}."
        elif place.endswith(".parquet"):
            hint = f"It is in no table: mica.read_parquet({place!r}) reads its rows."
        else:
            hint = f"Put its rows into a table first: mica.ingest_json({place!r}, TABLE)."
        raise StorageError("NOT_A_DIRECTORY", f"{place} is a file, and a table is a folder", hint=hint) from None


def read_listing(entries: Iterable[Entry]) -> Listing:
    """Sorts the files of `_delta_log` by their names; other files are ignored."""
    commits: dict[int, Entry] = {}
    compactions: dict[int, list[LogFile]] = defaultdict(list)
    checkpoints: dict[int, list[Checkpoint]] = defaultdict(list)
    parts: dict[tuple[int, int], dict[int, Entry]] = defaultdict(dict)
    for entry in entries:
        name = parse_log_name(entry.path.rpartition("/")[2])
        if name is None:
            continue
        if name.kind == "commit":
            commits[name.version] = entry
        elif name.kind == "compaction":
            compactions[name.version].append(LogFile(name, entry))
        elif name.kind == "part":
            parts[name.version, name.parts][name.part] = entry
        elif entry.size > 0:
            checkpoints[name.version].append(Checkpoint(name.version, name.kind, (entry,)))
    for (version, count), found in parts.items():
        # "readers must ignore multi-part checkpoints with missing parts"
        if sorted(found) == list(range(1, count + 1)):
            checkpoints[version].append(Checkpoint(version, "part", tuple(found[i] for i in sorted(found))))
    return Listing(commits, dict(checkpoints), dict(compactions))
