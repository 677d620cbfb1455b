"""Finds Delta tables around a path: in its folder, above it, below it; the error for a path where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from mica.errors import MicaError, UserError
from mica.storage import Entry, Storage, split_scheme


def refuse_delta(path: str, options: Mapping[str, str] | None) -> None:
    """Raises DELTA_TABLE if the path is in a Delta table's directory or below it: the log would not name the file."""
    table = table_above(path, options)
    if table is not None:
        raise UserError(
            "DELTA_TABLE",
            f"{path} is inside the Delta table {table}, whose log would not name the file",
            hint="Append the rows to the table (mica.Table.open(…).append), or write elsewhere.",
            path=path,
        )


def table_above(path: str, options: Mapping[str, str] | None) -> str | None:
    """Returns the Delta table whose folder contains the path, at any depth; None if there is none."""
    scheme, rest = split_scheme(path)
    if is_local(path):
        at = os.path.abspath(_local(path))  # noqa: PTH100
        while at != "/" and not _has_log(at):
            at = os.path.dirname(at)  # noqa: PTH120
        return at if at != "/" else None
    at = rest.strip("/")
    while at:
        if Storage.open(f"{scheme}://{at}/_delta_log", options).has_files():
            return f"{scheme}://{at}"
        at = at.rpartition("/")[0]
    return None


def _has_log(folder: str) -> bool:
    """Whether the folder has a log with something in it: an empty one is left where a first commit was not made."""
    try:
        return any(name[:1] != "." for name in os.listdir(os.path.join(folder, "_delta_log")))  # noqa: PTH118, PTH208
    except PermissionError:
        return os.path.lexists(os.path.join(folder, "_delta_log"))  # noqa: PTH118
    except (OSError, ValueError):  # nothing is there, or cannot be: the name is too long, or has a NUL
        return False


def is_local(path: str) -> bool:
    """Whether a path is on this machine's file system."""
    return split_scheme(path)[0] in (None, "file")


def _local(path: str) -> str:
    """A path on this machine, without a scheme."""
    scheme, rest = split_scheme(path)
    return path if scheme is None else "/" + rest.lstrip("/")


def no_table(storage: Storage, *, asks: bool = False) -> UserError:
    """The error for a location without a Delta log. Whoever shows it asks a store what is there instead; the others
    only want to know that there is no table."""
    hint = "Check the path."
    table, here, around = str(storage), storage.local_path, None
    nothing = not (os.path.lexists(here) if here is not None else not asks or _has_files(storage))
    if here is not None or (asks and not nothing):
        above = storage.uri.rpartition("/")[0] if here is None else os.path.dirname(here)  # noqa: PTH120
        with suppress(OSError, MicaError):  # a folder above that may not be listed
            around = table_above(above, storage.options)
    if around is not None:
        hint = f"It is inside of the table {around}: read that, by a condition for the rows of a partition."
    elif not nothing if here is None else os.path.isdir(here):  # noqa: PTH112
        hint += " Of Parquet files without a log, mica.read_parquet reads the rows and "
        hint += "Table.convert_to_delta makes a table."
    why = "there is nothing at this path" if nothing else "its _delta_log holds no commit"
    return UserError("TABLE_NOT_FOUND", f"{table} is not a Delta table: {why}", hint=hint, path=table)


def _has_files(storage: Storage) -> bool:
    """Whether a store has files there, or does not say it."""
    try:
        return storage.has_files()
    except MicaError:
        return True


def table_below(every: Iterable[tuple[Storage, Entry]], files: Sequence[str]) -> str | None:
    """Returns the Delta table that contains one of the files, by its log among `every` file below a folder of an object
    store."""
    logs = (found for found in every if "/_delta_log/" in found[1].path)
    for table in dict.fromkeys(storage.path(log.path.rpartition("/_delta_log/")[0]) for storage, log in logs):
        if any(file.startswith(f"{table}/") for file in files):
            return table
    return None
