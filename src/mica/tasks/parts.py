"""Data files to read, and their packing into tasks.

The rule: every file to read is a `FilePart`, and `Storage.locate` resolves its path. Tasks keep the order of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

import pyarrow as pa

from mica.log.feed_columns import CHANGE_TYPE
from mica.log.paths import readable_name
from mica.records import dataclass

Item = TypeVar("Item")

#: A task reads about this many bytes of files, so that a job has neither one task nor thousands of tiny ones.
TASK_BYTES = 64 << 20

#: Tasks are not made smaller than this to use idle cores.
LEAST_BYTES = 1 << 20

#: Files smaller than this are not shared between tasks.
SHARED_BYTES = 8 << 20

#: Upper limit of parts per file: the file's size in the log is checked only when it is opened.
MAX_SHARES = 4096


@dataclass(frozen=True)
class FilePart:
    """A file to read, or share number `part` of `parts` shares of its row groups. `path` is decoded, relative to the
    table or absolute; `number` identifies the file in facts.
    """

    path: str
    size: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    deletion_vector: Mapping[str, Any] | None = None
    part: int = 0
    parts: int = 1
    number: int = 0
    #: A deletion vector whose rows are the only ones to read, less those of `deletion_vector`.
    chosen: Mapping[str, Any] | None = None
    #: Columns that have one value in this file, as text in the form of partition values.
    constants: Mapping[str, str | None] = field(default_factory=dict)
    #: The id of the file's first row, and the version of all rows, where a file has no others for them.
    base_row_id: int | None = None
    #: When it was written, in ms, as the log has it.
    modified: int | None = None
    row_version: int | None = None


#: The columns of `parts_of`; a table without the later ones has no such facts.
_COLUMNS = (
    "path", "size", "partition_values", "deletion_vector", "chosen", "change_type", "constants", "modification_time",
    "ids", "number", "part", "parts",
)  # fmt: skip


def parts_of(files: pa.Table, *, of_log: bool = False) -> list[FilePart]:
    """The files of a table with path, size, partition_values and deletion_vector, numbered in their order; those of a
    change data feed have `chosen` and `change_type` too (`log/feed.py`), tracked ones their `ids`, shares of them their
    `number`, `part` and `parts`. `of_log`: the paths are URIs, as the log has them.
    """
    names, nothing = set(files.column_names), [None] * files.num_rows
    columns = (files.column(name).to_pylist() if name in names else nothing for name in _COLUMNS)
    found = []
    for place, row in enumerate(zip(*columns, strict=True)):
        path, size, values, vector, chosen, change, constants, modified, ids, number, share, shares = row
        own = dict(constants or ())
        if change is not None:
            own[CHANGE_TYPE] = change
        first, version = (None, None) if ids is None else (ids["base_row_id"], ids["default_row_commit_version"])
        part = FilePart(
            readable_name(path) if of_log else path,
            size,
            dict(values or ()),
            vector,
            share or 0,
            shares or 1,
            place if number is None else number,
            chosen=chosen,
            constants=own,
            base_row_id=first,
            modified=modified,
            row_version=version,
        )
        found.append(part)
    return found


def in_tasks(files: Sequence[FilePart], parallelism: int, *, shared: bool = False) -> list[list[FilePart]]:
    """The files in tasks of about `TASK_BYTES`, less if cores would be idle; with `shared`, large files are split."""
    per_task = bytes_of_task(sum(file.size or 0 for file in files), parallelism)
    if shared:
        files = [part for file in files for part in _shares(file, per_task)]
    return grouped(files, lambda file: (file.size or 0) // file.parts, per_task)


def bytes_of_task(size: int, parallelism: int) -> int:
    """About how many bytes of files a task reads, of so many."""
    return max(LEAST_BYTES, min(TASK_BYTES, size // max(1, parallelism)))


def shares_of(size: int, per_task: int) -> int:
    """In how many shares a file of this size is read."""
    return min(MAX_SHARES, max(1, -(-size // per_task))) if size > SHARED_BYTES else 1


def _shares(file: FilePart, per_task: int) -> Iterable[FilePart]:
    count = shares_of(file.size or 0, per_task)
    return (file,) if count == 1 else (replace(file, part=part, parts=count) for part in range(count))


def grouped(items: Iterable[Item], weight: Callable[[Item], int], per_task: int) -> list[list[Item]]:
    """The items in groups that weigh about `per_task`."""
    tasks: list[list[Item]] = []
    room = 0
    for item in items:
        own = weight(item)
        # An item is added if at least half of it fits.
        if not tasks or room < own // 2 or room <= 0:
            tasks.append([])
            room = per_task
        tasks[-1].append(item)
        room -= own
    return tasks
