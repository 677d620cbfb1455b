"""Optimize: small files of a partition become large ones.

The rule: rows stay the same and keep their order within a partition, so bounds stay as narrow as neighbours allow. The
commit changes no data (`dataChange` is false): an append meanwhile is no conflict, a change of the same files is. A
file is rewritten only where it joins another one, or sheds its deleted rows.

Source: PROTOCOL.md, "Add File and Remove File"; operation and metrics as delta-spark's OPTIMIZE has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mica import engines
from mica.engines.base import Task
from mica.log.snapshot import Snapshot
from mica.scan.scan import Scan
from mica.scan.table import TableSource
from mica.tasks.parts import FilePart, parts_of
from mica.tasks.rewrite import RewriteSpec, join_files
from mica.tasks.write import WriteSpec
from mica.tasks.zones import zone_tags
from mica.write import flow
from mica.write.facts import Facts
from mica.write.target import Commit, open_target, partition_predicate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: A file of at least this share of the target size is large enough.
ENOUGH = 0.75


def optimize(snapshot: Snapshot, where: str | None, target_file_size: int | None, spark: SparkSession | None) -> Commit:
    """Joins small files; see `Table.optimize`."""
    target = open_target(snapshot.storage, snapshot.schema, (), mode="append", properties={}, snapshot=snapshot)
    spec = replace(target.write_spec({}, target_file_size=target_file_size), data_change=False, tags=zone_tags())
    files = parts_of(snapshot.files, of_log=True)
    if where is not None:
        chosen = partition_predicate(where, snapshot.schema, snapshot.partition_columns)(snapshot.files)
        files = [file for file, wanted in zip(files, chosen.to_pylist(), strict=True) if wanted]
    bins = list(_bins(files, spec.target_file_size))
    if not bins:
        return Commit(snapshot.version, 0, 0, snapshot=snapshot)
    target.operation, target.data_change = "OPTIMIZE", False
    target.parameters = {"predicate": [] if where is None else [f"({where})"], "zOrderBy": [], "auto": False}
    sizes = snapshot.files.column("size").combine_chunks()
    vectors = sum(file.deletion_vector is not None for files in bins for file in files)

    def metrics(facts: Facts) -> dict[str, int]:
        removed = pc.sum(sizes.take(pa.array(np.asarray(facts.removed)))).as_py() or 0
        return {
            "numAddedFiles": facts.files.num_rows,
            "numAddedBytes": facts.bytes,
            "numRemovedFiles": len(facts.removed),
            "numRemovedBytes": removed,
            "numDeletionVectorsRemoved": vectors,
        }

    target.metrics = metrics
    # What came out a little larger than it was planned is not cut into a file and a rest.
    spec = replace(spec, target_file_size=spec.target_file_size * 3 // 2)
    read = Scan(TableSource(snapshot)).spec()

    def task(write: WriteSpec) -> Task:
        return partial(join_files, RewriteSpec(read, write))

    done, _ = flow.commit(engines.of(spark), target, spec, flow.FromTasks(task, bins))
    return done


def _bins(files: Iterable[FilePart], size: int) -> Iterator[list[FilePart]]:
    """Files that become one: of one partition, in their order, together about as large as wanted."""
    by_partition: dict[tuple[tuple[str, str | None], ...], list[FilePart]] = {}
    for file in files:
        if (file.size or 0) < size * ENOUGH or file.deletion_vector is not None:
            by_partition.setdefault(tuple(sorted(file.partition.items())), []).append(file)
    for some in by_partition.values():
        together: list[FilePart] = []
        filled = 0
        for file in some:
            if together and filled + (file.size or 0) > size:
                yield from _worth(together)
                together, filled = [], 0
            together.append(file)
            filled += file.size or 0
        yield from _worth(together)


def _worth(files: list[FilePart]) -> Iterator[list[FilePart]]:
    if len(files) > 1 or any(file.deletion_vector is not None for file in files):
        yield files
