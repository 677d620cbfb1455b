"""Whether a version still is the one that was read.

The rule: a version is known by the first bytes of its last file, in which every commit has an id or a time of its own.
A folder that was removed and made anew holds other commits under the same names, and what was read of the first table
says nothing about the second: no commit goes on top of it, and no commit of it extends what was read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mica.errors import ConflictError, StorageError
from mica.storage import Entry, Storage

#: A line of commitInfo, or a checkpoint's first pages: with names of files that no two tables share.
_HEAD = 1 << 14
_GONE = frozenset(("NOT_FOUND", "FILE_TOO_SHORT", "NOT_A_DIRECTORY", "IS_A_DIRECTORY"))


@dataclass(frozen=True)
class Fingerprint:
    """What a file of the log begins with."""

    path: str
    length: int
    digest: bytes


def fingerprint_of(path: str, data: bytes) -> Fingerprint:
    """The fingerprint of a file, of which the beginning or all is given."""
    head = data[:_HEAD]
    return Fingerprint(path, len(head), _digest(head))


def fingerprint_in(storage: Storage, entry: Entry) -> Fingerprint:
    """The fingerprint of a listed file."""
    return fingerprint_of(entry.path, storage.read_ranges(entry.path, [(0, min(entry.size, _HEAD))])[0])


def stands(storage: Storage, fingerprint: Fingerprint) -> bool:
    """Whether the file is there and begins as it did."""
    try:
        head = storage.read_ranges(fingerprint.path, [(0, fingerprint.length)])[0]
    except StorageError as error:
        if error.code in _GONE:
            return False
        raise
    return _digest(head) == fingerprint.digest


def replaced(storage: Storage, version: int) -> ConflictError:
    """The error for a commit whose base is gone."""
    return ConflictError(
        "TABLE_REPLACED",
        f"{storage} does not hold the version {version} any more that was read: the table was removed, made anew, or "
        "its log was cleaned up",
        hint="Nothing was committed. Open the table again and repeat the operation.",
        version=version,
    )


def _digest(head: bytes) -> bytes:
    return hashlib.blake2b(head, digest_size=16).digest()
