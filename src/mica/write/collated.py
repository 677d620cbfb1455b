"""Collated bounds of files.

The rule: the task that writes a file gathers the strings that can be its bounds, and the same job compares them.
Collated columns are read again, in one pass, only for existing files and for files with too many such strings. The
engine's comparator decides: Spark's, or in process only UTF8_LCASE, which orders exactly as Spark (`collation.lcase`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from mica.arrays import arrow_array
from mica.engines.base import Ends, Engine
from mica.log import features
from mica.log.actions import Protocol
from mica.schema.types import StructType
from mica.stats.collated import MADE_BY, TAG, CollatedBounds, CollatedColumn, added_bounds, collated_leaves
from mica.storage import Storage
from mica.tasks.facts import facts_schema
from mica.tasks.parts import FilePart, in_tasks, parts_of
from mica.tasks.strings import StringsSpec, strings_of_files
from mica.tasks.write import WriteSpec
from mica.write.facts import Facts


def bounded_columns(
    schema: StructType, protocol: Protocol, configuration: Mapping[str, str], partition_columns: Iterable[str]
) -> list[CollatedColumn]:
    """The columns that get collated bounds, if the engine can compare their strings. None in a table without the
    feature, as delta-spark makes them where its check of types is off: the domain of versions would be missing."""
    if not features.supports(protocol, "collations"):
        return []
    return collated_leaves(schema, configuration, partition_columns)


def comparable(leaves: Sequence[CollatedColumn], engine: Engine) -> tuple[list[CollatedColumn], str]:
    """The columns whose strings this engine can compare, and the comparator's version."""
    found = [leaf for leaf in leaves if engine.comparator.judges(leaf.collation)]
    return found, engine.comparator.version if found else ""


def wanted(leaves: Sequence[CollatedColumn], by: str | None = None) -> Ends:
    """The request for minimum and maximum of the strings that `tasks.candidates` gathered for these columns."""
    return Ends({f"c{i}": leaf.sql for i, leaf in enumerate(leaves)}, by)


def reported(spec: WriteSpec) -> tuple[pa.Schema, Ends]:
    """The facts that the tasks of a write report, and what the engine makes of the strings in them."""
    return facts_schema(spec.collated), wanted(spec.collated)


def collated_bounds(
    engine: Engine, storage: Storage, leaves: Sequence[CollatedColumn], version: str, files: Sequence[FilePart]
) -> list[list[CollatedBounds]]:
    """The bounds of each file, in the order of the files and of the leaves; these must be `comparable`."""
    spec = StringsSpec(storage, tuple(leaves), version)
    tasks = in_tasks([replace(file, number=number) for number, file in enumerate(files)], engine.parallelism)
    batches = engine.run(partial(strings_of_files, spec), tasks, spec.schema, ends=wanted(leaves, "file"))
    rows: dict[int, Mapping[str, Any]] = {row["file"]: row for batch in batches for row in batch.to_pylist()}
    return [_bounds(leaves, rows.get(number, {})) for number in range(len(files))]


def bounded(engine: Engine, spec: WriteSpec, facts: Facts) -> Facts:
    """Adds the bounds of `spec.collated` to the statistics of the written files."""
    leaves, files = spec.collated, facts.files
    if not leaves or not files.num_rows:
        return facts
    columns = [f"c{i}_{part}" for i, _ in enumerate(leaves) for part in ("whole", "min", "max")]
    rows = files.select(columns).to_pylist()
    found = [_bounds(leaves, row) for row in rows]
    many = [n for n, row in enumerate(rows) if not all(row[f"c{i}_whole"] for i, _ in enumerate(leaves))]
    if many:
        parts = parts_of(files.take(arrow_array(np.array(many, np.int64))), of_log=True)
        read = collated_bounds(engine, spec.storage, leaves, spec.version, parts)
        for number, bounds in zip(many, read, strict=True):
            found[number] = bounds
    texts = zip(files.column("stats").to_pylist(), found, strict=True)
    tags = files.column("tags").to_pylist(maps_as_pydicts="lossy")
    return facts.with_columns(
        stats=arrow_array([added_bounds(text, own, spec.version) for text, own in texts], pa.string()),
        tags=arrow_array(list(map(tagged, tags)), files.schema.field("tags").type),
    )


def tagged(tags: Mapping[str, str] | None) -> dict[str, str]:
    """The tags of a file whose collated bounds mica made."""
    return {**(tags or {}), TAG: MADE_BY}


def _bounds(leaves: Sequence[CollatedColumn], row: Mapping[str, Any]) -> list[CollatedBounds]:
    return [CollatedBounds(leaf, row.get(f"c{i}_min"), row.get(f"c{i}_max")) for i, leaf in enumerate(leaves)]
