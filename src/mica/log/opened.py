"""Resolves an argument to a version of a table, if it is an open table or the folder of one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from mica.errors import StorageError, UserError
from mica.log.snapshot import Snapshot, load
from mica.storage import Storage, patterns


@runtime_checkable
class Opened(Protocol):
    """A table at one version, as `mica.Table` is: the part of it that lower layers need."""

    @property
    def snapshot(self) -> Snapshot:
        """The current version."""

    def refresh(self) -> Any:
        """Moves it to the newest version."""


def snapshot_of(given: Any, options: Mapping[str, str] | None = None, *, version: int | None = None) -> Snapshot | None:
    """Returns the version of the given table; None if the argument has no log: a file, a pattern, a list.

    Errors: TABLE_NOT_FOUND if a version was requested, VERSION_NOT_FOUND.
    """
    if isinstance(given, Opened):
        return given.snapshot
    if not isinstance(given, str | os.PathLike):
        return None
    if version is None and patterns.is_pattern(os.fspath(given), options):
        return None
    try:
        return load(Storage.open(given, options), version)
    except (UserError, StorageError) as e:
        if e.code not in ("TABLE_NOT_FOUND", "NOT_A_DIRECTORY") or version is not None:
            raise
        return None
