"""Optimize: small files of a partition become large ones, or the rows of all files get another order (`zorder`).

The rule: rows stay the same. Joined files keep their order, so bounds stay as narrow as neighbours allow. The
commit changes no data (`dataChange` is false): an append meanwhile is no conflict, a change of the same files is. A
file is rewritten only where it joins another one, or sheds its deleted rows.

Source: PROTOCOL.md, "Add File and Remove File"; operation and metrics as delta-spark's OPTIMIZE has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mica import engines
from mica.engines.base import Task
from mica.log.snapshot import Snapshot
from mica.maintain import zorder
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


def optimize(
    snapshot: Snapshot,
    where: str | None,
    target_file_size: int | None,
    spark: SparkSession | None,
    zorder_by: Sequence[str] | None = None,
) -> Commit:
    """Joins small files, or orders the rows of all; see `Table.optimize`."""
    engine = engines.of(spark)
    keys = [] if zorder_by is None else zorder.unique(zorder_by)
    target = open_target(snapshot.storage, snapshot.schema, (), mode="append", properties={}, snapshot=snapshot)
    spec = replace(target.write_spec({}, target_file_size=target_file_size), data_change=False, tags=zone_tags())
    files = parts_of(snapshot.files, of_log=True)
    if where is not None:
        chosen = partition_predicate(where, snapshot.schema, snapshot.partition_columns)(snapshot.files)
        files = [file for file, wanted in zip(files, chosen.to_pylist(), strict=True) if wanted]
    bins = [files] if keys and files else list(_bins(files, spec.target_file_size)) if not keys else []
    if not bins:
        return Commit(snapshot.version, 0, 0, snapshot=snapshot)
    target.operation, target.data_change = "OPTIMIZE", False
    target.parameters = {"predicate": [] if where is None else [f"({where})"], "zOrderBy": keys, "auto": False}
    target.metrics = partial(_metrics, [file for some in bins for file in some])
    scan = Scan(TableSource(snapshot))
    source: flow.RowSource
    if keys and (found := zorder.ordered(engine, scan, files, keys, spec)) is not None:
        target.removes = np.array([file.number for file in files], np.int64)
        source, spec = found
    else:
        # What came out a little larger than it was planned is not cut into a file and a rest.
        spec = replace(spec, target_file_size=spec.target_file_size * 3 // 2)
        read = scan.spec()

        def task(write: WriteSpec) -> Task:
            return partial(join_files, RewriteSpec(read, write))

        source = flow.FromTasks(task, bins)
    done, _ = flow.commit(engine, target, spec, source)
    return done


def _metrics(files: Sequence[FilePart], facts: Facts) -> dict[str, int]:
    """Sizes and numbers of the new files and of those that they replace."""
    sizes = np.sort(facts.files.column("size").to_numpy()) if facts.files.num_rows else np.zeros(1, np.int64)
    return {
        "numAddedFiles": facts.files.num_rows,
        "numAddedBytes": facts.bytes,
        "numRemovedFiles": len(files),
        "numRemovedBytes": sum(file.size or 0 for file in files),
        "numDeletionVectorsRemoved": sum(file.deletion_vector is not None for file in files),
        **{name: int(sizes[int(share * (len(sizes) - 1))]) for name, share in _PERCENTILES.items()},
    }


_PERCENTILES = {"minFileSize": 0, "p25FileSize": 0.25, "p50FileSize": 0.5, "p75FileSize": 0.75, "maxFileSize": 1}


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
