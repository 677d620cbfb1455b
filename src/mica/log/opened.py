"""Resolves an argument to a version of a table, if it is an open table or the folder of one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from mica.errors import StorageError, UserError
from mica.log.folders import is_local, no_table
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
    path = os.fspath(given)
    if version is None and patterns.is_pattern(path, options):
        return None
    try:
        if path.endswith(".parquet") and not is_local(path):
            # Spark gives folders such names too. In an object store one request says what it is, a log asks for two.
            with contextlib.suppress(StorageError):
                patterns.file_at(path, options)
                return None
        return load(Storage.open(path, options), version)
    except (UserError, StorageError) as e:
        if e.code not in ("TABLE_NOT_FOUND", "NOT_A_DIRECTORY") or version is not None:
            raise
        return None


def table_of(given: Any, options: Mapping[str, str] | None = None) -> Snapshot:
    """Returns the version of an open table, or the newest one at a path. Errors: TABLE_NOT_FOUND."""
    found = snapshot_of(given, options)
    if found is None:
        raise no_table(Storage.open(os.fspath(given), options), asks=True)
    return found
