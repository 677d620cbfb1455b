"""The shredding tree of a file, read from its footer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mica.errors import StorageError
from mica.scan.find import find
from mica.scan.shredded import tree_of
from mica.storage import Storage
from mica.storage.patterns import is_folder
from mica.variant import kernel
from mica.wording import counted


def inspect_file(path: str, storage_options: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Returns the shredding tree of a file, parents first: column, path, type, typed and residual rows and bytes."""
    head, slash, rel = path.rpartition("/")
    place = Storage.open(head or slash or ".", storage_options)
    if not rel or is_folder(path, storage_options):
        below = find(path, storage_options, whatever_counts=True)
        storage, first = below[0]
        raise StorageError(
            "IS_A_DIRECTORY",
            f"{path} is a directory of {counted(len(below), 'Parquet file')}; inspect reads one file",
            hint=f"Name one of them, such as {storage.path(first.path)}.",
            path=path,
        )
    return tree_of(kernel.open_file(place, rel, early=True))
