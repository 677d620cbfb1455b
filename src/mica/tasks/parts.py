"""Data files that are to be read, one by one and in tasks.

The rule: a file that is to be read is a `FilePart`, whoever reads it, and `Storage.locate` says where it is. Tasks keep
the order of what is packed into them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa

from mica.log.paths import decode_path

Item = TypeVar("Item")

#: A task reads about this many bytes of files, so that a job has neither one task nor thousands of tiny ones.
TASK_BYTES = 64 << 20

#: What no task is made smaller than for the sake of idle cores.
LEAST_BYTES = 1 << 20

#: Files smaller than this are not shared between tasks.
SHARED_BYTES = 8 << 20

#: Into more parts no file is cut: what size the log gives it is checked only where it is opened.
MAX_SHARES = 4096


@dataclass(frozen=True)
class FilePart:
    """A file to read, or the part-th of `parts` shares of its row groups. `path` is decoded, below the table or
    absolute; `number` is what batches about it are reported by.
    """

    path: str
    size: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    deletion_vector: Mapping[str, Any] | None = None
    part: int = 0
    parts: int = 1
    number: int = 0


def parts_of(files: pa.Table, *, of_log: bool = False) -> list[FilePart]:
    """The files of a table with path, size, partition_values and deletion_vector, numbered in their order. `of_log`:
    the paths are URIs, as the log has them.
    """
    columns = [files.column(name).to_pylist() for name in ("path", "size", "partition_values", "deletion_vector")]
    return [
        FilePart(decode_path(path) if of_log else path, size, dict(values or ()), vector, number=number)
        for number, (path, size, values, vector) in enumerate(zip(*columns, strict=True))
    ]


def in_tasks(
    files: Sequence[FilePart], parallelism: int, task_bytes: int = TASK_BYTES, *, shared: bool = False
) -> list[list[FilePart]]:
    """The files in tasks of about `task_bytes`, of less while cores would be idle; `shared` lets large files be cut."""
    sizes = sum(file.size or 0 for file in files)
    per_task = max(LEAST_BYTES, min(task_bytes, sizes // max(1, parallelism)))
    if shared:
        files = [part for file in files for part in _shares(file, per_task)]
    return packed(files, lambda file: (file.size or 0) // file.parts, per_task)


def _shares(file: FilePart, per_task: int) -> Iterable[FilePart]:
    size = file.size or 0
    count = min(MAX_SHARES, max(1, -(-size // per_task))) if size > SHARED_BYTES else 1
    return (file,) if count == 1 else (replace(file, part=part, parts=count) for part in range(count))


def packed(items: Iterable[Item], weight: Callable[[Item], int], per_task: int) -> list[list[Item]]:
    """The items in groups that weigh about `per_task`."""
    tasks: list[list[Item]] = []
    room = 0
    for item in items:
        own = weight(item)
        # Half an item over is nearer to even than half an item under.
        if not tasks or room < own // 2 or room <= 0:
            tasks.append([])
            room = per_task
        tasks[-1].append(item)
        room -= own
    return tasks
