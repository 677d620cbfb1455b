"""Collated bounds of files.

The rule: who writes a file gathers the strings that can be its bounds, and they are compared in the same job; only of
files that are there already, or whose strings were many, the collated columns are read, in one pass. Spark's comparator
decides; UTF8_LCASE alone is compared in process, exactly as Spark does (`collation.lcase`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from mica.collation import lcase
from mica.collation.comparator import Comparator, extremes
from mica.engines import local
from mica.engines.spark import jobs
from mica.log.paths import decode_path
from mica.stats.collated import MADE_BY, TAG, CollatedBounds, CollatedColumn, with_bounds
from mica.storage import Storage
from mica.tasks.strings import StringsFile, StringsSpec, strings_of_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Bytes of files that a task reads.
TASK_BYTES = 64 << 20


def comparable(leaves: Sequence[CollatedColumn], spark: SparkSession | None) -> tuple[list[CollatedColumn], str]:
    """Those of the columns whose strings can be compared here, and the comparator's version."""
    if spark is None:
        return [leaf for leaf in leaves if lcase.InProcess().judges(leaf.collation)], lcase.ICU
    return list(leaves), Comparator(spark).version if leaves else ""


def collated_bounds(
    spark: SparkSession | None,
    storage: Storage,
    leaves: Sequence[CollatedColumn],
    version: str,
    files: Sequence[tuple[str, int]],
) -> list[list[CollatedBounds]]:
    """The bounds of each file (path as it is read, size), in the order of the files and of the leaves, which are
    `comparable`."""
    spec = StringsSpec(storage, tuple(leaves), version)
    run = partial(strings_of_files, spec)
    numbered = [StringsFile(number, path, size) for number, (path, size) in enumerate(files)]
    if spark is None:
        tasks = grouped(numbered, TASK_BYTES, local.threads())
        found = _compared(pa.Table.from_batches(local.run(run, tasks), spec.schema), len(leaves))
    else:
        tasks = grouped(numbered, TASK_BYTES, jobs.parallelism(spark))
        batches = jobs.over_tasks(spark, run, tasks, spec.ddl)
        found = jobs.collect(extremes(batches, {f"c{i}": leaf.sql for i, leaf in enumerate(leaves)})).to_pylist()
    rows: dict[int, Mapping[str, Any]] = {row["file"]: row for row in found}
    nothing: Mapping[str, Any] = {}
    return [
        [_bounds(leaf, f"c{i}", rows.get(number, nothing)) for i, leaf in enumerate(leaves)]
        for number in range(len(files))
    ]


def bounds_of_facts(
    adds: pa.Table, spark: SparkSession | None, storage: Storage, leaves: Sequence[CollatedColumn], version: str
) -> list[list[CollatedBounds]]:
    """The bounds of files that were written just now: from what their writers gathered, else by reading them."""
    gathered = "c0_whole" in adds.column_names
    rows = (adds.to_pylist() if "c0_min" in adds.column_names else _compared(adds, len(leaves))) if gathered else []
    found: list[list[CollatedBounds] | None] = [
        [_bounds(leaf, f"c{i}", row) for i, leaf in enumerate(leaves)]
        if all(row[f"c{i}_whole"] for i, _ in enumerate(leaves))
        else None
        for row in rows
    ] or [None] * adds.num_rows
    files = files_of(adds.column("line"))
    left = [number for number, bounds in enumerate(found) if bounds is None]
    if left:
        for number, bounds in zip(
            left, collated_bounds(spark, storage, leaves, version, [files[n] for n in left]), strict=True
        ):
            found[number] = bounds
    return [bounds for bounds in found if bounds is not None]


def _compared(gathered: pa.Table, count: int) -> list[dict[str, Any]]:
    """The rows with the ends of their strings, which are those of UTF8_LCASE; a file has one row."""
    rows: list[dict[str, Any]] = gathered.to_pylist()
    for row in rows:
        for i in range(count):
            found = lcase.ends(pa.array(row[f"c{i}"] or [], pa.string())).to_pylist()
            row[f"c{i}_min"], row[f"c{i}_max"] = found or (None, None)
    return rows


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


def _bounds(leaf: CollatedColumn, name: str, row: Mapping[str, Any]) -> CollatedBounds:
    return CollatedBounds(leaf, row.get(f"{name}_min"), row.get(f"{name}_max"))


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
