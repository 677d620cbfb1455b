"""The commitInfo of a commit, without the rest of it.

The rule: commitInfo is looked for in the first line, where the protocol wants it for in-commit timestamps and every
writer puts it, and a commit may be hundreds of megabytes long: only its head is fetched. A commit that has it elsewhere
is read whole (PROTOCOL.md "Commit Provenance Information").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.errors import CorruptDataError
from mica.log.actions import parse_line, whole
from mica.storage import Storage

_HEAD = 1 << 16


def first_line(storage: Storage, rel: str, size: int) -> bytes:
    """The first line of a file of the log, without its line break."""
    length = _HEAD
    while True:
        head = storage.read_ranges(rel, [(0, min(length, size))])[0]
        line, broken, _ = head.partition(b"\n")
        if broken or length >= size:
            return line
        length *= 16


def commit_info(storage: Storage, rel: str, size: int) -> Mapping[str, Any]:
    """The content of the commitInfo of a commit; empty where it has none."""
    try:
        line = first_line(storage, rel, size)
        info = parse_line(line).get("commitInfo") if line.strip() else None
        if isinstance(info, dict):
            return info
        return _anywhere(storage.read(rel))
    except CorruptDataError as error:
        raise CorruptDataError(error.code, error.message, hint=error.hint, path=storage.path(rel)) from None


def in_commit_timestamp(info: Mapping[str, Any]) -> int | None:
    """The commit's own time in ms since the epoch; None where it has none (PROTOCOL.md "In-Commit Timestamps")."""
    return whole(info.get("inCommitTimestamp"))


def _anywhere(data: bytes) -> Mapping[str, Any]:
    at = data.find(b'"commitInfo"')
    while at >= 0:
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        info = parse_line(data[start : end if end >= 0 else len(data)]).get("commitInfo")
        if isinstance(info, dict):
            return info
        at = -1 if end < 0 else data.find(b'"commitInfo"', end)
    return {}
