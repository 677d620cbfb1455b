"""Finds the input files of an ingest and packs them into tasks.

The rule: every byte of every input file belongs to exactly one task, tasks keep the order of the files, and a path or
pattern without a file is an error.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mica.errors import StorageError, UserError
from mica.storage import patterns
from mica.tasks.ingest import Split, look

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any

#: Upper limit of plain JSON bytes per task; compressed as columns they are about one file of the default size.
TASK_BYTES = 512 << 20

#: Smaller inputs are not worth a task of their own.
LEAST_BYTES = 8 << 20

#: A task may be larger or smaller by this part of it, if a file need not be split then.
_UNEVEN = 16

#: Estimated compression ratio of compressed JSON, used only to balance tasks.
_GROWS = {".gz": 6, ".gzip": 6, ".zst": 8, ".zstd": 8}


def find(paths: Paths, storage_options: Mapping[str, str] | None = None, format: str = "auto") -> list[Split]:  # noqa: A002 - the public name
    """The files of paths and patterns, each whole. `paths` is one, a list, or a Spark DataFrame of one per row.
    `format` is the format of all files: `ndjson`, `json`, or `auto`, which decides per file.

    Errors: NOT_FOUND for a path or pattern without a file, IS_A_DIRECTORY for a directory.
    """
    found: list[Split] = []
    for path in _texts(paths):
        try:
            files = patterns.files_of(path, storage_options)
        except StorageError as e:
            if e.code not in ("NOT_FOUND", "IS_A_DIRECTORY") or not patterns.is_folder(path, storage_options):
                raise
            raise StorageError(
                "IS_A_DIRECTORY",
                f"{path} is a directory, not a file",
                hint=f"Write {path.rstrip('/')}/*.",
                path=path,
            ) from None
        if not files:
            raise StorageError("NOT_FOUND", f"no file matches {path!r}", hint="Check the pattern.", path=path)
        found += [Split(place, entry.path, entry.size, modified=entry.modified) for place, entry in files]
    if not found:
        raise UserError("NO_INPUT", "no input file was named")
    return [replace(split, format=format) for split in found]


def share(files: Sequence[Split], parallelism: int) -> list[list[Split]]:
    """The files in tasks of equal work: a plain file is split where one task ends and the next begins, any other is in
    the task of its middle."""
    total = sum(_weight(f) for f in files)
    count = max(1, min(parallelism, total // LEAST_BYTES), -(-total // TASK_BYTES))
    if count > parallelism:
        count = -(-count // parallelism) * parallelism  # no core waits in the last round
    per_task = max(1, -(-total // count))
    tasks: dict[int, list[Split]] = {}
    begin = 0
    for file in files:
        for part in _cut(file, begin, per_task):
            end = begin + _weight(part)
            tasks.setdefault(min((begin + end) // 2 // per_task, count - 1), []).append(part)
            begin = end
    return list(tasks.values())


def _cut(file: Split, begin: int, per_task: int) -> list[Split]:
    """A file that begins at `begin` of all input, split at the ends of tasks; no part is smaller than is worth it."""
    least = max(LEAST_BYTES, per_task // _UNEVEN)
    ends = range(per_task - begin % per_task, file.size, per_task)
    edges = [end for end in ends if least <= end <= file.size - least]
    if not edges or _growth(file.path) > 1 or look(file) != (None, "ndjson"):
        return [file]
    return [replace(file, start=start, end=end) for start, end in itertools.pairwise([0, *edges, file.size])]


def _weight(split: Split) -> int:
    return split.bytes * _growth(split.path)


def _growth(path: str) -> int:
    return _GROWS.get(os.path.splitext(path)[1].lower(), 1)  # noqa: PTH122 - a name in a store, not a path


def _texts(paths: Any) -> list[str]:
    if isinstance(paths, str | os.PathLike):
        return [os.fspath(paths)]
    if hasattr(paths, "mapInArrow"):
        return [row[0] for row in paths.select(paths.columns[0]).collect()]
    return [os.fspath(path) for path in paths]
