"""Finds Parquet files by path, pattern and directory.

The rule: a path or pattern without a file is an error. A pattern or folder never selects files of a Delta table, since
only its log says which files are current; files that are named one by one are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from mica import threads
from mica.errors import StorageError, UserError
from mica.log.folders import is_local, table_above, table_below
from mica.scan import hive
from mica.storage import Storage, patterns
from mica.storage.patterns import Found

#: The first bytes of a Parquet file, and of one whose footer is encrypted, which a reader refuses.
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def find(
    paths: Paths, storage_options: Mapping[str, str] | None = None, *, whatever_counts: bool = False
) -> list[Found]:
    """The files of paths, patterns and directories. With `whatever_counts`, for callers that only look at bytes, files
    of a Delta table are found by name too. Errors: NOT_FOUND, DELTA_TABLE."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Found] = []
    for path in [os.fspath(p) for p in given]:
        if patterns.is_pattern(path, storage_options):
            below = patterns.fixed_part(path)
            every = [] if is_local(path) else patterns.below(below, storage_options)
            files = patterns.matching(path) if is_local(path) else patterns.matching_of(path, every)
            files = files if whatever_counts or path.rpartition("/")[2][:1] == "_" else [*filter(_may_be_data, files)]
        elif (named := _file(path, storage_options)) is not None:
            _refuse_unnamable([named])
            found.append(named)
            continue
        else:
            below, every = path, patterns.below(path, storage_options)
            files = data_of(every)
        _refuse_unnamable(files)
        if not whatever_counts:
            _refuse_tables(path, below, every, files, storage_options)
        if not files:
            raise StorageError("NOT_FOUND", f"there is no Parquet file at {path!r}", hint="Check the path.", path=path)
        found += files
    if not found:
        raise UserError("NO_INPUT", "no file was named")
    return found


def _refuse_unnamable(files: Sequence[Found]) -> None:
    """Errors: INVALID_NAME for a file whose name is not UTF-8, which neither Arrow nor a log can have."""
    for storage, entry in files:
        if not entry.path.isascii() and entry.path.encode(errors="replace").decode() != entry.path:
            name = repr(storage.path(entry.path))
            raise StorageError("INVALID_NAME", f"the name of {name} is not UTF-8", hint="Rename the file.", path=name)


def _may_be_data(found: Found) -> bool:
    """Whether a pattern may mean the file: not `_SUCCESS` and the like, which Spark leaves beside its data."""
    name = found[1].path.rpartition("/")[2]
    return name[:1] != "_" or name.endswith(".parquet")


def _file(path: str, options: Mapping[str, str] | None) -> Found | None:
    """The file at a path; None for a directory. Object stores have none: there, a path without the ending of a Parquet
    file is listed as a prefix, and so is one with it if there is no such file, for Spark gives it to folders too."""
    if is_local(path):
        is_directory = os.path.isdir(Storage.open(path).local_path or path)  # noqa: PTH112
        return None if is_directory else patterns.file_at(path, options)
    if not path.endswith(".parquet"):
        return None
    try:
        return patterns.file_at(path, options)
    except StorageError as error:
        if error.code != "NOT_FOUND":
            raise
        return None


def _refuse_tables(
    asked: str, below: str, every: Sequence[Found], found: Sequence[Found], options: Mapping[str, str] | None
) -> None:
    """Raises DELTA_TABLE if files are in a Delta table: names do not say which files and rows of it are current.
    `every` are all files that an object store has `below`."""
    files = [storage.path(entry.path) for storage, entry in found]
    for folder in dict.fromkeys(map(os.path.dirname, files)) if is_local(below) else [below]:
        table = table_above(folder, options) or (None if is_local(below) else table_below(every, files))
        if table is not None:
            raise UserError(
                "DELTA_TABLE",
                f"{asked} selects files of the Delta table {table} by name; only its log says which are current",
                hint=f"Read the table: mica.Table.open({table!r}).scan(). Files that are named one by one are read.",
                path=table,
            )


def data_of(found: Iterable[Found]) -> list[Found]:
    """Those of the files of a directory that are Parquet files, by their ending or, as Hive and Impala leave them
    without one, by their first bytes; names that begin with `_` or `.` are not data, as for Spark. A partition's
    directory is, whatever the name of its column: `_day=7`."""
    every = [(storage, entry) for storage, entry in found if is_data(entry.path)]
    odd = [one for one in every if not one[1].path.endswith(".parquet") and one[1].size > len(_MAGIC)]
    heads = threads.each(lambda one: one[0].read_ranges(one[1].path, [(0, len(_MAGIC))])[0], odd)
    there = {one[1].path for one, head in zip(odd, heads, strict=True) if head in (_MAGIC, _ENCRYPTED)}
    return [one for one in every if one[1].path.endswith(".parquet") or one[1].path in there]


def is_data(path: str) -> bool:
    """Whether the path below a folder is that of data, by its names."""
    *above, name = path.split("/")
    # The last is a copy by Hadoop that is not done.
    return (
        name[:1] not in ("", "_", ".")
        and not name.endswith("._COPYING_")
        and not any(part[:1] in ("_", ".") and not hive.is_directory(part) for part in above)
    )
