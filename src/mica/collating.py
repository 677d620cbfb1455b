"""Collated bounds of files, by one Spark job.

The rule: one pass over the collated columns of the files that are asked for, and of nothing else; what comes back is a
row a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import orjson
import pyarrow as pa

from mica.collation.comparator import Comparator, extremes
from mica.engines.spark import jobs
from mica.log.paths import decode_path
from mica.stats.collated import MADE_BY, TAG, CollatedBounds, CollatedLeaf, with_bounds
from mica.storage import Storage
from mica.tasks.strings import StringsFile, StringsSpec, strings_of_files

#: Bytes of files that a task reads.
TASK_BYTES = 64 << 20


def collated_bounds(
    comparator: Comparator, storage: Storage, leaves: Sequence[CollatedLeaf], files: Sequence[tuple[str, int]]
) -> list[list[CollatedBounds]]:
    """The bounds of each file (path as it is read, size), in the order of the files and of the leaves."""
    spark = comparator.spark
    spec = StringsSpec(storage, tuple(leaves), comparator.version)
    numbered = [StringsFile(number, path, size) for number, (path, size) in enumerate(files)]
    tasks = grouped(numbered, TASK_BYTES, jobs.parallelism(spark))
    batches = jobs.over_tasks(spark, partial(strings_of_files, spec), tasks, spec.ddl)
    found = jobs.collect(extremes(batches, {f"c{i}": leaf.sql for i, leaf in enumerate(leaves)}))
    rows: dict[int, Mapping[str, Any]] = {row["file"]: row for row in found.to_pylist()}
    nothing: Mapping[str, Any] = {}
    return [
        [_bounds(leaf, f"c{i}", rows.get(number, nothing)) for i, leaf in enumerate(leaves)]
        for number in range(len(files))
    ]


def collated_lines(
    lines: pa.Array | pa.ChunkedArray, bounds: Sequence[Sequence[CollatedBounds]], version: str
) -> list[str]:
    """Log lines of new files with their collated bounds, and with the tag that says who made them."""
    found = []
    for line, own in zip(lines.to_pylist(), bounds, strict=True):
        add = orjson.loads(line)["add"]
        add["stats"] = with_bounds(add.get("stats"), own, version)
        add["tags"] = tagged(add.get("tags"))
        found.append(orjson.dumps({"add": add}).decode())
    return found


def tagged(tags: Mapping[str, str] | None) -> dict[str, str]:
    """The tags of a file whose collated bounds are ours."""
    return {**(tags or {}), TAG: MADE_BY}


def files_of(lines: pa.Array | pa.ChunkedArray) -> list[tuple[str, int]]:
    """Path and size of the files that log lines add."""
    adds = (orjson.loads(line)["add"] for line in lines.to_pylist())
    return [(decode_path(add["path"]), add["size"]) for add in adds]


def _bounds(leaf: CollatedLeaf, name: str, row: Mapping[str, Any]) -> CollatedBounds:
    return CollatedBounds(leaf, row.get(f"{name}_min"), row.get(f"{name}_max"), row.get(f"{name}_ok") is not False)


def grouped(files: Sequence[StringsFile], task_bytes: int, parallelism: int) -> list[list[StringsFile]]:
    """The files in groups of about `task_bytes`, smaller ones while cores would be idle."""
    share = max(1, min(task_bytes, sum(file.size for file in files) // max(1, parallelism)))
    tasks: list[list[StringsFile]] = []
    filled = share
    for file in files:
        if filled >= share:
            tasks.append([])
            filled = 0
        tasks[-1].append(file)
        filled += file.size
    return tasks
