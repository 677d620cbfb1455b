"""Detects that a table was deleted and recreated.

The rule: a version is identified by the first bytes of its last log file, where every commit has a unique id or time. A
recreated table has other commits under the same names. No commit may go on top of a version that no longer exists, and
no snapshot is extended with commits of another table.
"""

from __future__ import annotations

from mica.errors import ConflictError, StorageError
from mica.records import dataclass
from mica.storage import Entry, Storage

#: Covers a line of commitInfo, or a checkpoint's first pages, which hold names of files that no two tables share.
_HEAD = 1 << 14
_GONE = frozenset(("NOT_FOUND", "FILE_TOO_SHORT", "NOT_A_DIRECTORY", "IS_A_DIRECTORY"))


@dataclass(frozen=True)
class Fingerprint:
    """The first bytes of a log file."""

    path: str
    head: bytes


def fingerprint_of(path: str, data: bytes) -> Fingerprint:
    """Makes the fingerprint of a file from its beginning or all of it."""
    return Fingerprint(path, data[:_HEAD])


def fingerprint_in(storage: Storage, entry: Entry) -> Fingerprint:
    """Makes the fingerprint of a listed file."""
    return fingerprint_of(entry.path, storage.read_ranges(entry.path, [(0, min(entry.size, _HEAD))])[0])


def stands(storage: Storage, fingerprint: Fingerprint) -> bool:
    """Whether the file exists and still has the fingerprint."""
    try:
        head = storage.read_ranges(fingerprint.path, [(0, len(fingerprint.head))])[0]
    except StorageError as error:
        if error.code in _GONE:
            return False
        raise
    return head == fingerprint.head


def replaced(storage: Storage, version: int) -> ConflictError:
    """The error for a commit whose base no longer exists."""
    return ConflictError(
        "TABLE_REPLACED",
        f"version {version} of {storage}, which was read, no longer exists: the table was removed or recreated, or "
        "its log was cleaned up",
        hint="Nothing was committed. Open the table again and repeat the operation.",
        version=version,
    )
