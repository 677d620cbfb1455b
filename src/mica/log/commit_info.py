"""Reads the commitInfo of a commit without reading the rest.

The rule: only the beginning of a commit is fetched, because a commit may have hundreds of megabytes. commitInfo is
normally the first line: every writer puts it there, and in-commit timestamps require it. If it is not there, the whole
commit is read (PROTOCOL.md "Commit Provenance Information").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.errors import CorruptDataError
from mica.log.actions import parse_line, whole
from mica.storage import Storage

_HEAD = 1 << 16


def first_line(storage: Storage, rel: str, size: int) -> bytes:
    """Returns the first line of a log file, without its line break."""
    length = _HEAD
    while True:
        head = storage.read_ranges(rel, [(0, min(length, size))])[0]
        line, broken, _ = head.partition(b"\n")
        if broken or length >= size:
            return line
        length *= 16


def commit_info(storage: Storage, rel: str, size: int) -> Mapping[str, Any]:
    """Returns the content of a commit's commitInfo; empty if it has none."""
    try:
        line = first_line(storage, rel, size)
        info = parse_line(line).get("commitInfo") if line.strip() else None
        if isinstance(info, dict):
            return info
        return _anywhere(storage.read(rel))
    except CorruptDataError as error:
        raise CorruptDataError(error.code, error.message, hint=error.hint, path=storage.path(rel)) from None


def in_commit_timestamp(info: Mapping[str, Any]) -> int | None:
    """Returns the in-commit timestamp in ms since the epoch, or None (PROTOCOL.md "In-Commit Timestamps")."""
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
